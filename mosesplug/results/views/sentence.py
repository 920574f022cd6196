"""The hypotheses of a sentence, with scores, roles and features' contributions.

Nothing here uses a kernel, so that a sentence is shown at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.render.record import Count, Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, Cell, TextTable
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import SparseRows

SortKey = Literal["model", "metric"]

_ORDER = 4
_BAR = 12
_COLORS = ("red", "yellow", "cyan", "green", "bold green")
"""Colors of words by the length of the longest matching n-gram that they are in."""


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
    roles: Annotated[tuple[str, ...], Shown(", ".join, "role", is_text=True)]
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
        weights: the weights of the model scores; the dense ones have an L1 norm of 1.
        sentence_metric: name of the metric of the sentence scores.
        hypotheses: all hypotheses, or those to show.
        of: number of all hypotheses.
        with_features: whether blocks show the contributions of features.
    """

    JSON_KEYS: ClassVar = "number id source references names sentence_metric hypotheses of"

    number: int
    id: str | None
    source: str | None
    references: tuple[str, ...]
    names: tuple[str, ...]
    weights: Weights
    sentence_metric: str
    hypotheses: tuple[ScoredHypothesis, ...]
    of: int
    with_features: bool = False

    def choose(self, top: int, *, with_features: bool) -> SentenceHypotheses:
        """Return the sentence with the first hypotheses, and others that have a role."""
        shown = tuple(h for place, h in enumerate(self.hypotheses) if place < top or h.roles)
        return replace(self, hypotheses=shown, with_features=with_features)

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the texts, a table of hypotheses, and the contributions of features."""
        yield from self.list_texts()
        yield self.tabulate(self.hypotheses, medium)
        if left_out := self.of - len(self.hypotheses):
            yield f"({left_out} more)"
        if self.with_features and self.hypotheses:
            yield ""
            yield _tabulate_contributions(self.names, self.hypotheses)

    def list_texts(self) -> Iterator[str]:
        """Yield lines with the id, the source and the references that are known."""
        if self.id is not None:
            yield f"sentence   {self.id} (number {self.number})"
        if self.source is not None:
            yield f"source     {self.source}"
        for text in self.references:
            yield f"reference  {text}"
        if self.source is not None or self.references:
            yield ""

    def tabulate(self, hypotheses: Sequence[ScoredHypothesis], medium: Medium) -> TextTable:
        """Return a table, with colored words on a terminal if references are known."""
        columns = "rank model metric matches roles text"
        table = tabulate(ScoredHypothesis, hypotheses, columns, {"metric": self.sentence_metric})
        if medium.is_terminal and self.references:
            return replace(table, rows=[table.rows[0], *self._color_words(table.plain[1:])])
        return table

    def _color_words(self, rows: Sequence[tuple[str, ...]]) -> Iterator[list[Cell]]:
        """Color each word of last cells by the longest matching n-gram that it is in."""
        references = [text.split() for text in self.references]
        for row in rows:
            words = row[-1].split()
            colors = (_COLORS[order] for order in find_matched_orders(words, references))
            yield [*row[:-1], [*zip(words, colors, strict=True)]]

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
    """One feature of two hypotheses, A and B.

    Attributes:
        a, b: its values.
        weight: its weight; the dense weights have an L1 norm of 1.
        lead: its contribution to A's model score minus B's.
        tie: the weight at which both hypotheses tie, if the other weights stay; None if their
            values are equal.
        interval: the weights at which B is the 1-best of all hypotheses, if the other weights stay;
            None if there are none. At the ends, B ties with another hypothesis.
    """

    feature: Text
    a: Annotated[float, Shown("g", "A")]
    b: Annotated[float, Shown("g", "B")]
    weight: Score
    lead: Annotated[float, Shown("+.4f", "A's lead")]
    tie: Annotated[float | None, Shown(".4f", "tie at")]
    interval: Annotated[tuple[float, float] | None, Shown(".4f", "B is 1-best at", missing="never")]


@dataclass(frozen=True)
class HypothesisComparison:
    """Two hypotheses of a sentence, A and B.

    Attributes:
        features: the features, the most decisive first.
    """

    JSON_KEYS: ClassVar = "sentence id a b features"

    whole: SentenceHypotheses
    sentence: int
    id: str | None
    a: ScoredHypothesis
    b: ScoredHypothesis
    features: tuple[FeatureContrast, ...]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the texts, a table of both, and one of the features that differ."""
        a, b = self.a, self.b
        yield from self.whole.list_texts()
        if a.number == b.number:
            yield self.whole.tabulate([a], medium)
            roles = f"{', '.join(a.roles)}: " if a.roles else ""
            yield f"\n{roles}A and B are the same hypothesis; name another one, by its rank"
            return
        both = self.whole.tabulate([a, b], medium)
        rows = [(mark, *row) for mark, row in zip(("", "A", "B"), both.rows, strict=True)]
        yield replace(both, rows=rows, left=1)
        yield ""
        table = tabulate(FeatureContrast, (row for row in self.features if row.a != row.b))
        scores = (f"{a.model:.4f}", f"{b.model:.4f}", "", f"{a.model - b.model:+.4f}", "", "")
        yield replace(table, rows=[*table.rows, ("model score", *scores)])


