"""Upper hull of a sentence's points ``(slope, intercept)``: the lines that are highest somewhere.

A search looks at the same lines again and again while it moves a little, so the hull hardly
changes. The rows of the last hull, at their new intercepts, are a concave chain below the new hull.
One pass without branches compares all points with it, and mostly finds none above. Otherwise those
that are not below it, few, are sorted, and Andrew's monotone chain finds their hull.

Both decide by products, of which rounding shows where points are nearly collinear. There, quickhull
on the points that are not below the chain has the last word, so that the hull never depends on what
was known before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, fused_kernel, kernel

__all__ = ["KNOWN", "N_INTS", "find_hull", "index_of_highest"]

KNOWN = 9
"""Most rows of a hull that are kept for the next: the ends of eight chords."""

CLOSE = 1e-12
"""Heights that differ by less, relative to the largest, may compare either way by rounding."""

BELOW = 1e-9
"""A point is below a chain if it is lower by more than this, relative to the largest height. The
rounding of chords is far less."""

N_INTS = 8
"""Rows of integers that a hull needs as working memory."""

_ROWS, _SPARE, _STACK = 0, 1, 4

STEEPEST = 1e5
"""Greatest rise of a chord over the slopes of a sentence, relative to the largest height, at which
the chord's rounding is less than ``BELOW``."""


_LOW_BITS = np.uint64(0x0102040810204080)
"""Multiplied by it, the lowest bits of eight bytes gather in the highest byte."""

_BIT_HASH = np.uint64(0x03F79D71B4CB0A89)
"""Multiplied by powers of 2, its six highest bits differ (a de Bruijn sequence)."""

_BIT_NUMBERS = np.zeros(64, dtype=np.uint8)
"""Numbers of bits by those six bits."""
for _bit in range(64):
    _BIT_NUMBERS[((1 << _bit) * int(_BIT_HASH) & (1 << 64) - 1) >> 58] = _bit


@finite_kernel
def index_of_highest(heights: NDArray[np.float64]) -> int:
    """Return the first index of the greatest value."""
    highest, index = -np.inf, 0
    for row in range(len(heights)):
        if heights[row] > highest:
            highest, index = heights[row], row
    return index


@fused_kernel
def _mark_high(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    points: NDArray[np.float64],
    high: NDArray[np.uint8],
) -> int:
    """Mark points that are not below the lowest of eight chords; return how many.

    Every line search does this for every hypothesis, so the loop has no branches.

    Args:
        slopes: float64 ``[n]``.
        heights: float64 ``[n]``.
        points: their heights at 0 and their gradients in the last two rows.
        high: output, ``[at least n]``, 1 or 0.
    """
    a0, a1, a2, a3 = points[2, 0], points[2, 1], points[2, 2], points[2, 3]
    a4, a5, a6, a7 = points[2, 4], points[2, 5], points[2, 6], points[2, 7]
    b0, b1, b2, b3 = points[3, 0], points[3, 1], points[3, 2], points[3, 3]
    b4, b5, b6, b7 = points[3, 4], points[3, 5], points[3, 6], points[3, 7]
    count = 0
    for row in range(len(slopes)):
        x = slopes[row]
        first = min(min(a0 + b0 * x, a1 + b1 * x), min(a2 + b2 * x, a3 + b3 * x))
        last = min(min(a4 + b4 * x, a5 + b5 * x), min(a6 + b6 * x, a7 + b7 * x))
        is_high = heights[row] >= min(first, last)
        high[row] = is_high
        count += is_high
    return count


