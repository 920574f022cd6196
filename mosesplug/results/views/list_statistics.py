"""Summaries of a run's iterations, and statistics of features.

The statistics are over distinct hypotheses. All statistics are sums over sentences, so that only
some sentences are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import count_noun
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable, format_score
from mosesplug.results.report.data import (
    TUNING_SET,
    Coverage,
    FeatureFacts,
    HeldOutScore,
    IterationFacts,
    ReportedScore,
    tabulate_iterations,
)
from mosesplug.results.views.run import StoredRun
from mosesplug.store import IterationRecord
from mosesplug.tuning.workdir.records import (
    HELD_OUT,
    list_series,
    read_budget_cost,
    read_list_figures,
    read_result,
    read_start,
)
from mosesplug.tuning_set import TuningSet

if TYPE_CHECKING:
    from mosesplug.metrics.protocol import Metric

_SENTENCES = 64
"""Sentences of a batch."""

_NO_VARIATION = 1e-9
"""Largest deviation that rounding leaves of a constant."""


_SHOWN_IDS = 5
_FIGURES = (
    "sentences hypotheses new_hypotheses graphs stored_bytes change score oracle optimum held_out"
)


@dataclass(frozen=True)
class StoreListing:
    """The iterations of a store.

    Attributes:
        sentence_ids: the ids of the lists, if they are texts.
        ids: the same as people see them.
    """

    JSON_KEYS: ClassVar = "store signature sentence_ids? iterations"

    store: str
    metric: str
    signature: str
    sentence_ids: tuple[str, ...]
    ids: tuple[str, ...]
    iterations: tuple[IterationFacts, ...]

    @classmethod
    def of_run(cls, run: StoredRun, iterations: Iterable[IterationFacts]) -> StoreListing:
        """Return the listing of a run."""
        ids = tuple(run.store.sentence_ids)
        names = tuple(run.name_sentence(number) for number in range(len(ids)))
        path, metric = str(run.path), run.metric_name
        return cls(path, metric, run.signature, ids, names, tuple(iterations))

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table, without columns that are empty or 0, and the first sentence ids."""
        columns = f"number date {_FIGURES}"
        yield tabulate_iterations(self.iterations, columns, self.metric, self.signature)
        if self.ids:
            more = ", ..." if len(self.ids) > _SHOWN_IDS else ""
            yield f"sentence ids: {', '.join(self.ids[:_SHOWN_IDS])}{more}"


