"""The hypotheses of one sentence, looked at one by one.

Nothing here needs a kernel: a sentence is shown at once, however large the store.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.inspection.run import Run
from mosesplug.inspection.texts import Texts, decode_text
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import SparseRows

__all__ = ["Hypothesis", "Sentence", "SortedBy", "matched_orders", "sentence_of", "worth"]

SortedBy = Literal["model", "metric"]

_ORDER = 4
_BLEU_COLUMNS = 2 * _ORDER + 1


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a sentence.

    Attributes:
        number: its row among the sentence's hypotheses, as they are stored.
        rank: place by model score, from 1.
        text: the words.
        model: the model score with the weights asked for.
        metric: what it is worth by itself (see ``worth``).
        roles: of 1-best, oracle, hope and fear, those that it has.
        matches: of BLEU, ``(matched, all)`` n-grams of orders 1 to 4; else empty.
        contributions: weight times value of each dense feature, in the order of the columns.
        sparse: weight times value of the sparse features that it has.
        values: the dense features' values.
        sparse_values: the sparse features' values.
    """

    number: int
    rank: int
    text: str
    model: float
    metric: float
    roles: tuple[str, ...]
    matches: tuple[tuple[int, int], ...]
    contributions: tuple[float, ...]
    sparse: Mapping[str, float]
    values: tuple[float, ...]
    sparse_values: Mapping[str, float]


@dataclass(frozen=True)
class Sentence:
    """One sentence with its hypotheses.

    Attributes:
        number: line of the input, from 0.
        source: the text; None where it is not known.
        references: its translations; empty where they are not known.
        names: of the dense columns.
        worth: what the hypotheses' metric is called.
        hypotheses: all of them, in the order asked for.
    """

    number: int
    source: str | None
    references: tuple[str, ...]
    names: tuple[str, ...]
    worth: str
    hypotheses: tuple[Hypothesis, ...]

    def role(self, name: str) -> Hypothesis:
        """The hypothesis that has a role: 1-best, oracle, hope or fear."""
        return next(each for each in self.hypotheses if name in each.roles)


def sentence_of(
    run: Run,
    number: int,
    *,
    iteration: int | None = None,
    weights: Weights | None = None,
    texts: Texts = Texts(),  # noqa: B008 - immutable
    by: SortedBy = "model",
) -> Sentence:
    """A sentence's hypotheses.

    Hope and fear are those that maximise the sum and the difference of model score and metric
    (Chiang 2012; Neubig & Watanabe 2016, eq. 35-36), at weights whose L1 norm is 1.

    Args:
        run: the run.
        number: line of the input, from 0.
        iteration: whose list; None: all lists, merged.
        weights: of the model score; None: the run's result. They are normalised.
        texts: what is known beside the store.
        by: order of the hypotheses, the largest first.

    Raises:
        DataError: there is no such sentence, or the texts are not of this run.
        StoreError: there is no such iteration.
    """
    texts.check(run.n_sentences)
    if iteration is None:
        rows = run.store.batch([number])
        strings = run.store.hypotheses(number)
        dense, sparse, stats = rows.dense, rows.sparse, rows.stats
    else:
        listed = run.store.iteration_list(iteration, number)
        strings, dense, sparse, stats = listed.texts, listed.dense, listed.sparse, listed.stats
    used = (weights or run.weights).normalised()
    contributions = dense.astype(np.float64) * np.array(used.dense)
    values = _sparse_by_name(sparse, run.space.sparse, len(strings))
    weighted = [
        {name: used.sparse.get(name, 0.0) * value for name, value in row.items()} for row in values
    ]
    model = contributions.sum(axis=1) + [math.fsum(row.values()) for row in weighted]
    metric = worth(run, stats)
    roles = _roles(model, metric)
    ranks = np.empty(len(model), dtype=np.int64)
    ranks[np.argsort(-model, kind="stable")] = np.arange(1, len(model) + 1)
    matches = _matches(run, stats)
    order = np.argsort(-(model if by == "model" else metric), kind="stable")
    found = tuple(
        Hypothesis(
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
    return Sentence(
        number=number,
        source=texts.source_of(number),
        references=texts.references_of(number),
        names=run.names,
        worth=worth_name(run),
        hypotheses=found,
    )


def worth_name(run: Run) -> str:
    """What the metric of a sentence is called."""
    name = run.signature.partition("|")[0]
    return "BLEU+1" if name == "BLEU" else name


def worth(run: Run, stats: NDArray[Any]) -> NDArray[np.float64]:
    """What hypotheses are worth by themselves, float64 ``[n]``; larger is better.

    BLEU+1 (Lin & Och 2004) where the run's metric is BLEU, as ``lists.sentence_scores`` has it from
    the kernels, which take longer to load than to use on one sentence; else the metric.
    """
    if worth_name(run) != "BLEU+1":
        return np.asarray(run.metric.score(stats.astype(np.float64)), dtype=np.float64)
    counts = stats.astype(np.float64)
    matched, total = counts[:, 0 : 2 * _ORDER : 2].copy(), counts[:, 1 : 2 * _ORDER : 2].copy()
    length, reference = total[:, 0].copy(), counts[:, 2 * _ORDER]
    matched[:, 1:] += 1.0
    total[:, 1:] += 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(matched[:, :1] > 0, matched / total, 0.0).prod(axis=1)
        brevity = np.exp(np.minimum(0.0, 1.0 - reference / length))
    return np.where(precision > 0.0, np.sqrt(np.sqrt(precision)) * brevity, 0.0)


def matched_orders(words: Sequence[str], references: Sequence[Sequence[str]]) -> list[int]:
    """For each word the length of the longest n-gram, up to 4, that it is in and a reference has.

    N-grams are matched from left to right, each as often as the reference that has it most (the
    clipping of Papineni et al. 2002).
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


def _roles(model: NDArray[np.float64], metric: NDArray[np.float64]) -> dict[str, int]:
    """Which row is 1-best, oracle, hope and fear: among equals that of the highest model score."""
    if not len(model):
        return {}
    sought = {"1-best": model, "oracle": metric, "hope": model + metric, "fear": model - metric}
    return {role: int(np.lexsort((-model, -value))[0]) for role, value in sought.items()}


def _matches(run: Run, stats: NDArray[Any]) -> list[tuple[tuple[int, int], ...]]:
    """Matched and all n-grams of each row, of BLEU."""
    if worth_name(run) != "BLEU+1" or stats.shape[1] != _BLEU_COLUMNS:
        return [()] * len(stats)
    counts = stats.astype(np.int64).tolist()
    return [tuple(zip(row[0:8:2], row[1:8:2], strict=True)) for row in counts]


def _sparse_by_name(
    rows: SparseRows | None, names: Sequence[str], count: int
) -> list[dict[str, float]]:
    """The sparse features of each row."""
    if rows is None:
        return [{} for _ in range(count)]
    found = []
    for row in range(count):
        part = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        columns, values = rows.indices[part].tolist(), rows.data[part].tolist()
        found.append({names[column]: value for column, value in zip(columns, values, strict=True)})
    return found