@kernel
def _find_high(size: int, words: NDArray[np.uint64], ints: NDArray[np.int64]) -> int:
    """Write the numbers of the marked points to the first row of ``ints``; return how many.

    Args:
        size: number of points.
        words: marks, 1 or 0 in a byte for each point, and 0 up to a multiple of 8.
        ints: int64 ``[N_INTS, at least size]``, working memory.
    """
    n_words, count = (size + 7) // 8, 0
    for start in range(0, n_words, 8):
        bits = np.uint64(0)
        for word in range(start, min(start + 8, n_words)):
            byte = (words[word] * _LOW_BITS) >> np.uint64(56)
            bits |= byte << np.uint64(8 * (word - start))
        while bits != 0:
            lowest = bits & (~bits + np.uint64(1))
            ints[_ROWS, count] = 8 * start + _BIT_NUMBERS[(lowest * _BIT_HASH) >> np.uint64(58)]
            count += 1
            bits ^= lowest
    return count


@kernel
def _chain(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    ints: NDArray[np.int64],
    count: int,
    points: NDArray[np.float64],
    hull: NDArray[np.int64],
) -> int:
    """Write the upper hull of some points by rising slope: Andrew's monotone chain.

    Args:
        slopes: float64 ``[n]``.
        heights: float64 ``[n]``.
        ints: the first row has the points, in their order; of equal ones the first counts.
        count: number of points, at least 1.
        points: output, slopes and heights of the hull.
        hull: output, rows of the hull.

    Returns:
        The number of rows of the hull; negative if rounding may have decided. Then points nearly
        on a chord are left out.
    """
    largest = 0.0
    for i in range(count):
        largest = max(largest, abs(heights[ints[_ROWS, i]]))
    close, certain, size = CLOSE * largest, True, 0
    for i in range(count):
        row = ints[_ROWS, i]
        x, y = slopes[row], heights[row]
        place = size
        while place > 0 and points[0, place - 1] > x:
            place -= 1
        if place > 0 and points[0, place - 1] == x:
            gain = y - points[1, place - 1]
            certain &= gain == 0.0 or abs(gain) > close
            if gain > 0.0:
                points[1, place - 1] = y
                hull[place - 1] = row
            continue
        for k in range(size, place, -1):
            points[0, k] = points[0, k - 1]
            points[1, k] = points[1, k - 1]
            hull[k] = hull[k - 1]
        points[0, place] = x
        points[1, place] = y
        hull[place] = row
        size += 1
    kept = 0
    for i in range(size):
        x, y, row = points[0, i], points[1, i], hull[i]
        while kept > 1:
            run = x - points[0, kept - 2]
            excess = (points[0, kept - 1] - points[0, kept - 2]) * (y - points[1, kept - 2])
            excess -= run * (points[1, kept - 1] - points[1, kept - 2])
            # Written so that a sum that is not a number is uncertain.
            if excess < -close * run:
                break
            certain &= excess > close * run
            kept -= 1
        points[0, kept] = x
        points[1, kept] = y
        hull[kept] = row
        kept += 1
    return kept if certain else -kept


@kernel
def _between(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    ends: tuple[int, int],
    ints: NDArray[np.int64],
    n_rows: int,
    hull: NDArray[np.int64],
    size: int,
) -> int:
    """Append the hull between two hull points, and the second of them, to ``hull``.

    Quickhull (Barber et al. 1996) on the plane: between two hull points, the point highest above
    their chord is on the hull; points above neither new chord are not.

    Args:
        slopes: float64 ``[n]``.
        heights: float64 ``[n]``.
        ends: row of a hull point, and of one of greater slope.
        ints: working memory; its second row has the rows that may lie between.
        n_rows: number of them.
        hull: output.
        size: number of hull points so far.

    Returns:
        The new number.
    """
    ints[_STACK, 0], ints[_STACK + 1, 0] = ends
    ints[_STACK + 2, 0], ints[_STACK + 3, 0] = 0, n_rows
    depth = 1
    while depth > 0:
        depth -= 1
        left, right = ints[_STACK, depth], ints[_STACK + 1, depth]
        first, last = ints[_STACK + 2, depth], ints[_STACK + 3, depth]
        peak, best = -1, 0.0
        if last > first:
            gradient = (heights[right] - heights[left]) / (slopes[right] - slopes[left])
            for i in range(first, last):
                row = ints[_SPARE, i]
                height = heights[row] - heights[left] - (slopes[row] - slopes[left]) * gradient
                if height > best and slopes[left] < slopes[row] < slopes[right]:
                    peak, best = row, height
        if peak < 0:
            hull[size] = right
            size += 1
            continue
        x, y = slopes[peak], heights[peak]
        rise = (y - heights[left]) / (x - slopes[left])
        fall = (heights[right] - y) / (slopes[right] - x)
        # Rows above the first chord move to the front, then come those above the second.
        n_left = n_right = 0
        for i in range(first, last):
            row = ints[_SPARE, i]
            run, height = slopes[row] - x, heights[row] - y
            ints[_SPARE, first + n_left] = row
            n_left += (run < 0.0) & (height > run * rise)
            ints[_SPARE + 1, n_right] = row
            n_right += (run > 0.0) & (height > run * fall)
        cut = first + n_left
        for i in range(n_right):
            ints[_SPARE, cut + i] = ints[_SPARE + 1, i]
        ints[_STACK, depth], ints[_STACK + 1, depth] = peak, right
        ints[_STACK + 2, depth], ints[_STACK + 3, depth] = cut, cut + n_right
        depth += 1
        ints[_STACK, depth], ints[_STACK + 1, depth] = left, peak
        ints[_STACK + 2, depth], ints[_STACK + 3, depth] = first, cut
        depth += 1
    return size


