"""The problem that an optimizer solves, and its solution.

Optimizers see arrays and a metric, never a file, a database or a process. A batch optimizer is a
function ``optimize(problem, initial, rng, options, progress) -> Solution``:

- ``problem`` has the hypotheses, the metric and the active features. Algorithms that tune sparse
  weights treat all features as active if the problem does not say which are.
- ``initial``, float64 ``[n_features]``, are the starting weights. Inactive weights keep their
  values, and the others are fitted in proportion to them. If every dense weight is active, the
  result is divided by its L1 norm (``normalize``).
- ``rng`` is the source of all random choices, so that a seed determines the result.
- ``options`` is the algorithm's dataclass of settings.
- ``progress`` is called with the work done.

The function gets a problem and weights that were checked (``check_weights``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Weights
from mosesplug.candidates import Candidates
from mosesplug.errors import OptimizerError, count_noun
from mosesplug.features import FeatureSpace
from mosesplug.metrics.protocol import Metric, Smoothing
from mosesplug.optimizers.bounds import Bounds
from mosesplug.tuning_set import TuningSet

if TYPE_CHECKING:
    from mosesplug.optimizers.online.learner import LearnerState

_CHUNK = 65536
"""Hypotheses whose features are checked at a time."""

LARGEST = 1e100
"""Largest starting weight: beyond it, model scores overflow on a long line."""

Progress = Callable[[int, int, str], None]
"""Called with ``(done, total, what)``, from any thread."""


def no_progress(done: int, total: int, what: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Problem:
    """Hypotheses to choose among, and the metric that scores the choice.

    Attributes:
        tuning_set: the merged hypotheses; only their features if the source is search graphs.
        metric: scores summed statistics; larger is better.
        active: the weights that may change; None: all dense ones.
        minima: lower ends of the box of random starts.
        maxima: its upper ends. The box limits starts, not results.
        starts: further starting points, each float64 ``[n_features]`` (Foster & Kuhn 2009).
        threads: maximum number of threads.
        positive: weights that must end above 0 (MERT only); None if there are none.
        source: the hypotheses, if they are not only ``tuning_set``: shards of it that other
            workers hold, or search graphs with its features. Algorithms ask ``candidates``.
        is_fixed: features whose weights are set by the decoder, such as ``UnknownWordPenalty0``
            in search graphs: never active or scaled; None if there are none.
        keeps_scale: do not scale the weights: fixed ones that count in every choice would get
            another proportion.
        bounds: the bounds of the result's weights, which also end searches on the way; None if
            there are none.
            A weight with one possible value is never active.
        grows: whether a decoder will add hypotheses and the weights are learned again. A search
            of few hypotheses to the last detail would fit what the next decoding refutes.
        states: the states of an online learner (one, or one for each shard) after earlier
            decodings, over these features; only read. None: it starts anew.
        center: the weights that a run began with, from which penalties measure distances; None:
            those that are given to the algorithm.
        source_lengths: words of each source sentence, int64, by the sentence ids of the
            candidates; None: unknown.
    """

    tuning_set: TuningSet
    metric: Metric
    active: FeatureMask | None = None
    minima: Weights | None = None
    maxima: Weights | None = None
    starts: tuple[NDArray[np.float64], ...] = ()
    threads: int = 1
    positive: FeatureMask | None = None
    source: Candidates | None = None
    is_fixed: FeatureMask | None = None
    keeps_scale: bool = False
    bounds: Bounds | None = None
    grows: bool = False
    states: tuple[LearnerState, ...] = ()
    center: Weights | None = None
    source_lengths: NDArray[np.int64] | None = None

    @cached_property
    def candidates(self) -> Candidates:
        """The hypotheses, wherever they are."""
        if self.source is not None:
            return self.source
        # Here and not above: these modules have kernels, which not every program needs.
        from mosesplug.optimizers.list_candidates import Lists
        from mosesplug.optimizers.lists.shards import WholeLists

        return Lists(self.tuning_set, self.metric, WholeLists(self.tuning_set, self.threads))

    @property
    def active_mask(self) -> NDArray[np.bool_]:
        """bool ``[n_features]``: ``active`` or every dense feature, without fixed ones."""
        space, active = self.tuning_set.space, self.active
        if active is None:
            active = np.arange(len(space)) < space.n_dense
        if self.bounds is not None:
            active = active & ~self.bounds.is_fixed
        return active if self.is_fixed is None else active & ~self.is_fixed

    @property
    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(minima, maxima)``; by default 0 and 1, as in ``mert-moses.pl``."""
        if self.bounds is not None:
            return self.bounds.start_box(self.minima, self.maxima)
        size = len(self.tuning_set.space)
        minima = np.zeros(size) if self.minima is None else self.minima
        maxima = np.ones(size) if self.maxima is None else self.maxima
        return minima, maxima

    @property
    def has_free_scale(self) -> bool:
        """Whether the bounds let all weights be multiplied by any positive factor."""
        return self.bounds is None or self.bounds.is_cone()

    @property
    def has_conic_bounds(self) -> bool:
        """The same for the active weights: each limit is 0 or infinite."""
        return self.bounds is None or self.bounds.is_cone(self.active_mask)


