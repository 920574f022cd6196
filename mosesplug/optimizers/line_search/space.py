"""How a line search chooses a point among intervals of known scores.

Narrow intervals are never chosen: thresholds are known to about 1e-12, and a point within that
distance of one may decode to either side of it.

The score may be regularized (after Galley et al. 2013). Multiples of weights decide alike, so the
length of a weight vector means nothing, and a plain L2 norm would only make weights small. Galley
et al. regularize by L0, and by a scaled L2. Both are scale-invariant; the scaling of L2 is a choice
of this program:

- L2: the distance of the weights from the given ones after the best scaling, ``min_s |s w - w0|^2 /
  |w0|^2`` with ``s >= 0``, which is the squared sine of the angle between them, with weights in
  given units;
- L0: the number of weights that are not 0.

Between two thresholds of a line the score is constant and the regularizers are not. The sine has
one minimum along a line, in closed form: an interval's best point is there, or as close as the
interval allows. The number of weights drops by one only where a weight passes through 0: these
points are candidates of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats, Weights

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
    # Here neighbors count, several intervals are best, or the best one is narrow.
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
    edges: Floats, intervals: NDArray[np.int64], low: float, high: float
) -> tuple[NDArray[np.int64], Floats, Floats]:
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


MARGIN = 0.1
"""Least distance from a threshold, as a share of the interval's width, of a point whose optimum is
beyond it. Mosesplug's."""


@dataclass(frozen=True)
class Anchor:
    """Products of weights on a line and the given ones, for the sine.

    With ``w`` on the line at ``x``, ``w . w0 = p + q x`` and ``|w|^2 = a + 2 b x + c x^2``.
    """

    p: float
    q: float
    a: float
    b: float
    c: float
    length: float

    @classmethod
    def of(cls, weights: Floats, direction: Floats, center: Floats) -> Anchor:
        """Return the products of float64 ``[n_features]``; inactive directions are 0."""
        return cls(
            float(weights @ center),
            float(direction @ center),
            float(weights @ weights),
            float(weights @ direction),
            float(direction @ direction),
            float(center @ center),
        )

    def sine(self, steps: Floats) -> Floats:
        """Return the squared sine of the angle at ``steps``, float64.

        It is 1 beyond a right angle, since ``s`` is not below 0, and for weights of 0.
        """
        squares = self.a + 2.0 * self.b * steps + self.c * steps**2
        along = np.maximum(self.p + self.q * steps, 0.0)
        whole = squares * self.length
        shares = np.divide(along**2, whole, out=np.zeros_like(steps), where=whole > 0.0)
        return np.asarray(np.clip(1.0 - shares, 0.0, 1.0))

    @property
    def nearest(self) -> float:
        """Step of the least sine; NaN if it is constant along the line."""
        divisor = self.p * self.c - self.q * self.b
        return (self.q * self.a - self.p * self.b) / divisor if divisor != 0.0 else np.nan