@kernel
def _quickhull(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    ints: NDArray[np.int64],
    count: int,
    hull: NDArray[np.int64],
) -> int:
    """Write the upper hull of some points, at least one, to ``hull``; return its size.

    Args:
        slopes: float64 ``[n]``.
        heights: float64 ``[n]``.
        ints: working memory; its first row has the points, in their order.
        count: number of points.
        hull: output, by rising slope.
    """
    top = left = right = ints[_ROWS, 0]
    for i in range(count):
        row = ints[_ROWS, i]
        x, y = slopes[row], heights[row]
        top = row if y > heights[top] else top
        if x < slopes[left] or (x == slopes[left] and y > heights[left]):
            left = row
        if x > slopes[right] or (x == slopes[right] and y > heights[right]):
            right = row
    # An end as high as the top, or a lone point, is the top.
    at_left, at_right = slopes[left] == slopes[top], slopes[right] == slopes[top]
    hull[0] = top if at_left else left
    size = 1
    for side in range(2):
        if at_right if side else at_left:
            continue
        n_rows = 0
        for i in range(count):
            row = ints[_ROWS, i]
            ints[_SPARE, n_rows] = row
            run = slopes[row] - slopes[top]
            n_rows += run > 0.0 if side else run < 0.0
        ends = (top, right) if side else (left, top)
        size = _between(slopes, heights, ends, ints, n_rows, hull, size)
    return size


@kernel
def _find_chords(
    size: int,
    points: NDArray[np.float64],
    thresholds: NDArray[np.float64],
) -> bool:
    """Write the chords of a hull, and where they begin to be highest.

    Args:
        size: number of points of the hull, 1 to 9.
        points: their slopes and heights; output, in the last two rows: heights of chords at 0, and
            gradients.
        thresholds: output, ``[at least size]``; the first is minus infinity.

    Returns:
        Whether the rounding of the chords is small, and the thresholds rise.
    """
    largest = 0.0
    for i in range(size):
        largest = max(largest, abs(points[1, i]))
    thresholds[0] = last = -np.inf
    steepest, rises = 0.0, True
    for i in range(size - 1):
        x, y = points[0, i], points[1, i]
        threshold = (y - points[1, i + 1]) / (points[0, i + 1] - x)
        rises &= i == 0 or threshold > last
        thresholds[i + 1] = last = threshold
        points[2, i] = y + threshold * x - BELOW * largest
        points[3, i] = -threshold
        steepest = max(steepest, abs(threshold))
    if size == 1:
        points[2, 0], points[3, 0] = points[1, 0] - BELOW * largest, 0.0
    for i in range(max(1, size - 1), KNOWN - 1):
        points[2, i], points[3, i] = points[2, 0], points[3, 0]
    furthest = max(abs(points[0, 0]), abs(points[0, size - 1]))
    return rises and steepest * furthest <= STEEPEST * largest


