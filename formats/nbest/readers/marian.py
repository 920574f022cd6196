"""Lists of Marian, which may have an alignment and scores of words.

A line is ``id ||| text [||| alignment] [||| WordScores= -1 -2] ||| F0= -3 ||| score``.

Between text and features there are the alignment (``--alignment``) and a score of each word
(``--word-scores``). The number of word scores varies, so that only their sum can be a feature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from os import fspath

from formats.decimals import parse_number
from formats.errors import quote
from formats.nbest.block import NBestList
from formats.nbest.entry import Place, names_every_value
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds, read_first_lines
from formats.nbest.readers.bars import field_of, read_bar_blocks
from formats.text import StrPath

__all__ = ["LIST_FORMAT"]

_FEATURES = b"F0="
_WORD_SCORES = b"WordScores="
_OWN = re.compile(rb"F[0-9]+=|WordScores=")


def _recognizes(lines: Sequence[bytes]) -> bool:
    fields = [field.strip() for field in lines[0].split(b"|||")[2:]]
    if names_every_value(lines[0]) and not all(map(_OWN.match, field_of(lines[0], 2).split())):
        return False  # a list of Marian with further features, as this program writes it
    return any(field.startswith((_FEATURES, _WORD_SCORES)) for field in fields)


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    first = next(iter(read_first_lines(path)), None)
    skipped = None
    if first is not None:
        skipped = _find_features(first.split(b"|||"), Place(fspath(path), 1)) - 2
    if options.word_scores == "drop" or not skipped:
        return read_bar_blocks(path, options, ids, skipped=skipped)
    return read_bar_blocks(path, options, ids, skipped=0, rewrite=_add_sum)


def _find_features(fields: Sequence[bytes], place: Place) -> int:
    """Return the number of the field with the features."""
    for number, field in enumerate(fields[2:], start=2):
        if field.lstrip().startswith(_FEATURES):
            return number
    raise place.error(
        "no field begins with F0=, the first feature of Marian",
        "Marian writes: id ||| text ||| F0= -1.5 ||| score. Name the format of another program",
    )


def _add_sum(line: bytes, place: Place) -> bytes:
    """Add the sum of the word scores to the features; drop the fields before them."""
    fields = line.split(b"|||")
    at = _find_features(fields, place)
    of_words = [field.strip() for field in fields[2:at]]
    scores = next((each for each in of_words if each.startswith(_WORD_SCORES)), None)
    if scores is not None:
        fields[at] = b"%b %b " % (fields[at].rstrip(), _sum_scores(scores, place))
    return b"|||".join([*fields[:2], *fields[at:]])


def _sum_scores(field: bytes, place: Place) -> bytes:
    """Return the sum as a feature."""
    total = 0.0
    for token in field.removeprefix(_WORD_SCORES).split():
        total += (value := parse_number(token))
        if math.isnan(value):
            raise place.error(
                f"a word score is not a number: {quote(token)}",
                "Mend the line, or drop the word scores (--word-scores drop)",
            )
    return b"%b %b" % (_WORD_SCORES, repr(total).encode())


LIST_FORMAT = ListFormat(
    name="marian",
    summary="id ||| text [||| alignment] ||| F0= -3 ||| score",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
)
