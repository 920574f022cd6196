"""Tables in plain text, of commands whose output goes to people and to files alike."""

from __future__ import annotations

from collections.abc import Sequence

from mosesplug.tuning.repeats.scores import Spread

__all__ = ["aligned", "change", "figure", "spread_rows"]


_ROUNDING = 1e-12
"""Differences of weights of length 1 that the order of additions makes."""


def aligned(rows: Sequence[tuple[str, ...]], left: int = 0) -> list[str]:
    """Lines of a table; columns without any text are left out.

    Args:
        rows: cells.
        left: so many columns, from the first, hold words.
    """
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]


def spread_rows(spreads: Sequence[tuple[str, Spread]]) -> list[tuple[str, ...]]:
    """How scores of several runs differ: a head, and a row for each text."""
    rows: list[tuple[str, ...]] = [("", "runs", "mean", "s_opt", "min", "median", "max")]
    for name, found in spreads:
        values = (found.mean, found.optimizer, found.low, found.median, found.high)
        rows.append((name, str(found.runs), *map(figure, values)))
    return rows


def change(value: float | None) -> str:
    """A difference of weights for people; what is left of rounding is none."""
    if value is None:
        return ""
    return f"{value:.2g}" if abs(value) > _ROUNDING else "0"


def figure(value: float | None) -> str:
    """A score for people; nothing where it is not known."""
    return "" if value is None else f"{value:.4f}"
