"""What an optimizer is given, and what it gives back.

Optimizers see arrays and a metric, never a file, a database or a process. A batch optimizer is a
function ``optimize(problem, initial, rng, options, progress) -> Solution``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.metrics.protocol import Metric, Smoothing
from mosesplug.optimizers.batch.mira.search import (
    HopeFearSearch,
    first_best_bleu,
    first_best_statistics,
)
from mosesplug.optimizers.line_search.space import SpaceSource
from mosesplug.tuning_set import TuningSet

__all__ = [
    "Problem",
    "Progress",
    "Solution",
    "activate_sparse",
    "check_weights",
    "corpus_score",
    "corpus_statistics",
    "no_progress",
    "normalise",
    "sentence_scores",
]

LARGEST = 1e100
"""Largest weight that a search may start from: model scores beyond it overflow on a long line."""

Progress = Callable[[int, int, str], None]
"""Told of work done, ``(done, total, what)``; may be called from any thread."""


def no_progress(done: int, total: int, what: str) -> None:
    """The progress that tells nobody."""


@dataclass(frozen=True)
class Problem:
    """Hypotheses to choose among, and the metric that says which choice is good.

    Attributes:
        tuning_set: the merged hypotheses, or none of them where there is a source or a search.
        metric: turns summed statistics into a score; larger is better.
        active: bool ``[n_features]``, the weights that may change; None: all dense ones.
        minima: float64 ``[n_features]``, lower ends of the box that random starts come from.
        maxima: float64 ``[n_features]``, its upper ends. The box binds starts, not results.
        starts: further starting points, each float64 ``[n_features]`` (Foster & Kuhn 2009).
        threads: how many threads may work at once.
        positive: bool ``[n_features]``, the weights that must end above 0 (MERT only); None: none.
        source: hypotheses that MERT searches in place of the lists, as search graphs hold them,
            with the features of the lists' space; None: the lists.
        search: what finds hope and fear (batch MIRA only), in place of the lists; None: the lists.
        fixed: bool ``[n_features]``, features whose weights are the decoder's own and no result,
            as that of ``UnknownWordPenalty0`` in search graphs: never active or scaled; None: none.
        keeps_scale: leave weights as large as they are found: beside fixed ones that count in
            every choice, other sizes would be other weights.
    """

    tuning_set: TuningSet
    metric: Metric
    active: NDArray[np.bool_] | None = None
    minima: NDArray[np.float64] | None = None
    maxima: NDArray[np.float64] | None = None
    starts: tuple[NDArray[np.float64], ...] = ()
    threads: int = 1
    positive: NDArray[np.bool_] | None = None
    source: SpaceSource | None = None
    search: HopeFearSearch | None = None
    fixed: NDArray[np.bool_] | None = None
    keeps_scale: bool = False

    @property
    def active_mask(self) -> NDArray[np.bool_]:
        """bool ``[n_features]``: ``active``, or every dense feature; but none that is fixed."""
        space, active = self.tuning_set.space, self.active
        if active is None:
            active = np.arange(len(space)) < space.n_dense
        return active if self.fixed is None else active & ~self.fixed

    @property
    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(minima, maxima)``, 0 and 1 where none are given, as in ``mert-moses.pl``."""
        size = len(self.tuning_set.space)
        minima = np.zeros(size) if self.minima is None else self.minima
        maxima = np.ones(size) if self.maxima is None else self.maxima
        return minima, maxima


@dataclass(frozen=True)
class Solution:
    """Weights, and what they score on the hypotheses that they were tuned on.

    Attributes:
        weights: float64 ``[n_features]``, finite and not all zero.
        score: the metric of decoding the tuning set's lists, or the source, at ``weights``.
        history: one mapping a step, for people and reports.
    """

    weights: NDArray[np.float64]
    score: float
    history: tuple[Mapping[str, Any], ...] = field(default=())


def corpus_score(problem: Problem, weights: NDArray[np.float64]) -> float:
    """Metric of the first-best hypotheses at ``weights``: of source or search, if there is one."""
    if problem.source is not None:
        return problem.source.score(weights)
    if problem.search is not None:
        return first_best_bleu(problem.search, weights.astype(np.float32))
    return float(problem.metric.score(corpus_statistics(problem, weights)))


