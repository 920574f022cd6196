"""Entries of a phrase table that carry sums of sparse weights (see ``folding``).

A sum is written as three digits, the factors 1 to 3 of an aligned target word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formats.errors import FormatError, quote
from formats.weights.encoding import decode
from mosesplug.arrays import Floats, Ints
from mosesplug.decoders.servers.sentence_tables import split_words
from mosesplug.errors import DecoderError
from mosesplug.templates.derivation import PhrasePair

BASE = 4096
"""Values of a digit."""

_STEP = 2.0**-24
_LARGEST = BASE**3 // 2 - 1
_ZERO = BASE // 2
"""The digit that is worth 0; smaller ones are negative."""

_NO_DIGITS = b"|-|-|-"
_TOKENS = tuple(b"%d" % digit for digit in range(BASE))
_UNITS = (_STEP * BASE * BASE, _STEP * BASE, _STEP)

_LARGEST_LOG = 80.0
"""``exp`` of more, or of less, is not a normal number of single precision."""

_POINT = re.compile(rb"([0-9]+)-([0-9]+)")


@dataclass(frozen=True)
class FoldableEntry:
    """An entry of a phrase table, in three pieces, between which sums are inserted.

    Attributes:
        pieces: behind the source up to the digits, up to the additional score, the remainder.
        points: alignment points of the word that carries the digits, 0 for no word.
        pair: source, target and alignment.
    """

    pieces: tuple[bytes, bytes, bytes]
    points: int
    pair: PhrasePair


class FoldableEntryCheck:
    """Check entries of a phrase table, one by one, before they are folded."""

    def __init__(self) -> None:
        """Begin with no entries."""
        self._alignments: dict[tuple[bytes, ...], set[tuple[int, int]]] = {}

    def __call__(self, line: bytes, path: str, number: int) -> None:
        """Check an entry.

        Raises:
            FormatError: it has no translation, an alignment point outside the phrase, or another
                alignment than an earlier entry of the same phrase pair.
        """
        fields = line.split(b"|||")
        if len(fields) < 3:
            raise FormatError(
                "not an entry of a phrase table",
                path=path,
                line=number,
                remedy="An entry has the form: source ||| target ||| scores ||| alignment",
            )
        pair = tuple(b" ".join(split_words(text)) for text in fields[:2])
        if not pair[1]:
            raise FormatError(
                "the entry has no translation, which could carry a sum",
                path=path,
                line=number,
                remedy="Remove it",
            )
        points = read_entry_points(fields, path, number)
        if self._alignments.setdefault(pair, points) != points:
            raise FormatError(
                f"a second entry for {quote(b' ||| '.join(pair))} has another alignment: a server"
                " does not tell which one it used",
                path=path,
                line=number,
                remedy="Keep one of them",
            )


def read_entry_points(fields: Sequence[bytes], path: str, number: int) -> set[tuple[int, int]]:
    """Return the alignment points of an entry of a phrase table.

    Args:
        fields: its fields: source, target, scores, and maybe the alignment.

    Raises:
        FormatError: one is outside the phrase pair.
    """
    points = _read_points(fields[3] if len(fields) > 3 else b"")
    if points:
        n_source, n_target = (len(split_words(text)) for text in fields[:2])
        for i, j in sorted(points):
            if i >= n_source or j >= n_target:
                raise FormatError(
                    f"the alignment point {i}-{j} is outside the phrase pair of {n_source} and"
                    f" {n_target} words",
                    path=path,
                    line=number,
                    remedy="Correct or remove the point; positions are counted from 0",
                )
    return points


def parse_entry(line: bytes) -> FoldableEntry:
    """Parse a line of a phrase table, as ``FoldableEntryCheck`` admits it."""
    source, target, scores, *others = line.split(b"|||")
    words = split_words(target)
    points = tuple(sorted(_read_points(others[0] if others else b"")))
    pair = PhrasePair(tuple(map(decode, split_words(source))), tuple(map(decode, words)), points)
    counts = [0] * len(words)
    for _, j in points:
        counts[j] += 1
    alignment = others[0] if points else b" 0-0 " if words else b" "
    remainder = b" |||".join([b"", alignment, *others[1:]])
    if not words:
        head = b"||| %b" % scores.strip(b" \t")
        return FoldableEntry((b"", head, remainder), 0, pair)
    carrier = min((count, j) for j, count in enumerate(counts) if count)[1] if points else 0
    before = b"".join(word + _NO_DIGITS + b" " for word in words[:carrier])
    after = b"".join(b" " + word + _NO_DIGITS for word in words[carrier + 1 :])
    pieces = (
        before + words[carrier],
        b"%b ||| %b" % (after, scores.strip(b" \t")),
        remainder,
    )
    return FoldableEntry(pieces, max(1, counts[carrier]), pair)


def format_entries(
    sources: Sequence[bytes], entries: Sequence[FoldableEntry], sums: Floats, logs: Floats
) -> bytes:
    """Return the lines of a phrase table with sums of weights.

    Args:
        sources: the source phrase of each entry, as the table of the server has it.
        entries: ``[n_entries]``.
        sums: float64 ``[n_entries]``; what the digits add up to.
        logs: float64 ``[n_entries]``; logarithms of the additional score.

    Raises:
        DecoderError: a sum is too large.
    """
    points = np.array([max(1, entry.points) for entry in entries], dtype=np.float64)
    steps = np.rint(sums / points / _STEP)
    if len(entries) and not (
        np.abs(steps).max() <= _LARGEST and np.abs(logs).max() <= _LARGEST_LOG
    ):
        raise DecoderError(
            "the sparse weights of a phrase pair add up to more than its entry in a phrase"
            " table can hold: use smaller steps or a regularizer, or decode by a process for"
            " each batch ({--online-decoder process})"
        )
    digits = [column.tolist() for column in _split_digits(steps.astype(np.int64))]
    scores = [b"1" if log == 0.0 else b"%.9g" % math.exp(log) for log in logs.tolist()]
    lines = [
        b"%b ||| %b|%b|%b|%b%b %b%b\n"
        % (
            *(source_phrase, entry.pieces[0], _TOKENS[high], _TOKENS[middle], _TOKENS[low]),
            *(entry.pieces[1], score, entry.pieces[2]),
        )
        if entry.points
        else b"%b ||| %b %b%b\n" % (source_phrase, entry.pieces[1], score, entry.pieces[2])
        for source_phrase, entry, high, middle, low, score in zip(
            sources, entries, *digits, scores, strict=True
        )
    ]
    return b"".join(lines)


def format_digit_weights(names: Sequence[str]) -> bytes:
    """Return the lines of ``-weight-file`` for the functions that add up digits.

    Args:
        names: the names of the three functions, most significant digit first.
    """
    return b"".join(
        b"%b_OTHER~%d %b\n" % (name.encode(), digit, repr((digit - _ZERO) * unit).encode())
        for name, unit in zip(names, _UNITS, strict=True)
        for digit in range(BASE)
        if digit != _ZERO
    )


def format_digits() -> bytes:
    """Return the target vocabulary of these functions, one word a line."""
    return b"".join(token + b"\n" for token in _TOKENS)


def _read_points(text: bytes) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in _POINT.findall(text)}


def _split_digits(steps: Ints) -> list[Ints]:
    """Return the digits of numbers, most significant first."""
    digits = []
    for _ in _UNITS:
        digit = (steps + _ZERO) % BASE
        digits.append(digit)
        steps = (steps - (digit - _ZERO)) // BASE
    return digits[::-1]
