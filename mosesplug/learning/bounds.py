"""Bounds of the weights of a feature space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.bounds import Bounds
from mosesplug.settings.intervals import Bound, WeightInterval


def make_bounds(
    wanted: Sequence[Bound], space: FeatureSpace, active: NDArray[np.bool_] | None = None
) -> Bounds | None:
    """Return the bounds of weights; those of one weight are intersected.

    Args:
        active: bool ``[n_features]``, features that the user has named to be tuned.

    Returns:
        None without bounds.

    Raises:
        UsageError: a bound names no feature, or has too many intervals; no weight is inside; a
            feature to tune has one possible weight; all weights must be 0.
    """
    if not wanted:
        return None
    bounds = Bounds.none(len(space))
    for bound in wanted:
        columns, intervals = _find_columns(bound, space), bound.intervals
        if len(intervals) not in (1, len(columns)):
            raise UsageError(
                f"{{--bound}} {bound.text}: {len(intervals)} intervals for {bound.name}, which has "
                f"{len(columns)} values"
            )
        for column, interval in zip(columns, cycle(intervals), strict=False):
            _narrow(bounds, column, interval, bound.text, space.labels[column])
    if active is not None and (clash := np.flatnonzero(active & bounds.is_fixed)).size:
        label, value = space.labels[clash[0]], bounds.low[clash[0]]
        raise UsageError(
            f"{{--bound}} fixes the weight of {label} at {value:g}, but {{--active}} names it: "
            "leave it out of one of them"
        )
    if (bounds.is_fixed & (bounds.low == 0.0)).all():
        raise UsageError("{--bound} fixes all weights at 0: leave at least one feature free")
    return bounds


def describe_moves(
    bounds: Bounds, weights: NDArray[np.float64], labels: Sequence[str]
) -> list[str]:
    """Return a message about starting weights, ``[n]``, that are outside the bounds."""
    moved = bounds.project(weights)
    changes = [
        f"{labels[column]} from {weights[column]:g} to {moved[column]:g}"
        for column in bounds.find_outside(weights).tolist()
    ]
    if not changes:
        return []
    more = f", and {len(changes) - 5} more" if len(changes) > 5 else ""
    return [f"starting weights are moved into their bounds: {', '.join(changes[:5])}{more}"]


def _find_columns(bound: Bound, space: FeatureSpace) -> list[int]:
    name = bound.name
    try:
        return [int(column) for column in np.flatnonzero(space.select([name]))]
    except KeyError:
        known = [*space.group_names, *space.sparse]
        raise UsageError(
            f"{{--bound}} {bound.text}: {explain_unknown_feature(name, known)}"
        ) from None


def _narrow(bounds: Bounds, column: int, interval: WeightInterval, text: str, label: str) -> None:
    """Intersect the bounds of a weight with an interval, in place."""
    low, high, above, below = astuple(interval)
    if low >= bounds.low[column]:
        bounds.above[column] = above or (bounds.above[column] and low == bounds.low[column])
        bounds.low[column] = low
    if high <= bounds.high[column]:
        bounds.below[column] = below or (bounds.below[column] and high == bounds.high[column])
        bounds.high[column] = high
    least, _ = bounds.box
    own = float(bounds.low[column]), float(bounds.high[column])
    is_open = bool(bounds.above[column] or bounds.below[column])
    if own[0] > own[1] or (own[0] == own[1] and is_open) or not least[column] <= own[1]:
        raise UsageError(f"{{--bound}} {text}: no weight of {label} is inside all of its bounds")
