"""Show a record: as text, JSON, TSV, CSV, Markdown, LaTeX or HTML.

A record is a frozen dataclass. Its JSON document has a key for each field, or for what its
``JSON_KEYS`` name, or is its ``document``. A report has ``blocks``, its lines and tables; other
records are the rows of one table, which has a column for each field with ``Shown``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from os import PathLike, fspath
from typing import Any, Literal, Protocol, runtime_checkable

from mosesplug.escapes import escape_json, mark_invalid_utf8
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import Block, TextTable, Verbatim, layout_table

Layout = Literal["text", "json", "tsv", "csv", "markdown", "latex", "html"]

TABLES_ONLY = ("tsv", "csv", "latex")
"""Layouts for other programs: lines between tables are left out."""


@dataclass(frozen=True)
class Medium:
    """Where a report is shown: its layout, width and encoding.

    Attributes:
        layout: one of ``Layout``.
        width: columns of a line.
        is_terminal: whether a person watches, in colors and with room for ``width`` columns only.
        encoding: encoding of the output.
    """

    layout: str = "text"
    width: int = 80
    is_terminal: bool = False
    encoding: str = "utf-8"

    @property
    def is_text(self) -> bool:
        """Whether the layout is text."""
        return self.layout == "text"


@runtime_checkable
class Report(Protocol):
    """A record that says which lines and tables show it."""

    def blocks(self, medium: Medium) -> Iterable[Block]:
        """Yield the lines and tables."""


def render(record: Any, layout: Layout = "text") -> str:
    """Return a record, or a sequence of records, in a layout.

    In layouts that only programs read (TSV, CSV, LaTeX), the tables of a report are separated by a
    blank line, and its other lines are left out.
    """
    if layout == "json":
        return render_json(record)
    parts: list[str] = []
    follows_table = False
    for block in list_blocks(record, Medium(layout)):
        if isinstance(block, TextTable):
            lines = layout_table(block, layout)
            if layout in TABLES_ONLY and follows_table:
                parts.append("")
            follows_table = True
            parts.append("\n".join(["", *lines, ""] if layout == "markdown" else lines))
        elif layout == "html":
            parts += [_render_line(line) for line in block.splitlines() if line]
        elif layout not in TABLES_ONLY or isinstance(block, Verbatim):
            parts.append(block)
    return "".join(parts) if layout == "html" else "".join(f"{part}\n" for part in parts)


def _render_line(line: str) -> str:
    """Return a line as HTML; indented ones keep their columns."""
    columns = ' style="white-space: pre-wrap; font-family: monospace; margin: 0"'
    return f"<p{columns if line.startswith(' ') else ''}>{escape(line)}</p>"


def list_blocks(record: Any, medium: Medium) -> Iterable[Block]:
    """Return the lines and tables that show a record, or a sequence of records."""
    if isinstance(record, Report):
        return record.blocks(medium)
    records = [record] if is_dataclass(record) else list(record)
    return [tabulate(type(records[0]), records)] if records else []


def render_json(record: Any) -> str:
    """Return a JSON document, indented and with a newline at the end.

    NaN and infinity are null. Bytes that are not valid UTF-8 are replaced, and control characters
    in strings are escaped.
    """
    text = json.dumps(describe(record), ensure_ascii=False, indent=1, allow_nan=False)
    return escape_json(mark_invalid_utf8(text + "\n"))


def describe(value: Any) -> Any:
    """Return a record as dictionaries, lists, texts and numbers.

    ``JSON_KEYS`` of a record names attributes in their order, separated by blanks: ``score``;
    ``score?``, left out if it is None or empty; ``key=attribute`` for another key; ``*`` for all
    fields.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "document"):
        return describe(value.document)
    if isinstance(value, Mapping):
        return {key: describe(item) for key, item in value.items()}
    if is_dataclass(value):
        return {key: describe(item) for key, item in _list_items(value)}
    return [describe(item) for item in value]


def _list_items(record: Any) -> Iterable[tuple[str, Any]]:
    names = " ".join(field.name for field in fields(record))
    for key in getattr(record, "JSON_KEYS", "*").replace("*", names).split():
        name = key.rstrip("?")
        name, _, attribute = name.partition("=")
        value = getattr(record, attribute or name)
        # A number of 0 is a value, an empty sequence is not.
        if key.endswith("?") and (value is None or (isinstance(value, Sized) and not len(value))):
            continue
        yield name, value