def _tabulate_contributions(
    names: Sequence[str], hypotheses: Sequence[ScoredHypothesis]
) -> TextTable:
    """Return weight times value, one column per hypothesis, and bars for the first."""
    parts = [{**dict(zip(names, h.contributions, strict=True)), **h.sparse} for h in hypotheses]
    features = dict.fromkeys(name for part in parts for name in part)
    largest = max((abs(value) for part in parts for value in part.values()), default=0.0) or 1.0
    first = f"#{hypotheses[0].rank} as bars"
    rows: list[tuple[str, ...]] = [("weight x value", *(f"#{h.rank}" for h in hypotheses), first)]
    for name in features:
        share = parts[0].get(name, 0.0) / largest
        # A minus sign marks what lowers the score.
        bar = ("-" if share < 0.0 else " ") + "#" * round(abs(share) * _BAR)
        rows.append((name, *(f"{part.get(name, 0.0):.3f}" for part in parts), bar))
    return TextTable(rows, left=1, last=1)


def compare_hypotheses(
    sentence: SentenceHypotheses, a: ScoredHypothesis, b: ScoredHypothesis
) -> HypothesisComparison:
    """Compare two hypotheses of a sentence, feature by feature."""
    hypotheses, weights = sentence.hypotheses, sentence.weights
    models = np.array([hypothesis.model for hypothesis in hypotheses])
    numbers = [hypothesis.number for hypothesis in hypotheses]
    place_a, place_b = numbers.index(a.number), numbers.index(b.number)

    def contrast(name: str, weight: float, values: Sequence[float], lead: float) -> FeatureContrast:
        x, y = values[place_a], values[place_b]
        tie = weight - (a.model - b.model) / (x - y) if x != y else None
        interval = find_interval(weight, np.array(values), models, place_b)
        return FeatureContrast(name, x, y, weight, lead, tie, interval)

    rows = [
        contrast(name, weight, values, added - taken)
        for name, weight, values, added, taken in zip(
            sentence.names,
            weights.dense,
            zip(*(hypothesis.values for hypothesis in hypotheses), strict=True),
            a.contributions,
            b.contributions,
            strict=True,
        )
    ]
    for name in dict.fromkeys([*a.sparse, *b.sparse]):
        values = [hypothesis.sparse_values.get(name, 0.0) for hypothesis in hypotheses]
        lead = a.sparse.get(name, 0.0) - b.sparse.get(name, 0.0)
        rows.append(contrast(name, weights.sparse.get(name, 0.0), values, lead))
    rows.sort(key=lambda row: -abs(row.lead))
    return HypothesisComparison(sentence, sentence.number, sentence.id, a, b, tuple(rows))


def find_interval(
    weight: float, values: NDArray[np.float64], models: NDArray[np.float64], place: int
) -> tuple[float, float] | None:
    """Return the weights of a feature at which a hypothesis is the 1-best.

    Args:
        weight: the present weight.
        values, models: the feature's values, and the model scores, of all hypotheses.
        place: position of the hypothesis.

    Returns:
        The ends, which may be infinite; None if it is the 1-best nowhere, or only at one weight.
    """
    behind, faster = models - models[place], values[place] - values
    if (behind[faster == 0.0] > 0.0).any():
        return None
    steps = np.divide(behind, faster, out=np.zeros_like(behind), where=faster != 0.0)
    low = float(steps[faster > 0.0].max(initial=-np.inf))
    high = float(steps[faster < 0.0].min(initial=np.inf))
    return (weight + low, weight + high) if low < high else None


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
    hypotheses = tuple(
        ScoredHypothesis(
            number=row,
            rank=int(ranks[row]),
            text=decode_text(strings[row]),
            model=float(model[row]),
            metric=float(metric[row]),
            roles=tuple(name for name, place in roles.items() if place == row),
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
        weights=used,
        sentence_metric=run.sentence_score_label,
        hypotheses=hypotheses,
        of=len(hypotheses),
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
