"""Parse and write many decimal numbers without a Python object for each.

Eight characters are one unsigned 64-bit word, and a word of eight digits becomes a number in three
multiplications (Lemire 2021, "Number parsing at a gigabyte per second", section 2). A decimal
point is removed from the word first, and the remaining integer is divided by a power of ten. Both
are exact in float64 (the integer has at most 15 digits beside a point), so the quotient is
correctly rounded and equal to ``float()``. Other tokens (exponents, a plus sign, more than 16
characters) go to ``float()``.

``spell_rows`` writes numbers as a C++ stream prints them (``%.6g``). One multiplication with a
power of ten turns a number into an integer of six digits and the position of its decimal point. The
product is off by less than ``1e-9``; where its fraction is close to one half, rounding could fail,
so Python formats that number, as it does where an exponent is needed. The text of a number is built
in two 64-bit words: sign and leading zeros in the first; digits, point and a blank in the second.
Zero bytes are removed at the end.
"""

from __future__ import annotations

import contextlib
import json
import math
import re

import numpy as np

from formats.words import (
    EACH_BYTE,
    Bools,
    Bytes,
    Floats,
    Floats32,
    Ints32,
    Positions,
    Words,
    mark_zero_bytes,
    view_words,
)

_FEW = 8
_CHUNK = 1 << 14  # tokens at a time: the intermediate words stay in the cache
_PLAIN = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_OF_NUMBERS = re.compile(rb"[-0-9.eE+,]+")
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


def parse_numbers(text: Bytes, starts: Positions, ends: Positions) -> Floats:
    """Return the ``float()`` of each token ``text[starts[i]:ends[i]]``.

    Args:
        text: uint8 ``[n]``, of which the first ``PAD`` bytes belong to no token.
        starts: int64 ``[m]``.
        ends: int64 ``[m]``.

    Returns:
        float64 ``[m]``; NaN where a token is no finite decimal number (so too for ``nan``).
    """
    words = view_words(text)
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
            # Two words hold 16 characters: 15 digits and a point, still exact in double precision.
            long = rest[(lengths[rest] > 8) & (lengths[rest] <= 16)]
            magnitude, refused_long = _long(words, last[long], lengths[long])
            values[low + long] = np.where(minus[long], -magnitude, magnitude)
            refused[long] = refused_long
            odd.append(low + np.flatnonzero(refused))
    rest = np.concatenate(odd) if odd else np.zeros(0, dtype=np.int64)
    if len(rest):
        # Exponents, long numbers and nonsense: Python decides, and gives the reference for the
        # rest.
        raw = text.tobytes()
        spans = zip(starts[rest].tolist(), ends[rest].tolist(), strict=True)
        values[rest] = _parse_tokens([raw[first:last] for first, last in spans])
    return values


def _parse_tokens(tokens: list[bytes]) -> list[float]:
    """Return what ``parse_number`` returns for each token; fast if all are JSON."""
    joined = b",".join(tokens) if len(tokens) >= _FEW else b""
    if _OF_NUMBERS.fullmatch(joined):
        with contextlib.suppress(ValueError, OverflowError):
            numbers = [*map(float, json.loads(b"[%b]" % joined))]
            if len(numbers) == len(tokens) and all(map(math.isfinite, numbers)):
                return numbers
    return [parse_number(token) for token in tokens]


def parse_integers(text: Bytes, starts: Positions, ends: Positions) -> Positions:
    """Return the values of tokens of digits only; -1 where a token is something else.

    Arguments as for ``parse_numbers``; returns int64 ``[m]``.
    """
    lengths = ends - starts
    kept = _KEEP[np.clip(lengths, 0, 8)]
    digits = (view_words(text)[ends - 8] ^ _ZEROS) & kept
    values = _eight_digits(digits).view(np.int64)
    for i in np.flatnonzero(_not_digits(digits) | (lengths < 1) | (lengths > 8)):
        token = text[starts[i] : ends[i]].tobytes()
        values[i] = int(token) if _DIGITS.fullmatch(token) and len(token) < 19 else -1
    return values


