"""Upper hull of a sentence's points ``(slope, intercept)``.

Its points are the lines that are highest somewhere. A search looks at the same lines again and
again while it moves a little, so the hull hardly changes. The rows of the last hull, at their new
intercepts, are a chain below the new hull (``marking`` finds the points that are not below it,
mostly none). These are inserted one by one, and each drops the neighbors that it covers.

Points that are nearly collinear are compared by rounding errors. There, ``wrapping`` has the last
word, so that the hull never depends on what was known before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import lean_kernel
from mosesplug.optimizers.line_search.marking import (
    HEIGHT,
    N_CHORDS,
    SLOPE,
    THRESHOLD,
    find_chords,
    list_marked,
    mark_high,
)
from mosesplug.optimizers.line_search.wrapping import wrap_hull

__all__ = ["KNOWN", "find_hull"]

KNOWN = N_CHORDS + 1
"""Most rows of a hull that are kept for the next: the ends of its chords."""

CLOSE = 1e-12
"""Heights that differ by less, relative to the largest, may compare either way by rounding."""


@lean_kernel
def find_hull(
    slopes: NDArray[Any],
    heights: NDArray[np.float64],
    rounded: NDArray[np.float32],
    known: NDArray[np.int32],
    points: NDArray[np.float64],
    hull: NDArray[np.int64],
    rows: NDArray[np.int64],
    chords: NDArray[np.float32],
    marks: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> int:
    """Write the rows of the upper hull, by rising slope; return their number.

    One long function: a call with many arrays takes as long as the insertion of a point.

    Args:
        slopes: the slopes of one sentence along one direction, float32 or float64 ``[n]``, at least
            one.
        heights: intercepts, float64 ``[n]``.
        rounded: the same, float32 ``[at least n]``.
        known: int32 ``[10]``: number of known rows, 0 at first, and up to nine rows of the last
            hull by rising slope, with both ends; in and output.
        points: output, float64 ``[3, at least n and 9]``: slopes, heights and thresholds of the
            hull. A row becomes highest at its threshold, the first one at minus infinity.
        hull: output, int64 ``[at least n and 9]``: the rows.
        rows: working memory, int64 ``[at least n and 9]``.
        chords: working memory, float32 ``[2, 8]``.
        marks: working memory, uint8, a multiple of 8 and more than ``n + 7``.
        words: the same memory, uint64.
    """
    n, n_known = len(slopes), int(known[0])
    is_complete = n_known == 0
    count = n if is_complete else n_known
    largest = 0.0
    for i in range(count):
        rows[i] = i if is_complete else known[1 + i]
        largest = max(largest, abs(heights[rows[i]]))
    close = CLOSE * largest

    # Mostly the known rows are a concave chain at their new heights, too.
    is_chain = not is_complete
    last, last_run = -np.inf, 1.0
    for i in range(n_known):
        row = rows[i]
        x, y = np.float64(slopes[row]), heights[row]
        hull[i] = row
        points[SLOPE, i], points[HEIGHT, i], points[THRESHOLD, i] = x, y, -np.inf
        if i > 0:
            run = x - points[SLOPE, i - 1]
            threshold = (points[HEIGHT, i - 1] - y) / run
            is_chain &= (threshold - last) * (run * last_run) > close * (run + last_run)
            points[THRESHOLD, i] = threshold
            last, last_run = threshold, run
    size = n_known if is_chain else 0

    while True:
        for i in range(n_known if is_chain and not is_complete else 0, count):
            row = rows[i]
            x, y = np.float64(slopes[row]), heights[row]
            right = 0
            for k in range(size):  # counted, since the processor cannot foresee a search's end
                right += points[SLOPE, k] < x
            left = right - 1
            before, after, gain = -np.inf, 0.0, np.inf
            if left >= 0:
                before = (points[HEIGHT, left] - y) / (x - points[SLOPE, left])
            if right < size and points[SLOPE, right] == x:
                gain = y - points[HEIGHT, right]
                # Equal lines: the first row wins, as in every tie.
                if gain == 0.0:
                    hull[right] = min(hull[right], row)
                    continue
                right += 1
            elif right < size and left >= 0:
                gain = (points[THRESHOLD, right] - before) * (x - points[SLOPE, left])
            if gain < -close:
                continue
            is_certain = gain > close
            while is_certain and left > 0:
                run = x - points[SLOPE, left]
                last_run = points[SLOPE, left] - points[SLOPE, left - 1]
                bend = (before - points[THRESHOLD, left]) * (run * last_run)
                if bend > close * (run + last_run):
                    break
                is_certain = bend < -close * (run + last_run)
                left -= 1
                before = (points[HEIGHT, left] - y) / (x - points[SLOPE, left])
            if right < size:
                after = (y - points[HEIGHT, right]) / (points[SLOPE, right] - x)
            while is_certain and right < size - 1:
                run = points[SLOPE, right + 1] - points[SLOPE, right]
                last_run = points[SLOPE, right] - x
                bend = (points[THRESHOLD, right + 1] - after) * (run * last_run)
                if bend > close * (run + last_run):
                    break
                is_certain = bend < -close * (run + last_run)
                right += 1
                after = (y - points[HEIGHT, right]) / (points[SLOPE, right] - x)
            if not is_certain:
                if is_complete:
                    size = wrap_hull(slopes, heights, points, hull)
                    _remember(hull, size, known)
                    return size
                continue  # a chain without this row is below the hull, too
            move = left + 2 - right
            if move > 0:
                for k in range(size - 1, right - 1, -1):
                    hull[k + 1] = hull[k]
                    for part in range(3):
                        points[part, k + 1] = points[part, k]
            elif move < 0:
                for k in range(right, size):
                    hull[k + move] = hull[k]
                    for part in range(3):
                        points[part, k + move] = points[part, k]
            size += move
            hull[left + 1] = row
            points[SLOPE, left + 1], points[HEIGHT, left + 1] = x, y
            points[THRESHOLD, left + 1] = before
            if left + 2 < size:
                points[THRESHOLD, left + 2] = after
        if is_complete:
            break
        is_complete = True
        if find_chords(size, points, largest, chords):
            if mark_high(slopes, rounded, chords, marks) == size:
                if size == n_known:
                    return size
                break
            # Marks are read eight at a time: those after the last row must not count.
            for i in range(n, n + 7):
                marks[i] = 0
            for i in range(size):
                marks[hull[i]] = 0
            count = list_marked(n, words, rows)
        else:
            count, size = n, 0
            for i in range(n):
                rows[i] = i
                largest = max(largest, abs(heights[i]))
            close = CLOSE * largest
    _remember(hull, size, known)
    return size


@lean_kernel
def _remember(hull: NDArray[np.int64], size: int, known: NDArray[np.int32]) -> None:
    """Write rows of the hull, with both ends, to ``known``, after their number."""
    known[0] = min(size, KNOWN)
    for i in range(min(size, KNOWN)):
        known[1 + i] = hull[i if size <= KNOWN else i * (size - 1) // (KNOWN - 1)]
