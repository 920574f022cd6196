"""Examples for the classifier: read, write, and say what is wrong."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.extractor.megam import Examples, format_examples, read_examples

NAMES = st.text(
    st.characters(min_codepoint=33, exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=12
).filter(lambda name: name != "$$$WEIGHT")
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 0.25]),
        st.dictionaries(NAMES, st.floats(-(2.0**15), 2.0**15, width=16), max_size=5),
    ),
    min_size=1,
    max_size=6,
)


def rows_of(examples: Examples) -> list[tuple[float, dict[str, float]]]:
    rows = []
    for row, label in enumerate(examples.labels.tolist()):
        part = slice(examples.indptr[row], examples.indptr[row + 1])
        names = [examples.names[column] for column in examples.indices[part]]
        rows.append((label, dict(zip(names, examples.data[part].tolist(), strict=True))))
    return rows


def read(path: Path, text: bytes, *, with_values: bool = True) -> Examples:
    path.write_bytes(text)
    return read_examples(path, with_values=with_values)


@given(rows=ROWS)
def test_write_and_read_round_trip(
    rows: list[tuple[float, dict[str, float]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(
        f"{label:g} " + " ".join(f"{name} {value!r}" for name, value in features.items()) + "\n"
        for label, features in rows
    )
    path = tmp_path_factory.getbasetemp() / "examples"
    examples = read(path, text.encode())
    assert rows_of(examples) == rows
    again = read(path, b"".join(format_examples(examples)))
    assert again.names == examples.names
    np.testing.assert_array_equal(again.labels, examples.labels)
    np.testing.assert_array_equal(again.indices, examples.indices)
    np.testing.assert_allclose(again.data, examples.data, rtol=1e-5)


def test_blanks_of_any_kind(tmp_path: Path) -> None:
    text = b"\n 1\tF0  2.5 a_b -1e-3 \r\n\n0\n   \n0.5 a_b 1"
    examples = read(tmp_path / "x", text)
    assert rows_of(examples) == [
        (1.0, {"F0": 2.5, "a_b": -0.001}),
        (0.0, {}),
        (0.5, {"a_b": 1.0}),
    ]
    packed = read(tmp_path / "x.gz", gzip.compress(text))
    assert rows_of(packed) == rows_of(examples)


def test_names_alone(tmp_path: Path) -> None:
    examples = read(tmp_path / "x", b"1 a b c\n0 b\n", with_values=False)
    assert rows_of(examples) == [(1.0, {"a": 1.0, "b": 1.0, "c": 1.0}), (0.0, {"b": 1.0})]


def test_lines_have_the_digits_of_a_stream() -> None:
    examples = Examples(
        np.array([1.0, 0.0]),
        ("F0", "100%_of"),
        np.array([0, 2, 3]),
        np.array([0, 1, 1], dtype=np.int32),
        np.array([1.0195833333, -4.5e-7, 1234567.0]),
    )
    assert list(format_examples(examples)) == [
        b"1 F0 1.01958 100%_of -4.5e-07\n",
        b"0 100%_of 1.23457e+06\n",
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"1 F0 1\n2 F0 1\n", 2, "class '2' is not a number"),
        (b"1 F0 1\nF0 1\n", 2, "class 'F0' is not a number"),
        (b"1 F0 1\n\n0 F0 nan\n", 3, "'nan' is not a finite"),
        (b"1 F0 1e999\n", 1, "'1e999' is not a finite"),
        (b"1 F0 x\n", 1, "'x' is not a finite"),
        (b"1 F0 1\n0 F0 1 F1\n", 2, "after the name 'F1'"),
        (b"1 F0 1\nTEST\n0 F0 1\n", 2, "sections and weighted"),
        (b"1 $$$WEIGHT 2 F0 1\n", 1, "sections and weighted"),
    ],
)
def test_errors_are_explained(tmp_path: Path, text: bytes, line: int, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        read(tmp_path / "x", text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_no_example(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(FormatError, match="no example"):
        read(tmp_path / "x", text)
