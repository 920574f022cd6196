"""Frequencies of words: a training text, or a file of ``word<TAB>count`` lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

from formats.errors import FormatError, quote
from formats.text import StrPath, open_text

_COUNT_LINE = re.compile(rb"([^\t ]+)\t([0-9]{1,18})")
"""A word and its count; the largest count fits into 64 bits."""

_FIRST_LINES = 100
"""Lines that decide what the file is."""


def read_word_frequencies(path: StrPath, words: Collection[bytes]) -> dict[bytes, int]:
    """Return how often each of ``words`` occurs in a text, 0 if it does not.

    If each of the first 100 lines that are not empty is a word, a tab and a count, the file has
    frequencies; else it is a text, whose words are separated by blanks.

    Args:
        path: the file, plain or compressed. It is read line by line.

    Raises:
        FormatError: the file cannot be read or has no words, or a line of a file of frequencies
            has another form.
    """
    counts = dict.fromkeys(words, 0)
    with open_text(path) as file:
        lines = (line.rstrip(b"\r\n") for line in file)
        first = list(islice(lines, _FIRST_LINES))
        if not any(first):
            raise FormatError(
                "there are no words at its beginning",
                path=path,
                remedy="Give a text with a sentence a line, or lines of word<TAB>count",
            )
        every = chain(first, lines)
        if all(_COUNT_LINE.fullmatch(line) for line in first if line):
            _add_counts(every, counts, path)
        else:
            for word in _iter_words(every):
                if word in counts:
                    counts[word] += 1
    return counts


def _iter_words(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield from line.split(b" ")


def _add_counts(lines: Iterable[bytes], counts: dict[bytes, int], path: StrPath) -> None:
    """Add the counts of a file of frequencies to those of the words that it has."""
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        match = _COUNT_LINE.fullmatch(line)
        if match is None:
            raise FormatError(
                f"{quote(line)} is not a word, a tab and a count, as the lines before",
                path=path,
                line=number,
                remedy="Give word<TAB>count in each line, or a text with a sentence a line",
            )
        if match[1] in counts:
            counts[match[1]] += int(match[2])
