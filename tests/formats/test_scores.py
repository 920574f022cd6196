"""Score files as text: forms of lines, chunks, and errors with their places."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.scores import read_score_blocks, read_score_width


@given(
    rows=st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(
                st.floats(allow_nan=False, allow_infinity=False), min_size=width, max_size=width
            ),
            min_size=1,
        )
    ),
    separator=st.sampled_from([" ", "\t", "  "]),
    end=st.sampled_from(["\n", "\r\n"]),
    form=st.integers(0, 2),
    is_closed=st.booleans(),
)
def test_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[float]],
    separator: str,
    end: str,
    form: int,
    is_closed: bool,
) -> None:
    path = tmp_path_factory.mktemp("scores") / "scores"
    before = ["", "7 ||| ", "7 ||| a text  ||| "][form]
    text = end.join(before + separator.join(map(repr, row)) for row in rows)
    path.write_bytes((text + (end if is_closed else "")).encode())
    for chunk in (1, 1 << 20):
        blocks = list(read_score_blocks(path, _chunk_bytes=chunk))
        np.testing.assert_array_equal(np.concatenate([each.values for each in blocks]), rows)
        assert [each.first for each in blocks] == (
            list(range(1, len(rows) + 1)) if chunk == 1 else [1]
        )
        ids = [name for each in blocks for name in each.ids or ()]
        assert ids == ([b"7"] * len(rows) if form else [])
        texts = [name for each in blocks for name in each.texts or ()]
        assert texts == ([b"a text"] * len(rows) if form == 2 else [])
    assert read_score_width(path) == len(rows[0])


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "scores.gz"
    path.write_bytes(gzip.compress(b"0.5\n1e-3\n"))
    (rows,) = read_score_blocks(path)
    assert rows.values.tolist() == [[0.5], [0.001]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nnan\n", "scores:2: 'nan' is not a finite number"),
        ("1\n-inf\n", "scores:2: '-inf' is not a finite number"),
        ("1\n1e999\n", "scores:2: '1e999' is not a finite number"),
        ("score\n1\n", "scores:1: 'score' is not a finite number"),
        ("1\n\n2\n", "scores:2: the line has no number"),
        ("\n", "scores:1: the line has no number"),
        ("1\n2 3\n", "scores:2: 2 numbers, but line 1 has 1"),
        ("1 2\n3\n", "scores:2: 1 numbers, but line 1 has 2"),
        ("1\n0 ||| 2\n", "scores:2: not numbers alone, as in line 1: '0 ||| 2'"),
        ("0 ||| 1\n2\n", "scores:2: 1 fields separated by |||"),
        ("0 ||| a ||| b= 1 ||| 2\n", "scores:1: 4 fields separated by |||"),
        ("0 ||| a ||| b\n", "scores:1: 'b' is not a finite number"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores"
    path.write_text(text)
    for chunk in (1, 1 << 20):
        with pytest.raises(FormatError) as caught:
            list(read_score_blocks(path, _chunk_bytes=chunk))
        assert message in str(caught.value)


def test_an_empty_file_has_no_width(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(b"")
    assert list(read_score_blocks(path)) == []
    with pytest.raises(FormatError, match="the file of scores is empty"):
        read_score_width(path)
