"""Read ``features.dat`` and ``scores.dat``.

``formats.extractor.data`` describes the format. Rows of text are parsed many blocks at a time. A
piece with anything unusual is parsed again line by line, which either succeeds or names the line
and the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import fspath

import numpy as np

from formats.decimals import parse_number, parse_numbers
from formats.errors import FormatError, quote
from formats.extractor.blocks import Block, BlockFile, find_blocks, index_of
from formats.extractor.data import FeatureData, ScoreData
from formats.nbest.entry import BLANKS, FLOAT32_LIMIT, Layout
from formats.nbest.fields import number_names, parse_columns
from formats.text import StrPath, read_bytes
from formats.words import PAD, Bytes, Floats32, Ints32, Positions, pad_with_newlines

PIECE_BYTES = 1 << 20
"""Bytes parsed at a time: many enough for NumPy, few enough for the cache."""

_TOKEN = re.compile(rb"[^\x00-\x20]+")


def read_features(path: StrPath, *, threads: int = 2) -> FeatureData:
    """Read feature values, from text or binary, plain or compressed.

    Raises:
        FormatError: the file contradicts its headers, has no block, or holds a value that is not a
            finite float32.
    """
    file = BlockFile(fspath(path), "FEATURES", read_bytes(path))
    blocks = find_blocks(file)
    names = tuple(name.decode("utf-8", "surrogateescape") for name in blocks[0].title)
    for block in blocks:
        if len(block.title) != block.width:
            raise file.error(
                block.header,
                f"the header names {len(block.title)} columns, but its column count is "
                f"{block.width}",
                "Produce the file again",
            )
        if block.title != blocks[0].title:
            raise file.error(
                block.header,
                "the columns differ from those of the first block",
                "One file must come of one decoder configuration",
            )
    rows = _rows(file, blocks, threads)
    return FeatureData(
        *index_of(blocks), names, rows.dense, rows.names, rows.indptr, rows.indices, rows.data
    )


def read_scores(path: StrPath, *, threads: int = 2) -> ScoreData:
    """Read sufficient statistics, from text or binary, plain or compressed.

    Arguments and errors as for ``read_features``.
    """
    file = BlockFile(fspath(path), "SCORES", read_bytes(path))
    blocks = find_blocks(file)
    for block in blocks:
        if len(block.title) != 1:
            raise file.error(
                block.header, "the header does not end with a metric's name", "Produce it again"
            )
        if (block.title, block.width) != (blocks[0].title, blocks[0].width):
            raise file.error(
                block.header,
                "the metric differs from that of the first block",
                "Score all lists with one metric",
            )
    rows = _rows(file, blocks, threads)
    if rows.names:
        raise _value_error(file, blocks, "sparse features, which belong in a features file")
    metric = blocks[0].title[0].decode("utf-8", "surrogateescape")
    return ScoreData(metric, *index_of(blocks), rows.dense)


@dataclass(frozen=True)
class _Rows:
    """Rows side by side; as in ``FeatureData``."""

    dense: Floats32
    names: tuple[str, ...]
    indptr: Positions
    indices: Ints32
    data: Floats32


def _rows(file: BlockFile, blocks: Sequence[Block], threads: int) -> _Rows:
    lines = _Lines.of(file.text)
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        parts = list(pool.map(lambda piece: _parse(file, lines, piece), _pieces(blocks)))
    return _concatenate(parts)


@dataclass(frozen=True)
class _Lines:
    """A text whose newlines are replaced by blanks, and their positions.

    Attributes:
        padded: the text with ``PAD`` bytes before and after it.
        newlines: int64, positions in ``padded``; the first is the one before the text.
    """

    padded: Bytes
    newlines: Positions

    @classmethod
    def of(cls, text: bytes) -> _Lines:
        padded = pad_with_newlines(text)
        newlines = np.flatnonzero(padded == ord("\n"))
        padded[newlines] = ord(" ")
        return cls(padded, newlines[PAD - 1 :])


def _pieces(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Neighboring blocks of one mode, about ``PIECE_BYTES`` together."""
    piece: list[Block] = []
    size = 0
    for block in blocks:
        if piece and (size > PIECE_BYTES or block.is_binary != piece[0].is_binary):
            yield piece
            piece, size = [], 0
        piece.append(block)
        size += block.end - block.start
    yield piece


def _parse(file: BlockFile, lines: _Lines, piece: Sequence[Block]) -> _Rows:
    """Return the rows of neighboring blocks of one mode."""
    n_rows, width = sum(block.count for block in piece), piece[0].width
    if not piece[0].is_binary and (dense := _parse_columns(lines, piece)) is not None:
        return _dense_only(dense)
    text = b"".join(file.text[block.start : block.end] for block in piece)
    if piece[0].is_binary:
        rows = _dense_only(np.frombuffer(text, dtype="<f4").reshape(n_rows, width))
        if not np.isfinite(rows.dense).all():
            raise _value_error(file, piece, "a value that is not a finite number")
        return rows
    found = _parse_tokens(pad_with_newlines(text), n_rows, width)
    return _parse_slowly(file, piece) if found is None else found


def _parse_columns(lines: _Lines, piece: Sequence[Block]) -> Floats32 | None:
    """Parse all rows at once if they are spelled as Moses does, else return None."""
    first = np.searchsorted(lines.newlines, [block.start + PAD - 1 for block in piece]).tolist()
    counts = [block.count for block in piece]
    before, behind = (
        np.concatenate(
            [lines.newlines[i + k : i + k + n] for i, n in zip(first, counts, strict=True)]
        )
        for k in (0, 1)
    )
    layout = Layout(has_labels=False, groups=(("", piece[0].width),))
    return parse_columns(lines.padded, before, behind, layout)


