"""Read n-best lists that repeat lines: each distinct line is parsed once.

Two lines are the same if they differ in nothing but the decoder's model score. Small inputs are
parsed as they are, so that they need no kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList, parse_block, parse_block_fast
from formats.nbest.entry import Layout
from formats.nbest.files import check_order, empty_error, find_layout, read_nbest, read_text_blocks
from formats.text import StrPath
from mosesplug.ahead import ReadAhead
from mosesplug.moses_tools.known_lines import KnownLines, NumberedLines
from mosesplug.moses_tools.plain_lines import parse_plain_lines

FEW_BYTES = 1 << 20
"""Size of files, mostly compressed, up to which kernels take more time than they save."""

_AHEAD = 4
"""Blocks that are unpacked before they are asked for."""


@dataclass(frozen=True)
class DistinctBlock:
    """A block of lines of one of several n-best lists.

    Attributes:
        new: the lines that appear here first, in their order; None if all appeared before.
        rows: int64 ``[n]``; for each line of the block, its number among all distinct lines.
    """

    new: NBestList | None
    rows: NDArray[np.int64]


def read_distinct(paths: Sequence[StrPath]) -> Iterator[DistinctBlock]:
    """Yield n-best lists, whose lines are those that ``read_nbest`` reads.

    The model scores of new lines are NaN where they were not needed to tell lines apart.

    Raises:
        FormatError: a list is invalid or empty; the error names file and line.
    """
    sizes = [Path(path).stat().st_size for path in paths if Path(path).is_file()]
    if len(paths) > 1 and sum(sizes) > FEW_BYTES:
        yield from _read_repeated(paths)
        return
    n_new = 0
    for path in paths:
        block = read_nbest(path)
        yield DistinctBlock(block, np.arange(n_new, n_new + len(block)))
        n_new += len(block)


def _read_repeated(paths: Sequence[StrPath]) -> Iterator[DistinctBlock]:
    """Yield parts of lists, of which each distinct line is parsed once."""
    known, n_new = KnownLines(), 0
    for path in paths:
        name = fspath(path)
        layout, last = None, -1
        with ReadAhead(read_text_blocks(path), _AHEAD) as texts:
            for text, first_line in texts:
                layout = layout or find_layout(text, None, None, name, first_line)
                if layout is None:
                    continue
                lines = known.number(text, last)
                block = (
                    None if lines is None else _parse_new(lines, layout, name, first_line, n_new)
                )
                if lines is not None and block is not None:
                    last, rows = lines.last_sentence, lines.numbers
                else:  # an unusual or invalid line: all lines count as new
                    block = parse_block(text, layout, name, first_line)
                    last = check_order(last, block) if len(block) else last
                    rows = np.arange(n_new, n_new + len(block))
                    known = KnownLines(n_new + len(block))
                yield DistinctBlock(block if len(block) else None, rows)
                n_new += len(block)
        if layout is None:
            raise empty_error(name)


def _parse_new(
    lines: NumberedLines, layout: Layout, name: str, first_line: int, n_new: int
) -> NBestList | None:
    """Parse a block's new lines, numbered from ``n_new``; None if one is unusual."""
    places = first_line + _first_places(lines.numbers, n_new)
    block = parse_plain_lines(lines.text, lines.starts, layout, name, places)
    if block is None:
        block = parse_block_fast(lines.text.tobytes(), layout, name, first_line)
    return None if block is None else replace(block, lines=places)


def _first_places(numbers: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return where each number from ``first`` on appears first; they appear in order."""
    highest = np.maximum.accumulate(numbers)
    return np.searchsorted(highest, np.arange(first, highest[-1] + 1))
