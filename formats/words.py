"""Process bytes eight at a time, as unsigned 64-bit words of a text.

A word may begin at any position. Comparing or searching the eight bytes of a word takes a few
operations on the whole word, and NumPy does them for an array of words. Words are little-endian:
the first byte is the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

PAD = 16
"""Bytes of padding before and after a text, so that words around any token are in bounds."""

EACH_BYTE = np.uint64(0x0101010101010101)
"""Multiplied by a byte: that byte in all eight places of a word."""

_BLANK = ord(" ")
_U64 = np.uint64
_FIRST = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)  # the first n bytes

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


def pad_with_newlines(text: bytes) -> Bytes:
    """Return the text as an array, ``PAD`` newlines before it and as many behind."""
    padded = np.full(len(text) + 2 * PAD, ord("\n"), dtype=np.uint8)
    padded[PAD:-PAD] = np.frombuffer(text, dtype=np.uint8)
    return padded


def view_words(text: Bytes) -> Words:
    """Return an unaligned view of the eight bytes from every position on.

    With fewer than eight bytes, it is empty. The words are little-endian. Index it with an array of
    positions; ``np.take`` would copy the whole of it.
    """
    return np.ndarray((max(len(text) - 7, 0),), dtype="<u8", buffer=text, strides=(1,))


def stand_at(text: Bytes, at: Positions, expected: bytes) -> bool:
    """Return whether the same bytes stand at all these positions."""
    length = len(expected)
    if not (length and len(at)):
        return True
    if at.max() > len(text) - length:
        return False
    # Elements of so many bytes, one at every position: a gather copies each as a whole.
    spans = np.ndarray((len(text) - length + 1,), f"V{length}", text, strides=(1,))
    return bool(spans[at].tobytes() == expected * len(at))


def count_before_blank(words: Words) -> Positions:
    """Count the bytes of each word before its first blank, int64; 8 without one."""
    blanks = mark_zero_bytes(words ^ (EACH_BYTE * _U64(ord(" "))))
    lowest = blanks & (~blanks + _U64(1))
    behind = ((lowest * _U64(0x0706050403020100)) >> _U64(56)).view(np.int64)
    before: Positions = 7 - behind + (blanks == 0)
    return before


def mark_zero_bytes(words: Words) -> Words:
    """1 in each byte that was zero: exact for the first, and nothing before it."""
    return (((words - EACH_BYTE) & ~words) >> _U64(7)) & EACH_BYTE


def strip_blanks(text: Bytes, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Strip the blanks, and all bytes below them, at both ends of ranges of a text."""
    starts, ends = starts.copy(), ends.copy()
    rows = np.flatnonzero(starts < ends)
    while len(rows := rows[text[starts[rows]] <= _BLANK]):
        starts[rows] += 1
        rows = rows[starts[rows] < ends[rows]]
    rows = np.flatnonzero(starts < ends)
    while len(rows := rows[text[ends[rows] - 1] <= _BLANK]):
        ends[rows] -= 1
        rows = rows[starts[rows] < ends[rows]]
    return starts, ends


def hash_tokens(text: Bytes, starts: Positions, ends: Positions) -> Words:
    """Return a 64-bit hash of each token; tokens of the same bytes have the same one."""
    hashes = (ends - starts).astype(np.uint64)
    words = view_words(text)
    for rows, offset, kept in _chunks(ends - starts):
        chunk = words[starts[rows] + offset] & kept
        mixed = (hashes[rows] ^ chunk) * _U64(0x9E3779B97F4A7C15)
        hashes[rows] = mixed ^ (mixed >> _U64(29))
    return hashes


def are_same_bytes(text: Bytes, starts: Positions, ends: Positions, other: Positions) -> bool:
    """Return whether each token has the same bytes as the token with the given number."""
    lengths = ends - starts
    if not np.array_equal(lengths, lengths[other]):
        return False
    return are_equal_ranges(text, starts, starts[other], lengths)


def are_equal_ranges(text: Bytes, starts: Positions, others: Positions, lengths: Positions) -> bool:
    """Return whether the bytes from each start on equal those from the other one on.

    Args:
        text: uint8, at least eight bytes of it behind the start of each word.
        starts: int64 ``[n]``.
        others: int64 ``[n]``.
        lengths: int64 ``[n]``.
    """
    words = view_words(text)
    return not any(
        ((words[starts[rows] + offset] ^ words[others[rows] + offset]) & kept).any()
        for rows, offset, kept in _chunks(lengths)
    )


def _chunks(lengths: Positions) -> Iterator[tuple[Positions, int, Words]]:
    """Yield token numbers, an offset, and which bits of the eight bytes there count.

    Tokens that have ended before the offset are left out.
    """
    rows = np.arange(len(lengths))
    for offset in range(0, int(lengths.max(initial=0)), 8):
        rows = rows[lengths[rows] > offset]
        yield rows, offset, _FIRST[np.minimum(lengths[rows] - offset, 8)]
