"""Parse many lines of an n-best list at once into flat arrays.

Lines and separators are found by comparing the whole byte array with one character; the features
fields go to ``formats.nbest.columns``, ``formats.nbest.tokens`` or ``formats.nbest.named``. A block
with anything unusual is parsed again by ``formats.nbest.entry``, which either succeeds or names the
line and the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formats.decimals import parse_integers, parse_numbers
from formats.nbest.arrays import NBestList, concatenate, from_entries
from formats.nbest.columns import parse_columns
from formats.nbest.entry import (
    BLANKS,
    FLOAT32_LIMIT,
    Layout,
    NBestEntry,
    Place,
    backwards,
    parse_entry,
)
from formats.nbest.named import parse_named
from formats.nbest.tokens import ParsedFeatures, parse_tokens
from formats.words import PAD, Bytes, Positions, padded_with_newlines

__all__ = ["NBestList", "concatenate", "parse_block", "parse_block_fast"]


def parse_block(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """Parse whole lines.

    Args:
        text: lines, each with its ``\\n``.
        layout: what the first line of the file set.
        path: the file, for error messages.
        first_line: number of the first line.

    Raises:
        FormatError: with file and line.
    """
    block = parse_block_fast(text, layout, path, first_line)
    return _parse_block_slowly(text, layout, path, first_line) if block is None else block


def parse_block_fast(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList | None:
    """Parse whole lines in bulk; None if a line has anything unusual."""
    padded = padded_with_newlines(text)
    fields = _split_lines(padded, layout.skipped)
    if fields is None:
        return None
    first, second, before, third, fourth = fields.separators
    features = _parse_features(padded, before + 3, third, layout)
    sentence_ids = parse_integers(padded, *_strip(padded, fields.line_starts, first))
    scored = np.flatnonzero(fields.n_separators > 2 + layout.skipped)
    scores = np.full(len(sentence_ids), np.nan)
    scores[scored] = parse_numbers(padded, *_strip(padded, third[scored] + 3, fourth[scored]))
    usable = np.abs(scores[scored]) < FLOAT32_LIMIT
    in_order = (np.diff(sentence_ids, prepend=0) >= 0).all()  # -1 (not a number) fails, too
    if features is None or not in_order or not usable.all():
        return None
    text_starts, text_ends = _strip(padded, first + 3, second)
    has_extra = fields.n_separators > 3 + layout.skipped
    extra_starts = np.where(has_extra, fourth + 3, fields.line_ends)
    return NBestList(
        path=path,
        sentence_ids=sentence_ids,
        buffer=padded[PAD:-PAD],
        text_starts=text_starts - PAD,
        text_ends=text_ends - PAD,
        groups=layout.groups,
        dense=features.dense,
        sparse_names=features.sparse_names,
        sparse_indptr=features.sparse_indptr,
        sparse_indices=features.sparse_indices,
        sparse_data=features.sparse_data,
        scores=scores,
        extra_starts=extra_starts - PAD,
        extra_ends=fields.line_ends - PAD,
        lines=np.arange(first_line, first_line + len(sentence_ids)),
    )


def _parse_features(
    padded: Bytes, begins: Positions, ends: Positions, layout: Layout
) -> ParsedFeatures | None:
    """Parse by columns if the lines allow it, else by tokens."""
    dense = parse_columns(padded, begins, ends, layout, glued=layout.named)
    if dense is None:
        return (parse_named if layout.named else parse_tokens)(padded, begins, ends, layout)
    none = np.zeros(0, dtype=np.int64)
    indptr = np.zeros(len(begins) + 1, dtype=np.int64)
    return ParsedFeatures(dense, (), indptr, none.astype(np.int32), none.astype(np.float32))


@dataclass(frozen=True)
class _Fields:
    """The beginnings and ends of a block's lines, and their separators.

    The separators are the first two and those before the features, after them and after the score.
    A missing separator is replaced by the end of the line.
    """

    line_starts: Positions
    line_ends: Positions
    n_separators: Positions
    separators: tuple[Positions, Positions, Positions, Positions, Positions]


def _split_lines(padded: Bytes, skipped: int) -> _Fields | None:
    """Find lines and separators; None if a line has too few, or more than three bars in a row.

    ``skipped`` is the number of fields between text and features.
    """
    newlines = np.flatnonzero(padded[PAD - 1 : -PAD] == ord("\n")) + (PAD - 1)
    line_starts, line_ends = newlines[:-1] + 1, newlines[1:]
    line_ends = line_ends - (padded[line_ends - 1] == ord("\r"))
    bars = np.flatnonzero(padded == ord("|"))
    separators = bars[:-2][bars[2:] - bars[:-2] == 2]
    first = np.searchsorted(separators, line_starts)
    count = np.diff(first, append=len(separators))
    least = 2 + skipped
    if count.min(initial=least) < least or np.diff(separators).min(initial=3) < 3:
        return None
    separators = np.append(separators, (0, 0))
    second = separators[first + 1]
    before = separators[first + least - 1] if skipped else second
    third = np.where(count > least, separators[first + least], line_ends)
    fourth = np.where(count > least + 1, separators[first + least + 1], line_ends)
    return _Fields(
        line_starts,
        line_ends,
        count,
        (separators[first], second, before, third, fourth),
    )


def _strip(padded: Bytes, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Strip the blanks at both ends of ranges."""
    starts, ends = starts.copy(), ends.copy()
    rows = np.arange(len(starts))
    while len(rows := rows[(padded[starts[rows]] <= BLANKS[-1]) & (starts[rows] < ends[rows])]):
        starts[rows] += 1
    rows = np.arange(len(starts))
    while len(rows := rows[(padded[ends[rows] - 1] <= BLANKS[-1]) & (starts[rows] < ends[rows])]):
        ends[rows] -= 1
    return starts, ends


def _parse_block_slowly(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """Parse line by line, and raise the error of the first invalid line."""
    entries: list[NBestEntry] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line.strip(BLANKS):
            place = Place(path, number)
            entry = parse_entry(line, layout, place)
            if entries and entry.sentence_id < entries[-1].sentence_id:
                raise backwards(entry.sentence_id, entries[-1].sentence_id, place)
            entries.append(entry)
            numbers.append(number)
    return from_entries(entries, layout, path, numbers)
