"""Output of fairseq's ``generate.py`` and ``interactive.py``.

    S-12<TAB>das Haus             the source
    H-12<TAB>-0.31<TAB>the house  a hypothesis and its score, in base 2
    D-12<TAB>-0.31<TAB>the house  the same text without subwords
    P-12<TAB>-0.2 -0.4 -0.3       the scores of its words, in base 2

The text is that of the ``D-`` line if the first hypothesis has one. The feature ``score`` is the
score of the hypothesis, which fairseq has divided by its length to the power of ``--lenpen``; the
sum of the scores of words is the feature ``word_scores``. All other lines are ignored.

``generate.py`` sorts sentences by length. A first pass finds the lines of each sentence; where they
are out of order, the second pass reads them in the order of the corpus. That needs a few bytes of
memory for each sentence, and a temporary copy of what cannot be read twice.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import fspath
from typing import IO

import numpy as np

from formats.decimals import parse_number
from formats.errors import quote
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, FLOAT32_LIMIT, Place, is_not_finite
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import BLOCK_BYTES, join_lines, make_block, pack_texts
from formats.text import StrPath, open_text
from formats.words import Positions

_LINE = re.compile(rb"^([A-Z])-([0-9]{1,18})(?:_[0-9]+)?\t", re.MULTILINE)
_READ = (b"H-", b"D-", b"P-")
_FORM = "A hypothesis has the form: H-12<TAB>score<TAB>text"
_REMEDY = "Give the whole output of one run of fairseq-generate"
_MEMORY = 64 << 20
"""Bytes of a copy that are held in memory; more are written to a temporary file."""


def _recognizes(lines: Sequence[bytes]) -> bool:
    return any((match := _LINE.match(line)) and match[1] in b"STHD" for line in lines)


@dataclass(frozen=True)
class _Sentences:
    """The places of each sentence's lines, in the order of the file.

    Attributes:
        offsets: the first byte of each in the text, and the end of the text.
        lines: the number of its first line.
        counts: the number of its ``H-`` lines and of its ``D-`` lines.
    """

    ids: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)


@dataclass
class _Hypothesis:
    """The lines of one hypothesis.

    Attributes:
        kind: its letter, ``H`` or ``D``.
        detokenized: the text of a ``D-`` line after it.
        words: the sum of the scores of words.
    """

    line: int
    kind: bytes
    sentence: int
    score: float
    text: bytes
    detokenized: bytes | None = None
    words: float | None = None


@dataclass(frozen=True)
class _Form:
    """The lines that all hypotheses of a file have.

    Attributes:
        is_detokenized: whether there is a ``D-`` line.
        sums_words: whether there is a ``P-`` line, whose scores are summed.
    """

    kind: bytes
    is_detokenized: bool
    sums_words: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return ("score", "word_scores") if self.sums_words else ("score",)


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    name = fspath(path)
    sums_words = options.word_scores == "sum"
    form: _Form | None = None
    with open_text(path) as file, tempfile.SpooledTemporaryFile(_MEMORY) as copy:
        is_copied = not file.seekable()
        text: IO[bytes] = copy if is_copied else file
        start = 0 if is_copied else file.tell()
        sentences = _find_sentences(_chunks(file, copy if is_copied else None), name)
        order = np.argsort(np.array(sentences.ids, dtype=np.int64), kind="stable").tolist()
        _refuse_twice(sentences, order, name)
        counts = [count or detokenized for count, detokenized in sentences.counts]
        first_rows = np.cumsum([0, *counts]) if order != sorted(order) else None
        for part in _parts(sentences, order):
            pending: list[_Hypothesis] = []
            rows: list[Positions] = []
            for number in part:
                begin, end = sentences.offsets[number : number + 2]
                text.seek(start + begin)
                first_line = sentences.lines[number]
                hypotheses = _hypotheses(text.read(end - begin), first_line, sums_words, name)
                pending += hypotheses
                if first_rows is not None:
                    rows.append(first_rows[number] + np.arange(len(hypotheses)))
            if pending:
                form = form or _Form(
                    pending[0].kind, pending[0].detokenized is not None, sums_words
                )
                block = _block(pending, form, name)
                yield replace(block, file_rows=np.concatenate(rows)) if rows else block


def _chunks(file: IO[bytes], copy: IO[bytes] | None) -> Iterator[bytes]:
    """Yield the text, and copy it if there is a file to copy it to."""
    while chunk := file.read(BLOCK_BYTES):
        if copy is not None:
            copy.write(chunk)
        yield chunk


def _find_sentences(chunks: Iterator[bytes], path: str) -> _Sentences:
    """Find the sentences of a text; what is before the first one belongs to it."""
    sentences = _Sentences()
    offset, line = 0, 1
    for text in join_lines(chunks):
        at = 0
        for match in _LINE.finditer(text):
            sentence = int(match[2])
            if not sentences.ids or sentence != sentences.ids[-1]:
                line += text.count(b"\n", at, match.start())
                at = match.start()
                sentences.offsets.append(offset + at if sentences.ids else 0)
                sentences.lines.append(line if sentences.ids else 1)
                sentences.ids.append(sentence)
                sentences.counts.append([0, 0])
            kind = b"HD".find(match[1])
            if kind >= 0:
                sentences.counts[-1][kind] += 1
        offset, line = offset + len(text), line + text.count(b"\n", at)
    if offset and not sentences.ids:
        raise Place(path, 1).error(
            "no line has the form H-12<TAB>score<TAB>text",
            "Give the output of fairseq-generate, written without --quiet",
        )
    sentences.offsets.append(offset)
    return sentences


def _refuse_twice(sentences: _Sentences, order: Sequence[int], path: str) -> None:
    for before, number in pairwise(order):
        if sentences.ids[before] == sentences.ids[number]:
            raise Place(path, sentences.lines[number]).error(
                f"the lines of sentence {sentences.ids[number]} are in two places: others begin at "
                f"line {sentences.lines[before]}",
                "Give the output of one run, or the files of several runs one by one",
            )


def _parts(sentences: _Sentences, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield the sentences in parts of about ``BLOCK_BYTES``."""
    part: list[int] = []
    size = 0
    for number in order:
        part.append(number)
        size += sentences.offsets[number + 1] - sentences.offsets[number]
        if size >= BLOCK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _hypotheses(text: bytes, first_line: int, sums_words: bool, path: str) -> list[_Hypothesis]:
    """Parse the lines of one sentence."""
    hypotheses: list[_Hypothesis] = []
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line[:2] not in _READ:
            continue
        place = Place(path, number)
        kind = line[:1]
        match = _LINE.match(line)
        if match is None:
            raise place.error(
                f"there is no sentence id and tab after {line[:2].decode()}: {quote(line)}", _FORM
            )
        value, *texts = line[match.end() :].removesuffix(b"\r").split(b"\t", 1)
        if kind == b"P":
            if sums_words:
                if not hypotheses or hypotheses[-1].words is not None:
                    raise place.error("no hypothesis stands before this P- line", _REMEDY)
                scores = [_number(token, "a score of a word", place) for token in value.split()]
                hypotheses[-1].words = _in_range(math.fsum(scores), "the sum of the words", place)
            continue
        if not texts:
            raise place.error(f"the line has no text behind the score: {quote(line)}", _FORM)
        hypothesis = texts[0].strip(BLANKS)
        if kind == b"D" and hypotheses and hypotheses[-1].kind == b"H":
            if hypotheses[-1].detokenized is not None:
                raise place.error("no H- line stands before this D- line", _REMEDY)
            hypotheses[-1].detokenized = hypothesis
            continue
        score = _number(value.strip(BLANKS), "the score", place)
        hypotheses.append(_Hypothesis(number, kind, int(match[2]), score, hypothesis))
    return hypotheses