@kernel
def _find_thresholds(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    hull: NDArray[np.int64],
    size: int,
    thresholds: NDArray[np.float64],
) -> int:
    """Return where each of ``size`` rows of ``hull`` becomes highest.

    Rows with empty intervals, by rounding, are dropped in place.

    Args:
        slopes: float64 ``[n]``.
        heights: float64 ``[n]``.
        hull: rows by rising slope; output too.
        size: how many.
        thresholds: output, float64; rises strictly from ``thresholds[0]``, minus infinity.

    Returns:
        The number of rows left.
    """
    thresholds[0] = -np.inf
    kept = 1
    for i in range(1, size):
        row = hull[i]
        while True:
            last = hull[kept - 1]
            threshold = (heights[last] - heights[row]) / (slopes[row] - slopes[last])
            # The first row has no threshold to be dropped by, even if this one overflows.
            if kept == 1 or threshold > thresholds[kept - 1]:
                break
            kept -= 1
        hull[kept] = row
        thresholds[kept] = threshold
        kept += 1
    return kept


@kernel
def find_hull(
    slopes: NDArray[np.float64],
    heights: NDArray[np.float64],
    known: NDArray[np.int32],
    at: tuple[int, int],
    ints: NDArray[np.int64],
    points: NDArray[np.float64],
    high: NDArray[np.uint8],
    words: NDArray[np.uint64],
    hull: NDArray[np.int64],
    thresholds: NDArray[np.float64],
) -> int:
    """Write the rows of the upper hull, by rising slope; return their number.

    Views of arrays are slow to make and to pass on, so there are none here.

    Args:
        slopes: of one sentence along one direction, float64 ``[n]``.
        heights: intercepts, float64 ``[n]``.
        known: number of known rows, at least 1, and up to nine rows: those of the least and the
            greatest slope, and others; in and output.
        ints: working memory, int64 ``[N_INTS, at least n]``.
        points: working memory, float64 ``[4, at least n and 9]``.
        high: working memory, uint8, a multiple of 8 and more than ``n + 7``.
        words: the same memory, uint64.
        hull: output, int64 ``[at least n and 9]``.
        thresholds: output, float64 ``[at least n and 9]``: where each row becomes highest.
    """
    sentence, direction = at
    n_rows, n_known = len(slopes), known[sentence, direction, 0]
    for i in range(n_known):
        ints[_ROWS, i] = known[sentence, direction, 1 + i]
    if n_known == 2:
        ints[_ROWS, 2] = index_of_highest(heights)
        n_known = 3
    size = _chain(slopes, heights, ints, n_known, points, hull)
    certain, size = size > 0, abs(size)
    if _find_chords(size, points, thresholds):
        n_high = _mark_high(slopes, heights, points, high)
        if certain and n_high == size:
            if size != known[sentence, direction, 0]:
                _remember(hull, size, known, at)
            return size
        for i in range(n_rows, n_rows + 7):
            high[i] = 0
        n_rows = _find_high(n_rows, words, ints)
    else:
        for i in range(n_rows):
            ints[_ROWS, i] = i
    size = _chain(slopes, heights, ints, n_rows, points, hull)
    if size < 0:
        size = _quickhull(slopes, heights, ints, n_rows, hull)
    _remember(hull, size, known, at)
    return _find_thresholds(slopes, heights, hull, size, thresholds)


@kernel
def _remember(
    hull: NDArray[np.int64], size: int, known: NDArray[np.int32], at: tuple[int, int]
) -> None:
    """Write the number of known rows, and rows of the hull with both of its ends, to ``known``."""
    sentence, direction = at
    known[sentence, direction, 0] = min(size, KNOWN)
    for i in range(min(size, KNOWN)):
        known[sentence, direction, 1 + i] = hull[
            i if size <= KNOWN else i * (size - 1) // (KNOWN - 1)
        ]
