"""Select factors of tokens such as ``houses|house|NNS``."""

from __future__ import annotations

from collections.abc import Sequence

from mosesplug.errors import DataError, UsageError

__all__ = ["parse_factors", "select_factors"]


def parse_factors(text: str) -> tuple[int, ...]:
    """Parse Moses' ``--factors``: ``"0|2"`` becomes ``(0, 2)``, empty text becomes ``()``.

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
