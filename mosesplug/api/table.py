"""Tables of results: NumPy columns, rows, and Arrow, pandas, Polars or Parquet."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from importlib.util import find_spec
from itertools import islice, pairwise
from os import PathLike
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
from numpy.typing import NDArray

from formats.text import atomic_write
from mosesplug.api.progress import Progress, open_progress
from mosesplug.errors import UsageError
from mosesplug.results.render.record import find_hints
from mosesplug.results.render.tables import format_table, render_table
from mosesplug.results.views.texts import decode_text
from mosesplug.tuning_set import SparseRows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

ColumnType = Literal["int64", "float32", "float64", "text", "features"]
"""Type of a column: ``text`` is a string, ``features`` maps names to float32 values."""

_SHOWN_ROWS = 20
"""Longest table that is shown whole."""

_SHOWN_WIDTH = 160
"""Characters of a line that are shown."""

_SHOWN_TEXT = 60
"""Longest text of a table that is shown whole."""


@dataclass(frozen=True)
class NamedValues:
    """A column of sparse features.

    Attributes:
        names: the names of all sparse features.
        rows: the values of each row.
    """

    names: Sequence[str]
    rows: SparseRows

    def as_dicts(self) -> list[dict[str, float]]:
        """Return the values of each row by name."""
        ends, values = self.rows.indptr.tolist(), self.rows.data.tolist()
        names = [self.names[column] for column in self.rows.indices.tolist()]
        pairs = list(zip(names, values, strict=True))
        return [dict(pairs[a:b]) for a, b in pairwise(ends)]


Column = NDArray[Any] | Sequence[str | None] | NamedValues
"""Values of a column: an array, texts, or sparse features."""


@dataclass(frozen=True)
class _InMemory:
    """Returns the only batch of a table; an object, so that tables can be pickled."""

    columns: Mapping[str, Column]

    def __call__(self) -> list[Mapping[str, Column]]:
        return [self.columns]


class Table:
    """Rows with named columns, read when they are needed.

    ``table["score"]`` is a column as a NumPy array, ``table[3]`` a row as a dictionary, and
    iterating yields the rows. A large table is read in batches: iterating and ``to_parquet`` need
    memory for one batch, whatever the size of the table. Every access reads the data again.

    Any library that takes Arrow data through its PyCapsule interface takes a table as it is, for
    example ``polars.DataFrame(table)`` or ``duckdb.sql("from table")``. That, and all methods
    ``to_...``, require pyarrow: install ``mosesplug[frames]``.

    The Arrow types are int64, float (32 bits), double, large_string, and for sparse features
    map(large_string, float). Unknown numbers are NaN in NumPy and null in Arrow. Bytes of texts
    that are not valid UTF-8 are replaced by U+FFFD.

    Example:
        >>> import mosesplug
        >>> table = mosesplug.open_run("mert-work").hypotheses()
        >>> len(table), table.columns[:6]
        (6, ('iteration', 'sentence', 'rank', 'text', 'model_score', 'sentence_score'))
        >>> table["LM0_0"]
        array([-1., -2., -1., -3., -4., -1.], dtype=float32)
        >>> table[0]["text"]
        'the house is red old'
    """

    def __init__(
        self,
        types: Mapping[str, ColumnType],
        n_rows: int,
        batches: Callable[[], Iterable[Mapping[str, Column]]],
    ) -> None:
        self._types = dict(types)
        self._n_rows = n_rows
        self._batches = batches

    @classmethod
    def of_columns(cls, columns: Mapping[str, tuple[ColumnType, Column]]) -> Table:
        """Return a table of columns in memory, by name, each with its type."""
        values = {name: column for name, (_, column) in columns.items()}
        n_rows = max((_count_rows(column) for column in values.values()), default=0)
        types = {name: kind for name, (kind, _) in columns.items()}
        return cls(types, n_rows, _InMemory(values))

    @classmethod
    def of_records(
        cls, records: Sequence[object], types: Mapping[str, ColumnType], **attributes: str
    ) -> Table:
        """Return a table of attributes of objects; an unknown number (None) is NaN.

        Args:
            records: the objects, one for each row.
            types: type of each column.
            attributes: the attribute of a column that has another name.
        """
        columns: dict[str, tuple[ColumnType, Column]] = {}
        for name, kind in types.items():
            values = [getattr(record, attributes.get(name, name)) for record in records]
            # NumPy converts None to NaN.
            columns[name] = kind, values if kind == "text" else np.array(values, dtype=kind)
        return cls.of_columns(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._types)

    @property
    def types(self) -> dict[str, ColumnType]:
        """Type of each column."""
        return dict(self._types)

    def __len__(self) -> int:
        return self._n_rows

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    def __getitem__(self, key: str | int) -> NDArray[Any] | dict[str, Any]:
        """Return a column by name, or a row by number; negative ones count from the end.

        Raises:
            KeyError: there is no such column.
            IndexError: there is no such row.
        """
        if isinstance(key, str):
            return self._read_column(key)
        place = key + self._n_rows if key < 0 else key
        if not 0 <= place < self._n_rows:
            raise IndexError(f"there is no row {key}: the table has {self._n_rows}")
        for batch in self._batches():
            count = max(map(_count_rows, batch.values()))
            if place < count:
                return next(islice(_rows_of(batch), place, None))
            place -= count
        raise IndexError(f"there is no row {key}: the table became shorter")

    def _read_column(self, name: str) -> NDArray[Any]:
        if name not in self._types:
            raise KeyError(f"there is no column {name!r}: there are {', '.join(self._types)}")
        kind = self._types[name]
        if kind == "text" or kind == "features":
            values = [value for batch in self._batches() for value in _as_objects(batch[name])]
            column = np.empty(len(values), dtype=object)
            column[:] = values
            return column
        parts = [np.asarray(batch[name]) for batch in self._batches()]
        return np.concatenate([np.zeros(0, kind), *parts])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches():
            yield from _rows_of(batch)

    def __repr__(self) -> str:
        rows = self._preview()
        return "\n".join([*format_table(rows), *self._describe_rest(len(rows[0]))])

    def _repr_html_(self) -> str:
        head, *rows = (tuple(cell.rstrip() for cell in row) for row in self._preview())
        omitted = "".join(f"<p>{line}</p>\n" for line in self._describe_rest(len(head)))
        return render_table(head, rows) + omitted

    def _preview(self) -> list[tuple[str, ...]]:
        """Return the head and the first rows, as text, with as many columns as fit."""
        rows = list(islice(self, _SHOWN_ROWS))
        columns: list[list[str]] = []
        room = _SHOWN_WIDTH
        for name, kind in self._types.items():
            cells = [name, *(_format_value(row[name]) for row in rows)]
            width = max(map(len, cells))
            room -= width + 2
            if columns and room < 0:
                break
            columns.append([cell.ljust(width) if kind == "text" else cell for cell in cells])
        return list(zip(*columns, strict=True))

    def _describe_rest(self, n_columns: int) -> list[str]:
        left = (self._n_rows - _SHOWN_ROWS, "row"), (len(self._types) - n_columns, "column")
        return [f"... {n} more {what}{'s' * (n > 1)}" for n, what in left if n > 0]

    def to_arrow(self) -> pyarrow.Table:
        """Return a ``pyarrow.Table``, with all rows in memory.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return self._read_arrow().read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Return a ``pandas.DataFrame``, with all rows in memory.

        Raises:
            UsageError: pyarrow or pandas is not installed.
        """
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a ``polars.DataFrame``, with all rows in memory.

        Raises:
            UsageError: pyarrow or Polars is not installed.
        """
        _require("polars")
        import polars

        frame: polars.DataFrame = polars.DataFrame(self)
        return frame

    def to_parquet(self, path: str | PathLike[str], *, progress: Progress = None) -> None:
        """Write a Parquet file, batch by batch. The file appears when it is complete.

        Args:
            path: the file.
            progress: None, True for a bar, or a function that is called with the rows
                written, the number of rows, and ``"rows"``.

        Raises:
            UsageError: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        reader = self._read_arrow()
        from pyarrow import parquet

        done = 0
        with (
            open_progress(progress) as show_progress,
            atomic_write(path) as file,
            parquet.ParquetWriter(file, reader.schema) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
                done += batch.num_rows
                show_progress(done, self._n_rows, "rows")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of the Arrow PyCapsule interface."""
        return self._read_arrow().__arrow_c_stream__(requested_schema)

    def _read_arrow(self) -> pyarrow.RecordBatchReader:
        _require("pyarrow")
        import pyarrow

        types = {
            "int64": pyarrow.int64(),
            "float32": pyarrow.float32(),
            "float64": pyarrow.float64(),
            "text": pyarrow.large_string(),
            "features": pyarrow.map_(pyarrow.large_string(), pyarrow.float32()),
        }
        schema = pyarrow.schema([(name, types[kind]) for name, kind in self._types.items()])
        batches = (
            pyarrow.record_batch(
                [_as_arrow(batch[name], schema.field(name).type) for name in self._types], schema
            )
            for batch in self._batches()
        )
        return pyarrow.RecordBatchReader.from_batches(schema, batches)


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


