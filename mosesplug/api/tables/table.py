"""Tables of results: NumPy columns, rows, and Arrow, pandas, Polars or Parquet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice, pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from formats.text import atomic_write
from mosesplug.api.progress import Progress, open_progress
from mosesplug.errors import UsageError
from mosesplug.results.render.tables import format_table, render_table
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

    @classmethod
    def of_dicts(cls, rows: Sequence[Mapping[str, float]]) -> NamedValues:
        """Return the column of the values of each row by name."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        places = {name: place for place, name in enumerate(names)}
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        indices = np.array([places[name] for row in rows for name in row], dtype=np.int32)
        data = np.array([value for row in rows for value in row.values()], dtype=np.float32)
        return cls(names, SparseRows(indptr, indices, data))

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
        texts = [n for n, kind in enumerate(self._types.values()) if kind in ("text", "features")]
        return render_table(head, rows, texts) + omitted

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
