"""Mix what shards learned into one weight vector over the features of all.

Features get columns by name: those that all shards knew before the epoch, then those that the first
shard met, those that only the second met, and so on.

A line search needs the lists of all shards. Where these stay in the shards, each hypothesis is
represented by two numbers: its model score at the start of the line, and the difference to the
score at its end; these and the statistics travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.optimizers.online.epochs import EpochReport, Tally
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.optimizers.online.mixing import MixResult, average, line_search, select_features
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning_set import TuningSet


class Corpus(Protocol):
    """The lists of all shards, for mixing."""

    @property
    def space(self) -> FeatureSpace:
        """The features that all shards know before the epoch."""

    def active(self, space: FeatureSpace, counts: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        """Return the weights that may change, bool ``[len(space)]``.

        Args:
            counts: those of ``EpochReport``.
        """

    def score(self, weights: NDArray[np.float64]) -> float:
        """Return the corpus score of the lists at some weights; NaN if it is unknown."""

    def search(
        self, space: FeatureSpace, old: NDArray[np.float64], mixed: NDArray[np.float64]
    ) -> MixResult:
        """Find the best point on the line from the old to the mixed weights.

        (Watanabe 2012, Algorithm 3.)

        Args:
            space: the features of all shards after the epoch.
            old: float64 ``[len(space)]``.
            mixed: float64 ``[len(space)]``.
        """


@dataclass(frozen=True)
class StoredCorpus:
    """A ``Corpus`` of lists that exist before the epoch."""

    problem: Problem

    @property
    def space(self) -> FeatureSpace:
        """The features of the lists; no others appear."""
        return self.problem.tuning_set.space

    def active(self, space: FeatureSpace, counts: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        """Return the problem's mask."""
        return self.problem.active_mask

    def score(self, weights: NDArray[np.float64]) -> float:
        """Return the corpus score of the lists at some weights."""
        return corpus_score(self.problem, weights)

    def search(
        self, space: FeatureSpace, old: NDArray[np.float64], mixed: NDArray[np.float64]
    ) -> MixResult:
        """Find the best point on the line from the old to the mixed weights."""
        return line_search(self.problem, old, mixed)


def mix_weights(
    sharding: Sharding,
    corpus: Corpus,
    space: FeatureSpace,
    old: NDArray[np.float64],
    vectors: Sequence[NDArray[np.float64]],
    updates: Sequence[int],
    counts: NDArray[np.int64] | None = None,
) -> MixResult:
    """Make one weight vector of those of the shards.

    Args:
        old: float64 ``[len(space)]``, before the epoch.
        vectors: float64 ``[len(space)]``, of each shard after it.
        updates: the number of updates of each shard in the epoch.
        counts: see ``EpochReport``.

    Returns:
        The weights, their score as the corpus knows it, and how far they are from the old weights
        (0) to the mean (1).
    """
    if sharding.mixing == "line-search":
        return corpus.search(space, old, average(vectors))
    if sharding.mixing == "weighted":
        weights = average(vectors, updates)
    elif sharding.mixing == "select":
        active = corpus.active(space, counts)
        learned = [np.where(active, vector, 0.0) for vector in vectors]
        selected = select_features(learned, sharding.keep, space.n_dense)
        weights = np.where(active, selected, old)  # the others keep their old weights
    else:
        weights = average(vectors)
    return MixResult(weights, 1.0, corpus.score(weights))


def merge_reports(
    reports: Sequence[EpochReport], space: FeatureSpace, fills: Mapping[str, float]
) -> tuple[EpochReport, FeatureSpace]:
    """Merge the reports of all shards, and the features that they met.

    Args:
        space: the features that all shards knew before the epoch.
        fills: values of the states' vectors at features that a shard never met.

    Returns:
        One report, with each shard's state over the features of all, the sums of all counts, and
        the seconds of the slowest shard; and these features.
    """
    # In the order of the shards: features are numbered alike whichever ends first.
    met = tuple(dict.fromkeys(name for report in reports for name in report.features))
    merged = FeatureSpace(space.groups, (*space.sparse, *met)) if met else space
    columns = {name: column for column, name in enumerate(met, start=len(space))}
    states, counts = [], np.zeros(merged.n_sparse, dtype=np.int64)
    for report in reports:
        own = np.array([columns[name] for name in report.features], dtype=np.int64)
        states.append(_widen_state(report.state, len(space), own, len(merged), fills))
        if report.counts is not None:
            known = np.append(np.arange(space.n_sparse), own - space.n_dense)
            counts[known] += report.counts
    report = EpochReport(
        states=tuple(states),
        tally=add_tallies([report.tally for report in reports]),
        features=met,
        counts=None if reports[0].counts is None else counts,
        sentences=sum(report.sentences for report in reports),
        hypotheses=sum(report.hypotheses for report in reports),
        new_hypotheses=sum(report.new_hypotheses for report in reports),
        seconds=max(report.seconds for report in reports),
        notes=tuple(note for report in reports for note in report.notes),
    )
    return report, merged


def _widen_state(
    state: LearnerState,
    n_before: int,
    own: NDArray[np.int64],
    n_features: int,
    fills: Mapping[str, float],
) -> LearnerState:
    """Return a shard's state over all features; ``own`` are columns of its new ones."""
    if n_features == n_before:
        return state
    vectors = {}
    for name, vector in state.vectors.items():
        wide = np.full(n_features, fills[name])
        wide[:n_before] = vector[:n_before]
        wide[own] = vector[n_before:]
        vectors[name] = wide
    return replace(state, vectors=vectors)


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """Return the tally of all batches of one or more tallies."""
    sums: dict[str, float] = {}
    for tally in tallies:
        for name, value in tally.sums.items():
            sums[name] = sums.get(name, 0.0) + value
    totals = np.sum([tally.totals for tally in tallies], axis=0)
    return Tally(sum(tally.batches for tally in tallies), totals, sums)


@dataclass(frozen=True)
class LineScores:
    """What a line search between two weight vectors needs of a shard's lists.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``, of the shard's sentences that have a list.
        scores: float64 ``[n_hyps, 2]``: the model score of each hypothesis at the start of the
            line, and the difference to its score at the end.
        stats: ``[n_hyps, n_stats]``.
    """

    offsets: NDArray[np.int64]
    scores: NDArray[np.float64]
    stats: NDArray[np.int32] | NDArray[np.float32] | NDArray[np.float64]


def search_line(
    shards: Sequence[LineScores],
    metric: Metric,
    old: NDArray[np.float64],
    mixed: NDArray[np.float64],
) -> MixResult:
    """Find the best point on the line from the old to the mixed weights.

    Args:
        old: float64 ``[n_features]``, not all 0.
        mixed: float64 ``[n_features]``, not all 0.
    """
    sizes = np.concatenate([np.diff(scores.offsets) for scores in shards])
    stats = np.concatenate([scores.stats for scores in shards])
    lists = TuningSet(
        space=FeatureSpace((("old", 1), ("gain", 1))),
        sentence_ids=np.arange(len(sizes)),
        offsets=np.append(0, np.cumsum(sizes)).astype(np.int64),
        # float64: unlike features, scores need all their digits.
        dense=cast(Any, np.concatenate([scores.scores for scores in shards])),
        sparse=None,
        stats=stats,
        lengths=np.ones(len(stats), dtype=np.int32),
    )
    # With the two scores as features, the line goes from (1, 0) to (1, 1).
    best = line_search(Problem(lists, metric), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    weights = mixed if best.rho == 1.0 else old + best.rho * (mixed - old)
    return replace(best, weights=weights)