_COLUMN_TYPES: dict[Any, Literal["int64", "float64", "text", "interval"]] = {
    int: "int64",
    bool: "int64",
    float: "float64",
    str: "text",
    bytes: "text",
    tuple[bytes, ...]: "text",
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
            ``interval`` becomes ``low`` and ``high``. Empty: all fields that are numbers, texts
            or intervals.
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


def _as_arrow(column: Column, kind: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    if isinstance(column, NamedValues):
        names = pyarrow.array(column.names, kind.key_type).take(pyarrow.array(column.rows.indices))
        ends = pyarrow.array(column.rows.indptr, pyarrow.int32())
        values = pyarrow.array(column.rows.data)
        return pyarrow.MapArray.from_arrays(ends, names, values)
    # NaN becomes null.
    return pyarrow.array(column, kind, from_pandas=True)


def _require(package: str) -> None:
    """Check that a package is installed."""
    if find_spec(package) is None:
        install = "polars" if package == "polars" else "'mosesplug[frames]'"
        raise UsageError(f"this table needs {package}: pip install {install}")


def _count_rows(column: Column) -> int:
    return len(column.rows.indptr) - 1 if isinstance(column, NamedValues) else len(column)


def _as_objects(column: Column) -> Sequence[Any]:
    """Return the values of a column as plain Python objects."""
    if isinstance(column, NamedValues):
        return column.as_dicts()
    return column.tolist() if isinstance(column, np.ndarray) else column


def _rows_of(batch: Mapping[str, Column]) -> Iterator[dict[str, Any]]:
    for values in zip(*map(_as_objects, batch.values()), strict=True):
        yield dict(zip(batch, values, strict=True))


def _format_value(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        value = " ".join(f"{name}={number:.6g}" for name, number in value.items())
    text = str(value)
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 3] + "..."
