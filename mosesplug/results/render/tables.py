"""Tables as lines of text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from mosesplug.escapes import escape_controls
from mosesplug.metrics.error_rates import display_score

if TYPE_CHECKING:
    from mosesplug.tuning.repeats.scores import Spread

_ROUNDING = 1e-12
"""Largest difference of normalized weights that the order of additions causes."""


@dataclass(frozen=True)
class TextTable:
    """A table of a printed report.

    Attributes:
        rows: the head, then the rows.
        left, last: number of leading and of trailing columns that hold text.
    """

    rows: Sequence[Sequence[str]]
    left: int = 0
    last: int = 0


Block = str | TextTable
"""A part of a printed report: a line, or a table."""


def format_blocks(blocks: Iterable[Block]) -> str:
    """Return a report as lines of text."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            lines.append(block)
        else:
            lines += format_table(block.rows, block.left, block.last)
    return "".join(f"{line}\n" for line in lines)


def format_score(value: float | None) -> str:
    """Return a score with 4 decimals, empty if unknown."""
    return "" if value is None else f"{value:.4f}"


def format_change(value: float | None) -> str:
    """Return a weight difference in 2 digits; empty if unknown, 0 if from rounding."""
    if value is None:
        return ""
    return f"{value:.2g}" if abs(value) > _ROUNDING else "0"


def format_row(cells: Sequence[str], widths: Sequence[int], left: int = 0, last: int = 0) -> str:
    """Return one line of a text table.

    Args:
        cells: one for each column.
        widths: the widths of the columns.
        left: number of leading columns that hold text and are aligned left.
        last: number of trailing columns that hold text.
    """
    texts = find_text_columns(len(widths), left, last)
    return "  ".join(
        cell.ljust(width) if place in texts else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()


def format_table(rows: Iterable[Sequence[str]], left: int = 0, last: int = 0) -> list[str]:
    """Return the lines of a text table, without columns whose cells are all empty.

    Control characters in cells are escaped.

    Args:
        rows: the head, then the rows.
        left, last: as for ``format_row``.
    """
    shown = (tuple(map(escape_controls, row)) for row in rows)
    columns = [column for column in zip(*shown, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    return [format_row(row, widths, left, last) for row in zip(*columns, strict=True)]


def find_text_columns(count: int, left: int, last: int) -> set[int]:
    """Return the places of the first ``left`` and the last ``last`` columns."""
    return {*range(left), *range(count - last, count)}


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0) -> str:
    """Return an HTML table whose first ``left`` columns hold text."""

    def row(cells: Sequence[str], tag: str) -> str:
        marks = ("" if place < left else " class=n" for place in range(len(cells)))
        return "".join(
            f"<{tag}{mark}>{escape(escape_controls(cell))}</{tag}>"
            for mark, cell in zip(marks, cells, strict=True)
        )

    body = "\n".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f'<div class="wide"><table>\n<tr>{row(head, "th")}</tr>\n{body}\n</table></div>\n'


def tabulate_spreads(spreads: Sequence[tuple[str, Spread]], signature: str) -> TextTable:
    """Return a table with a row for each score with its spread over several runs.

    Args:
        spreads: the spreads by name.
        signature: that of the metric; scores of error rates are shown as rates.
    """
    rows: list[tuple[str, ...]] = [("", "runs", "mean", "s_opt", "min", "median", "max")]
    for name, spread in spreads:
        mean, low, middle, high = (
            display_score(signature, value)
            for value in (spread.mean, spread.low, spread.median, spread.high)
        )
        values = (mean, spread.optimizer, min(low, high), middle, max(low, high))
        rows.append((name, str(spread.runs), *map(format_score, values)))
    return TextTable(rows, left=1)
