"""Changes of text before it is scored: normalizations and selected factors.

A setting is, for example, ``normalize:lower+punct+nfkc``. Normalizations are for error rates. They
are applied to hypotheses and references alike, in this order: ``nfkc`` composes characters as
Unicode's normalization form KC (full-width letters become plain ones), ``lower`` lower-cases all
letters of Unicode, and ``punct`` deletes every character of the Unicode categories ``P*``. Deleted
characters leave nothing behind: ``don't`` becomes ``dont``, and a word that is punctuation only
disappears. Factors are the parts of tokens such as ``houses|house|NNS``.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts

NORMALIZATIONS = ("nfkc", "lower", "punct")
"""The normalizations, in the order in which they are applied."""


@dataclass(frozen=True)
class Normalization:
    """What is done to each text.

    Attributes:
        steps: some of ``nfkc``, ``lower`` and ``punct``, in this order.

    Raises:
        UsageError: a step is unknown or repeated.
    """

    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for step in self.steps:
            if step not in NORMALIZATIONS:
                raise UsageError(
                    f"unknown normalization {step!r}: use {', '.join(sorted(NORMALIZATIONS))}, "
                    "or several with + between them, as in normalize:lower+punct"
                )
            if self.steps.count(step) > 1:
                raise UsageError(f"the normalization {step} is given twice")
        ordered = tuple(step for step in NORMALIZATIONS if step in self.steps)
        object.__setattr__(self, "steps", ordered)

    def signature(self) -> str:
        """Return the setting for a signature, followed by ``|``; empty without steps."""
        return f"normalize:{'+'.join(sorted(self.steps))}|" if self.steps else ""

    def lines(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return normalized lines; bytes that are not UTF-8 stay as they are."""
        return [self._apply(line) for line in lines]

    def references(self, references: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes]]:
        """Return normalized ``references[k][line]``."""
        return [self.lines(lines) for lines in references] if self.steps else references

    def hypotheses(self, hypotheses: HypothesisRanges) -> HypothesisRanges:
        """Return normalized hypotheses; each distinct text is normalized once."""
        return rewrite_texts(hypotheses, self.lines) if self.steps else hypotheses

    def _apply(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogateescape")
        if "nfkc" in self.steps:
            text = unicodedata.normalize("NFKC", text)
        if "lower" in self.steps:
            text = text.lower()
        if "punct" in self.steps:
            text = _punctuation().sub("", text)
        return text.encode("utf-8", "surrogateescape")


def parse_normalization(text: str) -> Normalization:
    """Parse ``"lower+punct"``.

    Raises:
        UsageError: a step is unknown or repeated.
    """
    return Normalization(tuple(text.split("+")) if text else ())


@cache
def _punctuation() -> re.Pattern[str]:
    """Return a pattern for the characters of the categories ``P*``."""
    marks = (chr(code) for code in range(sys.maxunicode + 1))
    punctuation = [mark for mark in marks if unicodedata.category(mark).startswith("P")]
    return re.compile(f"[{re.escape(''.join(punctuation))}]+")


def parse_factors(text: str) -> tuple[int, ...]:
    """Parse Moses' ``--factors``: ``"0|2"`` is ``(0, 2)``, empty text is ``()``.

    Raises:
        UsageError: a factor is not a non-negative integer.
    """
    pieces = text.split("|") if text else []
    for piece in pieces:
        if not (piece.isascii() and piece.isdigit()):
            raise UsageError(
                f"factors {text!r} are not non-negative integers separated by |, as in 0|2"
            )
    return tuple(map(int, pieces))


def select_factors(line: bytes, factors: Sequence[int]) -> bytes:
    """Select factors of each token of a line, in the order of ``factors``.

    Several blanks between tokens become one. Without factors, ``line`` is returned unchanged.

    Raises:
        DataError: a token has too few factors.
    """
    if not factors:
        return line
    selected = []
    for token in line.split(b" "):
        if not token:
            continue
        parts = token.split(b"|")
        if max(factors) >= len(parts):
            raise DataError(
                f"the token {token.decode('utf-8', 'replace')!r} has {len(parts)} factors and "
                f"factor {max(factors)} is selected, counted from 0"
            )
        selected.append(b"|".join(parts[factor] for factor in factors))
    return b" ".join(selected)
