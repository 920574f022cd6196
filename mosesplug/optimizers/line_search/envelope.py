"""Upper envelopes: the 1-best hypotheses of a sentence along a line of weights.

Along ``w + x d`` a hypothesis with features ``h`` scores ``intercept + slope x``, where ``intercept
= w . h`` and ``slope = d . h``. The highest line at each ``x`` is the 1-best there, so a sentence's
envelope is a row of hypotheses and the thresholds between them (Och 2003, section 3; Macherey et
al. 2008, section 3).

The envelope of lines is the upper convex hull of the points ``(slope, intercept)``. Most points lie
far below it: those below the polyline from the point of least slope over the highest point to the
point of greatest slope are dropped by one comparison, and quickhull does the rest. No sentence is
sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, kernel
from mosesplug.optimizers.lists.arrangement import longest_sentence

__all__ = ["envelopes"]


@finite_kernel
def _highest_at(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    least: float,
    greatest: float,
) -> tuple[float, float]:
    """Return the highest intercepts at the least and at the greatest slope."""
    left = right = -np.inf
    for row in range(len(slopes)):
        intercept = intercepts[row]
        left = max(left, intercept if slopes[row] == least else -np.inf)
        right = max(right, intercept if slopes[row] == greatest else -np.inf)
    return left, right


@kernel
def _candidates(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    middle: float,
    rise: float,
    fall: float,
    floor: float,
    rows: NDArray[np.int64],
) -> int:
    """Write the rows that may be on the hull to ``rows``; return their number.

    They are not below the two chords that meet at the point of highest intercept, whose slope is
    ``middle``. Every line search calls this for every hypothesis, so the loop has no branches.
    """
    count = 0
    for row in range(len(slopes)):
        run = slopes[row] - middle
        gradient = rise if run < 0.0 else fall
        rows[count] = row
        count += intercepts[row] >= floor + run * gradient
    return count


@kernel
def _partition(
    slopes: NDArray[np.float64],
    middle: float,
    rows: NDArray[np.int64],
    lower: NDArray[np.int64],
    higher: NDArray[np.int64],
) -> tuple[int, int]:
    """Write rows of slopes below ``middle`` to ``lower``, above it to ``higher``.

    Returns:
        The number of each.
    """
    n_lower = n_higher = 0
    for row in rows:
        lower[n_lower] = row
        n_lower += slopes[row] < middle
        higher[n_higher] = row
        n_higher += slopes[row] > middle
    return n_lower, n_higher


@kernel
def _first(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    slope: float,
    intercept: float,
    rows: NDArray[np.int64],
) -> int:
    """Return the first of the rows with this slope and intercept; there is one."""
    for row in rows:
        if slopes[row] == slope and intercepts[row] == intercept:
            return int(row)
    return -1


@kernel
def _keep_above(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    left: int,
    middle: int,
    right: int,
    rows: NDArray[np.int64],
    spare: NDArray[np.int64],
) -> tuple[int, int]:
    """Keep the rows above the chords from ``left`` to ``middle`` and on to ``right``.

    In place: ``rows`` holds first those above the first chord, then those above the second, each in
    their old order. ``spare`` is scratch.

    Returns:
        The number of each.
    """
    x, y = slopes[middle], intercepts[middle]
    rise = (y - intercepts[left]) / (x - slopes[left])
    fall = (intercepts[right] - y) / (slopes[right] - x)
    n_left = n_right = 0
    for row in rows:
        run, height = slopes[row] - x, intercepts[row] - y
        rows[n_left] = row
        n_left += (run < 0.0) & (height > run * rise)
        spare[n_right] = row
        n_right += (run > 0.0) & (height > run * fall)
    rows[n_left : n_left + n_right] = spare[:n_right]
    return n_left, n_right


@kernel
def _peak(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    left: int,
    right: int,
    rows: NDArray[np.int64],
) -> int:
    """Return the row highest above the chord from ``left`` to ``right``, or -1.

    It is strictly between them.
    """
    peak, best = -1, 0.0
    if len(rows) == 0:
        return peak
    gradient = (intercepts[right] - intercepts[left]) / (slopes[right] - slopes[left])
    for row in rows:
        height = intercepts[row] - intercepts[left] - (slopes[row] - slopes[left]) * gradient
        if height > best and slopes[left] < slopes[row] < slopes[right]:
            peak, best = row, height
    return peak


@kernel
def _between(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    left: int,
    right: int,
    rows: NDArray[np.int64],
    work: NDArray[np.int64],
    hull: NDArray[np.int64],
    size: int,
) -> int:
    """Append the hull between two hull points, and the second of them, to ``hull``.

    Quickhull (Barber et al. 1996) on the plane: between two hull points, the point highest above
    their chord is on the hull; points above neither new chord are not.

    Args:
        slopes: of one sentence along one direction, float64 ``[n]``.
        intercepts: float64 ``[n]``.
        left: row of a hull point.
        right: row of one of greater slope.
        rows: those that may lie between; scratch.
        work: scratch, int64 ``[5, at least n]``.
        hull: output, int64.
        size: number of hull points so far.

    Returns:
        The new number.
    """
    spare, lefts, rights, firsts, lasts = work[0], work[1], work[2], work[3], work[4]
    lefts[0], rights[0], firsts[0], lasts[0] = left, right, 0, len(rows)
    depth = 1
    while depth > 0:
        depth -= 1
        left, right, first, last = lefts[depth], rights[depth], firsts[depth], lasts[depth]
        peak = _peak(slopes, intercepts, left, right, rows[first:last])
        if peak < 0:
            hull[size] = right
            size += 1
            continue
        n_left, n_right = _keep_above(
            slopes, intercepts, left, peak, right, rows[first:last], spare
        )
        cut = first + n_left
        lefts[depth], rights[depth], firsts[depth], lasts[depth] = peak, right, cut, cut + n_right
        depth += 1
        lefts[depth], rights[depth], firsts[depth], lasts[depth] = left, peak, first, cut
        depth += 1
    return size


@kernel
def _hull(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    top: int,
    least: float,
    greatest: float,
    work: NDArray[np.int64],
    hull: NDArray[np.int64],
) -> int:
    """Write the rows of the upper hull to ``hull``, by rising slope; return their number.

    Args:
        slopes: of one sentence along one direction, float64 ``[n]``.
        intercepts: float64 ``[n]``.
        top: first row of the highest intercept.
        least: the least slope.
        greatest: the greatest.
        work: scratch, int64 ``[7, at least n + 2]``.
        hull: output, int64 ``[at least n]``.
    """
    if least == greatest:
        hull[0] = top
        return 1
    lower, higher = work[0], work[1]
    left_edge, right_edge = _highest_at(slopes, intercepts, least, greatest)
    middle, height = slopes[top], intercepts[top]
    rise = (height - left_edge) / (middle - least) if middle > least else 0.0
    fall = (right_edge - height) / (greatest - middle) if greatest > middle else 0.0
    # Rounding must not drop the ends of the chords.
    floor = height - 1e-13 * (abs(left_edge) + abs(height) + abs(right_edge))
    count = _candidates(slopes, intercepts, middle, rise, fall, floor, work[2])
    n_lower, n_higher = _partition(slopes, middle, work[2, :count], lower, higher)
    hull[0] = top
    size = 1
    if middle > least:
        hull[0] = _first(slopes, intercepts, least, left_edge, lower[:n_lower])
        size = _between(slopes, intercepts, hull[0], top, lower[:n_lower], work[2:], hull, size)
    if greatest > middle:
        right = _first(slopes, intercepts, greatest, right_edge, higher[:n_higher])
        size = _between(slopes, intercepts, top, right, higher[:n_higher], work[2:], hull, size)
    return size


@kernel
def _thresholds(
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    hull: NDArray[np.int64],
    size: int,
    thresholds: NDArray[np.float64],
) -> int:
    """Return where each row of ``hull[:size]`` becomes 1-best.

    Rows with empty intervals, by rounding, are dropped in place.

    Args:
        slopes: float64 ``[n]``.
        intercepts: float64 ``[n]``.
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
            threshold = (intercepts[last] - intercepts[row]) / (slopes[row] - slopes[last])
            # The first row has no threshold to be dropped by, even if this one overflows.
            if kept == 1 or threshold > thresholds[kept - 1]:
                break
            kept -= 1
        hull[kept] = row
        thresholds[kept] = threshold
        kept += 1
    return kept


