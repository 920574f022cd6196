"""Numbers as a C++ stream prints them (``%.6g``), a whole matrix at once.

One multiplication with a power of ten turns a number into an integer of six digits and the position
of its decimal point. The product is off by less than ``1e-9``; where its fraction is close to one
half, rounding could fail, so Python formats that number, as it does where an exponent is needed.
The text of a number is built in two 64-bit words: sign and leading zeros in the first; digits,
point and a blank in the second. Zero bytes are removed at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.words import Words

__all__ = ["spell_rows"]

_U64 = np.uint64
_DIGITS = 6
_NEAR_HALF = 1e-6
_THRESHOLDS = 10.0 ** np.arange(-3, _DIGITS)
_POWERS = 10.0 ** np.arange(9, -1, -1)  # of 5 - e, for exponents e from -4 to 5
_BLANK, _POINT = _U64(ord(" ")), _U64(ord("."))


def _word(text: bytes) -> int:
    """Return text as a little-endian word: its first byte is the lowest."""
    return int.from_bytes(text, "little")


# Three digits of 000 to 999, the zeros at their end, and what stands before digits by exponent.
_THREE = np.array([_word(b"%03d" % i) for i in range(1000)], dtype=np.uint64)
_ZEROS = np.array([3, *(len(s) - len(s.rstrip("0")) for s in map(str, range(1, 1000)))])
_LEADING = np.array([_word(b"0.000"[: 1 - e]) << 16 for e in range(-4, 0)] + [0] * 6, np.uint64)
_FIRST = np.array([2 ** (8 * n) - 1 for n in range(8)], dtype=np.uint64)  # the first n bytes
_COUNTS = np.array([_word(b"%d " % i) << 8 for i in range(1000)], dtype=np.uint64)


def spell_rows(values: NDArray[np.float32] | NDArray[np.int32]) -> bytes:
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
        return _packed(words)
    flat = values.astype(np.float32).astype(np.float64).ravel()
    words, odd = _spell(flat)
    for i in np.flatnonzero(odd).tolist():
        text = (b"\0\0%.6g " % flat[i]).ljust(16, b"\0")
        words[i] = np.frombuffer(text, dtype="<u8")
    words.reshape(n, width, 2)[:, 0, 0] |= _U64(ord("\n"))
    return _packed(words)


def _packed(words: Words) -> bytes:
    """Return the bytes of words, zeros left out."""
    return words.astype("<u8", copy=False).tobytes().translate(None, b"\0")


def _spell(values: NDArray[np.float64]) -> tuple[Words, NDArray[np.bool_]]:
    """Return two words of text for each number, and which numbers Python must format instead.

    Byte 0 of the first word is reserved for a newline; byte 1 holds the sign.
    """
    magnitude = np.abs(values)
    exponent = np.full(len(values), -4, dtype=np.int64)
    for threshold in _THRESHOLDS:
        exponent += magnitude >= threshold
    scaled = magnitude * _POWERS[exponent + 4]
    digits = np.rint(scaled)
    odd = np.abs(np.abs(scaled - digits) - 0.5) < _NEAR_HALF
    odd |= (magnitude < 1e-4) | (digits >= 10**_DIGITS)  # also what rounding carries to a power
    zero = magnitude == 0
    odd &= ~zero
    exponent[zero] = 0
    number = np.where(odd, 0, digits).astype(np.int64)
    high = number // 1000
    low = number - 1000 * high
    trailing = _ZEROS[low] + np.where(low == 0, _ZEROS[high], 0)
    kept = np.maximum(_DIGITS - trailing, 1)
    text = _THREE[high] | (_THREE[low] << _U64(24))
    words = np.empty((len(values), 2), dtype=np.uint64)
    words[:, 0] = _LEADING[exponent + 4] | (np.signbit(values) * _U64(ord("-") << 8))
    words[:, 1] = _with_point(text, kept, exponent + 1)
    return words, odd


def _with_point(text: Words, kept: NDArray[np.int64], before: NDArray[np.int64]) -> Words:
    """Return the digits with a decimal point where one is needed, followed by a blank.

    Args:
        text: six digits each.
        kept: digits up to the last that is not 0.
        before: digits before the point; 0 or less if the point stands before them all.
    """
    fraction = (before > 0) & (kept > before)
    place = np.where(fraction, before, _DIGITS)
    head = text & _FIRST[place]
    split = head | ((text ^ head) << _U64(8)) | (_POINT << (place * 8).astype(np.uint64))
    length = np.maximum(kept, before) + fraction
    spelled: Words = (split & _FIRST[length]) | (_BLANK << (length * 8).astype(np.uint64))
    return spelled
