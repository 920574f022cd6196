"""Lists with fields between ``|||``, of Moses and others.

::

    moses     id ||| text ||| LM0= -3 TM0= -1 -2 ||| score      other decoders write it, too
    marian    id ||| text [||| alignment] [||| WordScores= -1 -2] ||| F0= -3 ||| score
    joshua    id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score      every value has its name
    cdec      id ||| text ||| LanguageModel=-3 Glue=2 ||| score             zeros are left out
    travatar  id ||| text ||| score ||| lm=-3 len=2 [||| tree]              zeros are left out

``cdec`` also stands for lists of tools that write ``name=value`` pairs in this order of fields.
Between text and features, Marian writes the alignment (``--alignment``) and a score of each word
(``--word-scores``), which may also be among the features (``F0= -3 WordScores= -1 -2``). The number
of word scores varies, so that only their sum can be a feature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import fspath

from formats.decimals import parse_number
from formats.errors import quote
from formats.nbest.block import NBestList, concatenate
from formats.nbest.entry import BLANKS, Place, is_alignment, names_every_value
from formats.nbest.files import read_nbest, read_nbest_blocks
from formats.nbest.list_format import (
    ListFormat,
    ListOptions,
    SentenceIds,
    read_first_lines,
    sentence_order_error,
)
from formats.text import StrPath

_TEXT_ID = re.compile(rb"[a-zA-Z\x80-\xff]|[0-9][-_/:]")
"""A letter, or a mark behind a digit, as in ``1089-134686-0000``."""


def _field(line: bytes, number: int) -> bytes:
    """Return a field of a line without blanks around it; empty if it is missing."""
    fields = line.split(b"|||", number + 1)
    return fields[number].strip(BLANKS) if number < len(fields) else b""


def _read_blocks(
    path: StrPath,
    options: ListOptions,
    ids: SentenceIds,
    *,
    names_values: bool = False,
    score_first: bool = False,
    skipped: int | None = None,
    rewrite: Callable[[bytes, Place], bytes] | None = None,
) -> Iterator[NBestList]:
    """Read a list whose fields stand between ``|||``.

    If the first id has a letter, or a mark as ``1089-134686``, all ids are texts and numbered by
    ``ids``.

    Args:
        path, options, ids: as for ``ListFormat.read_blocks``.
        names_values: whether every value has its name, so that lines may differ.
        skipped: number of fields between text and features; None: found in the first line.
        rewrite: returns another line in the place of one without its line end.
    """
    numbered = _has_text_ids(path)
    name = fspath(path)
    last = -1

    def rewrite_line(line: bytes, number: int) -> bytes:
        nonlocal last
        if not line.strip(BLANKS):
            return line
        if numbered and b"|||" in line:
            identifier, bars, rest = line.partition(b"|||")
            sentence = ids.number(identifier.strip(BLANKS).decode("utf-8", "surrogateescape"))
            if sentence < last:
                raise sentence_order_error(ids, sentence, last, name, number)
            last = sentence
            line = b"%d %b%b" % (sentence, bars, rest)
        return line if rewrite is None else rewrite(line, Place(name, number))

    def rewrite_block(text: bytes, first_line: int) -> bytes:
        lines = text.split(b"\n")
        return b"\n".join(rewrite_line(line, n) for n, line in enumerate(lines, start=first_line))

    return read_nbest_blocks(
        path,
        names=options.names,
        dense=(options.dense or ()) if names_values else options.dense,
        score_first=score_first,
        skipped=skipped,
        rewrite=rewrite_block if numbered or rewrite is not None else None,
    )


def _read_whole(
    path: StrPath,
    options: ListOptions,
    ids: SentenceIds,
    threads: int,
    *,
    names_values: bool = False,
) -> NBestList:
    """Read a list with several threads.

    Arguments and errors are those of ``_read_blocks``.
    """
    if _has_text_ids(path):
        return concatenate(list(_read_blocks(path, options, ids, names_values=names_values)))
    dense = (options.dense or ()) if names_values else options.dense
    return read_nbest(path, names=options.names, dense=dense, threads=threads)


def _has_text_ids(path: StrPath) -> bool:
    first = (read_first_lines(path) or [b""])[0]
    identifier = first.partition(b"|||")[0].strip(BLANKS)
    return b"|||" in first and _TEXT_ID.search(identifier) is not None


_OWN_NAMES = (b"tm_", b"tm-", b"lm_", b"lm-", b"OOV")
"""Beginnings of the names of Joshua's features; some versions have hyphens."""


