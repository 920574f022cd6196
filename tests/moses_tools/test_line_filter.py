"""Text rewritten line by line by commands."""

from __future__ import annotations

import pytest

from mosesplug.errors import DecoderError
from mosesplug.moses_tools.scoring import filter_lines


def test_lines_are_returned_in_order() -> None:
    lines = [b"b \xff", b"a", b"", b"b \xff"]
    assert filter_lines("sed 's/$/ X/' | tr b c", lines) == [
        b"c \xff X",
        b"a X",
        b" X",
        b"c \xff X",
    ]


def test_no_lines() -> None:
    assert filter_lines("cat", []) == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sort -u | head -1", "wrote 1 lines for 2"),
        ("cat; echo more", "wrote 3 lines for 2"),
        ("echo why >&2; exit 3", "the filter .*why"),
        ("no-such-command-at-all", "the filter"),
    ],
)
def test_commands_that_do_not_do(command: str, message: str) -> None:
    with pytest.raises(DecoderError, match=f"(?s){message}"):
        filter_lines(command, [b"a", b"b"])
