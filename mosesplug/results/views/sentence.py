"""The hypotheses of a sentence, with scores, roles and features' contributions.

Nothing here uses a kernel, so that a sentence is shown at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.render.record import Count, Score, Shown, Text
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import SparseRows

SortKey = Literal["model", "metric"]

_ORDER = 4


def _format_matches(matches: tuple[tuple[int, int], ...]) -> str:
    return " ".join(f"{matched}/{total}" for matched, total in matches)


@dataclass(frozen=True)
class ScoredHypothesis:
    """One hypothesis of a sentence.

    Attributes:
        number: row among the stored hypotheses of the sentence.
        rank: rank by model score, from 1.
        roles: its roles out of 1-best, oracle, hope and fear.
        matches: ``(matched, all)`` n-grams of orders 1 to 4 for BLEU; else empty.
        contributions: weight times value of each dense feature.
        sparse: weight times value of its sparse features.
    """

    number: int
    rank: Count
    text: Text
    model: Score
    metric: Score
    roles: Annotated[tuple[str, ...], Shown(", ".join, "plays", is_text=True)]
    matches: Annotated[tuple[tuple[int, int], ...], Shown(_format_matches)]
    contributions: tuple[float, ...]
    sparse: Mapping[str, float]
    values: tuple[float, ...]
    sparse_values: Mapping[str, float]


@dataclass(frozen=True)
class SentenceHypotheses:
    """One sentence with its hypotheses.

    Attributes:
        id: the id of the lists if it is a text; None if ids are numbers.
        source: the source sentence; None if unknown.
        references: the references; empty if unknown.
        sentence_metric: name of the metric of the sentence scores.
    """

    number: int
    id: str | None
    source: str | None
    references: tuple[str, ...]
    names: tuple[str, ...]
    sentence_metric: str
    hypotheses: tuple[ScoredHypothesis, ...]

    def find(self, which: str) -> ScoredHypothesis:
        """Return the hypothesis with a role (1-best, oracle, hope, fear) or a rank.

        Raises:
            DataError: the sentence has no hypotheses.
            UsageError: no hypothesis has this role or rank.
        """
        if not self.hypotheses:
            raise DataError(f"sentence {self.id or self.number} has no hypotheses to compare")
        for hypothesis in self.hypotheses:
            if which in hypothesis.roles or which == str(hypothesis.rank):
                return hypothesis
        raise UsageError(
            f"sentence {self.id or self.number} has no hypothesis {which!r}: give 1-best, "
            f"oracle, hope or fear, or a rank from 1 to {len(self.hypotheses)}"
        )


@dataclass(frozen=True)
class FeatureContrast:
    """One feature of two hypotheses.

    Attributes:
        lead: its contribution to A's model score minus B's.
    """

    feature: Text
    a: Annotated[float, Shown("g", "A")]
    b: Annotated[float, Shown("g", "B")]
    lead: Annotated[float, Shown("+.4f", "A's lead")]


def compare_hypotheses(
    names: Sequence[str], a: ScoredHypothesis, b: ScoredHypothesis
) -> list[FeatureContrast]:
    """Compare the features of two hypotheses, the most decisive first."""
    dense = zip(names, a.values, b.values, a.contributions, b.contributions, strict=True)
    rows = [FeatureContrast(name, x, y, added - taken) for name, x, y, added, taken in dense]
    for name in dict.fromkeys([*a.sparse, *b.sparse]):
        lead = a.sparse.get(name, 0.0) - b.sparse.get(name, 0.0)
        values = a.sparse_values.get(name, 0.0), b.sparse_values.get(name, 0.0)
        rows.append(FeatureContrast(name, *values, lead))
    return sorted(rows, key=lambda row: -abs(row.lead))


def read_sentence(
    run: StoredRun,
    number: int,
    *,
    iteration: int | None = None,
    weights: Weights | None = None,
    text: ParallelText = ParallelText(),  # noqa: B008 - immutable
    by: SortKey = "model",
) -> SentenceHypotheses:
    """Return the hypotheses of a sentence.

    Hope and fear maximize the sum and the difference of model score and metric (Chiang 2012;
    Neubig & Watanabe 2016, eq. 35-36), at weights whose L1 norm is 1.

    Args:
        iteration: the iteration; None for all lists, merged.
        weights: weights of the model score, which are normalized; None for the run's result.
        by: what sorts the hypotheses, the largest first.

    Raises:
        DataError: there is no such sentence, or the text does not belong to the run.
        StoreError: there is no such iteration.
    """
    text.check_length(run.n_sentences)
    if iteration is None:
        rows = run.store.batch([number])
        strings = run.store.hypotheses(number)
        dense, sparse, stats = rows.dense, rows.sparse, rows.stats
    else:
        listed = run.store.iteration_list(iteration, number)
        strings, dense, sparse, stats = listed.texts, listed.dense, listed.sparse, listed.stats
    used = (weights or run.weights).normalize()
    contributions = dense.astype(np.float64) * np.array(used.dense)
    values = [name_sparse_values(run, sparse, row) for row in range(len(strings))]
    weighted = [
        {name: used.sparse.get(name, 0.0) * value for name, value in row.items()} for row in values
    ]
    model = contributions.sum(axis=1) + [math.fsum(row.values()) for row in weighted]
    metric = score_sentences(run.metric, stats)
    roles = _find_roles(model, metric)
    ranks = np.empty(len(model), dtype=np.int64)
    ranks[np.argsort(-model, kind="stable")] = np.arange(1, len(model) + 1)
    matches = _count_matches(run, stats)
    order = np.argsort(-(model if by == "model" else metric), kind="stable")
    found = tuple(
        ScoredHypothesis(
            number=row,
            rank=int(ranks[row]),
            text=decode_text(strings[row]),
            model=float(model[row]),
            metric=float(metric[row]),
            roles=tuple(name for name, of in roles.items() if of == row),
            matches=matches[row],
            contributions=tuple(contributions[row].tolist()),
            sparse=weighted[row],
            values=tuple(dense[row].tolist()),
            sparse_values=values[row],
        )
        for row in order.tolist()
    )
    return SentenceHypotheses(
        number=number,
        id=run.name_sentence(number) if run.store.sentence_ids else None,
        source=text.source_sentence(number),
        references=text.reference_sentences(number),
        names=run.names,
        sentence_metric=run.metric.sentence_metric,
        hypotheses=found,
    )


def find_matched_orders(words: Sequence[str], references: Sequence[Sequence[str]]) -> list[int]:
    """Return the length of the longest matching n-gram that each word is part of.

    The length is at most 4. N-grams match from left to right, each as often as in the reference
    that has it most often (the clipping of Papineni et al. 2002).
    """
    longest = [0] * len(words)
    for order in range(1, _ORDER + 1):
        left: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            left |= Counter(_ngrams(reference, order))
        for start, ngram in enumerate(_ngrams(words, order)):
            if left[ngram] > 0:
                left[ngram] -= 1
                longest[start : start + order] = [
                    max(order, seen) for seen in longest[start : start + order]
                ]
    return longest


def _ngrams(words: Sequence[str], order: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + order]) for start in range(len(words) - order + 1)]


def _find_roles(model: NDArray[np.float64], metric: NDArray[np.float64]) -> dict[str, int]:
    """Return the row of each role; the higher model score wins ties."""
    if not len(model):
        return {}
    sought = {"1-best": model, "oracle": metric, "hope": model + metric, "fear": model - metric}
    return {role: int(np.lexsort((-model, -value))[0]) for role, value in sought.items()}


def _count_matches(run: StoredRun, stats: NDArray[Any]) -> list[tuple[tuple[int, int], ...]]:
    """Return matched and all n-grams of each row for BLEU, else nothing."""
    if not run.metric.has_bleu_statistics:
        return [()] * len(stats)
    counts = stats.astype(np.int64).tolist()
    return [tuple(zip(row[0:8:2], row[1:8:2], strict=True)) for row in counts]


def name_sparse_values(run: StoredRun, rows: SparseRows | None, row: int) -> dict[str, float]:
    """Return the sparse values of a row by name."""
    if rows is None:
        return {}
    part = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
    names = [run.space.sparse[column] for column in rows.indices[part].tolist()]
    return dict(zip(names, rows.data[part].tolist(), strict=True))
