"""Lists of Moses: ``id ||| text ||| LM0= -3 ||| -1``.

Other decoders write this format, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.nbest.list_format import ListFormat
from formats.nbest.readers.bars import read_bar_blocks, read_bar_list


def _recognizes(lines: Sequence[bytes]) -> bool:
    return b"|||" in lines[0]


LIST_FORMAT = ListFormat(
    name="moses",
    summary="id ||| text ||| LM0= -3 TM0= -1 -2 ||| score",
    recognizes=_recognizes,
    read_blocks=read_bar_blocks,
    read_whole=read_bar_list,
)
