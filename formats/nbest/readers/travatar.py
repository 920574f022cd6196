"""Lists of Travatar: ``id ||| text ||| score ||| lm=-3 len=2 [||| tree]``.

Zeros are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from os import fspath

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds, read_first_lines
from formats.nbest.readers.bars import field_of, read_bar_blocks
from formats.text import StrPath


def _recognizes(lines: Sequence[bytes]) -> bool:
    return any(_has_form(line) for line in lines) and all(
        not math.isnan(parse_number(field_of(line, 2))) for line in lines[:-1] or lines
    )


def _has_form(line: bytes) -> bool:
    """Return whether a line has a number, and named values behind it."""
    tokens = field_of(line, 3).split()
    return bool(tokens) and all(b"=" in token[1:-1] for token in tokens)


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    first = next(iter(read_first_lines(path)), None)
    if first is not None and math.isnan(parse_number(score := field_of(first, 2))):
        raise FormatError(
            f"the third field of the first hypothesis is {quote(score)}, not a score",
            path=fspath(path),
            line=1,
            remedy="Travatar writes: id ||| text ||| score ||| lm=-3. Name the format of another "
            "program",
        )
    return read_bar_blocks(path, options, ids, names_values=True, score_first=True)


LIST_FORMAT = ListFormat(
    name="travatar",
    summary="id ||| text ||| score ||| lm=-3 len=2",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
    names_values=True,
)
