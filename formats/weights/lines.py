"""Lines of weight files, and checked numbers in them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from os import fspath
from typing import TypeVar

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.text import StrPath, read_bytes

Value = TypeVar("Value", float, float | None)
_MOST_BYTES = 1 << 30


def read_content_lines(
    path: StrPath, text: bytes | None = None, *, comments: bool = False
) -> list[tuple[int, bytes]]:
    """Return the lines that are not empty, stripped, with their numbers from 1.

    Args:
        comments: whether lines that begin with ``#`` are omitted.
    """
    text = read_weight_file(path) if text is None else text
    stripped = enumerate(map(bytes.strip, text.split(b"\n")), start=1)
    return [(n, line) for n, line in stripped if line and not (comments and line[:1] == b"#")]


def read_weight_file(path: StrPath) -> bytes:
    """Return the content of a file of weights.

    Raises:
        FormatError: the file cannot be read, or has more than a gigabyte (twice the size of ten
            million features).
    """
    return read_bytes(path, most=_MOST_BYTES, what="a file of weights")


def parse_weight(token: bytes, name: str | None, path: StrPath | None, line: int | None) -> float:
    """Parse a weight."""
    value = parse_number(token)
    if math.isnan(value):
        of = f" of {name}" if name else ""
        raise FormatError(
            f"the weight{of} is {quote(token)}",
            path=path,
            line=line,
            remedy="It must be a finite decimal number",
        )
    return value


def parse_numbers(line: bytes, path: StrPath, number: int) -> tuple[float, ...]:
    """Return all words of a line as finite numbers.

    Raises:
        FormatError: a word is not a finite number.
    """
    return tuple(parse_weight(token, None, path, number) for token in line.split())


def merge_groups(
    groups: Iterable[tuple[str, list[Value], int]], path: StrPath | None
) -> list[tuple[str, list[Value]]]:
    """Join neighboring lines of one name."""
    joined: list[tuple[str, list[Value]]] = []
    for name, values, number in groups:
        if joined and joined[-1][0] == name:
            joined[-1][1].extend(values)
        elif any(name == other for other, _ in joined):
            raise duplicate_error(name, path, number)
        else:
            joined.append((name, list(values)))
    return joined


def duplicate_error(name: str, path: StrPath | None, line: int) -> FormatError:
    """Return the error for a feature that appears twice."""
    return FormatError(
        f"the feature {name} appears twice",
        path=None if path is None else fspath(path),
        line=line,
        remedy="Remove one of them",
    )
