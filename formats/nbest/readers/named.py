"""Lists of any tool that name every value.

A line is ``id ||| text ||| lm=-3 len=2 ||| score``.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.nbest.block import NBestList
from formats.nbest.list_format import ListOptions, SentenceIds
from formats.nbest.readers.bars import read_bar_blocks, read_bar_list
from formats.text import StrPath


def read_named_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    """Read a list whose lines may have different features; see ``ListFormat``."""
    return read_bar_blocks(path, options, ids, names_values=True)


def read_named_list(
    path: StrPath, options: ListOptions, ids: SentenceIds, threads: int
) -> NBestList:
    """Read such a list with several threads; see ``ListFormat``."""
    return read_bar_list(path, options, ids, threads, names_values=True)