def _block(hypotheses: Sequence[_Hypothesis], form: _Form, path: str) -> NBestList:
    """Return hypotheses as arrays."""
    for hypothesis in hypotheses:
        missing = b"P" if form.sums_words and hypothesis.words is None else b""
        missing = b"D" if form.is_detokenized and hypothesis.detokenized is None else missing
        missing = form.kind if hypothesis.kind != form.kind else missing
        extra = hypothesis.detokenized is not None and not form.is_detokenized
        if missing or extra:
            name = (missing or b"D").decode()
            state = "no" if missing else "a"
            raise Place(path, hypothesis.line).error(
                f"the hypothesis has {state} {name}- line, other than the first one"
                if missing != b"P"
                else "the hypothesis has no P- line with the scores of its words",
                _REMEDY,
            )
    texts = [
        hypothesis.text if hypothesis.detokenized is None else hypothesis.detokenized
        for hypothesis in hypotheses
    ]
    values = [(hypothesis.score, hypothesis.words or 0.0) for hypothesis in hypotheses]
    return make_block(
        path,
        np.array([hypothesis.sentence for hypothesis in hypotheses], dtype=np.int64),
        pack_texts(texts),
        form.names,
        np.array(values, dtype=np.float64)[:, : len(form.names)],
        np.array([hypothesis.line for hypothesis in hypotheses], dtype=np.int64),
    )


def _number(token: bytes, what: str, place: Place) -> float:
    value = parse_number(token)
    if math.isnan(value):
        kind = "not finite" if is_not_finite(token) else "not a number"
        raise place.error(f"{what} is {kind}: {quote(token)}", _FORM)
    return _in_range(value, what, place)


def _in_range(value: float, what: str, place: Place) -> float:
    if not abs(value) < FLOAT32_LIMIT:
        raise place.error(f"{what} is too large: {value:.6g}", _REMEDY)
    return value


FAIRSEQ = ListFormat(
    name="fairseq",
    summary="H-12<TAB>score<TAB>text, as fairseq-generate writes",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
)
