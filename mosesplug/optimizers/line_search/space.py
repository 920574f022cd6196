"""How a search for weights chooses a point on a line, on which the score is known exactly.

Narrow intervals are never chosen: thresholds are known to about 1e-12, and a point within that
distance of one may decode to either side of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NARROWEST = 1e-7
"""Least width of a chosen interval, relative to the distance from the origin."""


END_STEP = 0.1
"""Distance of the point of an unbounded interval from the outermost threshold (as in Moses)."""


@dataclass(frozen=True)
class IntervalChoice:
    """How an interval is chosen (Cer et al. 2008, section 3.3).

    Attributes:
        method: ``best`` takes the interval of the highest score; ``average`` and ``minimum`` take
            the mean or the least of an interval's own score and its neighbors', which avoids
            narrow peaks.
        neighbors: number of intervals on either side that are neighbors.
    """

    method: Literal["best", "average", "minimum"] = "best"
    neighbors: int = 3

    @property
    def smooths(self) -> bool:
        """Whether neighbors change the score of an interval."""
        return self.method != "best" and self.neighbors > 0


@dataclass(frozen=True)
class LinePoint:
    """The chosen point of a line.

    Attributes:
        step: distance from the origin, in directions.
        value: what the interval was chosen by: the score there, or its smoothed value.
    """

    step: float
    value: float


def best_point(
    thresholds: NDArray[np.float64],
    scores: NDArray[np.float64],
    choice: IntervalChoice,
    furthest: float,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> LinePoint | None:
    """Return the middle of the best interval that is wide enough.

    Intervals that are too narrow, such as between coinciding thresholds, are no neighbors either:
    no weights decode to their scores. Neighboring intervals of one score count as one. In a tie
    the widest wins, since its middle is the safest. If a threshold lies there, the middle of the
    widest of these neighbors is taken instead. Intervals end at the furthest step, and the
    unbounded ones twice ``END_STEP`` beyond the outermost threshold.

    Args:
        thresholds: float64 ``[m]``, sorted.
        scores: float64 ``[m + 1]``.
        choice: how the interval is chosen.
        furthest: largest distance from the origin, in directions.
        within: ends of the allowed steps, around 0.

    Returns:
        None if no interval within reach is wide enough.
    """
    if not len(thresholds):
        return LinePoint(0.0, float(scores[0]))
    low, high = max(-furthest, within[0]), min(furthest, within[1])
    if not choice.smooths:  # a fast way: mostly one interval is best, and wide enough
        index = int(scores.argmax())
        if np.count_nonzero(scores == scores[index]) == 1:
            start = thresholds[index - 1] if index else thresholds[0] - 2 * END_STEP
            end = thresholds[index] if index < len(thresholds) else thresholds[-1] + 2 * END_STEP
            start, end = min(max(float(start), low), high), min(max(float(end), low), high)
            step = 0.5 * (start + end)
            # Half of a wide interval is also far enough from the thresholds at its ends.
            if min(step - start, end - step) > NARROWEST * (1.0 + max(abs(start), abs(end))):
                return LinePoint(step, float(scores[index]))
    edges = np.empty(len(thresholds) + 2)
    edges[0], edges[-1] = thresholds[0] - 2 * END_STEP, thresholds[-1] + 2 * END_STEP
    edges[1:-1] = thresholds
    best, equals = scores.max(), np.empty(0, dtype=np.int64)
    if not choice.smooths:  # a fast way: few intervals are best, and mostly one is wide enough
        equals, left, right = _wide_intervals(edges, np.flatnonzero(scores == best), low, high)
    if not len(equals):
        equals, left, right = _wide_intervals(edges, np.arange(len(scores)), low, high)
        if not len(equals):
            return None
        values = _smooth(scores[equals], choice)
        best = values.max()
        is_best = values == best
        equals, left, right = equals[is_best], left[is_best], right[is_best]
    first, last = 0, len(equals) - 1
    if last:
        starts = np.flatnonzero(np.diff(equals, prepend=-2) != 1)
        ends = np.append(starts[1:], len(equals)) - 1
        widest = int(np.argmax(right[ends] - left[starts]))
        first, last = int(starts[widest]), int(ends[widest])
    step = 0.5 * (left[first] + right[last])
    place = int(np.searchsorted(thresholds, step))
    nearest = np.abs(thresholds[max(0, place - 1) : place + 1] - step).min()
    if nearest <= NARROWEST * (1.0 + abs(step)):
        inside = first + int(np.argmax((right - left)[first : last + 1]))
        step = 0.5 * (left[inside] + right[inside])
    return LinePoint(float(step), float(best))


def _wide_intervals(
    edges: Vector, intervals: NDArray[np.int64], low: float, high: float
) -> tuple[NDArray[np.int64], Vector, Vector]:
    """Return the intervals that are wide enough, and their left and right ends.

    Args:
        edges: float64 ``[m + 2]``, of all intervals.
        intervals: int64, numbers of intervals.
        low: least end.
        high: greatest end.
    """
    left, right = edges[intervals].clip(low, high), edges[intervals + 1].clip(low, high)
    wide = right - left > NARROWEST * (1.0 + np.maximum(np.abs(left), np.abs(right)))
    return intervals[wide], left[wide], right[wide]


def _smooth(scores: NDArray[np.float64], choice: IntervalChoice) -> NDArray[np.float64]:
    """Return each score, or the mean or least of its neighborhood (Cer et al. 2008)."""
    if not choice.smooths:
        return scores
    window = 2 * choice.neighbors + 1
    padded = np.pad(scores, choice.neighbors, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, window)
    reduced = views.mean(axis=1) if choice.method == "average" else views.min(axis=1)
    return np.asarray(reduced)
