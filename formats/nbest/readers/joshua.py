"""Lists of Joshua: ``id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score``, every value with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formats.nbest.block import NBestList
from formats.nbest.entry import names_every_value
from formats.nbest.files import read_nbest_blocks
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.text import StrPath

__all__ = ["LIST_FORMAT", "read_named_blocks"]

_OWN_NAMES = (b"tm_", b"lm_", b"OOVPenalty=")


def _recognises(lines: Sequence[bytes]) -> bool:
    features = lines[0].split(b"|||", 3)[2:3]
    has_own = any(token.startswith(_OWN_NAMES) for field in features for token in field.split())
    return names_every_value(lines[0]) and has_own


def read_named_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    """Read a list that names every value; see ``ListFormat``."""
    return read_nbest_blocks(path, names=options.names, dense=options.dense or ())


LIST_FORMAT = ListFormat(
    name="joshua",
    summary="id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score",
    recognises=_recognises,
    read_blocks=read_named_blocks,
    names_values=True,
)
