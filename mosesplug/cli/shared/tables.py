"""Print reports: their tables in the layout of the command, drawn on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from mosesplug.cli.shared.drawing import draw_table
from mosesplug.cli.shared.layouts import TableLayout, begin_table, current_layout, output_stream
from mosesplug.cli.shared.streams import control_stream
from mosesplug.escapes import escape_controls
from mosesplug.results.render.tables import Block, Cell, TextTable, find_text_columns, layout_table


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print a report: its lines to a stream, its tables in the layout of the command.

    As text, tables are drawn on a terminal, and plain without styles elsewhere. Control characters
    in cells are escaped.

    Args:
        stream: stdout by default; tables go there in all layouts but text.
    """
    for block in blocks:
        if isinstance(block, str):
            print(block, file=stream)
        elif current_layout() in (TableLayout.TEXT, TableLayout.JSON):
            _print_text(block, stream or output_stream())
        else:
            _print_layout(block)


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], left: int = 0, last: int = 0
) -> None:
    """Print one table; ``left`` and ``last`` are as in ``TextTable``."""
    print_blocks([TextTable([head, *rows], left, last)])


def print_lines(rows: Iterable[Sequence[str]]) -> None:
    """Print rows at once, with tabs between their cells, for other programs."""
    for row in rows:
        print("\t".join(map(escape_controls, row)))


def _print_text(table: TextTable, stream: TextIO) -> None:
    if not stream.isatty():
        for line in layout_table(table, "text"):
            print(line, file=stream)
        return
    from rich.console import Console

    head, *rows = table.rows
    texts = find_text_columns(len(head), table.left, table.last)
    console = Console(file=control_stream(stream))
    # The first column names the rows if no leading one holds text.
    draw_table(console, [str(name) for name in head], rows, texts, labels=max(table.left, 1))


def _print_layout(table: TextTable) -> None:
    lines, output = layout_table(table, current_layout()), output_stream()
    is_markdown = current_layout() is TableLayout.MARKDOWN
    if begin_table() and not is_markdown:
        print(file=output)
    print("\n".join(["", *lines, ""] if is_markdown else lines), file=output)