@dataclass(frozen=True)
class Regularizer:
    """The penalty that is subtracted from the score.

    Attributes:
        l2: factor of the squared sine.
        l0: penalty of each weight that is not 0.
        center: the weights that the sine compares with.
        active: the weights that L0 counts.
        units: factors of weights in the sine; None: 1. Spreads of features make it compare
            contributions to model scores.
    """

    l2: float
    l0: float
    center: Weights
    active: FeatureMask
    units: Weights | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is a penalty."""
        return self.l2 > 0.0 or self.l0 > 0.0

    def penalty(self, weights: Floats) -> float:
        """Return the penalty at ``weights``, float64 ``[n_features]``."""
        count = int(np.count_nonzero(weights[self.active]))
        if self.l2 == 0.0:
            return self.l0 * count
        sine = self.anchor(weights, np.zeros_like(weights)).sine(np.zeros(1))[0]
        return self.l0 * count + self.l2 * float(sine)

    def anchor(self, weights: Floats, direction: Floats) -> Anchor:
        """Return the products of a line in the units, float64 ``[n_features]`` each."""
        if self.units is None:
            return Anchor.of(weights, direction, self.center)
        return Anchor.of(weights * self.units, direction * self.units, self.center * self.units)


@dataclass(frozen=True)
class LineMove:
    """The chosen point of a line.

    Attributes:
        value: the score there minus the penalty.
    """

    weights: Weights
    value: float


def best_move(
    surface: tuple[Floats, Floats],
    weights: Weights,
    direction: Weights,
    regularizer: Regularizer | None,
    furthest: float,
    within: tuple[float, float] = (-np.inf, np.inf),
    choice: IntervalChoice | None = None,
) -> LineMove | None:
    """Return the point with the highest score minus penalty.

    Args:
        surface: thresholds, float64 ``[m]``, sorted, and scores, float64 ``[m + 1]``.
        weights: where the line starts.
        direction: 0 for inactive weights.
        regularizer: the regularizer of the score; None without one.
        furthest: largest distance from the start, in directions.
        within: ends of the allowed steps, around 0.
        choice: how an interval is chosen without a regularizer.

    Returns:
        None if no interval within reach is wide enough.
    """
    thresholds, scores = surface
    if regularizer is None or not regularizer.is_on:
        choice = choice or IntervalChoice()
        point = best_point(thresholds, scores, choice, furthest, within)
        if point is None:
            return None
        return LineMove(weights + point.step * direction, point.value)
    reach = max(-furthest, within[0]), min(furthest, within[1])
    anchor = regularizer.anchor(weights, direction) if regularizer.l2 > 0.0 else None
    steps, places = _interval_steps(thresholds, anchor, furthest, reach)
    n_zeros = np.zeros(len(steps), dtype=np.int64)
    if regularizer.l0 > 0.0:
        zeros, zero_places, counts = _zeros(thresholds, weights, direction, reach)
        steps, places = np.append(steps, zeros), np.append(places, zero_places)
        n_zeros = np.append(n_zeros, counts)
    if not len(steps):
        return None
    changed = regularizer.active & ((weights != 0.0) | (direction != 0.0))
    values = scores[places] - regularizer.l0 * (np.count_nonzero(changed) - n_zeros)
    if anchor is not None:
        values -= regularizer.l2 * anchor.sine(steps)
    best = int(np.argmax(values))
    moved = weights + steps[best] * direction
    if n_zeros[best]:
        # Exactly zero: the step's rounding would leave tiny weights, which L0 counts.
        moved[_zero_steps(weights, direction) == steps[best]] = 0.0
    return LineMove(moved, float(values[best]))


def _interval_steps(
    thresholds: Floats, anchor: Anchor | None, furthest: float, reach: tuple[float, float]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the best step of each wide enough interval, and the interval's number.

    Without an anchor it is the middle. Intervals end as in ``best_point``, but with an anchor the
    unbounded ones end at the furthest step.
    """
    beyond = 2 * END_STEP if anchor is None else furthest
    ends = thresholds if len(thresholds) else np.zeros(1)
    left = np.concatenate([[ends[0] - beyond], thresholds]).clip(*reach)
    right = np.concatenate([thresholds, [ends[-1] + beyond]]).clip(*reach)
    certain = right - left > NARROWEST * (1.0 + np.maximum(np.abs(left), np.abs(right)))
    places = np.flatnonzero(certain)
    left, right = left[places], right[places]
    if anchor is None or np.isnan(anchor.nearest):
        return 0.5 * (left + right), places
    # If the minimum is outside, one of the ends is best, not always the closer one: far away the
    # sine falls again, towards that of the direction itself.
    margin = np.minimum(MARGIN * (right - left), END_STEP)
    low, high = left + margin, right - margin
    candidates = np.stack([np.clip(anchor.nearest, low, high), low, high])
    best = np.argmin(anchor.sine(candidates.ravel()).reshape(candidates.shape), axis=0)
    return candidates[best, np.arange(len(places))], places


def _zeros(
    thresholds: Floats, weights: Floats, direction: Floats, reach: tuple[float, float]
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return steps where weights become 0, their intervals, and numbers of weights.

    Steps too close to a threshold are left out: they may decode to either side of it.
    """
    steps = _zero_steps(weights, direction)
    inside = (steps >= reach[0]) & (steps <= reach[1])
    steps, counts = np.unique(steps[inside], return_counts=True)
    places = np.searchsorted(thresholds, steps)
    if len(thresholds):
        near = np.minimum(
            np.abs(steps - thresholds[np.maximum(places - 1, 0)]),
            np.abs(steps - thresholds[np.minimum(places, len(thresholds) - 1)]),
        )
        sure = near > NARROWEST * (1.0 + np.abs(steps))
        steps, places, counts = steps[sure], places[sure], counts[sure]
    return steps, places, counts.astype(np.int64)


def _zero_steps(weights: Floats, direction: Floats) -> Floats:
    """Return where each weight becomes 0, float64 ``[n_features]``; NaN if never."""
    passing = (weights != 0.0) & (direction != 0.0)
    steps = np.full(len(weights), np.nan)
    np.divide(-weights, direction, out=steps, where=passing)
    return steps
