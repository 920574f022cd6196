"""Phrase tables and reordering tables as text."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from formats.errors import FormatError
from mosesplug.extras.phrase_decoder.phrase_table import (
    read_phrase_table,
    read_reordering,
    source_phrases,
)

TABLE = b"""\
a ||| u v ||| 0.5 0 ||| 0-0 ||| 1 1 1
a  b ||| w ||| 1 1e-60 ||| ||| |||
z ||| w ||| not scores
b\xff||| v |||0.25 2.718
"""


def test_wanted_lines_are_read_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "table.gz"
    path.write_bytes(gzip.compress(TABLE))
    pairs = read_phrase_table(path, 2, {b"a", b"a b", b"b\xff"})
    assert [(pair.source, pair.target) for pair in pairs] == [
        (b"a", b"u v"),
        (b"a b", b"w"),
        (b"b\xff", b"v"),
    ]
    assert pairs[0].scores == (math.log(0.5), -100.0)
    assert pairs[1].scores == (0.0, -100.0)
    assert pairs[2].scores == pytest.approx((math.log(0.25), 1.0), abs=1e-3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a ||| u", "table:2: fewer than 3 fields"),
        (b"", "table:2: fewer than 3 fields"),
        (b"a ||| u ||| 0.5", "table:2: 2 scores expected, 1 found"),
        (b"a ||| u ||| 0.5 0.5 0.5", "table:2: 2 scores expected, 3 found"),
        (b"a ||| u ||| 0.5 -1", "table:2: scores must be numbers of at least 0"),
        (b"a ||| u ||| 0.5 nan", "table:2: scores must be numbers of at least 0"),
        (b"a ||| u ||| 0.5 inf", "table:2: scores must be numbers of at least 0"),
        (b"a ||| u ||| 0.5 x", "table:2: scores must be numbers of at least 0"),
        (b"a ||| ||| 0.5 0.5", "table:2: the target phrase is empty"),
    ],
)
def test_errors_have_a_line_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "table"
    path.write_bytes(b"a ||| u ||| 1 1\n" + line + b"\n")
    with pytest.raises(FormatError) as caught:
        read_phrase_table(path, 2, {b"a"})
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nowhere"):
        read_phrase_table(tmp_path / "nowhere", 2, set())


def test_reordering_scores_are_read_for_wanted_pairs(tmp_path: Path) -> None:
    path = tmp_path / "turns"
    path.write_bytes(b"a ||| u  v ||| 1 0.5 0.25\na ||| w ||| 1 1 1\nb ||| w ||| 1 1 1\n")
    found = read_reordering(path, 3, {(b"a", b"u v"), (b"b", b"x")})
    assert found == {(b"a", b"u v"): (0.0, math.log(0.5), math.log(0.25))}
    with pytest.raises(FormatError, match=r"turns:1: 6 scores expected, 3 found"):
        read_reordering(path, 6, {(b"a", b"u v")})


def test_source_phrases_of_sentences() -> None:
    found = source_phrases([[b"a", b"b", b"c"], []], 2)
    assert found == {b"a", b"b", b"c", b"a b", b"b c"}
