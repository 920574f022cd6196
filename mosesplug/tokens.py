"""Compiled scanner of tokens: blanks, numbers, bytes, and words that it numbers.

A text is given as its bytes and, for comparing and hashing eight bytes at a time, as the little-
endian words from each position on (``formats.words.view_words``). It ends with a newline, at which
all loops stop, so they need not look for its end.

A number of up to 15 digits is an integer, divided by or multiplied with a power of ten up to
``10 ** 22``. All three are exact in float64, so the result is rounded once and equal to ``float()``
(Clinger 1990, "How to read floating point numbers accurately", section 2). Other numbers are left
to ``formats.decimals``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.words import Bytes, Positions, Words
from mosesplug.kernels import lean_kernel

__all__ = [
    "REFUSED",
    "ROOM",
    "Names",
    "are_equal",
    "find_end",
    "find_equals",
    "hash_range",
    "number_token",
    "parse_decimal",
    "parse_integer",
    "skip_blanks",
]

REFUSED = -1
"""Stands for a position or number where the text is unusual."""
_SLOT_BITS = 16
_SLOTS = 1 << _SLOT_BITS
ROOM = _SLOTS // 2
"""Number of distinct tokens that can be numbered."""

_MOST_DIGITS = 15
_HIGHEST_POWER = 22
_POWERS = np.array([float(f"1e{n}") for n in range(_HIGHEST_POWER + 1)])
_BLANK, _EQUALS, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _EXPONENT = b" =+-.09e"

_U64 = np.uint64
_ONE, _EIGHT, _SIXTEEN, _MIDDLE, _TO_SLOT = map(_U64, (1, 8, 16, 32, 64 - _SLOT_BITS))
_GOLDEN = _U64(0x9E3779B97F4A7C15)
_LOWEST, _SECOND, _UPPER = _U64(0xFF), _U64(0xFF00), _U64(2**64 - 1 - 0xFFFF)
_POINT_SECOND, _ZERO_FIRST = _U64(_POINT << 8), _U64(_ZERO)
_ZEROS, _ABOVE_NINE, _TOP_BITS = (_U64(byte * 0x0101010101010101) for byte in (_ZERO, 0x76, 0x80))
_PAIR, _FOUR, _ALL = _U64(2561), _U64(6553601), _U64(42949672960001)
_PAIRS, _FOURS = _U64(0x00FF00FF00FF00FF), _U64(0x0000FFFF0000FFFF)


class Names(NamedTuple):
    """Distinct tokens of the text, numbered in the order of their first appearance.

    Attributes:
        slots: int32 ``[_SLOTS]``; hash table of their numbers, -1 in free slots.
        hashes: uint64 ``[ROOM]``.
        starts, ends: int64 ``[ROOM]``; where each appears first.
        total: int64 ``[1]``; how many there are.
    """

    slots: NDArray[np.int32]
    hashes: Words
    starts: Positions
    ends: Positions
    total: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Names:
        starts, ends = np.empty((2, ROOM), dtype=np.int64)
        slots = np.full(_SLOTS, -1, dtype=np.int32)
        return cls(slots, np.empty(ROOM, np.uint64), starts, ends, np.zeros(1, np.int64))

    def take_from(self, text: bytes) -> list[bytes]:
        """Return the tokens."""
        n = int(self.total[0])
        spans = zip(self.starts[:n].tolist(), self.ends[:n].tolist(), strict=True)
        return [text[start:end] for start, end in spans]


@lean_kernel
def skip_blanks(text: Bytes, at: int) -> int:
    """Return the first position that has no blank, from a position on."""
    while text[at] == _BLANK:
        at += 1
    return at


@lean_kernel
def find_end(text: Bytes, at: int) -> int:
    """Return the first blank or control character from a position on."""
    while text[at] > _BLANK:
        at += 1
    return at


@lean_kernel
def find_equals(text: Bytes, at: int) -> int:
    """Return the last equals sign of a token, ``REFUSED`` if it has none."""
    found = REFUSED
    while text[at] > _BLANK:
        if text[at] == _EQUALS:
            found = at
        at += 1
    return found


@lean_kernel
def parse_integer(text: Bytes, at: int) -> tuple[int, int]:
    """Return an integer of up to nine digits, or -1, and the position behind it."""
    first, value = at, 0
    while _ZERO <= text[at] < _ZERO + 10 and at - first < 9:
        value = 10 * value + (int(text[at]) - _ZERO)
        at += 1
    return (value if at > first else -1), at


@lean_kernel
def parse_decimal(text: Bytes, chunks: Words, at: int) -> tuple[float, int]:
    """Return a decimal number and the position behind it, which has a blank.

    The position is ``REFUSED`` if the number is not of usual form. Most numbers of search graphs
    have one digit, a point and six digits, as C prints them by ``%f``. They are parsed as a word
    (see ``formats.decimals.parse_six_decimals``), others digit by digit.
    """
    negative = text[at] == _MINUS
    if negative:
        at += 1
    if at + 8 < len(text):
        chunk = chunks[at]
        digits = (((chunk & _LOWEST) << _EIGHT) | (chunk & _UPPER) | _ZERO_FIRST) ^ _ZEROS
        others = ((digits + _ABOVE_NINE) | digits) & _TOP_BITS
        if others == 0 and (chunk & _SECOND) == _POINT_SECOND and text[at + 8] == _BLANK:
            digits = ((digits * _PAIR) >> _EIGHT) & _PAIRS
            digits = ((digits * _FOUR) >> _SIXTEEN) & _FOURS
            value = np.int64((digits * _ALL) >> _MIDDLE) / 1e6
            return (-value if negative else value), at + 8
    before, mantissa, at = _scan_digits(text, at, 0)
    after = 0
    if text[at] == _POINT:
        after, mantissa, at = _scan_digits(text, at + 1, mantissa)
    power = -after
    if text[at] == _EXPONENT:
        sign = -1 if text[at + 1] == _MINUS else 1
        if text[at + 1] == _MINUS or text[at + 1] == _PLUS:
            at += 1
        length, exponent, at = _scan_digits(text, at + 1, 0)
        if not 0 < length <= 2:
            return 0.0, REFUSED
        power += sign * exponent
    if not 0 < before + after <= _MOST_DIGITS or abs(power) > _HIGHEST_POWER or text[at] != _BLANK:
        return 0.0, REFUSED
    value = mantissa * _POWERS[power] if power > 0 else mantissa / _POWERS[-power]
    return (-value if negative else value), at


@lean_kernel
def _scan_digits(text: Bytes, at: int, number: int) -> tuple[int, int, int]:
    """Append digits to a number; return their count, the number, and the next byte."""
    start = at
    while _ZERO <= text[at] <= _NINE:
        number = 10 * number + int(text[at]) - _ZERO
        at += 1
    return at - start, number, at


@lean_kernel
def hash_range(chunks: Words, start: int, end: int) -> np.uint64:
    """Return a 64-bit hash of a range of bytes."""
    code = _U64(end - start)
    while end - start >= 8:
        code = (code ^ chunks[start]) * _GOLDEN
        code ^= code >> _MIDDLE
        start += 8
    code = (code ^ _keep_first(chunks[start], end - start)) * _GOLDEN
    return code ^ (code >> _MIDDLE)


@lean_kernel
def are_equal(chunks: Words, start: int, others: Words, other: int, length: int) -> bool:
    """Return whether equal bytes stand in two texts; False at the end of the first."""
    if start + length >= len(chunks):
        return False
    while length >= 8:
        if chunks[start] != others[other]:
            return False
        start, other, length = start + 8, other + 8, length - 8
    return bool(_keep_first(chunks[start] ^ others[other], length) == 0)


@lean_kernel
def _keep_first(chunk: np.uint64, n: int) -> np.uint64:
    """Return the first ``n`` bytes of a word, fewer than eight, and zeros."""
    return chunk & ((_ONE << _U64(8 * n)) - _ONE)


@lean_kernel
def number_token(chunks: Words, start: int, end: int, names: Names) -> int:
    """Return a token's number, a new one if needed; ``REFUSED`` if there is no room."""
    if end >= len(chunks):
        return REFUSED
    key = hash_range(chunks, start, end)
    slot = np.int64(key >> _TO_SLOT)
    while names.slots[slot] >= 0:
        number = names.slots[slot]
        first = names.starts[number]
        is_same = names.hashes[number] == key and names.ends[number] - first == end - start
        if is_same and are_equal(chunks, start, chunks, first, end - start):
            return int(number)
        slot = (slot + 1) % _SLOTS
    number = names.total[0]
    if number == ROOM:
        return REFUSED
    names.slots[slot], names.hashes[number] = number, key
    names.starts[number], names.ends[number] = start, end
    names.total[0] += 1
    return int(number)
