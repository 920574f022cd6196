"""Records: frozen dataclasses whose fields say how they are shown.

A field, or a property, with ``Shown`` is a column of a table::

    @dataclass(frozen=True)
    class Size:
        name: Text
        mean: Annotated[float, Shown(".1f", "a line")]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from mosesplug.results.render.tables import TextTable


@dataclass(frozen=True)
class Shown:
    """Format, label and alignment of a field.

    Attributes:
        format: a format specification; the ends of an interval have it each. Or a function.
        label: the name of the column; None: the field's name.
        missing: the cell of None and NaN.
        is_text: whether cells are aligned left.
    """

    format: str | Callable[[Any], str] = ""
    label: str | None = None
    missing: str = ""
    is_text: bool = False

    def name(self, field: str) -> str:
        """Return the name of the column of a field."""
        return field if self.label is None else self.label

    def cell(self, value: Any) -> str:
        """Return a value as text."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return self.missing
        if callable(self.format):
            return self.format(value)
        if isinstance(value, tuple):
            return " to ".join(map(self.cell, value))
        return format(value, self.format)


def format_count(value: float) -> str:
    """Return a number of things; a mean over runs has one decimal."""
    return f"{value:.0f}" if value.is_integer() else f"{value:.1f}"


def format_size(count: int) -> str:
    """Return a number of bytes with a unit."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, 4)
    return f"{count / 1000**power:.3g} {' KMGT'[power]}B"


def format_seconds(seconds: float) -> str:
    """Return a time in seconds."""
    return f"{seconds:.1f} s"


def format_power_of_ten(logarithm: float) -> str:
    """Return a number, given its natural logarithm, as ``1.2e+345``."""
    if logarithm < math.log(1e6):
        return str(round(math.exp(logarithm)))
    power, digits = divmod(logarithm / math.log(10.0), 1.0)
    factor = round(10.0**digits, 1)
    return f"{factor:.1f}e+{power:.0f}" if factor < 10.0 else f"1.0e+{power + 1.0:.0f}"


def format_date(text: str) -> str:
    """Return a date in UTC (ISO 8601) as local time."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


Text = Annotated[str, Shown(is_text=True)]
Count = Annotated[int, Shown()]
Score = Annotated[float, Shown(".4f")]
Change = Annotated[float, Shown("+.4f")]
"""A difference of scores or of weights."""
Measure = Annotated[float, Shown(".4g")]
Share = Annotated[float, Shown(".1%")]
MeanCount = Annotated[float, Shown(format_count)]


def tabulate(
    kind: type, records: Iterable[Any], columns: str = "", labels: Mapping[str, str] | None = None
) -> TextTable:
    """Return a table with a row for each record.

    Args:
        columns: the fields, or properties, to show, in their order; empty: all with ``Shown``.
        labels: names of columns that depend on the data, such as that of a metric.
    """
    known = _find_columns(kind)
    names = columns.split() or list(known)
    shown = [known[name] for name in names]
    named = labels or {}
    head = [named.get(name) or known[name].name(name) for name in names]
    rows = [
        tuple(column.cell(getattr(record, name)) for name, column in zip(names, shown, strict=True))
        for record in records
    ]
    return TextTable([tuple(head), *rows], *_count_text_columns(shown))


def _count_text_columns(columns: Sequence[Shown]) -> tuple[int, int]:
    """Return how many leading and trailing columns hold text."""
    numbers = [place for place, column in enumerate(columns) if not column.is_text]
    if not numbers:
        return len(columns), 0
    return numbers[0], len(columns) - 1 - numbers[-1]


@cache
def find_hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields and properties of a record, with their marks."""
    hints: dict[str, Any] = get_type_hints(kind, include_extras=True)
    for name, value in vars(kind).items():
        if isinstance(value, property) and value.fget is not None:
            hints[name] = get_type_hints(value.fget, include_extras=True).get("return")
    return hints


@cache
def _find_columns(kind: type) -> dict[str, Shown]:
    """Return the fields and properties of a type that are shown."""
    marks = {name: _find_shown(hint) for name, hint in find_hints(kind).items()}
    return {name: shown for name, shown in marks.items() if shown is not None}


def _find_shown(hint: Any) -> Shown | None:
    """Return the outermost mark of a type; a field may override that of its alias."""
    marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Shown)]
    if marks:
        return marks[-1]
    return next((shown for part in get_args(hint) if (shown := _find_shown(part))), None)
