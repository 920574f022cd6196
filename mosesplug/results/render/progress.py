"""Progress of work: a changing line on a terminal, and lines elsewhere."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TextIO

from mosesplug.escapes import escape_controls
from mosesplug.results.render.run_lines import format_left

_CLEAR_LINE = "\r\x1b[K"
_BAR = 30
_SECONDS_BETWEEN_UPDATES = 0.1
"""A terminal is written to at most this often."""

_SECONDS_BETWEEN_LINES = 30.0
"""Without a terminal, lines are this far apart."""


class StatusLine:
    """The last line of a stream, which is replaced as work proceeds.

    Args:
        stream: where lines go.
        controls: the same without escapes of control characters; None: ``stream`` has none.
        is_live: whether the line is shown; None: on a terminal only.
    """

    def __init__(
        self, stream: TextIO, controls: TextIO | None = None, *, is_live: bool | None = None
    ) -> None:
        self._stream, self._controls = stream, controls or stream
        self._is_terminal = stream.isatty()
        self.is_live = self._is_terminal if is_live is None else is_live
        self._shown = ""

    def set(self, text: str) -> None:
        """Replace the text of the line."""
        if not self.is_live or text == self._shown:
            return
        if self._is_terminal:
            self._controls.write(_CLEAR_LINE)
            self._stream.write(text)
        else:  # which may show escape sequences as they are
            self._stream.write(f"\r{text:<{len(self._shown)}}")
        self._stream.flush()
        self._shown = text

    def write(self, text: str) -> None:
        """Write text in the place of the line."""
        if self._is_terminal:
            self._controls.write(_CLEAR_LINE)
        elif self._shown:
            self._stream.write(f"\r{'':{len(self._shown)}}\r")
        self._shown = ""
        self._stream.write(text)
        self._stream.flush()

    def clear(self) -> None:
        """Remove the text, so that other output starts on a new line."""
        if self._shown:
            self.write("")


class WorkDisplay:
    """Shows how much of some work is done; any thread may call it."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._what = self._text = ""
        self._begin = self._start = self._last = time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show that a part of the work is done; a total of 0 is unknown."""
        now = time.monotonic()
        with self._lock:
            is_new = what != self._what
            if is_new:
                self._what, self._start = what, now
            if not self._line.is_live:
                self._write_line(done, total, now)
            elif is_new or done == total or now - self._last >= _SECONDS_BETWEEN_UPDATES:
                self._last = now
                self._text = self._draw(done, total, now - self._start)
                self._line.set(self._text)

    def show_compiling(self, text: str) -> None:
        """Show a text while kernels compile; an empty one shows the work again."""
        with self._lock:
            self._line.set(text or self._text)

    def clear(self) -> None:
        """Remove the display."""
        with self._lock:
            self._line.clear()

    def _draw(self, done: int, total: int, seconds: float) -> str:
        what = escape_controls(self._what)
        if total <= 0:
            return f"{done} {what}"
        bar = "#" * (_BAR * done // total)
        text = f"{bar:.<{_BAR}} {done}/{total} {what}{format_left(seconds, done, total)}"
        # A line that wraps could not be erased.
        return text[: shutil.get_terminal_size().columns - 1]

    def _write_line(self, done: int, total: int, now: float) -> None:
        if now - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = now
        of_total = f" of {total}" if total > 0 else ""
        self._line.write(f"{self._what}: {done}{of_total}, {now - self._begin:.0f} s\n")
