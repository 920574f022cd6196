"""Lists of Moses, and of all decoders that write its format: ``id ||| text ||| LM0= -3 ||| -1``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest_blocks
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.text import StrPath

__all__ = ["LIST_FORMAT"]


def _recognises(lines: Sequence[bytes]) -> bool:
    return b"|||" in lines[0]


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    return read_nbest_blocks(path, names=options.names, dense=options.dense)


LIST_FORMAT = ListFormat(
    name="moses",
    summary="id ||| text ||| LM0= -3 TM0= -1 -2 ||| score",
    recognises=_recognises,
    read_blocks=_read_blocks,
)