@dataclass(frozen=True)
class StoreStatistics:
    """Statistics of a store: its features, its lists, and their oracles.

    Attributes:
        sparse_features: number of sparse features.
        lists: the lists of the newest iteration; None if they are elsewhere.
    """

    JSON_KEYS: ClassVar = "features sparse_features distinct_hypotheses lists coverage"

    metric: str
    features: tuple[FeatureFacts, ...]
    sparse_features: int
    distinct_hypotheses: int
    lists: ListStatistics | None
    coverage: Coverage

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table of features, facts on the lists, and a table of oracles."""
        yield tabulate(FeatureFacts, self.features)
        hypotheses = count_noun(self.distinct_hypotheses, "distinct hypothesis")
        yield f"\n{hypotheses}, {count_noun(self.sparse_features, 'sparse feature')}"
        if (lists := self.lists) is not None:
            yield (
                f"iteration {lists.iteration}: {lists.sentences} lists of {lists.shortest} to "
                f"{lists.longest} hypotheses, mean {lists.mean:.1f}; {100 * lists.distinct:.1f}% "
                f"distinct texts, {100 * lists.diversity:.1f}% distinct bigrams, "
                f"{lists.words:.1f} words"
            )
        yield ""
        pairs = zip(self.coverage.ranks, self.coverage.scores, strict=True)
        rows = [(str(rank), format_score(score)) for rank, score in pairs]
        yield TextTable([("first", f"best {self.metric}"), *rows])


def read_batches(run: StoredRun, iterations: int | None = None) -> Iterator[TuningSet]:
    """Read the lists of one iteration, or of all, merged, some sentences at a time."""
    for first in range(0, run.n_sentences, _SENTENCES):
        last = min(first + _SENTENCES, run.n_sentences)
        yield run.store.batch(np.arange(first, last), iterations)


def view_batches(merged: TuningSet) -> Iterator[TuningSet]:
    """Yield the same batches of lists that are in memory, as views of the arrays."""
    for first in range(0, merged.n_sentences, _SENTENCES):
        yield merged.view_sentences(first, min(first + _SENTENCES, merged.n_sentences))


def measure_features(
    batches: Iterable[TuningSet],
    metric: Metric,
    weights: NDArray[np.float64],
    names: Sequence[str],
) -> tuple[FeatureFacts, ...]:
    """Return statistics of each dense feature over the distinct hypotheses.

    Args:
        weights: float64 ``[n_features]``, dense features first.
    """
    sums = FeatureSums.zeros(len(names))
    for batch in batches:
        sums = sums.add(batch, metric)
    return sums.facts(weights, names)


@dataclass(frozen=True)
class FeatureSums:
    """Sums over hypotheses.

    "Centered" values have the mean of their sentence subtracted.

    Attributes:
        sentences: number of sentences that have hypotheses.
        values: sums of the values, float64 ``[n_dense]``.
        active: numbers of hypotheses whose value is not 0, float64 ``[n_dense]``.
        spread: sums of the sentences' standard deviations, float64 ``[n_dense]``.
        squares: sums of squared centered values, float64 ``[n_dense]``.
        products: sums of centered values times centered scores, float64 ``[n_dense]``.
        largest: largest absolute centered value, float64 ``[n_dense]``.
        score_squares: sum of squared centered scores.
        largest_score: largest absolute centered score.
    """

    hypotheses: int
    sentences: int
    values: NDArray[np.float64]
    active: NDArray[np.float64]
    spread: NDArray[np.float64]
    squares: NDArray[np.float64]
    products: NDArray[np.float64]
    largest: NDArray[np.float64]
    score_squares: float
    largest_score: float

    @classmethod
    def zeros(cls, n_dense: int) -> FeatureSums:
        """Return the sums over no hypothesis."""
        zeros = np.zeros(n_dense)
        return cls(0, 0, zeros, zeros, zeros, zeros, zeros, zeros, 0.0, 0.0)

    def add(self, batch: TuningSet, metric: Metric) -> FeatureSums:
        """Return the sums with the hypotheses of more sentences."""
        offsets = batch.offsets[:-1][np.diff(batch.offsets) > 0]
        if not len(offsets):
            return self
        widths = np.diff(np.append(offsets, batch.n_hyps))
        values = batch.dense.astype(np.float64)
        centered = _center(values, offsets, widths)
        scores = _center(score_sentences(metric, batch.stats)[:, None], offsets, widths)[:, 0]
        squares = np.add.reduceat(centered**2, offsets, axis=0)
        return FeatureSums(
            hypotheses=self.hypotheses + batch.n_hyps,
            sentences=self.sentences + len(offsets),
            values=self.values + values.sum(axis=0),
            active=self.active + (values != 0.0).sum(axis=0),
            spread=self.spread + np.sqrt(squares / widths[:, None]).sum(axis=0),
            squares=self.squares + squares.sum(axis=0),
            products=self.products + scores @ centered,
            largest=np.maximum(self.largest, np.abs(centered).max(axis=0)),
            score_squares=self.score_squares + float(scores @ scores),
            largest_score=max(self.largest_score, float(np.abs(scores).max())),
        )

    def facts(self, weights: NDArray[np.float64], names: Sequence[str]) -> tuple[FeatureFacts, ...]:
        """Return the statistics of each feature; see ``measure_features``."""
        return tuple(
            FeatureFacts(
                name=name,
                weight=float(weights[column]),
                mean=float(self.values[column] / self.hypotheses),
                spread=float(self.spread[column] / self.sentences),
                active=float(self.active[column] / self.hypotheses),
                correlation=self._correlation(column),
            )
            for column, name in enumerate(names)
        )

    def _correlation(self, column: int) -> float:
        """Return Pearson's correlation with the scores; NaN if one of them never varies."""
        if min(self.largest[column], self.largest_score) < _NO_VARIATION:
            return float("nan")
        norms = np.sqrt(self.squares[column] * self.score_squares)
        return float(self.products[column] / norms)


