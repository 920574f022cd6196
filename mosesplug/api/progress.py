"""Show progress, and log the lines that the command line prints.

Warnings have the level ``WARNING``, which Python shows on stderr where logging is not configured,
everything else ``INFO``. Options are spelled as keywords.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from importlib import import_module
from threading import Lock
from typing import Any

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.text import StrPath
from mosesplug.errors import Message, Spelling, UsageError
from mosesplug.escapes import escape_controls
from mosesplug.events import TextsScored, watch_scoring
from mosesplug.learning.lists.blocks import describe_formats
from mosesplug.results.render.progress import StatusLine, WorkDisplay
from mosesplug.results.render.run_lines import RunLines
from mosesplug.results.render.tables import Block, format_blocks
from mosesplug.settings.lists import ListSettings

ProgressFunction = Callable[[int, int, str], object]

Progress = bool | ProgressFunction | None
"""None: report nothing; True: a bar; a function: called with (done, total, what)."""

_SECONDS_BETWEEN_UPDATES = 0.1
"""A notebook gets a message for each."""


@contextmanager
def open_progress(progress: Progress) -> Iterator[Callable[[int, int, str], None]]:
    """Yield the function that a computation calls with the work done.

    Args:
        progress: see ``Progress``. The bar is on stderr, or in a notebook the output of its cell,
            and disappears at the end. A function may be called from any thread, and an exception
            that it raises ends the computation.
    """
    if progress is None or progress is False:
        yield lambda done, total, what: None
    elif progress is True:
        bar = (
            _NotebookBar() if _is_notebook() else WorkDisplay(StatusLine(sys.stderr, is_live=True))
        )
        try:
            with _show_scoring(bar):
                yield bar
        finally:
            bar.clear()
    elif callable(progress):
        function = progress

        def report(done: int, total: int, what: str) -> None:
            function(done, total, what)

        with _show_scoring(report):
            yield report
    else:
        raise UsageError(f"progress is {progress!r}: give None, True, or a function")


def _show_scoring(report: Callable[[int, int, str], None]) -> AbstractContextManager[None]:
    """Report the texts that commands score within a block."""

    def show(event: TextsScored) -> None:
        if event.total:
            report(event.done, event.total, f"texts scored by {event.metric}")

    return watch_scoring(show)


def _is_notebook() -> bool:
    """Return whether this is a notebook: IPython with a kernel has no terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class _NotebookBar:
    """A bar in the output of a notebook's cell, with the time that is left."""

    def __init__(self) -> None:
        display = import_module("IPython.display")
        self._html: Callable[[str], Any] = display.HTML
        self._handle: Any = display.display(self._html(""), display_id=True)
        self._lock = Lock()
        self._what = ""
        self._began = self._last = 0.0

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        with self._lock:
            if what != self._what:
                self._what, self._began, self._last = what, now, -math.inf
            if done < total and now - self._last < _SECONDS_BETWEEN_UPDATES:
                return
            self._last = now
            left = (now - self._began) * (total - done) / done if done > 0 else 0.0
            remaining = f", {left:.0f} s left" if left >= 1.0 else ""
            self._handle.update(
                self._html(
                    f'<progress value="{done}" max="{max(total, 1)}"></progress> '
                    f"{done}/{total} {escape(what)}{remaining}"
                )
            )

    def clear(self) -> None:
        self._handle.update(self._html(""))


_LOGGER = logging.getLogger("mosesplug")


class RunLog(RunLines):
    """Logs the events of a run."""

    def __init__(self, spelling: Spelling) -> None:
        super().__init__()
        self._spelling = spelling

    def write_line(self, text: str, *, is_warning: bool = False) -> None:
        """Log a line."""
        if is_warning:
            log_warnings([Message(text, self._spelling)])
        else:
            _log(logging.INFO, Message(text, self._spelling))

    def set_status(self, text: str) -> None:
        """Log nothing: a status is replaced many times a second."""


def log_lines(blocks: Iterable[Block]) -> None:
    """Log a report, a record for each line that is not empty."""
    if _LOGGER.isEnabledFor(logging.INFO):
        for line in filter(None, format_blocks(blocks).splitlines()):
            _log(logging.INFO, line)


def log_warnings(warnings: Iterable[str]) -> None:
    """Log warnings."""
    for warning in warnings:
        _log(logging.WARNING, f"warning: {warning}")


def _log(level: int, text: str) -> None:
    """Log a text without the control characters of what it quotes."""
    _LOGGER.log(level, "%s", escape_controls(text, keeps_lines=True))


def log_formats(lists: Iterable[StrPath | NBestList], settings: ListSettings) -> None:
    """Log the formats that were found in files."""
    if _LOGGER.isEnabledFor(logging.INFO):
        try:
            for line in describe_formats(lists, settings):
                _log(logging.INFO, line)
        except FormatError:
            return  # which reading raises