def parse_six_decimals(words: Words) -> tuple[Floats, Bools]:
    """Numbers of a digit, a point and six digits, as C prints them by ``%f``.

    Args:
        words: uint64 ``[m]``, the eight characters.

    Returns:
        The values, float64 ``[m]``, and which words are not such numbers, bool ``[m]``.
    """
    # The digits move together: the first one to the place of the point.
    digits = ((words & _U64(0xFF)) << _U64(8)) | (words & ~_U64(0xFFFF)) | _U64(ord("0"))
    digits ^= _ZEROS
    refused = _not_digits(digits) | ((words & _U64(0xFF00)) != _U64(ord(".") << 8))
    return _eight_digits(digits).view(np.int64) / 1e6, refused


def parse_digits(words: Words, lengths: Positions) -> tuple[Floats, Bools]:
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
    # Exact: mantissa and power of ten have less than 53 bits, so the one division rounds as float()
    # does.
    mantissa = _eight_digits(digits).view(np.int64).astype(np.float64)
    # With several points the place is meaningless; such words are rejected.
    return mantissa / np.take(_POWERS, places, mode="clip"), refused


def _long(words: Words, ends: Positions, lengths: Positions) -> tuple[Floats, Bools]:
    """Parse unsigned decimals of 9 to 16 characters; also mark the invalid ones."""
    kept = _KEEP[lengths - 8]
    high, high_dots, high_places = _without_dot((words[ends - 16] ^ _ZEROS) & kept)
    low, low_dots, low_places = _without_dot(words[ends - 8] ^ _ZEROS)
    shift = np.where(low_dots, _U64(10**7), _U64(10**8))
    mantissa = _eight_digits(high) * shift + _eight_digits(low)
    refused = _not_digits(high) | _not_digits(low) | (high_dots & low_dots)
    places = low_places + np.where(high_dots, high_places + 8, 0)
    return mantissa.astype(np.float64) / _POWERS[np.minimum(places, 15)], refused


def _without_dot(digits: Words) -> tuple[Words, Bools, Positions]:
    """Squeeze the decimal point out of words of ``character ^ '0'``.

    Characters before the point move one byte towards the end, and the first byte becomes 0. Other
    characters stay, a second point too, and ``_not_digits`` finds them.

    Returns:
        The words, whether there was a point, and how many digits followed it.
    """
    point = mark_zero_bytes(digits ^ (EACH_BYTE * _U64(ord(".") ^ ord("0"))))
    has_point = point != 0
    one = has_point.view(np.uint8).astype(np.uint64)
    before = point - one
    upto = (point << _U64(8)) - one
    places = ((point * _U64(0x0706050403020100)) >> _U64(56)).view(np.int64)
    return ((digits & before) << _U64(8)) | (digits & ~upto), has_point, places


def _not_digits(digits: Words) -> Bools:
    """Return which words hold a byte above 9."""
    above: Bools = (((digits + EACH_BYTE * _U64(0x76)) | digits) & EACH_BYTE * _U64(0x80)) != 0
    return above


def _eight_digits(digits: Words) -> Words:
    """Return the number that eight bytes of 0 to 9 spell; the last is the units."""
    pairs = (digits * _U64(2561)) >> _U64(8) & _U64(0x00FF00FF00FF00FF)
    fours = (pairs * _U64(6553601)) >> _U64(16) & _U64(0x0000FFFF0000FFFF)
    return (fours * _U64(42949672960001)) >> _U64(32)


_PRINTED = 6
_NEAR_HALF = 1e-6
_THRESHOLDS = 10.0 ** np.arange(-3, _PRINTED)
_SHIFTS = 10.0 ** np.arange(9, -1, -1)  # of 5 - e, for exponents e from -4 to 5
_BLANK, _POINT = _U64(ord(" ")), _U64(ord("."))


def _word(text: bytes) -> int:
    """Return text as a little-endian word: its first byte is the lowest."""
    return int.from_bytes(text, "little")


