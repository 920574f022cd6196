"""Quadratic programs of optimized online rank learning (Watanabe 2012, sec. 4.1).

Constraints ``w . phi_i >= goal_i - slack`` move weights ``w`` by ``sum tau_i phi_i``, where the
multipliers ``tau >= 0`` minimize

    1/2 |sum tau_i phi_i|^2 - sum tau_i gain_i,    gain_i = goal_i - w . phi_i

(equation 14). This module supports two sets of bounds:

- the box ``tau_i <= bound``, solved by dual coordinate descent (Hsieh et al. 2008, algorithm 3).
  This is the dual of equation 12 as printed, where each constraint has its own slack;
- the simplex ``sum tau_i <= bound``, stated below equation 14. This is the dual of one slack that
  all constraints share. SMO solves it: two multipliers at a time exchange value, chosen by their
  second-order gain (Fan et al. 2005), until the solution is exact.

The paper solves the first, and scales the multipliers down to satisfy the second (footnote 2).
``solve_box`` and ``solve_simplex`` take few constraints, given the products of the ``phi``. For all
pairs of a batch, many multipliers are positive with box bounds, so ``solve_pairs_in_box`` visits
all pairs in turn. With simplex bounds, few are: a cutting plane method adds the most violated pair
of each sentence and solves for the added pairs, until no violation exceeds the shared slack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import ColumnValues, Scores
from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import OraclePairs, add_differences, difference_scores
from mosesplug.optimizers.solvers.pair_descent import (
    add_coefficients,
    descend_pairs,
    project_slope,
    shuffle,
    start_descent,
)

EXACT = 1e-9
"""Tolerance of an exact solution, relative to the largest gain or 1."""

_EXCHANGES = 100_000
"""Maximum number of exchanges."""


def renormalize(
    multipliers: NDArray[np.float64], total: float, bound: float, *, up: bool = False
) -> None:
    """Scale multipliers in place, so that their sum is at most ``bound``.

    Args:
        multipliers: float64; multipliers or sums of them, overwritten.
        up: whether a smaller sum is scaled up to the bound.
    """
    if total > bound or (up and total > 0.0):
        multipliers *= bound / total


def solve_box(
    gram: NDArray[np.float64],
    gains: NDArray[np.float64],
    bound: float,
    tolerance: float,
    sweeps: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Find multipliers ``0 <= tau <= bound`` of few constraints, float64 ``[n]``.

    Args:
        gram: float64 ``[n, n]``, ``phi_i . phi_j``.
        gains: float64 ``[n]``.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: maximum number of visits of each constraint.
    """
    multipliers = np.zeros(len(gains))
    seed = np.uint64(rng.integers(1, 2**63))
    _descend(gram, gains, bound, tolerance, sweeps, seed, multipliers)
    return multipliers


