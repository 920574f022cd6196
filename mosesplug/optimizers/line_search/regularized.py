"""The best point of a line with a regularized score (after Galley et al. 2013).

Multiples of weights decide alike, so the length of a weight vector means nothing, and a plain L2
norm would only make weights small. Galley et al. regularize by L0, and by a scaled L2. Both are
scale-invariant; the scaling of L2 is a choice of this program:

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

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.line_search.space import END_STEP, NARROWEST, IntervalChoice, best_point

__all__ = ["Anchor", "LineMove", "Regularizer", "best_move"]

Vector = NDArray[np.float64]

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
    def of(cls, weights: Vector, direction: Vector, given: Vector) -> Anchor:
        """Return the products of float64 ``[n_features]``; inactive directions are 0."""
        return cls(
            float(weights @ given),
            float(direction @ given),
            float(weights @ weights),
            float(weights @ direction),
            float(direction @ direction),
            float(given @ given),
        )

    def sine(self, steps: Vector) -> Vector:
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
        center: float64 ``[n_features]``, the weights that the sine compares with.
        active: bool ``[n_features]``, the weights that L0 counts.
        units: float64 ``[n_features]``, factors of weights in the sine; None: 1. Spreads of
            features make it compare contributions to model scores.
    """

    l2: float
    l0: float
    center: Vector
    active: NDArray[np.bool_]
    units: Vector | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is a penalty."""
        return self.l2 > 0.0 or self.l0 > 0.0

    def penalty(self, weights: Vector) -> float:
        """Return the penalty at ``weights``, float64 ``[n_features]``."""
        count = int(np.count_nonzero(weights[self.active]))
        if self.l2 == 0.0:
            return self.l0 * count
        sine = self.anchor(weights, np.zeros_like(weights)).sine(np.zeros(1))[0]
        return self.l0 * count + self.l2 * float(sine)

    def anchor(self, weights: Vector, direction: Vector) -> Anchor:
        """Return the products of a line in the units, float64 ``[n_features]`` each."""
        if self.units is None:
            return Anchor.of(weights, direction, self.center)
        return Anchor.of(weights * self.units, direction * self.units, self.center * self.units)


@dataclass(frozen=True)
class LineMove:
    """The chosen point of a line.

    Attributes:
        weights: float64 ``[n_features]``.
        value: the score there minus the penalty.
    """

    weights: Vector
    value: float


def best_move(
    surface: tuple[Vector, Vector],
    weights: Vector,
    direction: Vector,
    regularizer: Regularizer,
    furthest: float,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> LineMove | None:
    """Return the point with the highest score minus penalty.

    Args:
        surface: thresholds, float64 ``[m]``, sorted, and scores, float64 ``[m + 1]``.
        weights: float64 ``[n_features]``, where the line starts.
        direction: float64 ``[n_features]``, 0 for inactive weights.
        regularizer: the regularizer of the score.
        furthest: largest distance from the start, in directions.
        within: ends of the allowed steps, around 0.

    Returns:
        None if no interval within reach is wide enough.
    """
    thresholds, scores = surface
    if not regularizer.is_on:
        point = best_point(thresholds, scores, IntervalChoice(), furthest, within)
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
        moved[_zero_steps(weights, direction) == steps[best]] = 0.0
    return LineMove(moved, float(values[best]))


def _interval_steps(
    thresholds: Vector, anchor: Anchor | None, furthest: float, reach: tuple[float, float]
) -> tuple[Vector, NDArray[np.int64]]:
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
    thresholds: Vector, weights: Vector, direction: Vector, reach: tuple[float, float]
) -> tuple[Vector, NDArray[np.int64], NDArray[np.int64]]:
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


def _zero_steps(weights: Vector, direction: Vector) -> Vector:
    """Return where each weight becomes 0, float64 ``[n_features]``; NaN if never."""
    passing = (weights != 0.0) & (direction != 0.0)
    steps = np.full(len(weights), np.nan)
    np.divide(-weights, direction, out=steps, where=passing)
    return steps
