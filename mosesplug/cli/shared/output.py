"""Tables and documents of the commands that show things: for people, for pipes, for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mosesplug.inspection.texts import marked

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["is_terminal", "print_json", "print_table"]

_NARROW = 20


def is_terminal() -> bool:
    """Whether a person is looking at stdout."""
    return sys.stdout.isatty()


def print_json(document: Any) -> None:
    """One JSON document on stdout, in UTF-8 whatever the terminal's encoding.

    What is no number (NaN, infinity) is null; bytes of names that are no UTF-8 are marked.
    """
    text = json.dumps(_plain(document), ensure_ascii=False, indent=1, allow_nan=False)
    sys.stdout.flush()
    sys.stdout.buffer.write(marked(text + "\n").encode())
    sys.stdout.buffer.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def print_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    left: int = 0,
    last: int = 0,
) -> None:
    """A table: drawn for a terminal, columns of plain text for a pipe.

    Args:
        head: of the columns.
        rows: cells; styled ones lose their style in a pipe.
        left: so many columns, from the first, hold words.
        last: and so many before the end; other cells are numbers, and end below each other.
    """
    rows = [tuple(row) for row in rows]
    words = {*range(left), *range(len(head) - last, len(head))}
    if is_terminal():
        _drawn(head, rows, words)
        return
    cells = [tuple(head), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        spelled = [
            cell.ljust(width) if place in words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(spelled).rstrip())


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str | Text]], words: set[int]) -> None:
    """With what is wider than the terminal: words go on in the next line, numbers stay whole."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    needed = 2
    for place, name in enumerate(head):
        widest = max(len(cell) for cell in (name, *(row[place] for row in rows)))
        if place in words:
            widest = min(widest, _NARROW)
            table.add_column(Text(name), overflow="fold", min_width=widest)
        else:
            table.add_column(Text(name), justify="right", no_wrap=True, min_width=widest)
        needed += widest + 2
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console()
    console.print(table, width=max(needed, console.width), crop=False)