def _parse_tokens(padded: Bytes, n_rows: int, width: int) -> _Rows | None:
    """Parse all rows at once, whatever their spacing; None if one is invalid."""
    blanks = np.flatnonzero(padded <= BLANKS[-1])
    filled = np.flatnonzero(np.diff(blanks) > 1)
    starts, ends = blanks[filled] + 1, blanks[filled + 1]
    newlines = blanks[padded[blanks] == ord("\n")]
    # From the last newline before the text to the one behind the last row.
    offsets = np.searchsorted(starts, newlines[PAD - 1 : PAD + n_rows])
    equals = np.flatnonzero(padded == ord("="))
    if not len(equals):
        if not (np.diff(offsets) == width).all():
            return None
        values = _float32(padded, starts, ends)
        return None if values is None else _dense_only(values.reshape(n_rows, width))
    cuts = np.zeros(len(starts), dtype=np.int64)
    cuts[np.searchsorted(starts, equals, side="right") - 1] = equals  # of several, the last
    return _parse_sparse(padded, starts, ends, cuts, offsets, width)


def _parse_sparse(
    padded: Bytes,
    starts: Positions,
    ends: Positions,
    cuts: Positions,
    offsets: Positions,
    width: int,
) -> _Rows | None:
    """Parse tokens some of which have a name; ``cuts``: last ``=`` of each, or 0."""
    n_rows = len(offsets) - 1
    named = np.flatnonzero(cuts)
    bare = np.flatnonzero(cuts == 0)
    indptr = np.searchsorted(named, offsets)
    if not (np.diff(np.searchsorted(bare, offsets)) == width).all():
        return None
    dense = _float32(padded, starts[bare], ends[bare])
    data = _float32(padded, cuts[named] + 1, ends[named])
    numbered = number_names(padded, starts[named], cuts[named])
    if dense is None or data is None or numbered is None or "" in numbered[0]:
        return None
    names, indices = numbered
    owners = np.repeat(np.arange(n_rows), np.diff(indptr))
    if (np.diff(np.sort(owners * len(names) + indices)) == 0).any():
        return None  # a feature twice in one row
    return _Rows(dense.reshape(n_rows, width), names, indptr, indices, data)


def _float32(padded: Bytes, starts: Positions, ends: Positions) -> Floats32 | None:
    if (ends <= starts).any():
        return None
    values = parse_numbers(padded, starts, ends)
    return values.astype(np.float32) if (np.abs(values) < FLOAT32_LIMIT).all() else None


def _parse_slowly(file: BlockFile, piece: Sequence[Block]) -> _Rows:
    """Parse row by row, and raise the error of the first invalid row."""
    known: dict[bytes, int] = {}
    dense: list[float] = []
    sparse: list[dict[int, float]] = []
    for block in piece:
        at = block.start
        for line in file.text[block.start : block.end].split(b"\n")[:-1]:
            row: dict[int, float] = {}
            bare = 0
            for token in _TOKEN.findall(line):
                name, equals, text = token.rpartition(b"=")
                value = parse_number(text)
                column = known.setdefault(name, len(known)) if equals else -1
                if not abs(value) < FLOAT32_LIMIT or column in row or (equals and not name):
                    raise file.error(
                        at,
                        f"{quote(token)} is not a finite number"
                        + (" of a sparse feature, or repeats its name" if equals else ""),
                        "Produce the file again, and look for NaN in the n-best list",
                    )
                if equals:
                    row[column] = value
                else:
                    dense.append(value)
                    bare += 1
            if bare != block.width:
                raise file.error(
                    at,
                    f"{bare} values, but the header says {block.width}",
                    "Produce the file again",
                )
            sparse.append(row)
            at += len(line) + 1
    return _Rows(
        np.array(dense, dtype=np.float32).reshape(len(sparse), piece[0].width),
        tuple(name.decode("utf-8", "surrogateescape") for name in known),
        np.cumsum([0, *map(len, sparse)], dtype=np.int64),
        np.array([column for row in sparse for column in row], dtype=np.int32),
        np.array([value for row in sparse for value in row.values()], dtype=np.float32),
    )


def _dense_only(dense: Floats32) -> _Rows:
    none = np.zeros(0, dtype=np.int32)
    indptr = np.zeros(len(dense) + 1, dtype=np.int64)
    return _Rows(dense, (), indptr, none, none.astype(np.float32))


def _concatenate(parts: Sequence[_Rows]) -> _Rows:
    """Return rows of all parts, their sparse features numbered by first appearance."""
    known: dict[str, int] = {}
    columns = [
        np.array([known.setdefault(name, len(known)) for name in part.names], dtype=np.int32)
        for part in parts
    ]
    shifts = np.cumsum([0, *(len(part.data) for part in parts)])
    indptr = [part.indptr[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return _Rows(
        np.concatenate([part.dense for part in parts]),
        tuple(known),
        np.append(np.concatenate(indptr), shifts[-1]),
        np.concatenate([own[part.indices] for own, part in zip(columns, parts, strict=True)]),
        np.concatenate([part.data for part in parts]),
    )


def _value_error(file: BlockFile, piece: Sequence[Block], what: str) -> FormatError:
    """Return the error about values that belong to no single line."""
    first, last = piece[0].sentence, piece[-1].sentence
    return FormatError(
        f"{what}, in sentences {first} to {last}",
        path=file.path,
        remedy="Produce the file again",
    )
