"""Lists of Joshua: ``id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score``.

Every value has its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.nbest.entry import names_every_value
from formats.nbest.list_format import ListFormat
from formats.nbest.readers.bars import field_of
from formats.nbest.readers.named import read_named_blocks, read_named_list

_OWN_NAMES = (b"tm_", b"tm-", b"lm_", b"lm-", b"OOV")
"""Beginnings of the names of Joshua's features; some versions have hyphens."""


def _recognizes(lines: Sequence[bytes]) -> bool:
    tokens = field_of(lines[0], 2).split()
    return names_every_value(lines[0]) and any(token.startswith(_OWN_NAMES) for token in tokens)


LIST_FORMAT = ListFormat(
    name="joshua",
    summary="id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score",
    recognizes=_recognizes,
    read_blocks=read_named_blocks,
    names_values=True,
    read_whole=read_named_list,
)