def _center(
    values: NDArray[np.float64], offsets: NDArray[np.int64], widths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Subtract the mean of each sentence, float64 of the shape of ``values``."""
    means = np.add.reduceat(values, offsets, axis=0) / widths[:, None]
    return np.asarray(values - np.repeat(means, widths, axis=0))


@dataclass(frozen=True)
class ListStatistics:
    """Size and diversity of the lists of one iteration.

    Attributes:
        sentences: number of sentences that have a list.
        hypotheses: number of hypotheses in all lists.
        distinct: share of hypotheses whose words no earlier hypothesis of the list has.
        diversity: distinct bigrams over all bigrams of a list (distinct-2, Li et al. 2016), mean
            over the lists; 1 if no two hypotheses share a bigram.
        words: mean length of a hypothesis.
    """

    iteration: int
    sentences: int
    hypotheses: int
    shortest: int
    mean: float
    longest: int
    distinct: float
    diversity: float
    words: float


def measure_lists(run: StoredRun, iteration: int) -> Iterator[ListStatistics]:
    """Yield statistics of an iteration's lists so far, after each sentence."""
    sizes: list[int] = []
    distinct = words = 0
    shares: list[float] = []
    for sentence in range(run.n_sentences):
        texts = run.store.iteration_list(iteration, sentence).texts
        if not texts:
            continue
        sizes.append(len(texts))
        distinct += len(set(texts))
        split = [text.split() for text in texts]
        words += sum(map(len, split))
        bigrams = [pair for tokens in split for pair in pairwise(tokens)]
        if bigrams:
            shares.append(len(set(bigrams)) / len(bigrams))
        total = sum(sizes)
        yield ListStatistics(
            iteration=iteration,
            sentences=len(sizes),
            hypotheses=total,
            shortest=min(sizes),
            mean=total / len(sizes),
            longest=max(sizes),
            distinct=distinct / total,
            diversity=float(np.mean(shares)) if shares else 0.0,
            words=words / total,
        )


def summarize_iterations(run: StoredRun, *, oracles: bool = True) -> Iterator[IterationFacts]:
    """Describe the iterations in order.

    Args:
        run: the run.
        oracles: find the oracle up to each iteration, which reads all hypotheses the first time.
    """
    growth: Iterator[float] = iter(())
    if oracles and run.has_lists:
        from mosesplug.results.views.lists import measure_oracle_growth

        growth = measure_oracle_growth(run)
    for record in run.records:
        yield replace(describe_iteration(run, record), oracle=next(growth, None))


def list_held_out_scores(run: StoredRun) -> Iterator[HeldOutScore]:
    """Yield the score of each decoding of held-out set and monitors, in order."""
    for record in run.records:
        if record.result is None:
            continue
        for evaluation in read_result(record).heldout:
            for name, score in evaluation.scores().items():
                yield HeldOutScore(record.iteration, evaluation.updates, name or "held out", score)


def list_reported_scores(run: StoredRun) -> Iterator[ReportedScore]:
    """Yield the scores by metrics that the run reports, in order."""
    for record in run.records:
        if record.result is None:
            continue
        number, result = record.iteration, read_result(record)
        before = number - 1 if result.learner is None else None
        for metric, score in result.reported.items():
            yield ReportedScore(number, before, TUNING_SET, metric, score)
        for evaluation in result.heldout:
            for name, scores in evaluation.reported.items():
                for metric, score in scores.items():
                    text = name or "held out"
                    yield ReportedScore(number, evaluation.updates, text, metric, score)


def describe_iteration(run: StoredRun, record: IterationRecord) -> IterationFacts:
    """Return the facts of an iteration, without oracle."""
    start = read_start(record)
    result = None if record.result is None else read_result(record)
    lists = read_list_figures(record)
    series = list_series(() if result is None else result.heldout)
    held_out = [score for _, score in series.pop(HELD_OUT, ())]
    cost = read_budget_cost(record)
    return IterationFacts(
        number=record.iteration,
        sentences=lists.sentences,
        hypotheses=lists.hypotheses,
        new_hypotheses=lists.new_hypotheses,
        graphs=record.n_graphs,
        stored_bytes=run.store.stored_bytes(record.iteration),
        change=None if result is None else result.largest_change,
        score=lists.first_best_score,
        oracle=None,
        optimum=None if result is None else result.optimum,
        date=record.date,
        held_out=max(held_out, default=None),
        monitors={name: scores[-1][1] for name, scores in series.items()},
        seconds_decoding=start.seconds_decoding,
        seconds_optimizing=0.0 if result is None else result.seconds_optimizing,
        weights=start.weights.normalize().dense,
        listed=None if cost is None else cost.hypotheses,
        winners_scored=None if cost is None else cost.winning_share,
        left_out=None if cost is None else cost.unscored_first_bests,
    )
