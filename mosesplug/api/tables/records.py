"""Results that are tables: sequences of records, and their columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    overload,
)

import numpy as np

from mosesplug.api.tables.table import Column, ColumnType, NamedValues, Table
from mosesplug.results.render.record import find_hints
from mosesplug.results.render.render import render
from mosesplug.results.views.texts import decode_text

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tabular(ABC):
    """A result that prints as a table and converts to a data frame."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The rows."""

    def to_arrow(self) -> pyarrow.Table:
        """Return a ``pyarrow.Table``; see ``Table.to_arrow``."""
        return self.table.to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Return a ``pandas.DataFrame``; see ``Table.to_pandas``."""
        return self.table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a ``polars.DataFrame``; see ``Table.to_polars``."""
        return self.table.to_polars()


class ShownRecord(Tabular):
    """A result that prints as a command prints it; notebooks show it as HTML."""

    @property
    def _record(self) -> object:
        """The record that is printed."""
        return self

    def __repr__(self) -> str:
        return render(self._record).rstrip("\n")

    def _repr_html_(self) -> str:
        return render(self._record, "html")


Record = TypeVar("Record")


class Records(Sequence[Record], Tabular, Generic[Record]):
    """A sequence of records that prints as a table.

    Args:
        records: the records.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Self: ...

    def __getitem__(self, place: int | slice) -> Record | Self:
        if isinstance(place, slice):
            return self._of(self._records[place])
        return self._records[place]

    def _of(self, records: Sequence[Record]) -> Self:
        """Return some of the records, with everything else that belongs to them."""
        chosen = copy(self)
        chosen._records = tuple(records)
        return chosen

    def __len__(self) -> int:
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        return self._records == (other._records if isinstance(other, Records) else other)

    def __hash__(self) -> int:
        return hash(self._records)


_COLUMN_TYPES: dict[Any, Literal["int64", "float64", "text", "features", "interval"]] = {
    int: "int64",
    bool: "int64",
    float: "float64",
    str: "text",
    bytes: "text",
    tuple[bytes, ...]: "text",
    Mapping[str, float]: "features",
    tuple[float, float]: "interval",
}
"""Types of columns by the annotation of a field, without marks and ``None``."""


def tabulate_records(
    kind: type,
    records: Sequence[object],
    columns: str = "",
    front: Mapping[str, tuple[ColumnType, Column]] = MappingProxyType({}),
) -> Table:
    """Return a table with a row for each record; an unknown number (None) is NaN.

    Args:
        kind: the type of the records, whose annotations give the types of the columns.
        records: the records.
        columns: fields or properties, separated by blanks; ``name=field`` has another name. An
            ``interval`` becomes ``low`` and ``high``. Empty: all fields that are numbers, texts,
            intervals, or numbers by name.
        front: more columns, in front of these.
    """
    hints = {name: _strip_hint(hint) for name, hint in find_hints(kind).items()}
    if not columns:
        names = (field.name for field in fields(kind))
        columns = " ".join(name for name in names if hints[name] in _COLUMN_TYPES)
    converted: dict[str, tuple[ColumnType, Column]] = {}
    for column in columns.split():
        name, _, attribute = column.partition("=")
        attribute = attribute or name
        values: list[Any] = [getattr(record, attribute) for record in records]
        column_type = _COLUMN_TYPES[hints[attribute]]
        if column_type == "interval":
            ends = np.array([value or (np.nan, np.nan) for value in values], dtype=np.float64)
            for end, numbers in zip(("low", "high"), ends.reshape(-1, 2).T, strict=True):
                converted[name.removesuffix("interval") + end] = "float64", numbers
        elif column_type == "text":
            converted[name] = "text", list(map(_decode, values))
        elif column_type == "features":
            converted[name] = "features", NamedValues.of_dicts(values)
        else:
            # NumPy converts None to NaN.
            converted[name] = column_type, np.array(values, dtype=column_type)
    return Table.of_columns({**front, **converted})


def _strip_hint(hint: Any) -> Any:
    """Return a type without marks and ``None``; ``str`` for literals."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _strip_hint(get_args(hint)[0])
    if origin in (Union, UnionType):
        kinds = [_strip_hint(part) for part in get_args(hint) if part is not NoneType]
        return kinds[0] if len(kinds) == 1 else None
    return str if origin is Literal else hint


def _decode(value: str | bytes | tuple[bytes, ...] | None) -> str | None:
    if isinstance(value, tuple):
        return "\n".join(map(decode_text, value))
    return decode_text(value) if isinstance(value, bytes) else value
