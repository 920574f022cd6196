"""Hostile inputs: files that are changed at random, and files that are made of a format's words.

Every draw comes from one ``numpy.random.Generator``, so that a seed gives the same inputs.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

__all__ = ["LONGEST", "Chance", "composed", "mutated", "packed"]

Item = TypeVar("Item")

LONGEST = 1 << 12
"""Bytes of an input: small ones find the same, and sooner."""

_DRAWS = 4096
_NUMBER = re.compile(rb"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_ODD_NUMBERS = (
    *(b"nan", b"-nan", b"inf", b"-inf", b"NaN(0x1)", b"infinity", b"1e39", b"-1e39", b"1e400"),
    *(b"1e-46", b"4.9e-324", b"-0", b"0", b"-1", b"1", b"2", b"99999999999999999999", b"1_0"),
    *(b"2147483647", b"2147483648", b"-2147483649", b"4294967296", b"1000000000000", b"0x1p3"),
    *(b"9223372036854775807", b"9223372036854775808", b"999999999999999999", b"1e", b".", b"-"),
    *(b"00000000000000000000001", b"1" * 400, b"\xd9\xa3", b"1.2.3", b"+5", b"1e+9999999999"),
)
_ODD_BYTES = (
    *(b"\x00", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x1f", b"\x7f", b"\x85"),
    *(b"\xef\xbb\xbf", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"|||", b" ||| "),
    *(b"=", b":", b"[", b"]", b"{", b"}", b'"', b"'", b"\\", b"#", b"%s", b"../", b"/etc/passwd"),
)


class Chance:
    """Random numbers, one at a time; drawn many at once, which is ten times as fast."""

    def __init__(self, seed: Sequence[int]) -> None:
        self._generator = np.random.default_rng(list(seed))
        self._left: list[int] = []

    def below(self, end: int) -> int:
        """A number from 0 to ``end - 1``."""
        if not self._left:
            self._left = self._generator.integers(0, 1 << 62, _DRAWS).tolist()
        return self._left.pop() % end

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of some items."""
        return items[self.below(len(items))]


def mutated(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """A text with a few changes: one in half of the cases, two in a quarter, and so on.

    Args:
        chance: what is drawn from.
        text: to begin with.
        others: what pieces are taken of.
    """
    while True:
        text = chance.one_of(_CHANGES)(chance, text, others)[:LONGEST]
        if chance.below(2):
            return text


def composed(chance: Chance, words: Sequence[bytes]) -> bytes:
    """A text of a format's words, in any order: what no valid file is near to."""
    count = 1 + chance.below(24)
    return b"".join(
        chance.one_of(_ODD_NUMBERS) if chance.below(8) == 0 else chance.one_of(words)
        for _ in range(count)
    )


def packed(chance: Chance, text: bytes) -> bytes:
    """An archive of a text, in half of the cases damaged or cut short."""
    pack = chance.one_of(_PACKERS)
    archive = pack(text)
    if chance.below(4) == 0:
        archive += pack(text[:40])
    if chance.below(2):
        archive = chance.one_of((_flip, _cut, _delete, _splice))(chance, archive, (archive,))
    return archive


def _span(chance: Chance, text: bytes, longest: int = 64) -> tuple[int, int]:
    begin = chance.below(len(text) + 1)
    return begin, min(len(text), begin + 1 + chance.below(longest))


def _flip(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Flip a bit."""
    if not text:
        return b"\x00"
    at = chance.below(len(text))
    return text[:at] + bytes([text[at] ^ 1 << chance.below(8)]) + text[at + 1 :]


def _byte(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Put a byte in."""
    at = chance.below(len(text) + 1)
    return text[:at] + bytes([chance.below(256)]) + text[at + chance.below(2) :]


def _delete(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    begin, end = _span(chance, text)
    return text[:begin] + text[end:]


def _cut(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    return text[: chance.below(len(text) + 1)]


def _duplicate(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    begin, end = _span(chance, text, 200)
    return text[:end] + text[begin:end] * (1 + chance.below(3)) + text[end:]


def _splice(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Put a piece of another file in."""
    other = chance.one_of(others)
    begin, end = _span(chance, other, 300)
    at = chance.below(len(text) + 1)
    return text[:at] + other[begin:end] + text[at:]


def _number(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Put another number in the place of one."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return chance.one_of(_ODD_NUMBERS) + text
    match = chance.one_of(found)
    return text[: match.start()] + chance.one_of(_ODD_NUMBERS) + text[match.end() :]


def _odd_bytes(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    at = chance.below(len(text) + 1)
    return text[:at] + chance.one_of(_ODD_BYTES) + text[at:]


def _lines(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Let two lines change places, drop one, or repeat one."""
    lines = text.split(b"\n")
    i, j = chance.below(len(lines)), chance.below(len(lines))
    what = chance.below(3)
    if what == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif what == 1:
        del lines[i]
    else:
        lines.insert(i, lines[j])
    return b"\n".join(lines)


def _words(chance: Chance, text: bytes, others: Sequence[bytes]) -> bytes:
    """Let two words change places, drop one, or repeat one."""
    words = text.split(b" ")
    i, j = chance.below(len(words)), chance.below(len(words))
    what = chance.below(3)
    if what == 0:
        words[i], words[j] = words[j], words[i]
    elif what == 1:
        del words[i]
    else:
        words.insert(i, words[j])
    return b" ".join(words)


_Change = Callable[[Chance, bytes, Sequence[bytes]], bytes]
_CHANGES: tuple[_Change, ...] = (
    *(_flip, _byte, _delete, _cut, _duplicate, _splice),
    *(_number, _number, _odd_bytes, _lines, _words),
)
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    lambda text: gzip.compress(text, 1, mtime=0),
    lambda text: gzip.compress(text, 1, mtime=0),
    lambda text: bz2.compress(text, 1),
    lambda text: lzma.compress(text, preset=0),
)
