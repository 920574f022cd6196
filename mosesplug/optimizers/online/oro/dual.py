"""The quadratic programs of optimized online rank learning (Watanabe 2012, section 4.1).

Constraints ``w . phi_i >= goal_i - slack`` move weights ``w`` by ``sum tau_i phi_i``, where the
multipliers ``tau >= 0`` minimise

    1/2 |sum tau_i phi_i|^2 - sum tau_i gain_i,    gain_i = goal_i - w . phi_i

(equation 14). This module supports two sets of bounds:

- the box ``tau_i <= bound``, solved by dual coordinate descent (Hsieh et al. 2008, algorithm 3).
  This is the dual of equation 12 as printed, where each constraint has its own slack;
- the simplex ``sum tau_i <= bound``, stated below equation 14. This is the dual of one slack that
  all constraints share. SMO solves it: two multipliers at a time exchange value, chosen by their
  second-order gain (Fan et al. 2005), until the solution is exact.

The paper solves the first, and scales the multipliers down to satisfy the second (footnote 2).
The functions here solve programs of few constraints, given the products of the ``phi``;
``pair_dual.py`` solves those of all pairs of a batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.solvers.pair_descent import project_slope, shuffle

__all__ = [
    "EXACT",
    "renormalise",
    "solve_box",
    "solve_simplex",
]

EXACT = 1e-9
"""Tolerance of an exact solution, relative to the largest gain or 1."""

_EXCHANGES = 100_000
"""Maximum number of exchanges."""


def renormalise(multipliers: NDArray[np.float64], total: float, bound: float) -> None:
    """Scale multipliers in place, so that their sum is at most ``bound``.

    Args:
        multipliers: float64; multipliers or sums of them, overwritten.
        total: the sum of the multipliers.
        bound: largest sum.
    """
    if total > bound:
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
        bound: largest value of each multiplier.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: maximum number of visits of each constraint.
        rng: random generator for the order of visits.
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
    """Find the exact multipliers with ``sum tau <= bound`` of few constraints, float64 ``[n]``.

    The rest of the bound is the multiplier of a slack constraint, without features and gain.

    Args:
        gram: float64 ``[n, n]``, ``phi_i . phi_j``.
        gains: float64 ``[n]``.
        bound: largest sum.
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
    """Run dual coordinate descent on few constraints, without shrinking; fill ``multipliers``."""
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