@dataclass(frozen=True)
class Solution:
    """Weights, and their score on the hypotheses that they were tuned on.

    Attributes:
        weights: finite and not all zero.
        score: corpus score of the 1-best of the lists, or of the source, at ``weights``.
        history: one mapping per step, for reports.
        length_exponent: exponent of the length that model scores are divided by; None: they are
            not divided.
        states: the states of an online learner (one, or one for each shard) after the chosen epoch.
        notes: messages for users.
    """

    weights: Weights
    score: float
    history: tuple[Mapping[str, Any], ...] = field(default=())
    length_exponent: float | None = None
    states: tuple[LearnerState, ...] = ()
    notes: tuple[str, ...] = ()


def corpus_score(problem: Problem, weights: NDArray[np.float64]) -> float:
    """Return the metric of the 1-best hypotheses at ``weights``."""
    return problem.candidates.score(weights)


def sentence_scores(problem: Problem, smoothing: Smoothing) -> NDArray[np.float64]:
    """Return the score of every hypothesis by itself, float64 ``[n_hyps]``.

    Args:
        problem: hypotheses and metric.
        smoothing: the smoothed sentence BLEU, where the metric is BLEU or has it as a part.
    """
    stats = problem.tuning_set.stats.astype(np.float64)
    return problem.metric.sentence_scores(stats, smoothing)


