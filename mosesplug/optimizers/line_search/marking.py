"""Marking of the points that are not below a concave chain.

Few hypotheses can be on a new hull. This is the only step of a line search that looks at every
hypothesis. It has no branches, computes in single precision, and errs on the safe side: a marked
point may be below the chain, another one certainly is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import fused_kernel, lean_kernel

__all__ = [
    "HEIGHT",
    "N_CHORDS",
    "SLOPE",
    "THRESHOLD",
    "find_chords",
    "list_marked",
    "mark_high",
]

SLOPE, HEIGHT, THRESHOLD = 0, 1, 2
"""Rows of the array of a chain's points."""

N_CHORDS = 8
"""Chords that points are compared with."""

BELOW = 1e-6
"""A point is below a chain if it is lower by more than this, relative to the terms of a chord's
equation. Their rounding in single precision is at most half of it."""

STEEPEST = 1e4
"""Greatest rise of a chord over the slopes of a sentence, relative to the largest height: beyond
it, the margin ``BELOW`` would mark most points."""

LEAST, GREATEST = 1e-30, 1e30
"""Largest heights that leave room for products in single precision."""

_LOW_BITS = np.uint64(0x0102040810204080)
"""Multiplied by it, the lowest bits of eight bytes gather in the highest byte."""

_BIT_HASH = np.uint64(0x03F79D71B4CB0A89)
"""Multiplied by powers of 2, its six highest bits differ (a de Bruijn sequence)."""

_BIT_NUMBERS = np.zeros(64, dtype=np.uint8)
"""Numbers of bits by those six bits."""
for _bit in range(64):
    _BIT_NUMBERS[((1 << _bit) * int(_BIT_HASH) & (1 << 64) - 1) >> 58] = _bit


@lean_kernel
def find_chords(
    size: int, points: NDArray[np.float64], largest: float, chords: NDArray[np.float32]
) -> bool:
    """Write the chords of a chain, lowered by a margin for rounding.

    Args:
        size: number of points of the chain, 1 to 9.
        points: their slopes, heights and thresholds, float64 ``[3, at least size]``.
        largest: their largest absolute height.
        chords: output, float32 ``[2, 8]``: heights at 0, and gradients. The first chord repeats.

    Returns:
        Whether the numbers suit single precision; otherwise, nothing can be marked.
    """
    steepest = 0.0
    for i in range(1, size):
        steepest = max(steepest, abs(points[THRESHOLD, i]))
    reach = steepest * max(abs(points[SLOPE, 0]), abs(points[SLOPE, size - 1]))
    if not (reach <= STEEPEST * largest and LEAST < largest < GREATEST):
        return False
    margin = BELOW * (largest + reach)
    chords[0, 0], chords[1, 0] = points[HEIGHT, 0] - margin, 0.0
    for i in range(size - 1):
        threshold = points[THRESHOLD, i + 1]
        chords[0, i] = points[HEIGHT, i] + threshold * points[SLOPE, i] - margin
        chords[1, i] = -threshold
    # Always eight chords, so that the loop over hypotheses has no branch.
    for i in range(max(1, size - 1), N_CHORDS):
        chords[0, i], chords[1, i] = chords[0, 0], chords[1, 0]
    return True


@fused_kernel
def mark_high(
    slopes: NDArray[Any],
    heights: NDArray[np.float32],
    chords: NDArray[np.float32],
    marks: NDArray[np.uint8],
) -> int:
    """Mark the points that are not below the lowest of eight chords; return how many.

    Args:
        slopes: float32 or float64 ``[n]``.
        heights: float32 ``[at least n]``.
        chords: from ``find_chords``.
        marks: output, ``[at least n]``, 1 or 0.
    """
    a0, a1, a2, a3 = chords[0, 0], chords[0, 1], chords[0, 2], chords[0, 3]
    a4, a5, a6, a7 = chords[0, 4], chords[0, 5], chords[0, 6], chords[0, 7]
    b0, b1, b2, b3 = chords[1, 0], chords[1, 1], chords[1, 2], chords[1, 3]
    b4, b5, b6, b7 = chords[1, 4], chords[1, 5], chords[1, 6], chords[1, 7]
    count = 0
    for row in range(len(slopes)):
        x = np.float32(slopes[row])
        # A balanced tree of minima, whose halves are computed side by side.
        first = min(min(a0 + b0 * x, a1 + b1 * x), min(a2 + b2 * x, a3 + b3 * x))
        last = min(min(a4 + b4 * x, a5 + b5 * x), min(a6 + b6 * x, a7 + b7 * x))
        is_high = heights[row] >= min(first, last)
        marks[row] = is_high
        count += is_high
    return count


@lean_kernel
def list_marked(size: int, words: NDArray[np.uint64], rows: NDArray[np.int64]) -> int:
    """Write the numbers of the marked points to ``rows``, ascending; return how many.

    Args:
        size: number of points.
        words: marks, 1 or 0 in a byte for each point, and 0 up to a multiple of 8.
        rows: output, int64 ``[at least size]``.
    """
    n_words, count = (size + 7) // 8, 0
    for start in range(0, n_words, 8):
        bits = np.uint64(0)
        for word in range(start, min(start + 8, n_words)):
            byte = (words[word] * _LOW_BITS) >> np.uint64(56)
            bits |= byte << np.uint64(8 * (word - start))
        while bits != 0:
            lowest = bits & (~bits + np.uint64(1))
            rows[count] = 8 * start + _BIT_NUMBERS[(lowest * _BIT_HASH) >> np.uint64(58)]
            count += 1
            bits ^= lowest
    return count