def corpus_statistics(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Statistics of the first-best hypotheses at ``weights``, summed, float64 ``[n_stats]``.

    Those of problems with other sentences can be added to theirs, and scored together.
    """
    if problem.source is not None:
        return problem.source.statistics(weights)
    if problem.search is not None:
        found = first_best_statistics(problem.search, weights.astype(np.float32))
        return found.astype(np.float64)
    chosen = problem.tuning_set.first_best(weights)
    return np.asarray(problem.tuning_set.stats[chosen].sum(axis=0, dtype=np.float64))


def sentence_scores(problem: Problem, smoothing: Smoothing) -> NDArray[np.float64]:
    """Return the score of every hypothesis by itself, float64 ``[n_hyps]``.

    Args:
        problem: hypotheses and metric.
        smoothing: the smoothed sentence BLEU, where the metric is BLEU or has it as a part.
    """
    stats = problem.tuning_set.stats.astype(np.float64)
    return problem.metric.sentence_scores(stats, smoothing)


def normalise(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights over the L1 norm of the dense ones, if all of those are active.

    It changes no decision of the decoder, and makes weights of different runs comparable. (Weights
    that are the decoder's own stay as it has them: a penalty of unknown words, which outweighs the
    rest at any scale.) Where dense weights are inactive, the others have a scale already, and so
    they have where the problem says that they keep it.
    """
    n_dense = problem.tuning_set.space.n_dense
    norm = np.abs(weights[:n_dense]).sum()
    if problem.keeps_scale or not (problem.active_mask[:n_dense].all() and norm > 0.0):
        return weights
    if problem.fixed is None:
        return np.asarray(weights / norm)
    return np.where(problem.fixed, weights, weights / norm)


def activate_sparse(problem: Problem) -> Problem:
    """The problem of an algorithm that tunes sparse weights too, unless some are chosen."""
    if problem.active is not None:
        return problem
    return replace(problem, active=np.ones(len(problem.tuning_set.space), dtype=np.bool_))


def check_weights(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights as float64, if a search can start there.

    Raises:
        OptimizerError: wrong number, NaN, infinite or enormous values, here or among the
            problem's further starts; a box that is none; features that are not finite, no
            hypotheses, or nothing to tune.
    """
    space = problem.tuning_set.space
    weights = _checked_start(space, weights)
    for start in problem.starts:
        _checked_start(space, start)
    _check_box(problem)
    tuning_set = problem.tuning_set
    if tuning_set.n_hyps == 0 and problem.source is None and problem.search is None:
        raise OptimizerError("there are no hypotheses to tune on; check the n-best lists")
    if not np.isfinite(tuning_set.dense).all():
        column = int(np.flatnonzero(~np.isfinite(tuning_set.dense).all(axis=0))[0])
        raise OptimizerError(f"values of feature {space.names[column]} are not finite numbers")
    if tuning_set.sparse is not None and not np.isfinite(tuning_set.sparse.data).all():
        raise OptimizerError("values of a sparse feature are not finite numbers")
    if not problem.active_mask.any():
        raise OptimizerError("no feature is active; there is nothing to tune")
    return weights


def _checked_start(space: FeatureSpace, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """A copy as float64 of weights that a search can start from."""
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != (len(space),):
        raise OptimizerError(
            f"{weights.size} starting weights for {len(space)} features; give one for each of "
            f"{', '.join(space.names[:20])}"
        )
    usable = np.abs(weights) <= LARGEST
    if not usable.all():
        column = int(np.argmin(usable))
        raise OptimizerError(
            f"the starting weight of {space.names[column]} is {weights[column]}; give a finite "
            f"number, at most {LARGEST:g}"
        )
    return weights


def _check_box(problem: Problem) -> None:
    """Refuse ends between which no random weights can be drawn."""
    space = problem.tuning_set.space
    minima, maxima = problem.box
    if minima.shape != (len(space),) or maxima.shape != (len(space),):
        raise OptimizerError(
            f"{minima.size} and {maxima.size} bounds of random starts for {len(space)} features"
        )
    usable = (minima >= -LARGEST) & (minima <= maxima) & (maxima <= LARGEST)
    if not usable.all():
        column = int(np.argmin(usable))
        raise OptimizerError(
            f"random weights of {space.names[column]} cannot be drawn from {minima[column]} to "
            f"{maxima[column]}"
        )
