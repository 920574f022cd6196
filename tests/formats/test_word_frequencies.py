"""Test frequencies of words from texts and from files of counts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.word_frequencies import read_word_frequencies

WORDS = (b"a", b"b", b"\xff", b"c\t1")


@pytest.mark.parametrize(
    ("content", "counts"),
    [
        (b"a b a\n\n a  \xff\r\n", (3, 1, 1, 0)),
        (b"a b", (1, 1, 0, 0)),
        (b"a\t5\nb\t7\r\n\nz\t1\na\t2\n", (7, 7, 0, 0)),
        (b"a\t0\n\xff\t123456789012345678", (0, 0, 123456789012345678, 0)),
        # Not all first lines are counts, so this is a text with odd words.
        (b"c\t1\na\tb a\n", (1, 0, 0, 1)),
        (b"a\t1.5\n", (0, 0, 0, 0)),
    ],
)
def test_frequencies(content: bytes, counts: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    (tmp_path / "text.gz").write_bytes(gzip.compress(content))
    for name in ("text", "text.gz"):
        found = read_word_frequencies(tmp_path / name, WORDS)
        assert tuple(found.values()) == counts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": there are no words at its beginning. Give a text with a sentence a line, or"),
        (b"\n\n", ": there are no words at its beginning"),
        (b"a\t1\n" * 100 + b"b 2\n", ":101: 'b 2' is not a word, a tab and a count"),
        (b"a\t1\n" * 150 + b"b\t-1\n", ":151: 'b\\\\t-1' is not a word, a tab and a count"),
        (b"a\t1\n" * 150 + b"b\t" + b"9" * 19, ":151: 'b"),
        (b"\x1f\x8b broken", ": "),
    ],
)
def test_invalid_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_word_frequencies(path, WORDS)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        found = read_word_frequencies(path, WORDS)
    except FormatError:
        return
    assert tuple(found) == WORDS
    assert min(found.values()) >= 0
