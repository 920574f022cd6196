"""Output of the commands: JSON, raw bytes and files, progress bars."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from formats.text import StrPath, atomic_write, write_atomic
from mosesplug.cli.shared.compiling import COMPILING_ONCE, watch_compiling
from mosesplug.cli.shared.layouts import TableLayout, current_layout, output_stream
from mosesplug.cli.shared.streams import control_stream
from mosesplug.errors import Message, UsageError, spell_option
from mosesplug.events import TextsScored, watch_scoring
from mosesplug.results.render.progress import StatusLine, WorkDisplay
from mosesplug.results.render.render import render_json
from mosesplug.settings.lists import ListSettings

if TYPE_CHECKING:
    from mosesplug.results.views.run import StoredRun  # which only some commands load


def is_terminal() -> bool:
    """Return whether text goes to a terminal."""
    return current_layout() is TableLayout.TEXT and output_stream().isatty()


def check_output(path: Path | None, option: str = "--output", inputs: Iterable[Path] = ()) -> None:
    """Check that the output file of an option can be written.

    Raises:
        UsageError: it is a directory or one of the inputs, or no file can be created beside it.
    """
    if path is None or (path.exists() and not path.is_file() and not path.is_dir()):
        return  # a device or a pipe
    if path.is_file() and any(file.is_file() and file.samefile(path) for file in inputs):
        raise UsageError(f"{path} is both an input and an output. Choose another {option}")
    directory = path.resolve().parent
    reason = None
    if path.is_dir():
        reason = "it is a directory"
    elif not directory.is_dir():
        reason = f"there is no directory {directory}"
    elif not os.access(directory, os.W_OK | os.X_OK):
        reason = f"no file can be created in {directory}"
    if reason is not None:
        raise UsageError(f"{option} {path}: {reason}")


def check_two_outputs(outputs: Mapping[str, Path | None]) -> None:
    """Check that two options do not name the same output file.

    Raises:
        UsageError: they do.
    """
    (one, path), (other, second) = outputs.items()
    if path is not None and second is not None and path.resolve() == second.resolve():
        raise UsageError(f"{one} and {other} both name {path}. Choose another {other}")


def print_bytes(data: bytes) -> None:
    """Write bytes to stdout, whatever the locale; escaped on a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings to stderr, a line for each."""
    for warning in warnings:
        print(f"warning: {Message(warning, spell_option)}", file=sys.stderr)


def note_weighting(run: StoredRun) -> None:
    """Print a note to stderr if scores of a run are weighted."""
    if run.weighting:
        print(f"note: {run.path} has {run.weighting}.", file=sys.stderr)


def print_json(record: Any) -> None:
    """Print a record as a JSON document in UTF-8."""
    print_bytes(render_json(record).encode())


def write_output(path: Path | None, data: bytes) -> None:
    """Write a file atomically, or stdout if no path is given."""
    if path is None:
        print_bytes(data)
    else:
        write_atomic(path, data)


@contextmanager
def open_output(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Open stdout, or a file that appears only when it is complete.

    Yields:
        A function that writes bytes. A path that ends in ``.gz`` is compressed.
    """
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with atomic_write(path, compress="gz" if path.suffix == ".gz" else None) as file:
        yield file.write


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on stderr: a bar on a terminal, else a line every half minute.

    What is printed meanwhile stands above the bar. If score commands are asked, the bar shows how
    many texts they have scored so far, and a line for each command counts them at the end.

    Yields:
        A function ``(done, total, description)`` that updates the bar. Any thread may call it.
    """
    if quiet:
        yield lambda done, total, description: None
        return
    line = StatusLine(sys.stderr, control_stream(sys.stderr))
    display = WorkDisplay(line)
    scoring = _Scoring(display if line.is_live else None)
    if not line.is_live:
        with watch_scoring(scoring):
            yield display
        scoring.print_counts()
        return

    def show_compiling(is_compiling: bool) -> None:
        display.show_compiling(COMPILING_ONCE if is_compiling else "")

    above = [_Above(stream, display) for stream in (sys.stdout, sys.stderr)]
    try:
        with (
            redirect_stdout(cast("TextIO", above[0])),
            redirect_stderr(cast("TextIO", above[1])),
            watch_compiling(show_compiling),
            watch_scoring(scoring),
        ):
            yield display
    finally:
        display.clear()
        for stream in above:
            stream.flush()
    scoring.print_counts()


class _Scoring:
    """Shows what score commands do, and counts it."""

    def __init__(self, display: WorkDisplay | None) -> None:
        self._display = display
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, int]] = {}

    def __call__(self, event: TextsScored) -> None:
        """Take what a command has done, in any thread."""
        with self._lock:
            n_scored, n_known = self._counts.get(event.metric, (0, 0))
            self._counts[event.metric] = n_scored + event.new, n_known + event.known
        if self._display is not None and event.total:
            self._display(event.done, event.total, f"texts scored by {event.metric}")

    def print_counts(self) -> None:
        """Print a line for each command."""
        if not self._counts:
            return
        from mosesplug.metrics.scored import describe_scoring

        for metric, counts in self._counts.items():
            print(describe_scoring(metric, *counts), file=sys.stderr)


class _Above:
    """A stream whose lines take the place of a bar, which is drawn again below them."""

    def __init__(self, stream: TextIO, display: WorkDisplay) -> None:
        self._stream, self._display = stream, display
        self._text = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text when its line is complete, since another thread may draw the bar."""
        self._text += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Remove the bar, and write what is not written yet."""
        if self._text:
            self._display.clear()
            self._stream.write(self._text)
            self._text = ""
        self._stream.flush()


def print_formats(files: Sequence[StrPath], settings: ListSettings, *, quiet: bool = False) -> None:
    """Print the formats that were found, where they are not that of Moses.

    Raises:
        FormatError: a file cannot be read, or has no known format.
    """
    if quiet:
        return
    from mosesplug.learning.lists.blocks import describe_formats

    for line in describe_formats(files, settings):
        print(line, file=sys.stderr)
