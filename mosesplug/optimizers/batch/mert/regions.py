"""All choices of 1-best hypotheses that some weights make, for few features.

Weights that choose the same hypothesis of each sentence are a cone, bounded by hyperplanes on which
two hypotheses of a sentence tie (Galley & Quirk 2011). The search adds one sentence after the
other, and keeps the hypotheses that win somewhere inside the cone of the earlier choices. A cone
has an interior if the convex hull of the unit normals of its bounds does not contain the origin.
The point of the hull nearest to the origin then lies on the axis of the widest circular cone
inside, and its distance from the origin is the sine of that cone's angle. Wolfe's algorithm finds
it (1976, "Finding the nearest point in a polytope").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints
from mosesplug.kernels import kernel

NARROW = 1e-6
"""Cones with at most this angle, in radians, between axis and nearest bound are left out. Sums in
float64 are exact to 1e-12 or better, so wider cones cannot be mistaken for empty ones."""

_ROUNDING = 1e-15
_MOST_STEPS = 1000

FULL, FAILED = -1, -2
"""Numbers of regions that stand for more than fit, and for a search that did not end."""


class Regions(NamedTuple):
    """Choices of hypotheses, and weights that make them.

    Attributes:
        size: number of regions; ``FULL`` or ``FAILED``.
        stats: float64 ``[size, n_stats]``; the summed statistics of the choice.
        axes: float64 ``[size, n_features]``; weights of length 1 in the middle of the region.
        angles: float64 ``[size]``; sine of the angle between axis and nearest bound.
    """

    size: int
    stats: Floats
    axes: Floats
    angles: Floats


@kernel
def nearest_point(rows: Floats, n_rows: int, nearest: Floats, find_any: bool) -> float:
    """Find the point of the convex hull of unit vectors that is nearest to the origin.

    Args:
        rows: float64 ``[>= n_rows, n]``, the vectors.
        nearest: float64 ``[n]``, output: the point, divided by its length.
        find_any: end with any point whose direction is on the inner side of all bounds.

    Returns:
        The sine of the angle between the direction and the nearest bound: more than ``NARROW``, or
        0 if no direction has such an angle; NaN if the search did not end.
    """
    n = rows.shape[1]
    corral = np.zeros(n + 2, dtype=np.int64)
    shares, moved = np.zeros(n + 2), np.zeros(n + 2)
    matrix = np.zeros((n + 2, n + 2))
    size = 1
    shares[0] = 1.0
    point = rows[0].copy()
    for _ in range(_MOST_STEPS):
        square = 0.0
        for axis in range(n):
            square += point[axis] * point[axis]
        length = np.sqrt(square)
        if length <= NARROW:
            return 0.0
        lowest, worst = np.inf, -1
        for row in range(n_rows):
            product = 0.0
            for axis in range(n):
                product += rows[row, axis] * point[axis]
            if product < lowest:
                lowest, worst = product, row
        if (find_any and lowest > NARROW * length) or lowest >= square - _ROUNDING:
            for axis in range(n):
                nearest[axis] = point[axis] / length
            return lowest / length if lowest > NARROW * length else 0.0
        if size == n + 1:
            return np.nan
        corral[size], shares[size] = worst, 0.0
        size += 1
        while True:
            if not _find_affine(rows, corral, size, matrix, moved):
                return np.nan
            step = 1.0
            for place in range(size):
                if moved[place] <= 1e-14 and shares[place] > moved[place]:
                    step = min(step, shares[place] / (shares[place] - moved[place]))
            kept = 0
            for place in range(size):
                share = shares[place] + step * (moved[place] - shares[place])
                if step == 1.0 or share > 1e-14:
                    corral[kept], shares[kept] = corral[place], share
                    kept += 1
            if kept == size and step < 1.0:
                return np.nan
            size = kept
            if step == 1.0:
                break
        for axis in range(n):
            point[axis] = 0.0
            for place in range(size):
                point[axis] += shares[place] * rows[corral[place], axis]
    return np.nan


@kernel
def _find_affine(rows: Floats, corral: Ints, size: int, matrix: Floats, shares: Floats) -> bool:
    """Find the point of the affine hull nearest to the origin, as shares of 1.

    Solves ``(G + 1) s = 1`` for the Gram matrix ``G`` by Cholesky's decomposition, then divides.
    """
    for i in range(size):
        for j in range(i + 1):
            value = 1.0
            for axis in range(rows.shape[1]):
                value += rows[corral[i], axis] * rows[corral[j], axis]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            if i > j:
                matrix[i, j] = value / matrix[j, j]
            elif value <= 0.0:
                return False
            else:
                matrix[i, i] = np.sqrt(value)
    for i in range(size):
        value = 1.0
        for k in range(i):
            value -= matrix[i, k] * shares[k]
        shares[i] = value / matrix[i, i]
    total = 0.0
    for i in range(size - 1, -1, -1):
        value = shares[i]
        for k in range(i + 1, size):
            value -= matrix[k, i] * shares[k]
        shares[i] = value / matrix[i, i]
        total += shares[i]
    for i in range(size):
        shares[i] /= total
    return True


@kernel
def keep_winners(features: Floats, offsets: Ints, bounds: Floats, wins: NDArray[Any]) -> bool:
    """Mark the hypotheses that some weights choose; ties go to the first.

    Args:
        features: float64 ``[n_hyps, n]``.
        bounds: float64 ``[n_bounds, n]``; unit normals.
        wins: bool ``[n_hyps]``, output.

    Returns:
        Whether all searches ended.
    """
    n = features.shape[1]
    rows = np.zeros((len(bounds) + len(features), n))
    rows[: len(bounds)] = bounds
    nearest = np.zeros(n)
    for sentence in range(len(offsets) - 1):
        for chosen in range(offsets[sentence], offsets[sentence + 1]):
            count = _add_rows(
                features, offsets[sentence], offsets[sentence + 1], chosen, rows, len(bounds)
            )
            if count < 0:
                wins[chosen] = False
                continue
            if count == 0:
                wins[chosen] = True
                continue
            angle = nearest_point(rows, count, nearest, True)
            if np.isnan(angle):
                return False
            wins[chosen] = angle > 0.0
    return True


@kernel
def _add_rows(features: Floats, begin: int, end: int, chosen: int, rows: Floats, count: int) -> int:
    """Append unit normals of a hypothesis' ties with others; return the new count.

    Of hypotheses with equal features, the first wins: -1 for the others.
    """
    for other in range(begin, end):
        if other == chosen:
            continue
        square = 0.0
        for axis in range(features.shape[1]):
            rows[count, axis] = features[chosen, axis] - features[other, axis]
            square += rows[count, axis] ** 2
        if square == 0.0:
            if other < chosen:
                return -1
            continue
        for axis in range(features.shape[1]):
            rows[count, axis] /= np.sqrt(square)
        count += 1
    return count


@kernel
def list_regions(
    features: Floats,
    offsets: Ints,
    stats: Floats,
    bounds: Floats,
    first: int,
    most: int,
) -> Regions:
    """List the regions in which a hypothesis wins, in the order of choices.

    Args:
        features: float64 ``[n_hyps, n]``; at least one sentence, none of them empty.
        stats: float64 ``[n_hyps, n_stats]``.
        bounds: float64 ``[n_bounds, n]``; unit normals of half-spaces that the weights are in.
        first: the row of the hypothesis.
        most: number of regions at most.
    """
    n_sentences, n = len(offsets) - 1, features.shape[1]
    rows = np.zeros((len(bounds) + len(features), n))
    rows[: len(bounds)] = bounds
    counts = np.zeros(n_sentences + 1, dtype=np.int64)
    counts[0] = len(bounds)
    chosen = np.zeros(n_sentences, dtype=np.int64)
    # Weights inside the region of the choices up to each sentence.
    inside = np.zeros((n_sentences + 1, n))
    sums, axes, angles = np.zeros((64, stats.shape[1])), np.zeros((64, n)), np.zeros(64)
    n_regions, depth = 0, 0
    chosen[0] = first - 1
    while depth >= 0:
        chosen[depth] += 1
        end = first + 1 if depth == 0 else offsets[depth + 1]
        if chosen[depth] == end:
            depth -= 1
            continue
        count = _add_rows(
            features, offsets[depth], offsets[depth + 1], chosen[depth], rows, counts[depth]
        )
        if count < 0:
            continue
        counts[depth + 1] = count
        # The region of the last sentence's choice is measured; others need any point inside.
        is_last = depth == n_sentences - 1
        if not is_last and depth > 0 and _is_inside(rows, counts[depth], count, inside[depth]):
            inside[depth + 1] = inside[depth]
        else:
            angle = nearest_point(rows, count, inside[depth + 1], not is_last)
            if np.isnan(angle):
                return Regions(FAILED, sums, axes, angles)
            if angle == 0.0:
                continue
        if not is_last:
            depth += 1
            chosen[depth] = offsets[depth] - 1
            continue
        if n_regions == most:
            return Regions(FULL, sums, axes, angles)
        if n_regions == len(angles):
            sums = np.concatenate((sums, np.zeros_like(sums)))
            axes = np.concatenate((axes, np.zeros_like(axes)))
            angles = np.concatenate((angles, np.zeros_like(angles)))
        for sentence in range(n_sentences):
            sums[n_regions] += stats[chosen[sentence]]
        axes[n_regions], angles[n_regions] = inside[depth + 1], angle
        n_regions += 1
    return Regions(n_regions, sums[:n_regions], axes[:n_regions], angles[:n_regions])


@kernel
def _is_inside(rows: Floats, begin: int, end: int, point: Floats) -> bool:
    """Return whether a unit vector is on the inner side of some bounds."""
    for row in range(begin, end):
        product = 0.0
        for axis in range(len(point)):
            product += rows[row, axis] * point[axis]
        if product <= NARROW:
            return False
    return True
