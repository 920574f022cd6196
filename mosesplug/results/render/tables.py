"""Tables as text, TSV, CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from mosesplug.escapes import escape_controls
from mosesplug.metrics.error_rates import display_score

if TYPE_CHECKING:
    from mosesplug.tuning.repeats.scores import Spread

_BLOCKS = "▁▂▃▄▅▆▇█"
_DIGITS = "12345678"

_ROUNDING = 1e-12
"""Largest difference of normalized weights that the order of additions causes."""


Cell = str | Sequence[tuple[str, str]]
"""A text, or words with their styles, which only terminals show."""


@dataclass(frozen=True)
class TextTable:
    """A table of a printed report.

    Attributes:
        left, last: number of leading and of trailing columns that hold text.
        title, note: a heading, and a sentence on what is counted.
    """

    rows: Sequence[Sequence[Cell]]
    left: int = 0
    last: int = 0
    title: str = ""
    note: str = ""

    @property
    def plain(self) -> list[tuple[str, ...]]:
        """The rows without styles."""
        return [tuple(map(_drop_styles, row)) for row in self.rows]

    @property
    def texts(self) -> set[int]:
        """The places of the columns that hold text."""
        return find_text_columns(len(self.rows[0]), self.left, self.last)


def _drop_styles(cell: Cell) -> str:
    return cell if isinstance(cell, str) else " ".join(word for word, _ in cell)


def layout_table(table: TextTable, layout: str) -> list[str]:
    """Return the lines of a table.

    Args:
        layout: ``text``, ``tsv``, ``csv``, ``markdown``, ``latex`` or ``html``.
    """
    head, *rows = table.plain
    match layout:
        case "tsv":
            return ["\t".join(map(escape_controls, row)) for row in (head, *rows)]
        case "csv":
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows([head, *rows])
            return [file.getvalue().removesuffix("\n")]
        case "markdown":
            return format_markdown(head, rows, table.texts)
        case "latex":
            return format_latex(head, rows, table.texts)
        case "html":
            return [render_table(head, rows, table.texts)]
        case _:
            return format_table([head, *rows], table.left, table.last)


Block = str | TextTable
"""A part of a printed report: a line, or a table."""


class Verbatim(str):
    """A line in the syntax of a layout, which goes where its tables go."""

    __slots__ = ()


def format_blocks(blocks: Iterable[Block]) -> str:
    """Return a report as lines of text."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            lines.append(block)
        else:
            lines += layout_table(block, "text")
    return "".join(f"{line}\n" for line in lines)


def list_more(count: int, top: int) -> list[str]:
    """Return a line that counts the rows beyond ``top``, if any; 0 shows all rows."""
    return [f"({count - top} more: --top 0 shows all)"] if 0 < top < count else []


def format_score(value: float | None) -> str:
    """Return a score with 4 decimals, empty if unknown."""
    return "" if value is None else f"{value:.4f}"


def format_ratio(value: float) -> str:
    """Return a score or ratio with 4 decimals, empty if unknown."""
    return "" if math.isnan(value) else f"{value:.4f}"


def format_change(value: float | None) -> str:
    """Return a weight difference in 2 digits; empty if unknown, 0 if from rounding."""
    if value is None:
        return ""
    return f"{value:.2g}" if abs(value) > _ROUNDING else "0"


