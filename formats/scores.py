"""Read scores of hypotheses that another program computed.

A file has one line or row for each hypothesis.

A line holds one number or several columns of numbers, ``0.8312`` or ``3 17``, alone or behind the
id of the sentence, and the text, of its hypothesis::

    0 ||| 0.8312
    0 ||| the house is small ||| 0.8312

Ids and text are returned for the caller to compare. A file may be compressed. NumPy's ``.npy``
holds an array of one number or one row for each hypothesis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import fspath

import numpy as np

from formats.decimals import parse_numbers
from formats.errors import FormatError, quote
from formats.npy import NPY, load_array
from formats.text import StrPath, open_text
from formats.words import PAD, Bytes, Floats, pad_with_newlines

_CHUNK_BYTES = 1 << 20
_CHUNK_ROWS = 1 << 16
_BLANKS = b" \t\r\n\f\v"
_NPZ = b"PK\x03\x04"
_SHAPES = "Give an array of one number, or one row of numbers, for each hypothesis"
_FORMS = "'NUMBERS', 'ID ||| NUMBERS' or 'ID ||| TEXT ||| NUMBERS'"


@dataclass(frozen=True)
class ScoreRows:
    """Scores of successive hypotheses.

    Attributes:
        first: line of the first, from 1; rows of arrays count as lines.
        values: float64 ``[n, k]``, finite.
        ids: the sentence id of each, as it is spelled; None if the file has none.
        texts: the text of each, without surrounding blanks; None if the file has none.
    """

    path: str
    first: int
    values: Floats
    ids: list[bytes] | None = None
    texts: list[bytes] | None = None

    def __len__(self) -> int:
        return len(self.values)


def read_score_width(path: StrPath) -> int:
    """Return the number of columns of a file of scores, 1 or more.

    Raises:
        FormatError: as ``read_score_blocks``.
    """
    for rows in read_score_blocks(path, _chunk_bytes=1):
        return int(rows.values.shape[1])
    raise FormatError(
        "the file of scores is empty",
        path=path,
        remedy="Give one line for each hypothesis of the lists",
    )


def read_score_blocks(path: StrPath, *, _chunk_bytes: int = _CHUNK_BYTES) -> Iterator[ScoreRows]:
    """Yield the scores of a file, in bounded memory.

    Raises:
        FormatError: the file cannot be read, or a line has other columns than the first, or a value
            that is not a finite number.
    """
    with open_text(path) as file:
        magic = file.peek(len(NPY))  # type: ignore[attr-defined]
        if magic.startswith(_NPZ):
            raise FormatError(
                "this is an archive of arrays (.npz)",
                path=path,
                remedy="Write a single array with numpy.save",
            )
        if not magic.startswith(NPY):
            first, form = 1, None
            while lines := file.readlines(_chunk_bytes):
                rows, form = _parse_lines(lines, fspath(path), first, form)
                yield rows
                first += len(rows)
            return
        array = load_array(path, file, (1, 2), _SHAPES)
        array = array if array.ndim == 2 else array[:, None]
    for start in range(0, len(array), _CHUNK_ROWS):
        values = np.array(array[start : start + _CHUNK_ROWS], dtype=np.float64)
        _check_finite(values, path, start)
        yield ScoreRows(fspath(path), start + 1, values)


@dataclass(frozen=True)
class _Form:
    """The columns of a file's first line: fields before the numbers, and numbers."""

    fields: int
    width: int


def _parse_lines(
    lines: list[bytes], path: str, first: int, form: _Form | None
) -> tuple[ScoreRows, _Form]:
    ids = texts = None
    split = lines[0].count(b"|||") if form is None else form.fields
    if split:
        pieces = [line.split(b"|||") for line in lines]
        for number, fields in enumerate(pieces, start=first):
            if len(fields) != split + 1 or split > 2:
                raise FormatError(
                    f"{len(fields)} fields separated by |||", path=path, line=number,
                    remedy=f"Write each line as {_FORMS}, all lines alike",
                )  # fmt: skip
        ids = [fields[0].strip(_BLANKS) for fields in pieces]
        texts = [fields[1].strip(_BLANKS) for fields in pieces] if split == 2 else None
        lines = [
            fields[-1] if fields[-1].endswith(b"\n") else fields[-1] + b"\n" for fields in pieces
        ]
    elif any(b"|||" in line for line in lines):
        place = next(n for n, line in enumerate(lines) if b"|||" in line)
        raise FormatError(
            f"not numbers alone, as in line 1: {quote(lines[place].strip(_BLANKS))}",
            path=path,
            line=first + place,
            remedy=f"Write each line as {_FORMS}, all lines alike",
        )
    values = _parse_numbers(lines, path, first, None if form is None else form.width)
    return ScoreRows(path, first, values, ids, texts), form or _Form(split, values.shape[1])


def _parse_numbers(lines: list[bytes], path: str, first: int, width: int | None) -> Floats:
    """Return the numbers of whole lines, float64 ``[n, width]``."""
    padded: Bytes = pad_with_newlines(b"".join(lines))
    filled = np.append(padded[PAD - 1 : -PAD] > 32, False)
    starts = np.flatnonzero(filled[1:] & ~filled[:-1]) + PAD
    ends = np.flatnonzero(filled[:-1] & ~filled[1:]) + PAD
    bounds = np.cumsum([0, *map(len, lines)]) + PAD
    counts = np.diff(np.searchsorted(starts, bounds))
    width = int(counts[0]) if width is None else width
    values = parse_numbers(padded, starts, ends)
    is_sound = counts == width
    if len(values):
        owners = np.repeat(np.arange(len(lines)), counts)
        is_sound[owners[np.isnan(values)]] = False
    if width and is_sound.all():
        return values.reshape(len(lines), width)
    line = int(np.argmin(is_sound)) if width else 0
    own = values[np.searchsorted(starts, bounds[line]) :][: counts[line]]
    if not counts[line]:
        message = "the line has no number"
    elif np.isnan(own).any():
        bad = np.searchsorted(starts, bounds[line]) + int(np.argmax(np.isnan(own)))
        token = padded[starts[bad] : ends[bad]].tobytes()
        message = f"{quote(token)} is not a finite number"
    else:
        message = f"{counts[line]} numbers, but line 1 has {width}"
    raise FormatError(
        message,
        path=path,
        line=first + line,
        remedy="Give the same number of finite numbers for each hypothesis",
    )


def _check_finite(values: Floats, path: StrPath, start: int) -> None:
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise FormatError(
            f"row {start + row} (from 0) holds {values[row].tolist()}",
            path=path,
            remedy="Give finite numbers for each hypothesis",
        )
