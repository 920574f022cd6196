"""Print reports: their tables in the layout of the command, drawn on a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from mosesplug.cli.shared.layouts import TableLayout, begin_table, current_layout, output_stream
from mosesplug.cli.shared.output import is_terminal, print_json
from mosesplug.cli.shared.streams import control_stream
from mosesplug.escapes import escape_controls
from mosesplug.results.render.render import Medium, list_blocks
from mosesplug.results.render.tables import (
    Block,
    Cell,
    TextTable,
    Verbatim,
    find_text_columns,
    layout_table,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def print_record(record: Any, stream: TextIO | None = None) -> None:
    """Print a record, or a sequence of records, in the layout of the command.

    Args:
        stream: stdout by default; tables and JSON go there in all layouts but text.
    """
    if current_layout() is TableLayout.JSON:
        print_json(record)
        return
    width, encoding = shutil.get_terminal_size().columns, output_stream().encoding or "ascii"
    medium = Medium(current_layout(), width, is_terminal(), encoding)
    print_blocks(list_blocks(record, medium), stream)


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print a report: its lines to a stream, its tables in the layout of the command.

    As text, tables are drawn on a terminal, and plain without styles elsewhere. Control characters
    in cells are escaped.

    Args:
        stream: stdout by default; tables go there in all layouts but text.
    """
    for block in blocks:
        if isinstance(block, str):
            print(block, file=output_stream() if isinstance(block, Verbatim) else stream)
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


_GAP = 2
"""Blanks between columns."""
_MIN_TEXT_WIDTH = 20
"""Width down to which a text column shrinks."""
_MIN_LABEL_WIDTH = 8
"""The same for one that names rows, if other columns need the room."""


def draw_table(
    console: Console,
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    texts: set[int],
    labels: int,
) -> None:
    """Draw a table in the width of a console; text wraps, wider tables are folded.

    A folded table has several parts below each other; each begins with the columns that name its
    rows. No column is dropped, and no number is broken.

    Args:
        labels: number of leading columns that name the rows.
    """
    columns = [
        [_make_text(name), *(_make_text(row[place]) for row in rows)]
        for place, name in enumerate(head)
    ]
    kept = [place for place, column in enumerate(columns) if any(map(len, column))]
    columns = [columns[place] for place in kept]
    is_text = [place in texts for place in kept]
    n_labels = sum(place < labels for place in kept)
    widths = [max(text.cell_len for text in column) for column in columns]
    console.print()
    for part, shrunk in _fold(widths, is_text, n_labels, console.width):
        _draw_part(console, [columns[n] for n in part], shrunk, [is_text[n] for n in part])


def _make_text(cell: Cell) -> Text:
    from rich.text import Text

    words = [(cell, "")] if isinstance(cell, str) else cell
    return Text(" ").join(Text(escape_controls(word), style=style) for word, style in words)


def _fold(
    widths: Sequence[int], is_text: Sequence[bool], n_labels: int, room: int
) -> list[tuple[list[int], list[int]]]:
    """Return the columns of each part of a table, and their widths."""
    least = [min(w, _MIN_TEXT_WIDTH) if t else w for w, t in zip(widths, is_text, strict=True)]
    labels = list(range(n_labels))
    values = list(range(n_labels, len(widths)))
    widest = max((least[place] for place in values), default=0)
    if _total([least[place] for place in labels]) + (_GAP + widest) * bool(values) > room:
        for place in labels:
            if is_text[place]:
                least[place] = min(least[place], _MIN_LABEL_WIDTH)
    parts: list[list[int]] = []
    for place in values:
        part = [*labels, *parts[-1], place] if parts else []
        if parts and _total([least[column] for column in part]) <= room:
            parts[-1].append(place)
        else:
            parts.append([place])
    folded = [[*labels, *part] for part in parts] or [labels]
    return [(part, _widen(part, widths, least, is_text, room)) for part in folded]


def _widen(
    part: Sequence[int],
    widths: Sequence[int],
    least: Sequence[int],
    is_text: Sequence[bool],
    room: int,
) -> list[int]:
    """Return the widths of a part's columns; text columns share the room."""
    shown = [least[place] for place in part]
    left = room - _total(shown)
    for index, place in enumerate(part):
        if is_text[place] and left > 0:
            more = min(left, widths[place] - shown[index])
            shown[index] += more
            left -= more
    return shown


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1) if widths else 0


def _draw_part(
    console: Console,
    columns: Sequence[Sequence[Text]],
    widths: Sequence[int],
    is_text: Sequence[bool],
) -> None:
    from rich.text import Text

    for number, row in enumerate(zip(*columns, strict=True)):
        wrapped = [
            [*cell.wrap(console, max(width, 1), overflow="fold")] or [Text()]
            for cell, width in zip(row, widths, strict=True)
        ]
        for index in range(max(map(len, wrapped))):
            line = Text()
            for lines, width, left in zip(wrapped, widths, is_text, strict=True):
                text = lines[index] if index < len(lines) else Text()
                text.rstrip()
                pad = " " * max(width - text.cell_len, 0)
                line.append_text(Text(" " * _GAP) if line else Text())
                line.append_text(text + pad if left else Text(pad) + text)
            line.rstrip()
            console.print(line, soft_wrap=True, highlight=False)
        if number == 0:
            console.print("─" * _total(widths), soft_wrap=True, highlight=False)
    console.print()
