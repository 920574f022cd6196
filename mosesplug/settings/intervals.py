"""Bounds of weights, and ranges of random starts, as users write them.

A bound is ``NAME:MIN..MAX``, ``NAME:>0`` or ``NAME:=1``, a range ``NAME:MIN..MAX``. Several
intervals with commas are those of a group's values in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mosesplug.settings.spellings import spell_bounds

_FORM = "write NAME:MIN..MAX, NAME:MIN.., NAME:..MAX, NAME:>0, NAME:<=1 or NAME:=1"


@dataclass(frozen=True)
class WeightInterval:
    """The limits of a weight.

    Attributes:
        above, below: whether the weight must be greater than ``low``, or less than ``high``.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high or self.low == math.inf or self.high == -math.inf:
            raise ValueError(f"no weight is at least {self.low:g} and at most {self.high:g}")


@dataclass(frozen=True)
class Bound:
    """The limits of a feature, or of a group: one interval, or one for each value.

    Attributes:
        text: as the user has written it.
    """

    name: str
    intervals: tuple[WeightInterval, ...]
    text: str


@dataclass(frozen=True, repr=False)
class StartRange:
    """Ranges of random starting weights: a name and an interval for each value.

    Attributes:
        text: as the user has written it. It stands for the range where runs are stored.
    """

    intervals: tuple[tuple[str, WeightInterval], ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)


def parse_bounds(bounds: Mapping[str, Any] | Iterable[str | Bound]) -> tuple[Bound, ...]:
    """Return bounds of texts, or of intervals by name.

    An interval is ``(lowest, highest)``, ``">0"`` or a number.

    Raises:
        ValueError: a text or interval has another form.
    """
    if not isinstance(bounds, Mapping):
        return tuple(bound if isinstance(bound, Bound) else _parse_bound(bound) for bound in bounds)
    return tuple(
        _parse_bound(f"{name}:{limit}") if isinstance(limit, str) else _make_bound(name, limit)
        for name, limit in bounds.items()
    )


def parse_start_ranges(
    ranges: Mapping[str, Any] | Iterable[str | StartRange],
) -> tuple[StartRange, ...]:
    """Return ranges of texts, or of ``(lowest, highest)`` by name.

    Raises:
        ValueError: a text or interval has another form.
    """
    if not isinstance(ranges, Mapping):
        return tuple(
            text if isinstance(text, StartRange) else _parse_range(text) for text in ranges
        )
    return tuple(_make_range(name, interval) for name, interval in ranges.items())


def _make_bound(name: str, limit: Any) -> Bound:
    try:
        low, high = limit if hasattr(limit, "__len__") else (float(limit), float(limit))
        low = -math.inf if low is None else float(low) + 0.0  # no -0
        high = math.inf if high is None else float(high) + 0.0
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: {limit!r} is not (lowest, highest) with None for no limit, a text such as "
            "'>0', or a number"
        ) from None
    text = f"{name}:{low!r}..{high!r}"
    try:
        return Bound(name, (WeightInterval(low, high),), text)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None


def _parse_bound(text: str) -> Bound:
    name, colon, intervals = spell_bounds(text).rpartition(":")
    if not (colon and name):
        raise ValueError(f"{text}: no feature is named; {_FORM}")
    try:
        return Bound(name, tuple(map(_parse_interval, intervals.split(","))), text)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None


def _parse_interval(text: str) -> WeightInterval:
    text = text.strip()
    for sign in (">=", "<=", ">", "<", "="):
        if text.startswith(sign):
            limit = _parse_number(text[len(sign) :])
            if math.isinf(limit):
                raise ValueError(f"the limit {text!r} is not finite")
            low = limit if ">" in sign or sign == "=" else -math.inf
            high = limit if "<" in sign or sign == "=" else math.inf
            return WeightInterval(low, high, sign == ">", sign == "<")
    start, dots, end = text.partition("..")
    if not dots or not (start or end):
        raise ValueError(f"{text!r} is not an interval; {_FORM}")
    low = _parse_number(start) if start else -math.inf
    return WeightInterval(low, _parse_number(end) if end else math.inf)


def _parse_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ValueError(f"{text!r} is not a number; {_FORM}")
    return value + 0.0  # no -0


def _make_range(name: str, interval: Any) -> StartRange:
    try:
        low, high = map(float, interval)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {interval!r} is not (lowest, highest)") from None
    return _parse_range(f"{name}:{low!r}..{high!r}")


def _parse_range(text: str) -> StartRange:
    name, intervals = "", []
    for piece in spell_bounds(text).split(","):
        before, colon, ends = piece.rpartition(":")
        name = before if colon else name
        if not name:
            raise ValueError(f"{text}: no feature is named; write name:min..max")
        try:
            low, high = map(float, ends.split(".."))
        except ValueError:
            raise ValueError(f"{text}: {ends!r} is not of the form min..max") from None
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"{text}: {ends!r}: give finite numbers, the lowest value first")
        intervals.append((name, WeightInterval(low, high)))
    return StartRange(tuple(intervals), text)