def solve_simplex(
    gram: NDArray[np.float64],
    gains: NDArray[np.float64],
    bound: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Find the exact multipliers of few constraints with ``sum tau <= bound``.

    The result is float64 ``[n]``. The rest of the bound is the multiplier of a slack constraint,
    without features and gain.

    Args:
        gram: float64 ``[n, n]``, ``phi_i . phi_j``.
        gains: float64 ``[n]``.
        start: float64 ``[n]``, initial multipliers within the bound; None: all 0.
    """
    multipliers = np.zeros(len(gains) + 1)
    if start is not None:
        multipliers[:-1] = start
    multipliers[-1] = max(0.0, bound - multipliers.sum())
    _exchange(np.pad(gram, (0, 1)), np.append(gains, 0.0), multipliers)
    return multipliers[:-1]


@kernel
def _exchange(
    gram: NDArray[np.float64], gains: NDArray[np.float64], multipliers: NDArray[np.float64]
) -> None:
    """Exchange values between two multipliers at a time until no exchange has a gain.

    The multiplier with the steepest slope increases; the one with which the exchange gains most
    decreases.

    Args:
        gram, gains: float64 ``[n, n]`` and ``[n]``.
        multipliers: float64 ``[n]``, at least 0, overwritten; their sum does not change.
    """
    slopes = -gains
    for i in range(len(gains)):
        for j in range(len(gains)):
            slopes[i] += gram[i, j] * multipliers[j]
    tolerance = 0.1 * EXACT * max(1.0, np.abs(gains).max())
    for _ in range(_EXCHANGES):
        rising = int(np.argmin(slopes))
        falling, best, spread = rising, 0.0, 0.0
        for other in range(len(gains)):
            fall = slopes[other] - slopes[rising]
            if multipliers[other] <= 0.0 or fall <= 0.0:
                continue
            spread = max(spread, fall)
            gain = fall**2 / _curvature(gram, rising, other)
            if gain > best:
                falling, best = other, gain
        if spread <= tolerance:
            return
        fall = slopes[falling] - slopes[rising]
        moved = min(multipliers[falling], fall / _curvature(gram, rising, falling))
        multipliers[rising] += moved
        multipliers[falling] -= moved
        for i in range(len(gains)):
            slopes[i] += moved * (gram[i, rising] - gram[i, falling])


@kernel
def _curvature(gram: NDArray[np.float64], i: int, j: int) -> float:
    """Return ``|phi_i - phi_j|^2``, or 1e-12 if it is smaller."""
    return float(max(gram[i, i] + gram[j, j] - 2.0 * gram[i, j], 1e-12))


@kernel
def _descend(
    gram: NDArray[np.float64],
    gains: NDArray[np.float64],
    bound: float,
    tolerance: float,
    sweeps: int,
    seed: np.uint64,
    multipliers: NDArray[np.float64],
) -> None:
    """Run dual coordinate descent without shrinking; fill ``multipliers``."""
    size = len(gains)
    order = np.arange(size)
    slopes = -gains.copy()
    for _ in range(sweeps):
        seed = shuffle(order, size, seed)
        least, greatest = 0.0, 0.0
        for place in range(size):
            i = order[place]
            if gram[i, i] <= 0.0:
                continue
            slope = project_slope(slopes[i], multipliers[i], bound)
            least, greatest = min(least, slope), max(greatest, slope)
            if slope != 0.0:
                new = min(max(multipliers[i] - slopes[i] / gram[i, i], 0.0), bound)
                moved = new - multipliers[i]
                multipliers[i] = new
                for j in range(size):
                    slopes[j] += moved * gram[j, i]
        if greatest - least <= tolerance:
            return


_ROUNDS = 1000
"""Maximum number of times that pairs are added."""


def solve_pairs_in_box(
    pairs: OraclePairs,
    scores: Scores,
    weights: ColumnValues,
    bounds: Scores,
    tolerance: float,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """Find multipliers ``0 <= tau <= bound`` of pairs with margins of 1.

    They are summed by hypothesis. Pairs that satisfy the margin by ``scores`` are ignored, and so
    are pairs with equal features.

    Args:
        scores: all 0 to use every pair.
        weights: 0 where a feature is not active.
        bounds: the bound of each hypothesis' pairs, the same within a sentence.
        tolerance: largest spread of the projected gradient at the end.

    Returns:
        ``(coefficients, total)``: the coefficients, float64 ``[n_hyps]``, with which the hypotheses
        combine to ``sum tau phi``; and ``sum tau``.
    """
    coefficients = np.zeros(len(pairs.base))
    seed = np.uint64(rng.integers(1, 2**63))
    descent = start_descent(pairs, scores)
    of_pairs = bounds[descent.better]
    descend_pairs(pairs, descent, 1.0, weights.copy(), of_pairs, tolerance, sweeps, seed)
    return coefficients, float(add_coefficients(descent, coefficients))


def solve_pairs_in_simplex(
    pairs: OraclePairs, weights: ColumnValues, bound: float
) -> NDArray[np.float64]:
    """Find exact multipliers of all pairs with margins of 1, ``sum tau <= bound``.

    Args:
        weights: 0 where a feature is not active.

    Returns:
        float64 ``[n_hyps]``: the coefficients with which the hypotheses combine to ``sum tau phi``.
    """
    better = worse = np.zeros(0, dtype=np.int64)
    gains = multipliers = np.zeros(0)
    gram = np.zeros((0, 0))
    moved = weights
    for _ in range(_ROUNDS):
        slack = max(0.0, float((gains - gram @ multipliers).max(initial=0.0)))
        limit = slack + EXACT * max(1.0, np.abs(gains).max(initial=1.0))
        violated = np.empty((2, len(pairs.offsets) - 1), dtype=np.int64)
        count = _most_violated(pairs, moved, limit, violated)
        if not count:
            break
        better = np.append(better, violated[0, :count])
        worse = np.append(worse, violated[1, :count])
        gram = _extend_gram(pairs, gram, better, worse, len(weights))
        gains = np.append(gains, 1.0 - _margins(pairs, better[-count:], worse[-count:], weights))
        start = np.append(multipliers, np.zeros(count))
        multipliers = solve_simplex(gram, gains, bound, start)
        moved = weights.copy()
        add_differences(pairs, better, worse, multipliers, moved)
    coefficients = np.zeros(len(pairs.base))
    np.add.at(coefficients, better, multipliers)
    np.subtract.at(coefficients, worse, multipliers)
    return coefficients


def _margins(
    pairs: OraclePairs,
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the margins of pairs including fixed features, float64 ``[n]``."""
    fixed = pairs.base[better] - pairs.base[worse]
    return np.asarray(fixed + difference_scores(pairs, better, worse, weights))


def _extend_gram(
    pairs: OraclePairs,
    gram: NDArray[np.float64],
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    n_columns: int,
) -> NDArray[np.float64]:
    """Return products of the pairs' differences; ``gram`` has those of earlier pairs."""
    known, size = len(gram), len(better)
    larger = np.empty((size, size))
    larger[:known, :known] = gram
    for row in range(known, size):
        difference = np.zeros(n_columns)
        add_differences(pairs, better[row : row + 1], worse[row : row + 1], np.ones(1), difference)
        larger[row] = larger[:, row] = difference_scores(pairs, better, worse, difference)
    return larger


@kernel
def _most_violated(
    pairs: OraclePairs, weights: ColumnValues, limit: float, violated: NDArray[np.int64]
) -> int:
    """Write the pair with the largest loss of each sentence, if it exceeds ``limit``.

    Args:
        limit: threshold of ``1 - margin``.
        violated: int64 ``[2, n_sentences]``, filled from the left: rows of oracles and of others.

    Returns:
        Number of pairs written.
    """
    dense, indptr, indices, data = pairs.features
    count = 0
    for sentence in range(len(pairs.offsets) - 1):
        start, end = pairs.offsets[sentence], pairs.offsets[sentence + 1]
        best = worst = -1
        highest, lowest = -np.inf, np.inf
        place, last = pairs.oracle_offsets[sentence], pairs.oracle_offsets[sentence + 1]
        for row in range(start, end):
            is_oracle = place < last and pairs.oracles[place] == row
            place += is_oracle
            score = pairs.base[row]
            for k in range(dense.shape[1]):
                score += weights[k] * dense[row, k]
            for entry in range(indptr[row], indptr[row + 1]):
                score += weights[indices[entry]] * data[entry]
            if is_oracle and score < lowest:
                worst, lowest = row, score
            elif not pairs.is_oracle[row] and score > highest:
                best, highest = row, score
        if best >= 0 and worst >= 0 and 1.0 - (lowest - highest) > limit:
            violated[0, count], violated[1, count] = worst, best
            count += 1
    return count