def format_row(cells: Sequence[str], widths: Sequence[int], left: int = 0, last: int = 0) -> str:
    """Return one line of a text table.

    Args:
        left: number of leading columns that hold text and are aligned left.
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
        left, last: as for ``format_row``.
    """
    shown = (tuple(map(escape_controls, row)) for row in rows)
    columns = [column for column in zip(*shown, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    return [format_row(row, widths, left, last) for row in zip(*columns, strict=True)]


def find_text_columns(count: int, left: int, last: int) -> set[int]:
    """Return the places of the first ``left`` and the last ``last`` columns."""
    return {*range(left), *range(count - last, count)}


def escape_markdown(text: str) -> str:
    """Return text with the characters escaped that Markdown or HTML read as marks.

    Bars stay as they are, since the functions for tables escape them.
    """
    return re.sub(r"([\\`*_{}\[\]<>#~&])", r"\\\1", escape_controls(text))


def _format_markdown_row(cells: Sequence[str]) -> str:
    shown = (escape_controls(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def format_markdown(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[int]
) -> list[str]:
    """Return the lines of a Markdown table; columns at the places ``texts`` hold text."""
    marks = [":--" if place in texts else "--:" for place in range(len(head))]
    return [
        _format_markdown_row(head),
        f"|{'|'.join(marks)}|",
        *map(_format_markdown_row, rows),
    ]


def format_latex(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[int]
) -> list[str]:
    """Return the lines of a LaTeX tabular; columns at the places ``texts`` hold text."""
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in (head, *rows)]
    columns = "".join("l" if place in texts else "r" for place in range(len(head)))
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return [begin, r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", end]


def escape_latex(text: str) -> str:
    """Return text with the characters escaped that LaTeX reads as commands."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in escape_controls(text))


def format_sparkline(values: Sequence[float | None], encoding: str) -> str:
    """Return values as a row of bars between the least and the greatest of them.

    Args:
        values: None for a blank.
        encoding: encoding of the output; digits from 1 to 8 replace bars that it cannot encode.
    """
    try:
        _BLOCKS.encode(encoding)
        bars = _BLOCKS
    except (UnicodeEncodeError, LookupError):
        bars = _DIGITS
    known = [value for value in values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    # Equal values have bars of half the height.
    width, low, top = (most - least, 0.0, len(bars) - 1) if least < most else (1.0, 3.0, 0)
    return "".join(
        " " if v is None else bars[round(low + top * ((v - least) / width))] for v in values
    )


# Notebooks align all cells to the right, so that a class would not do.
_TEXT_CELL, _NUMBER_CELL = ' style="text-align:left"', " class=n"
_MOST_COLUMNS = 5
"""Columns of numbers that a phone shows next to each other."""


def render_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[int] = ()
) -> str:
    """Return an HTML table; columns at the places ``texts`` hold text, others numbers.

    On a phone, a row of a table of many columns takes several lines (``stacked``). Browsers that
    then take it for no table read its roles.
    """
    kind, role = ("", "") if len(head) <= _MOST_COLUMNS else (' class="stacked"', " role={}")

    def row(cells: Sequence[str], tag: str, name: str) -> str:
        marks = (_TEXT_CELL if n in texts else _NUMBER_CELL for n in range(len(cells)))
        line = "".join(
            f"<{tag}{mark}{role.format(name)}>{escape(escape_controls(cell))}</{tag}>"
            for mark, cell in zip(marks, cells, strict=True)
        )
        return f"<tr{role.format('row')}>{line}</tr>"

    body = "\n".join(row(cells, "td", "cell") for cells in rows)
    group = role.format("rowgroup")
    return (
        f'<div class="wide"><table{kind}{role.format("table")}>\n'
        f"<thead{group}>{row(head, 'th', 'columnheader')}</thead>\n"
        f"<tbody{group}>\n{body}\n</tbody></table></div>\n"
    )


def tabulate_spreads(spreads: Iterable[tuple[str, Spread | None, str]]) -> TextTable:
    """Return a table with a row for each score with its spread over several runs.

    Args:
        spreads: name, spread, and signature of the metric, whose scores are shown as rates if it is
            an error rate. A row without spread is left out.
    """
    rows: list[tuple[str, ...]] = [("", "runs", "mean", "s_opt", "min", "median", "max")]
    for name, spread, signature in spreads:
        if spread is None:
            continue
        mean, low, middle, high = (
            display_score(signature, value)
            for value in (spread.mean, spread.low, spread.median, spread.high)
        )
        values = (mean, spread.optimizer, min(low, high), middle, max(low, high))
        rows.append((name, str(spread.runs), *map(format_score, values)))
    return TextTable(rows, left=1)
