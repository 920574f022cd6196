"""Dual coordinate descent with shrinking for margins of pairs (Hsieh et al. 2008).

    min  1/2 |w|^2 + C sum max(0, least - margin of w in the pair)

has the dual problem of multipliers ``0 <= tau <= C``, one per pair, and ``w = sum tau phi``. Pairs
are visited in random order; each visit makes one multiplier optimal while the others stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import (
    OraclePairs,
    add_difference,
    difference_score,
    find_violated_pairs,
)

__all__ = [
    "PairMultipliers",
    "add_coefficients",
    "descend_pairs",
    "project_slope",
    "shuffle",
    "start_descent",
]


class PairMultipliers(NamedTuple):
    """Multipliers of the pairs that differ in an active feature.

    Attributes:
        better: int64 ``[n]``, rows of the oracles.
        worse: int64 ``[n]``, rows of the others.
        squares: float64 ``[n]``, squared norms of the differences ``phi``.
        multipliers: float64 ``[n]``.
        order: int64 ``[n]``, of the visits.
    """

    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    squares: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    order: NDArray[np.int64]


@kernel
def start_descent(pairs: OraclePairs, scores: NDArray[np.float64]) -> PairMultipliers:
    """Return multipliers of 0 for pairs with a margin by ``scores`` below 1."""
    better, worse, squares = find_violated_pairs(pairs, scores)
    return PairMultipliers(better, worse, squares, np.zeros(len(squares)), np.arange(len(squares)))


@kernel
def descend_pairs(
    pairs: OraclePairs,
    descent: PairMultipliers,
    least: float,
    weights: NDArray[np.float64],
    bounds: NDArray[np.float64],
    tolerance: float,
    sweeps: int,
    seed: np.uint64,
) -> tuple[np.uint64, float]:
    """Sweep over the pairs (Hsieh et al. 2008, algorithm 3).

    Pairs at a bound whose gradient holds them there are left out until the others have converged;
    then all are visited again.

    Args:
        pairs: the hypotheses; ``base`` counts in margins.
        descent: ``multipliers`` are in and output, ``order`` is an output.
        least: the required margin of each pair.
        weights: in and output, float64 ``[n_columns]``; ``sum tau phi`` is added.
        bounds: float64 ``[n]``, the bound of each pair's multiplier, ``C``.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: maximum number of sweeps.
        seed: the seed of the order.

    Returns:
        The next seed, and the spread over all pairs, infinite if unknown.
    """
    base, features, order = pairs.base, pairs.features, descent.order
    multipliers = descent.multipliers
    size = len(order)
    top, bottom = np.inf, -np.inf
    spread = np.inf
    for _ in range(sweeps):
        least_slope, greatest = np.inf, -np.inf
        seed = shuffle(order, size, seed)
        place = 0
        while place < size:
            pair = order[place]
            a, b = descent.better[pair], descent.worse[pair]
            slope = base[a] - base[b] - least + difference_score(features, a, b, weights)
            old, bound = multipliers[pair], bounds[pair]
            if (old <= 0.0 and slope > top) or (old >= bound and slope < bottom):
                size -= 1
                order[place], order[size] = order[size], pair
                continue
            place += 1
            inside = project_slope(slope, old, bound)
            least_slope, greatest = min(least_slope, inside), max(greatest, inside)
            if inside != 0.0:
                new = min(max(old - slope / descent.squares[pair], 0.0), bound)
                multipliers[pair] = new
                add_difference(features, a, b, new - old, weights)
        spread = greatest - least_slope if size == len(order) else np.inf
        if greatest - least_slope <= tolerance:
            if size == len(order):
                break
            size = len(order)
            top, bottom = np.inf, -np.inf
        else:
            top = greatest if greatest > 0.0 else np.inf
            bottom = least_slope if least_slope < 0.0 else -np.inf
    return seed, spread


@kernel
def add_coefficients(descent: PairMultipliers, coefficients: NDArray[np.float64]) -> float:
    """Add hypotheses' coefficients in ``sum tau phi``; return the sum of ``tau``.

    Args:
        descent: multipliers of pairs.
        coefficients: in and output, float64 ``[n_hyps]``, of each hypothesis.
    """
    total = 0.0
    for pair in range(len(descent.multipliers)):
        total += descent.multipliers[pair]
        coefficients[descent.better[pair]] += descent.multipliers[pair]
        coefficients[descent.worse[pair]] -= descent.multipliers[pair]
    return total


@kernel
def project_slope(slope: float, multiplier: float, bound: float) -> float:
    """Return the slope, or 0 if it points out of the box."""
    if (multiplier <= 0.0 and slope > 0.0) or (multiplier >= bound and slope < 0.0):
        return 0.0
    return slope


@kernel
def shuffle(order: NDArray[np.int64], size: int, seed: np.uint64) -> np.uint64:
    """Permute the first ``size`` values of ``order``; return the next seed, not 0.

    The generator is xorshift64 (Marsaglia 2003): NumPy's are too slow for one draw per visit.
    """
    for last in range(size - 1, 0, -1):
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        other = np.int64(((seed >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]
    return seed
