"""Number the lines of n-best lists by content, which excludes their score.

Lists of successive iterations repeat half of their lines with another model score, since the
weights differ. The extractor does not use that score, so it parses and scores such a line once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.words import Bytes, Words, view_words
from mosesplug.kernels import lean_kernel
from mosesplug.tokens import are_equal, hash_range

_N_CHAINS = 1 << 20
_CHAINS_PER_SENTENCE = 512
_TOP = np.uint64(64 - 9)  # shifts a hash to the number of one of these
_LEAST_BYTES = 1 << 27  # the system gives no memory before it is used
_SLACK = 8  # bytes behind a text, so that a word can begin at its last byte
_LONGEST_ID = 18
_LONGEST_SCORE = 16
_SEPARATOR = int.from_bytes(b" ||| ", "little")
_NEWLINE, _MINUS, _POINT, _ZERO, _NINE = b"\n-.09"


class _Table(NamedTuple):
    """The known lines without their scores, in one chain for each hash value.

    Attributes:
        text: uint8; the lines, each with its ``\\n``.
        words: uint64; the eight bytes from every position of ``text`` on.
        starts: int64 ``[capacity]``; first byte of each line, and one past the last one.
        hashes: uint64 ``[capacity]``.
        heads: int64 ``[_N_CHAINS]``; the last line of each chain, -1 if it is empty.
        previous: int64 ``[capacity]``; the line before in its chain, or -1.
    """

    text: Bytes
    words: Words
    starts: NDArray[np.int64]
    hashes: Words
    heads: NDArray[np.int64]
    previous: NDArray[np.int64]


class NumberedLines(NamedTuple):
    """The lines of a block.

    Attributes:
        numbers: int64 ``[n]``; equal numbers have lines that differ in nothing but the score.
        text: uint8; the lines whose numbers are new, in their order, each with its ``\n``. A score
            and the separator before it are left out.
        starts: int64 ``[n_new + 1]``; the first byte of each new line, and one past the last one.
        last_sentence: the sentence id of the last line.
    """

    numbers: NDArray[np.int64]
    text: Bytes
    starts: NDArray[np.int64]
    last_sentence: int


class KnownLines:
    """All lines so far, numbered by first appearance from ``first`` on."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._count = 0
        text = np.empty(_SLACK, dtype=np.uint8)
        heads = np.full(_N_CHAINS, -1, dtype=np.int64)
        integers = np.zeros(1, dtype=np.int64)
        words = integers.view(np.uint64)
        self._table = _Table(text, view_words(text), integers, words, heads, integers)

    def number(self, text: bytes, last_sentence: int) -> NumberedLines | None:
        """Return the lines of a block and add the new ones.

        Args:
            text: lines, each with its ``\\n``.
            last_sentence: the sentence id of the line before, or -1.

        Returns:
            The lines; None if one does not begin with a sentence id, or if ids go backwards.
        """
        padded = np.empty(len(text) + _SLACK, dtype=np.uint8)
        padded[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        ends = np.flatnonzero(padded[: len(text)] == _NEWLINE)
        self._reserve(len(text), len(ends))
        numbers = np.empty(len(ends), dtype=np.int64)
        known, starts = self._count, self._table.starts
        self._count, last_sentence = number_lines(
            padded, view_words(padded), ends, self._table, known, last_sentence, numbers
        )
        if last_sentence < 0:
            return None
        starts = starts[known : self._count + 1]
        new = self._table.text[starts[0] : starts[-1]]
        return NumberedLines(numbers + self._first, new, starts - starts[0], last_sentence)

    def _reserve(self, n_bytes: int, n_lines: int) -> None:
        """Make room for more lines."""
        table, count = self._table, self._count
        used = int(table.starts[count])
        if len(table.text) < used + n_bytes + _SLACK:
            text = np.empty(max(2 * (used + n_bytes), _LEAST_BYTES) + _SLACK, dtype=np.uint8)
            text[:used] = table.text[:used]
            table = table._replace(text=text, words=view_words(text))
        if len(table.starts) < count + n_lines + 1:
            more = np.zeros(count + 2 * n_lines + 1, dtype=np.int64)
            table = table._replace(
                starts=np.append(table.starts, more),
                hashes=np.append(table.hashes, more.view(np.uint64)),
                previous=np.append(table.previous, more),
            )
        self._table = table


@lean_kernel
def number_lines(
    text: Bytes,
    words: Words,
    ends: NDArray[np.int64],
    known: _Table,
    count: int,
    last_sentence: int,
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Number the lines of a block; add the new ones to ``known``.

    Args:
        text: uint8; the lines, with eight more bytes.
        words: uint64; the eight bytes from every position of ``text`` on.
        ends: int64 ``[n]``; the ``\\n`` of each line.
        numbers: output, int64 ``[n]``.

    Returns:
        The number of known lines, and the sentence id of the last line, -1 if a line does not begin
        with the same or a higher id than the one before.
    """
    start = 0
    for line in range(len(ends)):
        sentence, position = 0, start
        while _ZERO <= text[position] <= _NINE:
            sentence = 10 * sentence + int(text[position]) - _ZERO
            position += 1
        if not 0 < position - start <= _LONGEST_ID or sentence < last_sentence:
            return count, -1
        last_sentence = sentence
        end = find_score(text, words, position, ends[line])
        code = hash_range(words, start, end)
        # The chains of a sentence are neighbors, so that they stay in the cache.
        chain = (sentence * _CHAINS_PER_SENTENCE + np.int64(code >> _TOP)) % len(known.heads)
        other = known.heads[chain]
        while other >= 0 and not (
            known.hashes[other] == code and is_known(words, start, end, known, other)
        ):
            other = known.previous[other]
        if other < 0:
            other = count
            known.hashes[other] = code
            known.previous[other] = known.heads[chain]
            known.heads[chain] = other
            place = known.starts[other]
            for offset in range(0, end - start, 8):
                known.words[place + offset] = words[start + offset]
            known.text[place + end - start] = _NEWLINE
            count += 1
            known.starts[count] = place + end - start + 1
        numbers[line] = other
        start = ends[line] + 1
    return count, last_sentence


@lean_kernel
def find_score(text: Bytes, words: Words, start: int, end: int) -> int:
    """Return where ``||| `` and a plain number at the end of a line begin, or ``end``."""
    position = end - 1
    n_points = 0
    while position > start and (_ZERO <= text[position] <= _NINE or text[position] == _POINT):
        n_points += text[position] == _POINT
        position -= 1
    n_digits = end - 1 - position - n_points
    if n_digits < 1 or n_points > 1 or n_digits > _LONGEST_SCORE:
        return end
    if text[position] == _MINUS:
        position -= 1
    before = position - 4
    if before < start or words[before] & np.uint64(2**40 - 1) != np.uint64(_SEPARATOR):
        return end
    return before + 1


@lean_kernel
def is_known(words: Words, start: int, end: int, known: _Table, line: int) -> bool:
    """Return whether a range of a text is a known line."""
    place, length = known.starts[line], end - start
    if known.starts[line + 1] - place != length + 1:
        return False
    return are_equal(words, start, known.words, place, length)
