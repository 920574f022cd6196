"""The quadratic programs of optimized online rank learning (Watanabe 2012, section 4.1).

Constraints ``w . phi_i >= goal_i - slack`` move weights ``w`` by ``sum tau_i phi_i``, where the
multipliers ``tau >= 0`` minimise

    1/2 |sum tau_i phi_i|^2 - sum tau_i gain_i,    gain_i = goal_i - w . phi_i

(equation 14). Two sets of bounds are solved:

- the box ``tau_i <= bound``, by dual coordinate descent (Hsieh et al. 2008, algorithm 3): the
  dual of equation 12 as printed, where each constraint has a slack of its own;
- the simplex ``sum tau_i <= bound``, which the paper sets under equation 14: the dual of one slack
  that all constraints share. Two multipliers at a time exchange what they have (SMO), chosen by
  second order (Fan et al. 2005), until the solution is exact.

The paper solves the first, and scales the multipliers down to satisfy the second (its footnote 2).
Here are the programs of few constraints, which see only products of the ``phi``; those of all
pairs of a batch are in ``oro_pair_dual.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.solvers.pair_descent import project_slope, shuffle

__all__ = [
    "EXACT",
    "box_multipliers",
    "renormalised",
    "simplex_multipliers",
]

EXACT = 1e-9
"""Gain that an exact solution may leave, relative to the largest gain or 1."""

_EXCHANGES = 100_000
"""Maximum number of exchanges."""


def renormalised(multipliers: NDArray[np.float64], total: float, bound: float) -> None:
    """Scale multipliers, or sums of some, in place, so that all sum up to ``bound`` at most.

    Args:
        multipliers: float64, output.
        total: the sum of the multipliers.
        bound: of that.
    """
    if total > bound:
        multipliers *= bound / total


def box_multipliers(
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
        bound: of each multiplier.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: visits of each constraint at most.
        rng: of the order of visits.
    """
    multipliers = np.zeros(len(gains))
    seed = np.uint64(rng.integers(1, 2**63))
    _descend(gram, gains, bound, tolerance, sweeps, seed, multipliers)
    return multipliers


def simplex_multipliers(
    gram: NDArray[np.float64],
    gains: NDArray[np.float64],
    bound: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Find the exact multipliers with ``sum tau <= bound`` of few constraints, float64 ``[n]``.

    What is left of the bound is a multiplier too, of a constraint without features or gain.

    Args:
        gram: float64 ``[n, n]``, ``phi_i . phi_j``.
        gains: float64 ``[n]``.
        bound: of the sum.
        start: float64 ``[n]``, multipliers within the bound to begin with; None: all 0.
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

    The steepest one takes; it takes from the one with which the exchange gains most.

    Args:
        gram, gains: float64 ``[n, n]`` and ``[n]``.
        multipliers: in and output, float64 ``[n]``, at least 0; their sum is kept.
    """
    slopes = -gains
    for i in range(len(gains)):
        for j in range(len(gains)):
            slopes[i] += gram[i, j] * multipliers[j]
    enough = 0.1 * EXACT * max(1.0, np.abs(gains).max())
    for _ in range(_EXCHANGES):
        taker = int(np.argmin(slopes))
        giver, best, spread = taker, 0.0, 0.0
        for other in range(len(gains)):
            fall = slopes[other] - slopes[taker]
            if multipliers[other] <= 0.0 or fall <= 0.0:
                continue
            spread = max(spread, fall)
            gain = fall**2 / _curvature(gram, taker, other)
            if gain > best:
                giver, best = other, gain
        if spread <= enough:
            return
        fall = slopes[giver] - slopes[taker]
        moved = min(multipliers[giver], fall / _curvature(gram, taker, giver))
        multipliers[taker] += moved
        multipliers[giver] -= moved
        for i in range(len(gains)):
            slopes[i] += moved * (gram[i, taker] - gram[i, giver])


@kernel
def _curvature(gram: NDArray[np.float64], i: int, j: int) -> float:
    """``|phi_i - phi_j|^2``, kept above 0."""
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
    """Dual coordinate descent on few constraints, without shrinking; output ``multipliers``."""
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
