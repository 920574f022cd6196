"""Read bounds of weights: ``NAME:MIN..MAX``, ``NAME:>0``, ``NAME:=1``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError, suggest
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.bounds import Bounds
from mosesplug.settings.spellings import spell_bounds

Interval = tuple[float, float, bool, bool]
"""Lower and upper limit, and whether the weight must be greater or less than them."""

_FORM = "write NAME:MIN..MAX, NAME:MIN.., NAME:..MAX, NAME:>0, NAME:<=1 or NAME:=1"


def parse_bounds(
    texts: Sequence[str], space: FeatureSpace, active: NDArray[np.bool_] | None = None
) -> Bounds | None:
    """Return the bounds of the weights of a feature space.

    Args:
        texts: ``NAME:INTERVAL``, of a feature, such as ``TM0_1``, or a group. Several intervals
            with commas are those of the group's values in order. Bounds of one weight are
            intersected.
        active: bool ``[n_features]``, features that the user has named to be tuned.

    Returns:
        None without texts.

    Raises:
        UsageError: a text cannot be parsed, names no feature, or has too many intervals; no weight
            is inside; a feature to tune has one possible weight; all weights must be 0.
    """
    if not texts:
        return None
    bounds = Bounds.none(len(space))
    for text in texts:
        name, colon, rest = spell_bounds(text).rpartition(":")
        if not (colon and name):
            raise UsageError(f"{{--bound}} {text}: no feature is named; {_FORM}")
        columns = _find_columns(name, text, space)
        intervals = [_parse_interval(piece.strip(), text) for piece in rest.split(",")]
        if len(intervals) == 1:
            intervals *= len(columns)
        if len(intervals) != len(columns):
            raise UsageError(
                f"{{--bound}} {text}: {len(intervals)} intervals for {name}, which has "
                f"{len(columns)} values"
            )
        for column, interval in zip(columns, intervals, strict=True):
            _narrow(bounds, column, interval, text, space.labels[column])
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


def _find_columns(name: str, text: str, space: FeatureSpace) -> list[int]:
    try:
        return [int(column) for column in np.flatnonzero(space.select([name]))]
    except KeyError:
        known = list(dict.fromkeys([*space.group_names, *space.sparse]))
        raise UsageError(
            f"{{--bound}} {text}: there is no feature {name}; there are {', '.join(known[:30])}"
            f"{suggest(name, known)}"
        ) from None


def _parse_interval(piece: str, text: str) -> Interval:
    for sign in (">=", "<=", ">", "<", "="):
        if piece.startswith(sign):
            limit = _parse_number(piece[len(sign) :], text)
            if math.isinf(limit):
                raise UsageError(f"{{--bound}} {text}: the limit {piece!r} is not finite")
            low = limit if sign in (">=", ">", "=") else -math.inf
            high = limit if sign in ("<=", "<", "=") else math.inf
            return low, high, sign == ">", sign == "<"
    start, dots, end = piece.partition("..")
    if not dots or not (start or end):
        raise UsageError(f"{{--bound}} {text}: {piece!r} is not an interval; {_FORM}")
    low = _parse_number(start, text) if start else -math.inf
    high = _parse_number(end, text) if end else math.inf
    if low == math.inf or high == -math.inf or low > high:
        raise UsageError(f"{{--bound}} {text}: no number is from {start} to {end}")
    return low, high, False, False


def _parse_number(written: str, text: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{{--bound}} {text}: {written!r} is not a number; {_FORM}")
    return value + 0.0  # no -0


def _narrow(bounds: Bounds, column: int, interval: Interval, text: str, label: str) -> None:
    """Intersect the bounds of a weight with an interval, in place."""
    low, high, above, below = interval
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
