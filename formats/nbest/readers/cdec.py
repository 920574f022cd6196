"""Lists of cdec: ``id ||| text ||| LanguageModel=-3 Glue=2 ||| score``.

Zeros are left out. Lists of tools that write ``name=value`` pairs in this order of fields are read,
too.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.nbest.entry import names_every_value
from formats.nbest.list_format import ListFormat
from formats.nbest.readers.named import read_named_blocks, read_named_list


def _recognizes(lines: Sequence[bytes]) -> bool:
    return names_every_value(lines[0])


LIST_FORMAT = ListFormat(
    name="cdec",
    summary="id ||| text ||| LanguageModel=-3 Glue=2 ||| score",
    recognizes=_recognizes,
    read_blocks=read_named_blocks,
    names_values=True,
    read_whole=read_named_list,
)
