"""Mixing of the weights of shards (Watanabe 2012, section 4.2; survey 7.1.1).

Each shard learns from its own sentences for an epoch. Then the shards' weights are averaged, over
all features or over those with large weights in many shards. The mean may score badly, so a line
search through the old and the mixed weights finds the point with the best corpus score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.line_search.lists import Lines, LineSpace, drop_empty_lists
from mosesplug.optimizers.line_search.space import IntervalChoice, best_point
from mosesplug.optimizers.problem import Problem, corpus_score

_FURTHEST = 1000.0
"""Largest L1 norm of a step, relative to that of the old weights or 1. In a larger step the old
weights would be rounding noise (as in MERT)."""


@dataclass(frozen=True)
class MixResult:
    """The result of mixing.

    Attributes:
        weights: ``old + rho * (mixed - old)``.
        score: the metric of decoding the lists at ``weights``.
    """

    weights: Weights
    rho: float
    score: float


def average(
    vectors: Sequence[NDArray[np.float64]], counts: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Return the weighted mean of the shards (Neubig & Watanabe 2016, equation 75).

    If all shards have the same weight of a feature, the mean has exactly this weight.

    Args:
        vectors: float64 ``[n_features]`` each, in the order of the shards.
        counts: number of updates of each shard, to which its share is proportional; shares are
            equal if None or all 0.

    Raises:
        OptimizerError: there are no shards, or the numbers of counts and shards differ.
    """
    if not len(vectors):
        raise OptimizerError("there are no shards to mix")
    shares = np.ones(len(vectors)) if counts is None else np.asarray(counts, dtype=np.float64)
    if len(shares) != len(vectors) or (shares < 0.0).any():
        raise OptimizerError(f"{len(shares)} counts of updates for {len(vectors)} shards")
    if not shares.any():
        shares = np.ones(len(vectors))
    shares = shares / shares.sum()
    mixed = vectors[0].astype(np.float64)
    for share, vector in zip(shares[1:], vectors[1:], strict=True):
        mixed += share * (vector - vectors[0])
    return mixed


def select_features(
    vectors: Sequence[NDArray[np.float64]], keep: int, n_dense: int
) -> NDArray[np.float64]:
    """Return the mean on the features with the largest columns, 0 elsewhere.

    This is the feature selection of Simianer et al. (2012). The column of a feature has its weights
    in all shards, and its size is the L2 norm (survey 7.1.1). A feature that few shards have
    learned has a small column. Earlier features win ties.

    Args:
        vectors: float64 ``[n_features]`` each, in the order of the shards.
        n_dense: the number of dense features, which come first and are all kept.

    Raises:
        OptimizerError: no shards.
    """
    mixed = average(vectors)
    norms = np.zeros(len(mixed) - n_dense)
    for vector in vectors:
        norms += vector[n_dense:] ** 2
    used = np.flatnonzero(norms)
    kept = used[np.argsort(-norms[used], kind="stable")[:keep]]
    selected = np.zeros(len(mixed))
    selected[:n_dense] = mixed[:n_dense]
    selected[n_dense + kept] = mixed[n_dense + kept]
    return selected


def line_search(problem: Problem, old: Weights, mixed: Weights) -> MixResult:
    """Find the best corpus score on the line through the old and the mixed weights.

    (Watanabe 2012, Algorithm 3.) This is the line search of MERT from ``old`` along
    ``mixed - old``, in both directions and beyond the mixed weights: it lengthens cautious updates
    and undoes harmful ones. (The author's published program, cicada, stays between the two.) The
    result is the best of three points: the best interval, ``old`` and ``mixed``. The mixed weights
    win ties, so that updates that change no decision yet are not lost. If the old weights are all
    zero, all points of the line decode alike, and the result is the mixed weights. Weights that
    are all zero are returned only if there is no alternative.

    Args:
        problem: the n-best lists of this epoch and the metric.
        old: weights before the epoch.
        mixed: weights after it, equal to ``old`` for inactive features.
    """
    ends = [MixResult(mixed, 1.0, corpus_score(problem, mixed))]
    if old.any():
        rho = _best_rho(problem, old, mixed)
        between = old + rho * (mixed - old)  # exact where nothing moved
        ends.append(MixResult(between, rho, corpus_score(problem, between)))
        ends.append(MixResult(old, 0.0, corpus_score(problem, old)))
    # The score of weights that are all zero depends on the order of the lists.
    usable = [point for point in ends if point.weights.any()] or ends
    best = max(usable, key=lambda point: point.score)  # the first among equals
    return MixResult(best.weights.copy(), best.rho, best.score)


def _best_rho(problem: Problem, old: NDArray[np.float64], mixed: NDArray[np.float64]) -> float:
    """Return the middle of the best interval; 1 if no interval is wide enough."""
    tuning_set, direction = problem.tuning_set, mixed - old
    length = float(np.abs(direction).sum())
    if tuning_set.n_hyps == 0 or length == 0.0:
        return 1.0
    offsets, stats = drop_empty_lists(tuning_set)
    line = Lines(tuning_set.model_scores(direction), 1)
    intercepts = tuning_set.model_scores(old)
    space = LineSpace(offsets, line, intercepts, stats, problem.metric)
    thresholds, scores = next(space.along_lines(line, intercepts))
    furthest = _FURTHEST * max(1.0, float(np.abs(old).sum())) / length
    point = best_point(thresholds, scores, IntervalChoice(), furthest)
    return 1.0 if point is None else point.step
