"""Factored text: tokens such as ``houses|house|NNS``, of which metrics may want a part."""

from __future__ import annotations

from collections.abc import Sequence

from mosesplug.errors import DataError, UsageError

__all__ = ["parse_factors", "select_factors"]


def parse_factors(text: str) -> tuple[int, ...]:
    """``"0|2"`` as ``(0, 2)``, the form of Moses' ``--factors``; no factors if ``text`` is empty.

    Raises:
        UsageError: a piece is not a number from 0 on.
    """
    pieces = text.split("|") if text else []
    for piece in pieces:
        if not (piece.isascii() and piece.isdigit()):
            raise UsageError(
                f"factors {text!r} are not numbers from 0 on with | between them, as in 0|2"
            )
    return tuple(map(int, pieces))


def select_factors(line: bytes, factors: Sequence[int]) -> bytes:
    """``line`` with some factors of each token, in the order of ``factors``.

    Blanks between tokens become single ones. With no factors given, ``line`` is as it was.

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
                f"factor {max(factors)} is asked for, counted from 0"
            )
        selected.append(b"|".join(parts[factor] for factor in factors))
    return b" ".join(selected)
