"""Tables in text, TSV, CSV, Markdown and LaTeX, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from mosesplug.cli.shared.drawing import Cell, draw_table
from mosesplug.cli.shared.layouts import TableLayout, begin_table, current_layout, output_stream
from mosesplug.cli.shared.streams import control_stream
from mosesplug.escapes import escape_controls
from mosesplug.results.render.tables import (
    Block,
    find_text_columns,
    format_table,
)

if TYPE_CHECKING:
    pass

_BLOCKS = "▁▂▃▄▅▆▇█"
_DIGITS = "12345678"


def print_table(
    head: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    left: int = 0,
    last: int = 0,
    stream: TextIO | None = None,
) -> None:
    """Print a table in the layout of the command.

    As text, it is drawn on a terminal, and plain without styles elsewhere. Control characters in
    cells are escaped.

    Args:
        head: the names of the columns.
        rows: the cells.
        left: number of leading columns that hold text; they name the rows, or the first column
            does.
        last: number of trailing columns that hold text.
        stream: where it goes as text; stdout by default, and in all other layouts.
    """
    layout, output = current_layout(), output_stream()
    rows = [tuple(row) for row in rows]
    if layout in (TableLayout.TEXT, TableLayout.JSON):
        _print_text(head, rows, left, last, stream or output)
        return
    plain = [tuple(map(_plain, row)) for row in rows]
    match layout:
        case TableLayout.TSV:
            lines = ["\t".join(map(escape_controls, row)) for row in (head, *plain)]
        case TableLayout.CSV:
            lines = _format_csv([head, *plain])
        case TableLayout.LATEX:
            lines = format_latex(head, plain, left)
        case _:
            lines = ["", *format_markdown(head, plain, left), ""]
    if begin_table() and layout is not TableLayout.MARKDOWN:
        print(file=output)
    print("\n".join(lines), file=output)


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print a report: its lines to a stream, its tables in the layout of the command.

    Args:
        blocks: the parts of the report.
        stream: stdout by default; tables go there in all layouts but text.
    """
    for block in blocks:
        if isinstance(block, str):
            print(block, file=stream)
        else:
            head, *rows = block.rows
            print_table(head, rows, block.left, block.last, stream)


def print_lines(rows: Iterable[Sequence[str]]) -> None:
    """Print rows at once, with tabs between their cells, for other programs."""
    for row in rows:
        print("\t".join(map(escape_controls, row)))


def _print_text(
    head: Sequence[str], rows: Sequence[Sequence[Cell]], left: int, last: int, stream: TextIO
) -> None:
    if stream.isatty():
        from rich.console import Console

        console = Console(file=control_stream(stream))
        texts = find_text_columns(len(head), left, last)
        draw_table(console, head, rows, texts, labels=max(left, 1))
    else:
        plain = (tuple(map(_plain, row)) for row in rows)
        for line in format_table([head, *plain], left, last):
            print(line, file=stream)


def _format_csv(rows: Iterable[Sequence[str]]) -> list[str]:
    import csv
    import io

    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return [file.getvalue().removesuffix("\n")]


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else " ".join(word for word, _ in cell)


def escape_markdown(text: str) -> str:
    """Return text with the characters escaped that Markdown or HTML read as marks.

    Bars stay as they are, since the functions for tables escape them.
    """
    return re.sub(r"([\\`*_{}\[\]<>#~&])", r"\\\1", escape_controls(text))


def format_markdown_row(cells: Sequence[str]) -> str:
    """Return one row of a Markdown table."""
    shown = (escape_controls(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def format_markdown(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """Return the lines of a Markdown table whose first ``left`` columns hold text."""
    marks = [":--"] * left + ["--:"] * (len(head) - left)
    return [
        format_markdown_row(head),
        f"|{'|'.join(marks)}|",
        *map(format_markdown_row, rows),
    ]


def format_latex(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """Return the lines of a LaTeX tabular whose first ``left`` columns hold text."""
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in (head, *rows)]
    columns = "l" * left + "r" * (len(head) - left)
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
