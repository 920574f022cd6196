"""Lists of Marian, which may have an alignment and scores of words.

A line is ``id ||| text [||| alignment] [||| WordScores= -1 -2] ||| F0= -3 ||| score``.

Between text and features there are the alignment (``--alignment``) and a score of each word
(``--word-scores``), which may also be among the features (``F0= -3 WordScores= -1 -2``). The number
of word scores varies, so that only their sum can be a feature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from os import fspath

from formats.decimals import parse_number
from formats.errors import quote
from formats.nbest.block import NBestList
from formats.nbest.entry import Place, is_alignment, names_every_value
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds, read_first_lines
from formats.nbest.readers.bars import field_of, read_bar_blocks
from formats.text import StrPath

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
    if first is None:
        return read_bar_blocks(path, options, ids)
    fields = first.split(b"|||")
    at = _find_features(fields, Place(fspath(path), 1))
    _, scores = _cut_word_scores(fields[at])
    is_mixed = len(scores) > 1  # one value is the sum, as this program writes it
    sums = options.word_scores == "sum"
    if not is_mixed and (not sums or at == 2):
        return read_bar_blocks(path, options, ids, skipped=at - 2)
    rewrite = partial(_join_fields, is_mixed=is_mixed, sums=sums)
    return read_bar_blocks(path, options, ids, skipped=0, rewrite=rewrite)


def _find_features(fields: Sequence[bytes], place: Place) -> int:
    """Return the number of the field with the features."""
    for number, field in enumerate(fields[2:], start=2):
        if any(token.startswith(_FEATURES) for token in field.split()):
            for other in fields[2:number]:
                _check_skipped(other, place)
            return number
    raise place.error(
        "no field has F0=, the first feature of Marian",
        "Marian writes: id ||| text ||| F0= -1.5 ||| score. Name the format of another program",
    )


def _check_skipped(field: bytes, place: Place) -> None:
    """Reject a field between text and features that belongs to a text with bars."""
    tokens = field.split()
    if not (is_alignment(tokens) or tokens[0].startswith(_WORD_SCORES)):
        raise place.error(
            f"the field {quote(field.strip())} is neither an alignment nor the features",
            "See whether the text contains |||, which separates fields",
        )


def _cut_word_scores(field: bytes) -> tuple[bytes, list[bytes]]:
    """Return a field without the scores of words, and the scores."""
    tokens = field.split()
    begin = next((i for i, each in enumerate(tokens) if each.startswith(_WORD_SCORES)), None)
    if begin is None:
        return field, []
    end = begin + 1
    while end < len(tokens) and b"=" not in tokens[end]:
        end += 1
    glued = tokens[begin].removeprefix(_WORD_SCORES)
    scores = [glued] * bool(glued) + tokens[begin + 1 : end]
    return b" %b " % b" ".join(tokens[:begin] + tokens[end:]), scores


def _join_fields(line: bytes, place: Place, *, is_mixed: bool, sums: bool) -> bytes:
    """Drop the fields between text and features.

    Args:
        is_mixed: whether the scores of words are among the features.
    """
    fields = line.split(b"|||")
    at = _find_features(fields, place)
    scores: list[bytes] = []
    if is_mixed:
        fields[at], scores = _cut_word_scores(fields[at])
    else:
        for field in fields[2:at]:
            scores = scores or _cut_word_scores(field)[1]
    if sums and scores:
        fields[at] = b"%b %b " % (fields[at].rstrip(), _sum_scores(scores, place))
    return b"|||".join([*fields[:2], *fields[at:]])


def _sum_scores(scores: Sequence[bytes], place: Place) -> bytes:
    """Return the sum as a feature."""
    total = 0.0
    for token in scores:
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
