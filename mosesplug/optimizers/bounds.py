"""Bounds of weights, which hold for the result of an optimizer.

Bounds are a box: an interval for each weight. A search stays inside it by clipping, which is the
projection onto a box; averages of points inside are inside. A box is no cone: weights times a
factor decide alike, but may leave the box. So weights are scaled only if every limit is 0 or
infinite (``is_cone``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats

__all__ = ["EDGE", "Bounds"]

EDGE = 1e-6
"""Distance from an open limit, relative to its size or 1. A projection needs a nearest point."""


@dataclass(frozen=True)
class Bounds:
    """Intervals of weights.

    Attributes:
        low: float64 ``[n]``, lower limits; minus infinity for none.
        high: float64 ``[n]``, upper limits; infinity for none.
        above: bool ``[n]``, whether a weight must be greater than its lower limit.
        below: bool ``[n]``, whether a weight must be less than its upper limit.
    """

    low: Floats
    high: Floats
    above: FeatureMask
    below: FeatureMask

    @classmethod
    def none(cls, size: int) -> Bounds:
        """Return no limits for ``size`` weights."""
        open_ = np.zeros(size, dtype=np.bool_)
        return cls(np.full(size, -np.inf), np.full(size, np.inf), open_, open_.copy())

    def __len__(self) -> int:
        return len(self.low)

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Closed intervals inside the bounds: lower and upper ends, float64 ``[n]``."""
        low, high = self.low.copy(), self.high.copy()
        low[self.above] += _edge(low[self.above])
        high[self.below] -= _edge(high[self.below])
        return low, np.maximum(high, low)

    @property
    def is_fixed(self) -> FeatureMask:
        """bool ``[n]``, weights with one possible value."""
        return np.asarray(self.low == self.high)

    def is_cone(self, columns: FeatureMask | slice = slice(None)) -> bool:
        """Return whether these weights may be multiplied by any positive factor.

        Args:
            columns: bool ``[n]``, the weights.
        """
        limits = np.concatenate([self.low[columns], self.high[columns]])
        return bool(((limits == 0.0) | np.isinf(limits)).all())

    def take(self, columns: FeatureMask | NDArray[np.int64]) -> Bounds:
        """Return the bounds of some weights; ``columns`` is bool ``[n]`` or int64."""
        return Bounds(
            self.low[columns], self.high[columns], self.above[columns], self.below[columns]
        )

    def project(self, weights: Floats) -> Floats:
        """Return the nearest weights inside the bounds; those inside are unchanged.

        Args:
            weights: float64 ``[..., n]``.
        """
        low, high = self.box
        outside = self._outside(weights)
        # Adding 0 makes -0, which a limit of 0 may be, 0.
        return np.where(outside, np.clip(weights, low, high) + 0.0, weights)

    def find_outside(self, weights: Floats) -> NDArray[np.int64]:
        """Return the weights that are outside, int64."""
        return np.flatnonzero(self._outside(weights))

    def _outside(self, weights: Floats) -> FeatureMask:
        too_low = np.where(self.above, weights <= self.low, weights < self.low)
        too_high = np.where(self.below, weights >= self.high, weights > self.high)
        return np.asarray(too_low | too_high)

    def start_box(self, minima: Floats | None, maxima: Floats | None) -> tuple[Floats, Floats]:
        """Return a box of random starts inside the bounds.

        Without a box to start from, a weight with two limits has all of its interval, and another
        one the part of 0 to 1 inside its bounds, or an interval of length 1 at its limit.

        Args:
            minima: float64 ``[n]``, lower ends of the box that was asked for, or None.
            maxima: float64 ``[n]``, its upper ends, or None.
        """
        low, high = self.box
        if minima is not None or maxima is not None:
            zeros, ones = np.zeros(len(self)), np.ones(len(self))
            starts, ends = zeros if minima is None else minima, ones if maxima is None else maxima
            return np.clip(starts, low, high), np.clip(ends, low, high)
        starts, ends = np.maximum(0.0, low), np.minimum(1.0, high)
        starts = np.where(starts < ends, starts, np.where(np.isfinite(low), low, high - 1.0))
        ends = np.where(starts < ends, ends, np.minimum(starts + 1.0, high))
        both = np.isfinite(low) & np.isfinite(high)
        return np.where(both, low, starts), np.where(both, high, ends)


def _edge(limits: Floats) -> Floats:
    return EDGE * np.maximum(1.0, np.abs(limits))
