"""Transcripts of sclite and Kaldi's scripts: ``the house (utt-a)``.

The hypotheses of an utterance stand together and have one id, or the ids of Kaldi's n-best lists,
``utt-a-1``, ``utt-a-2``, ...: if the second line has another id than the first, which ends in
``-1``. Lines that begin with ``;;`` are comments. There are no features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os import fspath

import numpy as np

from formats.errors import quote
from formats.nbest.block import NBestList
from formats.nbest.entry import Place
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, make_block, pack_texts, whole_sentences
from formats.text import StrPath
from formats.transcripts import is_comment, split_transcript_line, transcript_error

_NUMBERED = re.compile(rb"(.+)-([0-9]+)", re.DOTALL)


def _recognizes(lines: Sequence[bytes]) -> bool:
    whole = [line for line in (lines[:-1] or lines) if not is_comment(line)]
    return bool(whole) and all(
        split_transcript_line(line) is not None and b"|||" not in line and b"\t" not in line
        for line in whole
    )


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    name = fspath(path)
    utterances: _Utterances | None = None
    waiting: list[tuple[int, bytes, bytes]] = []
    for text, first_line in iter_line_blocks(path):
        waiting += _split(text, Place(name, first_line))
        if utterances is None:
            if len(waiting) < 2:
                continue
            utterances = _Utterances.of_ids(waiting[0][2], waiting[1][2], ids)
        if waiting:
            yield _make_block(waiting, utterances, name)
            waiting = []
    if waiting:
        utterances = utterances or _Utterances(ids, is_numbered=False)
        yield _make_block(waiting, utterances, name)


def _split(text: bytes, first: Place) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number, the text and the id of each line."""
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=first.line):
        if is_comment(line):
            continue
        pair = split_transcript_line(line)
        if pair is None:
            raise transcript_error(first.path, number, line)
        yield number, *pair


class _Utterances:
    """Numbers utterances by the ids of transcripts.

    Args:
        is_numbered: whether ids end in the number of the hypothesis.
    """

    def __init__(self, ids: SentenceIds, *, is_numbered: bool) -> None:
        self._ids = ids
        self._is_numbered = is_numbered
        self._last: tuple[bytes, int] = (b"", 0)

    @classmethod
    def of_ids(cls, first: bytes, second: bytes, ids: SentenceIds) -> _Utterances:
        """Return the numbering of a file by its first two ids."""
        match = _NUMBERED.fullmatch(first)
        is_numbered = first != second and match is not None and match[2] == b"1"
        return cls(ids, is_numbered=is_numbered)

    def number(self, name: bytes, place: Place) -> int:
        """Return the number of the utterance with this id."""
        if self._is_numbered:
            match = _NUMBERED.fullmatch(name)
            utterance, rank = (match[1], int(match[2])) if match else (name, 0)
            expected = self._last[1] + 1 if utterance == self._last[0] else 1
            if rank != expected:
                raise place.error(
                    f"the id is {quote(name)}, not one with the number {expected}, although the "
                    "first ids are numbered as in n-best lists of Kaldi",
                    "Number the hypotheses of each utterance (utt-1, utt-2, ...), or give all "
                    "hypotheses of the first utterance the same id",
                )
            self._last = utterance, rank
            name = utterance
        return self._ids.number(name.decode("utf-8", "surrogateescape"))


def _make_block(
    rows: Sequence[tuple[int, bytes, bytes]], utterances: _Utterances, path: str
) -> NBestList:
    sentences = [utterances.number(name, Place(path, number)) for number, _, name in rows]
    return make_block(
        path,
        np.array(sentences, dtype=np.int64),
        pack_texts([text for _, text, _ in rows]),
        (),
        np.zeros((len(rows), 0)),
        np.array([number for number, _, _ in rows], dtype=np.int64),
    )


TRANSCRIPTS = ListFormat(
    name="trn",
    summary="the house (utt-a), as sclite reads",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
)
