"""Test tables: as arrays, rows and text, and in the formats of other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.api.tables.table import Column, ColumnType, NamedValues, Table
from mosesplug.tuning_set import SparseRows

SPARSE = NamedValues(
    ("a~b", "c~d"),
    SparseRows(
        np.array([0, 2, 2]), np.array([1, 0], np.int32), np.array([0.5, 2.0], dtype=np.float32)
    ),
)
BATCH: dict[str, Column] = {
    "number": np.array([1, 2]),
    "score": np.array([0.25, np.nan]),
    "value": np.array([0.1, -1.0], dtype=np.float32),
    "text": ["ein <Haus>", None],
    "sparse": SPARSE,
}
ROWS = [
    {
        "number": 1,
        "score": 0.25,
        "value": np.float32(0.1).item(),
        "text": "ein <Haus>",
        "sparse": {"c~d": 0.5, "a~b": 2.0},
    },
    {"number": 2, "score": None, "value": -1.0, "text": None, "sparse": {}},
]


def make_table(n_batches: int = 2) -> Table:
    """Return a table of equal batches of two rows."""

    def read() -> Iterator[Mapping[str, Column]]:
        for _ in range(n_batches):
            yield BATCH

    types: dict[str, ColumnType] = {
        "number": "int64",
        "score": "float64",
        "value": "float32",
        "text": "text",
        "sparse": "features",
    }
    return Table(types, 2 * n_batches, read)


def test_columns_and_rows() -> None:
    table = make_table()
    assert table.columns == ("number", "score", "value", "text", "sparse")
    assert len(table) == 4
    assert table["number"].tolist() == [1, 2, 1, 2]
    assert table["value"].dtype == np.float32
    np.testing.assert_array_equal(table["score"], [0.25, np.nan, 0.25, np.nan])
    assert table["text"].tolist() == ["ein <Haus>", None] * 2
    assert table["sparse"].tolist() == [{"c~d": 0.5, "a~b": 2.0}, {}] * 2
    assert [row["number"] for row in table] == [1, 2, 1, 2]
    assert table[2] == table[-2] == ROWS[0]
    with pytest.raises(KeyError, match="there are number, score"):
        table["scores"]
    with pytest.raises(IndexError, match="no row 4"):
        table[4]


def test_shows_itself_in_text_and_html() -> None:
    assert repr(make_table(1)) == (
        "number  score  value  text               sparse\n"
        "     1   0.25    0.1  ein <Haus>  c~d=0.5 a~b=2\n"
        "     2            -1"
    )
    text = repr(make_table(20))
    assert text.endswith("... 20 more rows")
    assert text.count("\n") == 21
    html = make_table(20)._repr_html_()
    assert '<td style="text-align:left">ein &lt;Haus&gt;</td>' in html
    assert "<p>... 20 more rows</p>" in html
    wide = Table.of_columns({f"column {i}": ("int64", np.arange(2)) for i in range(100)})
    assert "more columns" in repr(wide)
    assert max(map(len, repr(wide).splitlines())) <= 160


def test_empty_table() -> None:
    table = Table.of_columns({"score": ("float64", np.zeros(0))})
    assert len(table) == len(table["score"]) == len(list(table)) == 0
    assert repr(table) == "score"


def test_arrow_types_and_nulls() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = make_table().to_arrow()
    types = ["int64", "double", "float", "large_string", "map<large_string, float>"]
    assert [str(kind) for kind in table.schema.types] == types
    assert table.num_rows == 4
    assert table["score"].to_pylist() == [0.25, None] * 2
    assert table["sparse"].to_pylist() == [[("c~d", 0.5), ("a~b", 2.0)], []] * 2
    # Any consumer of the PyCapsule interface takes the table as it is.
    assert pyarrow.table(make_table()).equals(table)
    assert pyarrow.RecordBatchReader.from_stream(make_table()).read_all().equals(table)


@pytest.mark.parametrize("rows", [[{"c": 0.5, "a": 2.0}, {}, {"a": 1.0}], [{}, {}], []])
def test_values_by_name(rows: list[dict[str, float]]) -> None:
    column = NamedValues.of_dicts(rows)
    assert [list(row.items()) for row in column.as_dicts()] == [list(row.items()) for row in rows]
    pytest.importorskip("pyarrow")
    table = Table.of_columns({"sparse": ("features", column)}).to_arrow()
    assert table["sparse"].to_pylist() == [list(row.items()) for row in rows]


def test_empty_table_keeps_its_types() -> None:
    pytest.importorskip("pyarrow")
    table = make_table(0).to_arrow()
    assert table.num_rows == 0
    assert str(table.schema.field("text").type) == "large_string"


def test_pandas() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    frame = make_table().to_pandas()
    assert list(frame.columns) == list(make_table().columns)
    assert frame["value"].dtype == np.float32
    assert frame["score"].isna().tolist() == [False, True] * 2
    assert frame["text"][0] == "ein <Haus>"


def test_polars() -> None:
    pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    frame = make_table().to_polars()
    assert frame.schema["value"] == polars.Float32
    assert frame["score"].to_list() == [0.25, None] * 2
    assert frame["text"].to_list() == ["ein <Haus>", None] * 2


def test_parquet_is_written_in_batches(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    calls: list[tuple[int, int, str]] = []
    path = tmp_path / "table.parquet"
    make_table(3).to_parquet(path, progress=lambda *call: calls.append(call))
    assert calls == [(2, 6, "rows"), (4, 6, "rows"), (6, 6, "rows")]
    with parquet.ParquetFile(path) as file:
        assert file.num_row_groups == 3
    assert parquet.read_table(path).to_pylist() == make_table(3).to_arrow().to_pylist()


def test_failed_writing_leaves_no_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")

    def read() -> Iterator[Mapping[str, Column]]:
        yield {"number": np.arange(2)}
        raise mosesplug.DataError("damaged")

    with pytest.raises(mosesplug.DataError, match="damaged"):
        Table({"number": "int64"}, 4, read).to_parquet(tmp_path / "table.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "package", "install"),
    [
        ("to_arrow", "pyarrow", "mosesplug[frames]"),
        ("to_pandas", "pandas", "mosesplug[frames]"),
        ("to_polars", "polars", "pip install polars"),
    ],
)
def test_missing_package_is_named(
    method: str, package: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> object:
        return None if name == package else object()

    monkeypatch.setattr("mosesplug.api.tables.table.find_spec", find_spec)
    with pytest.raises(mosesplug.UsageError) as found:
        getattr(make_table(), method)()
    assert package in str(found.value)
    assert install in str(found.value)
