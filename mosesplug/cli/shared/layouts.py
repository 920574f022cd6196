"""The layout of a command's tables: text, JSON, TSV, CSV, Markdown or LaTeX.

A command that takes ``parameters.Json`` gets ``--format`` as well (``--table-format`` where
``--format`` is that of n-best lists; a name that only a layout has is a layout there, too). It
prints a record by ``tables.print_record``; nothing else in it depends on the layout. In TSV, CSV
and LaTeX, stdout holds tables only, and what the command prints besides goes to stderr.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TextIO, cast

import typer

from mosesplug.cli.shared.completion import offer
from mosesplug.cli.shared.inputs import find_mark
from mosesplug.cli.shared.parameters import JSON_OPTION
from mosesplug.errors import UsageError
from mosesplug.options import Opt


class TableLayout(StrEnum):
    """The layout of tables."""

    TEXT = "text"
    JSON = "json"
    TSV = "tsv"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


_LAYOUTS_ONLY = (TableLayout.TEXT, TableLayout.MARKDOWN, TableLayout.LATEX)
"""Layouts that are not formats of n-best lists."""
_TABLES_ONLY = (TableLayout.TSV, TableLayout.CSV, TableLayout.LATEX)


@dataclass
class _Printing:
    """The layout of tables, their stream, and the number of tables so far."""

    layout: TableLayout
    stream: TextIO
    tables: int = 0


_PRINTING: ContextVar[_Printing | None] = ContextVar("printing", default=None)
"""Set while a command runs; a value of its call, not of the program."""

_NAME = "table_format"
_OPTIONS = ("--format", "--table-format")


def current_layout() -> TableLayout:
    """Return the layout that the running command was asked for."""
    printing = _PRINTING.get()
    return TableLayout.TEXT if printing is None else printing.layout


def output_stream() -> TextIO:
    """Return the stream of tables and other results."""
    printing = _PRINTING.get()
    return sys.stdout if printing is None else printing.stream


def begin_table() -> bool:
    """Count a table of the running command; return whether it follows another."""
    printing = _PRINTING.get()
    if printing is None:
        return False
    printing.tables += 1
    return printing.tables > 1


@dataclass(frozen=True)
class TableOptions:
    """Options of a command that prints tables.

    Attributes:
        parameter: ``--format``, or ``--table-format`` where the other is that of n-best lists.
        place: its place among the parameters of the command.
        json: the parameter of ``--json``.
        of_lists: the parameter of ``--format`` if that is of n-best lists.
    """

    parameter: inspect.Parameter
    place: int
    option: str
    json: str
    of_lists: str | None

    @classmethod
    def find(cls, parameters: Sequence[inspect.Parameter]) -> TableOptions | None:
        """Return the options of a command; None if it prints no tables."""
        marked = [(parameter, find_mark(parameter, Opt)) for parameter in parameters]
        owners = {
            f"--{name}": parameter.name
            for parameter, mark in marked
            if mark is not None
            for name in mark.spellings
        }
        places = [place for place, one in enumerate(parameters) if _is_json(one)]
        if not places:
            return None
        names = [name for name in _OPTIONS if name not in owners]
        option = typer.Option(
            *names,
            metavar="NAME",
            help=f"Format of tables: {', '.join(TableLayout)}.",
            show_default=False,
            autocompletion=offer(TableLayout),
        )
        parameter = inspect.Parameter(
            _NAME,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[TableLayout | None, option],
        )
        json = parameters[places[0]].name
        return cls(parameter, places[0], names[0], json, owners.get(_OPTIONS[0]))

    def choose(self, values: dict[str, Any]) -> AbstractContextManager[None]:
        """Take the layout out of the values of a command; tables in the block have it.

        Raises:
            UsageError: ``--json`` and another layout are given.
        """
        layout = values.pop(_NAME)
        if layout is None and self.of_lists is not None and _names_layout(values, self.of_lists):
            layout, values[self.of_lists] = TableLayout(values[self.of_lists]), None
        if values[self.json] and layout not in (None, TableLayout.JSON):
            raise UsageError(f"--json and {self.option} {layout} exclude each other")
        if values[self.json]:
            layout = TableLayout.JSON
        values[self.json] = layout is TableLayout.JSON
        return _printing(layout or TableLayout.TEXT)


def _names_layout(values: dict[str, Any], of_lists: str) -> bool:
    """Return whether ``--format``, by name that of lists, can only be of tables.

    JSON, CSV and TSV are formats of both.
    """
    name = values[of_lists]
    without_lists = "nbest" in values and not values["nbest"]
    return name in set(TableLayout) and (without_lists or name in _LAYOUTS_ONLY)


def _is_json(parameter: inspect.Parameter) -> bool:
    return JSON_OPTION in getattr(parameter.annotation, "__metadata__", ())


@contextlib.contextmanager
def _printing(layout: TableLayout) -> Iterator[None]:
    stream = sys.stdout
    token = _PRINTING.set(_Printing(layout, stream))
    notes = cast("TextIO", _Notes()) if layout in _TABLES_ONLY else stream
    try:
        with contextlib.redirect_stdout(notes):
            yield
    finally:
        _PRINTING.reset(token)


class _Notes(io.TextIOBase):
    """A stream that writes text beside tables to stderr, without blank lines."""

    def write(self, text: str) -> int:
        if text.strip():
            sys.stderr.write(text.strip("\n") + "\n")
        return len(text)
