"""Parse many decimal numbers at once, without a Python object for each of them.

Eight characters are one unsigned 64-bit word, and a word of eight digits becomes a number in three
multiplications (Lemire 2021, "Number parsing at a gigabyte per second", section 2). A decimal
point is removed from the word first, and the remaining integer is divided by a power of ten. Both
are exact in float64 (the integer has at most 15 digits beside a point), so the quotient is
correctly rounded and equal to ``float()``. Other tokens (exponents, a plus sign, more than 16
characters) go to ``float()`` one by one.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from formats.words import EACH_BYTE, Bytes, Positions, Words, words_of, zero_bytes

__all__ = ["parse_digits", "parse_integers", "parse_number", "parse_numbers"]

_CHUNK = 1 << 14  # tokens at a time: the intermediate words stay in the cache
_PLAIN = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(rb"[0-9]+")

# Bytes of a word that belong to a token whose last character is the last byte of the word.
_KEEP = np.array([(2**64 - 1) << 8 * (8 - n) & 2**64 - 1 for n in range(9)], dtype=np.uint64)
_POWERS = 10.0 ** np.arange(16)
_U64 = np.uint64
_ZEROS = _U64(0x3030303030303030)


def parse_number(token: bytes) -> float:
    """Return the value of one token, or NaN where it is no finite decimal number."""
    if not _PLAIN.fullmatch(token):
        return float("nan")
    value = float(token)
    return value if abs(value) != float("inf") else float("nan")


def parse_numbers(text: Bytes, starts: Positions, ends: Positions) -> NDArray[np.float64]:
    """Return the values of the tokens ``text[starts[i]:ends[i]]``, equal to ``float()`` of each.

    Args:
        text: uint8 ``[n]``, of which the first ``PAD`` bytes belong to no token.
        starts: int64 ``[m]``.
        ends: int64 ``[m]``.

    Returns:
        float64 ``[m]``; NaN where a token is no finite decimal number (so too for ``nan``).
    """
    words = words_of(text)
    values = np.empty(len(starts), dtype=np.float64)
    odd: list[Positions] = []
    for low in range(0, len(starts), _CHUNK):
        part = slice(low, low + _CHUNK)
        first, last = starts[part], ends[part]
        minus = text[first] == ord("-")
        lengths = last - first - minus
        magnitude, refused = parse_digits(words[last - 8], lengths)
        values[part] = np.where(minus, -magnitude, magnitude)
        rest = np.flatnonzero(refused)
        if len(rest):
            long = rest[(lengths[rest] > 8) & (lengths[rest] <= 16)]
            magnitude, refused_long = _long(words, last[long], lengths[long])
            values[low + long] = np.where(minus[long], -magnitude, magnitude)
            refused[long] = refused_long
            odd.append(low + np.flatnonzero(refused))
    for i in np.concatenate(odd) if odd else ():
        values[i] = parse_number(text[starts[i] : ends[i]].tobytes())
    return values


def parse_integers(text: Bytes, starts: Positions, ends: Positions) -> NDArray[np.int64]:
    """Return the values of tokens of digits only; -1 where a token is something else.

    Arguments as for ``parse_numbers``; returns int64 ``[m]``.
    """
    lengths = ends - starts
    kept = _KEEP[np.clip(lengths, 0, 8)]
    digits = (words_of(text)[ends - 8] ^ _ZEROS) & kept
    values = _eight_digits(digits).view(np.int64)
    for i in np.flatnonzero(_not_digits(digits) | (lengths < 1) | (lengths > 8)):
        token = text[starts[i] : ends[i]].tobytes()
        values[i] = int(token) if _DIGITS.fullmatch(token) and len(token) < 19 else -1
    return values


def parse_digits(words: Words, lengths: Positions) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Unsigned decimals of one to eight characters, each at the end of a word.

    Args:
        words: uint64 ``[m]``; what stands before the number in a word does not matter.
        lengths: int64 ``[m]``.

    Returns:
        The values, float64 ``[m]``, and which words are not such numbers, bool ``[m]``.
    """
    kept = np.take(_KEEP, lengths, mode="clip")
    digits, dots, places = _without_dot((words ^ _ZEROS) & kept)
    refused = _not_digits(digits) | (lengths <= dots) | (lengths > 8)
    mantissa = _eight_digits(digits).view(np.int64).astype(np.float64)
    # With several points the place is meaningless; such words are rejected.
    return mantissa / np.take(_POWERS, places, mode="clip"), refused


def _long(
    words: Words, ends: Positions, lengths: Positions
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Parse unsigned decimals of nine to sixteen characters; also return which tokens are not."""
    kept = _KEEP[lengths - 8]
    high, high_dots, high_places = _without_dot((words[ends - 16] ^ _ZEROS) & kept)
    low, low_dots, low_places = _without_dot(words[ends - 8] ^ _ZEROS)
    shift = np.where(low_dots, _U64(10**7), _U64(10**8))
    mantissa = _eight_digits(high) * shift + _eight_digits(low)
    refused = _not_digits(high) | _not_digits(low) | (high_dots & low_dots)
    places = low_places + np.where(high_dots, high_places + 8, 0)
    return mantissa.astype(np.float64) / _POWERS[np.minimum(places, 15)], refused


def _without_dot(digits: Words) -> tuple[Words, NDArray[np.bool_], Positions]:
    """Squeeze the decimal point out of words of ``character ^ '0'``.

    Characters before the point move one byte towards the end, and the first byte becomes 0. Other
    characters stay, a second point too, and ``_not_digits`` finds them.

    Returns:
        The words, whether there was a point, and how many digits followed it.
    """
    point = zero_bytes(digits ^ (EACH_BYTE * _U64(ord(".") ^ ord("0"))))
    found = point != 0
    one = found.view(np.uint8).astype(np.uint64)
    before = point - one
    upto = (point << _U64(8)) - one
    places = ((point * _U64(0x0706050403020100)) >> _U64(56)).view(np.int64)
    return ((digits & before) << _U64(8)) | (digits & ~upto), found, places


def _not_digits(digits: Words) -> NDArray[np.bool_]:
    """Return which words hold a byte above 9."""
    above: NDArray[np.bool_] = (
        ((digits + EACH_BYTE * _U64(0x76)) | digits) & EACH_BYTE * _U64(0x80)
    ) != 0
    return above


def _eight_digits(digits: Words) -> Words:
    """Return the number that eight bytes of 0 to 9 spell, the last byte being the units."""
    pairs = (digits * _U64(2561)) >> _U64(8) & _U64(0x00FF00FF00FF00FF)
    fours = (pairs * _U64(6553601)) >> _U64(16) & _U64(0x0000FFFF0000FFFF)
    return (fours * _U64(42949672960001)) >> _U64(32)
