"""A small quadratic program: multipliers of constraints that share slack.

    min  1/2 |sum of a_i d_i|^2 - sum of a_i b_i,    a_i >= 0,    sum of a_i in group g <= C_g

It is the dual of the smallest step that meets ``w . d_i >= b_i`` with a slack that the constraints
of a group share, and that costs ``C_g`` a unit. Groups are the sentences of a batch (Neubig &
Watanabe 2016, eq. 60, with several constraints a sentence), or the margins and the bounds of one
sentence (Eidelman et al. 2013, equation 5). The unused part of ``C_g`` is a multiplier too, of a
constraint without features; so the sum of a group is fixed, and the smallest change is an exchange
between two multipliers (sequential minimal optimization, Platt 1999; Algorithm 2 of Eidelman et
al.).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = ["EXCHANGES", "solve_groups"]

EXCHANGES = 100_000
"""Maximum exchanges. A binding cap takes a few per constraint; dependent constraints far from the
cap take some hundreds."""

_REST = -1  # the unused part of a group's cap


@kernel
def solve_groups(
    gram: NDArray[np.float64],
    goals: NDArray[np.float64],
    groups: NDArray[np.int64],
    caps: NDArray[np.float64],
    tolerance: float,
    exchanges: int,
    multipliers: NDArray[np.float64],
) -> None:
    """Improve given multipliers; ``gram`` may have more rows and columns.

    In the group with the largest difference of slopes, the steepest multiplier takes from the one
    with which the exchange gains most.

    Args:
        gram: float64 ``[n, n]``, products ``d_i . d_j``.
        goals: float64 ``[n]``, ``b_i``.
        groups: int64 ``[n]``, the group of each constraint, from 0.
        caps: float64 ``[n_groups]``, ``C_g``, of each group's sum.
        tolerance: largest difference of slopes at the end between a multiplier and another one of
            its group that is above 0.
        exchanges: maximum number of exchanges.
        multipliers: in and output, float64 ``[n]``, feasible.
    """
    n = len(goals)
    if n == 0:
        return
    slopes, rests = goals.copy(), caps.copy()
    for i in range(n):
        rests[groups[i]] -= multipliers[i]
        for j in range(n):
            slopes[i] -= gram[i, j] * multipliers[j]
    # Given multipliers may exceed the cap by rounding.
    rests = np.maximum(rests, 0.0)
    for _ in range(exchanges):
        taker, group, spread = _steepest(slopes, groups, rests, multipliers)
        if spread <= tolerance:
            return
        giver, moved = _partner(gram, slopes, groups, rests, multipliers, taker, group)
        if moved == 0.0:
            return
        if taker != _REST:
            multipliers[taker] += moved
            for i in range(n):
                slopes[i] -= moved * gram[i, taker]
        else:
            rests[group] += moved
        if giver != _REST:
            multipliers[giver] -= moved
            for i in range(n):
                slopes[i] += moved * gram[i, giver]
        else:
            rests[group] -= moved


@kernel
def _steepest(
    slopes: NDArray[np.float64],
    groups: NDArray[np.int64],
    rests: NDArray[np.float64],
    multipliers: NDArray[np.float64],
) -> tuple[int, int, float]:
    """Return the multiplier to raise, its group, and its lead over the flattest giver."""
    n_groups = len(rests)
    takers = np.full(n_groups, _REST)
    tops = np.zeros(n_groups)
    bottoms = np.where(rests > 0.0, 0.0, np.inf)
    for i in range(len(slopes)):
        group = groups[i]
        # The rest of the cap has slope 0, and takes unless a constraint is steeper.
        if slopes[i] > tops[group]:
            takers[group], tops[group] = i, slopes[i]
        if multipliers[i] > 0.0:
            bottoms[group] = min(bottoms[group], slopes[i])
    group = int(np.argmax(tops - bottoms))
    return takers[group], group, tops[group] - bottoms[group]


@kernel
def _partner(
    gram: NDArray[np.float64],
    slopes: NDArray[np.float64],
    groups: NDArray[np.int64],
    rests: NDArray[np.float64],
    multipliers: NDArray[np.float64],
    taker: int,
    group: int,
) -> tuple[int, float]:
    """Return the giver with the most gain for the taker, and the amount."""
    top = slopes[taker] if taker != _REST else 0.0
    square = gram[taker, taker] if taker != _REST else 0.0
    giver, moved, best = _REST, 0.0, 0.0
    for other in range(_REST, len(slopes)):
        if other == _REST:
            has, fall, curvature = rests[group], top, square
        elif groups[other] == group:
            has, fall = multipliers[other], top - slopes[other]
            curvature = square + gram[other, other]
            if taker != _REST:
                curvature -= 2.0 * gram[other, taker]
        else:
            continue
        if has <= 0.0 or fall <= 0.0:
            continue
        step = has
        if curvature * has > fall:
            step = fall / curvature
        gain = step * (fall - 0.5 * step * curvature)
        if gain > best:
            giver, moved, best = other, step, gain
    return giver, moved