@kernel
def envelopes(
    offsets: NDArray[np.int64],
    slopes: NDArray[np.float64],
    bounds: NDArray[np.float64],
    wanted: NDArray[np.int64],
    intercepts: NDArray[np.float64],
    stats: NDArray[Any],
    thresholds: NDArray[np.float64],
    changes: NDArray[Any],
    totals: NDArray[np.float64],
    found: NDArray[np.int64],
) -> None:
    """Compute thresholds and changes of statistics of all sentences along directions.

    Args:
        offsets: int64 ``[n_sentences + 1]``; no sentence is empty.
        slopes: arranged (see ``arrangement.py``), float64 ``[n_hyps * n_directions]``.
        bounds: float64 ``[n_sentences, n_directions, 2]``, from ``find_slope_bounds``.
        wanted: int64 ``[n_wanted]``, numbers of directions.
        intercepts: float64 ``[n_hyps]``.
        stats: ``[n_hyps, n_stats]``.
        thresholds: output, float64 ``[n_wanted, room]``. They rise within a sentence and are
            not sorted across sentences.
        changes: output, ``[n_wanted, room, n_stats]``: the change in the corpus statistics when
            ``x`` passes the threshold.
        totals: output, float64 ``[n_wanted, n_stats]``: the statistics at minus infinity.
        found: output, int64 ``[n_wanted]``: number of thresholds; if it exceeds the room, the
            outputs are invalid.
    """
    widest = longest_sentence(offsets)
    work = np.empty((7, widest + 2), dtype=np.int64)
    hull = np.empty(widest + 1, dtype=np.int64)
    local = np.empty(widest + 1, dtype=np.float64)
    n_directions, n_stats = bounds.shape[1], stats.shape[1]
    totals[:] = 0.0
    found[:] = 0
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        heights = intercepts[start:end]
        top = int(np.argmax(heights))
        for line in range(len(wanted)):
            direction = wanted[line]
            place = start * n_directions + direction * (end - start)
            gradients = slopes[place : place + end - start]
            least, greatest = bounds[sentence, direction, 0], bounds[sentence, direction, 1]
            size = _hull(gradients, heights, top, least, greatest, work, hull)
            size = _thresholds(gradients, heights, hull, size, local)
            for k in range(n_stats):
                totals[line, k] += stats[start + hull[0], k]
            at = found[line]
            found[line] += size - 1
            if found[line] > thresholds.shape[1]:
                continue
            for i in range(1, size):
                thresholds[line, at] = local[i]
                old, new = start + hull[i - 1], start + hull[i]
                for k in range(n_stats):
                    changes[line, at, k] = stats[new, k] - stats[old, k]
                at += 1
