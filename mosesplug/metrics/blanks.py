"""Split words at other blanks than ASCII's, as sacrebleu and jiwer do.

Each function returns a line whose words are separated by ASCII blanks. Nearly all text has no other
blanks, so hypotheses are searched for them first, all at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts

Separator = Callable[[bytes], bytes]
"""Returns a line with ASCII blanks between its words."""

_OTHER_BLANKS = re.compile(
    rb"[\t\x0b-\r\x1c-\x1f]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80"
)
"""Whitespace of Unicode in UTF-8, without the blank and the line feed, which ends lines."""

_SEVERAL = re.compile(r"\s\s+")


def separate_words(line: bytes) -> bytes:
    """Separate words at all whitespace of Unicode, as sacrebleu does."""
    if not _OTHER_BLANKS.search(line):
        return line
    return " ".join(_decode(line).split()).encode("utf-8", "surrogateescape")


def join_single_blanks(line: bytes) -> bytes:
    """Separate words at ASCII blanks and at two blanks of any kind, as jiwer does.

    A single no-break space or tab within a line is part of a word.
    """
    if not _OTHER_BLANKS.search(line):
        return line
    return _SEVERAL.sub(" ", _decode(line)).strip().encode("utf-8", "surrogateescape")


def separate_hypotheses(hypotheses: HypothesisRanges, separate: Separator) -> HypothesisRanges:
    """Return hypotheses whose words are separated by ASCII blanks."""
    if not _OTHER_BLANKS.search(hypotheses.buffer.data):
        return hypotheses

    def rewrite(lines: Iterable[bytes]) -> list[bytes]:
        return [separate(line) for line in lines]

    return rewrite_texts(hypotheses, rewrite)


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")