def _recognizes_joshua(lines: Sequence[bytes]) -> bool:
    tokens = _field(lines[0], 2).split()
    return names_every_value(lines[0]) and any(token.startswith(_OWN_NAMES) for token in tokens)


def _recognizes_moses(lines: Sequence[bytes]) -> bool:
    identifier, bars, _ = lines[0].partition(b"|||")
    # Output of fairseq may have bars in its texts, behind tabs.
    return bool(bars) and b"\t" not in identifier.strip(BLANKS)


def _recognizes_travatar(lines: Sequence[bytes]) -> bool:
    def has_named_values(line: bytes) -> bool:
        tokens = _field(line, 3).split()
        return bool(tokens) and all(b"=" in token[1:-1] for token in tokens)

    return any(map(has_named_values, lines)) and all(
        not math.isnan(parse_number(_field(line, 2))) for line in lines[:-1] or lines
    )


def _read_travatar(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    first = next(iter(read_first_lines(path)), None)
    if first is not None and math.isnan(parse_number(score := _field(first, 2))):
        raise Place(fspath(path), 1).error(
            f"the third field of the first hypothesis is {quote(score)}, not a score",
            "Travatar writes: id ||| text ||| score ||| lm=-3. Name the format of another program",
        )
    return _read_blocks(path, options, ids, names_values=True, score_first=True)


_FEATURES = b"F0="
_WORD_SCORES = b"WordScores="
_OWN = re.compile(rb"F[0-9]+=|WordScores=")


def _recognizes_marian(lines: Sequence[bytes]) -> bool:
    fields = [field.strip() for field in lines[0].split(b"|||")[2:]]
    if names_every_value(lines[0]) and not all(map(_OWN.match, _field(lines[0], 2).split())):
        return False  # a list of Marian with further features, as this program writes it
    return any(field.startswith((_FEATURES, _WORD_SCORES)) for field in fields)


def _read_marian(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    first = next(iter(read_first_lines(path)), None)
    if first is None:
        return _read_blocks(path, options, ids)
    fields = first.split(b"|||")
    at = _find_features(fields, Place(fspath(path), 1))
    _, scores = _cut_word_scores(fields[at])
    is_mixed = len(scores) > 1  # one value is the sum, as this program writes it
    sums = options.word_scores == "sum"
    if not is_mixed and (not sums or at == 2):
        return _read_blocks(path, options, ids, skipped=at - 2)
    rewrite = partial(_join_fields, is_mixed=is_mixed, sums=sums)
    return _read_blocks(path, options, ids, skipped=0, rewrite=rewrite)


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
    begin = next((i for i, token in enumerate(tokens) if token.startswith(_WORD_SCORES)), None)
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
                "Mend the line, or drop the word scores ({--word-scores drop})",
            )
    return b"%b %b" % (_WORD_SCORES, repr(total).encode())


LIST_FORMATS = (
    ListFormat(
        name="travatar",
        summary="id ||| text ||| score ||| lm=-3 len=2",
        recognizes=_recognizes_travatar,
        read_blocks=_read_travatar,
        names_values=True,
    ),
    ListFormat(
        name="marian",
        summary="id ||| text [||| alignment] ||| F0= -3 ||| score",
        recognizes=_recognizes_marian,
        read_blocks=_read_marian,
    ),
    ListFormat(
        name="joshua",
        summary="id ||| text ||| lm_0=-3 tm_pt_0=-1 ||| score",
        recognizes=_recognizes_joshua,
        read_blocks=partial(_read_blocks, names_values=True),
        names_values=True,
        read_whole=partial(_read_whole, names_values=True),
    ),
    ListFormat(
        name="cdec",
        summary="id ||| text ||| LanguageModel=-3 Glue=2 ||| score",
        recognizes=lambda lines: names_every_value(lines[0]),
        read_blocks=partial(_read_blocks, names_values=True),
        names_values=True,
        read_whole=partial(_read_whole, names_values=True),
    ),
    ListFormat(
        name="moses",
        summary="id ||| text ||| LM0= -3 TM0= -1 -2 ||| score",
        recognizes=_recognizes_moses,
        read_blocks=_read_blocks,
        read_whole=_read_whole,
    ),
)