def normalize(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights divided by the L1 norm of the dense ones, if all are active.

    This changes no decision of the decoder and makes weights of different runs comparable. Fixed
    weights are not scaled: a penalty of unknown words outweighs the rest at any scale. Weights are
    not scaled if some dense ones are inactive, which determine the scale, with ``keeps_scale``, or
    if bounds have a limit other than 0.
    """
    n_dense = problem.tuning_set.space.n_dense
    norm = np.abs(weights[:n_dense]).sum()
    if not (norm > 0.0 and can_scale(problem)):
        return weights
    if problem.is_fixed is None:
        return np.asarray(weights / norm)
    return np.where(problem.is_fixed, weights, weights / norm)


def can_scale(problem: Problem) -> bool:
    """Return whether weights that are not fixed may be scaled by a positive factor."""
    n_dense = problem.tuning_set.space.n_dense
    if problem.keeps_scale or not problem.has_free_scale:
        return False
    return bool(problem.active_mask[:n_dense].all())


def score_solution(
    problem: Problem, weights: NDArray[np.float64], history: tuple[Mapping[str, Any], ...]
) -> Solution:
    """Return the weights, float64 ``[n_features]``, normalized, with their score.

    Raises:
        OptimizerError: the bounds leave only weights that are all zero.
    """
    weights = normalize(problem, weights)
    if problem.bounds is not None:
        weights = problem.bounds.project(weights)  # rounding may have moved one beyond its limit
        if not weights.any():
            raise OptimizerError(
                "the best weights inside the bounds are all zero; use other bounds, another start, "
                "or another algorithm"
            )
    return Solution(weights, corpus_score(problem, weights), history)


def count_remaining(problem: Problem, solution: Solution) -> Solution:
    """Return the solution with a note on the weights that L1 has not made 0."""
    active = problem.active_mask
    remaining = int(np.count_nonzero(solution.weights[active]))
    total = count_noun(int(active.sum()), "tuned weight")
    note = f"L1 left {remaining} of {total} different from 0"
    return replace(solution, notes=(*solution.notes, note))


def activate_sparse(problem: Problem) -> Problem:
    """Return the problem with all features active, unless it says which are."""
    if problem.active is not None:
        return problem
    return replace(problem, active=np.ones(len(problem.tuning_set.space), dtype=np.bool_))


def check_weights(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a float64 copy of the weights, projected into the bounds.

    Raises:
        OptimizerError: wrong number, NaN, infinite or enormous values, here, in the problem's
            center or among its further starts; an invalid box; invalid bounds; features that are
            not finite; no hypotheses; no active feature.
    """
    space = problem.tuning_set.space
    weights = _check_start(space, weights)
    for start in (*problem.starts, *(() if problem.center is None else (problem.center,))):
        _check_start(space, start)
    if problem.bounds is not None:
        _check_bounds(problem.bounds, space)
        weights = problem.bounds.project(weights)
    _check_box(problem)
    tuning_set = problem.tuning_set
    if tuning_set.n_hyps == 0 and "lists" in problem.candidates.answers:
        raise OptimizerError("no hypotheses to tune on; check the n-best lists")
    if not (finite := _finite_columns(tuning_set.dense)).all():
        column = int(np.flatnonzero(~finite)[0])
        raise OptimizerError(f"values of feature {space.names[column]} are not finite numbers")
    if tuning_set.sparse is not None and not np.isfinite(tuning_set.sparse.data).all():
        raise OptimizerError("values of a sparse feature are not finite numbers")
    if not problem.active_mask.any():
        raise OptimizerError(f"nothing to tune: {_explain_inactive(problem)}")
    return weights


def _explain_inactive(problem: Problem) -> str:
    space = problem.tuning_set.space
    if not len(space):
        return "the lists have no features. Use lists with feature values"
    if problem.active is None and not space.n_dense:
        return "all features are sparse. Use an algorithm that tunes sparse features, as kbmira"
    return "no feature is active. Leave at least one weight free"


def _finite_columns(dense: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which features have finite values only, bool ``[n_dense]``.

    Some rows are tested at a time, because a copy of all rows would be large.
    """
    finite = np.ones(dense.shape[1], dtype=np.bool_)
    for start in range(0, len(dense), _CHUNK):
        finite &= np.isfinite(dense[start : start + _CHUNK]).all(axis=0)
    return finite


def _check_start(space: FeatureSpace, weights: NDArray[np.float64]) -> NDArray[np.float64]:
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


def _check_bounds(bounds: Bounds, space: FeatureSpace) -> None:
    if len(bounds) != len(space):
        raise OptimizerError(f"bounds of {len(bounds)} weights for {len(space)} features")
    low, high = bounds.box
    usable = (bounds.low <= bounds.high) & (low <= LARGEST) & (high >= -LARGEST)
    usable &= ~((bounds.low == bounds.high) & (bounds.above | bounds.below))
    if not usable.all():
        column = int(np.argmin(usable))
        raise OptimizerError(
            f"no weight of {space.labels[column]} is from {bounds.low[column]:g} to "
            f"{bounds.high[column]:g}"
        )