# Three digits of 000 to 999, the zeros at their end, and what stands before digits by exponent.
_THREE = np.array([_word(b"%03d" % i) for i in range(1000)], dtype=np.uint64)
_END_ZEROS = np.array([3, *(len(s) - len(s.rstrip("0")) for s in map(str, range(1, 1000)))])
_LEADING = np.array([_word(b"0.000"[: 1 - e]) << 16 for e in range(-4, 0)] + [0] * 6, np.uint64)
_FIRST = np.array([2 ** (8 * n) - 1 for n in range(8)], dtype=np.uint64)  # the first n bytes
_COUNTS = np.array([_word(b"%d " % i) << 8 for i in range(1000)], dtype=np.uint64)


def spell_rows(values: Floats32 | Ints32) -> bytes:
    """Return every row as text: a newline, then each number with a blank behind it.

    Args:
        values: ``[n, k]``; finite. Integers are spelled as the nearest float32.
    """
    n, width = values.shape
    if not width:
        return bytes(b"\n" * n)
    if values.dtype.kind == "i" and 0 <= values.min(initial=0) <= values.max(initial=0) < 1000:
        words = _COUNTS[values]
        words[:, 0] |= _U64(ord("\n"))
        return _pack(words)
    flat = values.astype(np.float32).astype(np.float64).ravel()
    words, odd = _spell(flat)
    for i in np.flatnonzero(odd).tolist():
        text = (b"\0\0%.6g " % flat[i]).ljust(16, b"\0")
        words[i] = np.frombuffer(text, dtype="<u8")
    words.reshape(n, width, 2)[:, 0, 0] |= _U64(ord("\n"))
    return _pack(words)


def _pack(words: Words) -> bytes:
    """Return the bytes of words, zeros left out."""
    return words.astype("<u8", copy=False).tobytes().translate(None, b"\0")


def _spell(values: Floats) -> tuple[Words, Bools]:
    """Return two words of text per number, and which numbers Python must format.

    Byte 0 of the first word is reserved for a newline; byte 1 holds the sign.
    """
    magnitude = np.abs(values)
    # The exponent by comparisons: a logarithm could be off by one next to a power of ten.
    exponent = np.full(len(values), -4, dtype=np.int64)
    for threshold in _THRESHOLDS:
        exponent += magnitude >= threshold
    scaled = magnitude * _SHIFTS[exponent + 4]
    digits = np.rint(scaled)
    # Next to a half, the product's own rounding error could decide.
    odd = np.abs(np.abs(scaled - digits) - 0.5) < _NEAR_HALF
    odd |= (magnitude < 1e-4) | (digits >= 10**_PRINTED)  # also what rounding carries to a power
    zero = magnitude == 0
    odd &= ~zero
    exponent[zero] = 0
    number = np.where(odd, 0, digits).astype(np.int64)
    high = number // 1000
    low = number - 1000 * high
    trailing = _END_ZEROS[low] + np.where(low == 0, _END_ZEROS[high], 0)
    kept = np.maximum(_PRINTED - trailing, 1)
    text = _THREE[high] | (_THREE[low] << _U64(24))
    words = np.empty((len(values), 2), dtype=np.uint64)
    words[:, 0] = _LEADING[exponent + 4] | (np.signbit(values) * _U64(ord("-") << 8))
    words[:, 1] = _with_point(text, kept, exponent + 1)
    return words, odd


def _with_point(text: Words, kept: Positions, before: Positions) -> Words:
    """Return the digits with a decimal point where one is needed, followed by a blank.

    Args:
        kept: digits up to the last that is not 0.
        before: digits before the point; 0 or less if the point stands before them all.
    """
    fraction = (before > 0) & (kept > before)
    place = np.where(fraction, before, _PRINTED)
    head = text & _FIRST[place]
    split = head | ((text ^ head) << _U64(8)) | (_POINT << (place * 8).astype(np.uint64))
    length = np.maximum(kept, before) + fraction
    spelled: Words = (split & _FIRST[length]) | (_BLANK << (length * 8).astype(np.uint64))
    return spelled
