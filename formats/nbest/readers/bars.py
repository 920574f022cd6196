"""Text ids and the fast parser, for all formats with fields between ``|||``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from os import fspath

from formats.nbest.block import NBestList, concatenate
from formats.nbest.entry import BLANKS, Place
from formats.nbest.files import read_nbest, read_nbest_blocks
from formats.nbest.list_format import (
    ListOptions,
    SentenceIds,
    read_first_lines,
    sentence_order_error,
)
from formats.text import StrPath

_TEXT_ID = re.compile(rb"[a-zA-Z\x80-\xff]|[0-9][-_/:]")
"""A letter, or a mark behind a digit, as in ``1089-134686-0000``."""

Rewrite = Callable[[bytes, Place], bytes]
"""Returns another line in the place of one without its line end."""


def field_of(line: bytes, number: int) -> bytes:
    """Return a field of a line without blanks around it; empty if it is missing."""
    fields = line.split(b"|||", number + 1)
    return fields[number].strip(BLANKS) if number < len(fields) else b""


def read_bar_blocks(
    path: StrPath,
    options: ListOptions,
    ids: SentenceIds,
    *,
    names_values: bool = False,
    score_first: bool = False,
    skipped: int | None = None,
    rewrite: Rewrite | None = None,
) -> Iterator[NBestList]:
    """Read a list whose fields stand between ``|||``.

    If the first id has a letter, or a mark as ``1089-134686``, all ids are texts and numbered by
    ``ids``.

    Args:
        path, options, ids: as for ``ListFormat.read_blocks``.
        names_values: whether every value has its name, so that lines may differ.
        skipped: number of fields between text and features; None: found in the first line.
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


def read_bar_list(
    path: StrPath,
    options: ListOptions,
    ids: SentenceIds,
    threads: int,
    *,
    names_values: bool = False,
) -> NBestList:
    """Read a list with several threads.

    Arguments and errors are those of ``read_bar_blocks``.
    """
    if _has_text_ids(path):
        return concatenate(list(read_bar_blocks(path, options, ids, names_values=names_values)))
    dense = (options.dense or ()) if names_values else options.dense
    return read_nbest(path, names=options.names, dense=dense, threads=threads)


def _has_text_ids(path: StrPath) -> bool:
    first = (read_first_lines(path) or [b""])[0]
    identifier = first.partition(b"|||")[0].strip(BLANKS)
    return b"|||" in first and _TEXT_ID.search(identifier) is not None
