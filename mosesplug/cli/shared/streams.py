"""The standard streams of every program.

What is printed as text reaches the streams with its control characters escaped, whoever prints it,
so texts, ids, feature names and file names cannot change a terminal. Bytes (``sys.stdout.buffer``)
are data: a pipe or a file gets them unchanged, a terminal gets them escaped.

Errors of stdout name it. Errors of stderr are ignored: there is nobody to tell, and the work goes
on.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from mosesplug.escapes import escape_controls

STDOUT = "stdout"
"""The file name in errors of stdout."""

_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)
"""Modes that replace closed descriptors 0, 1 and 2: input and output fail, messages are dropped."""


class _ShownText:
    """A text stream that escapes control characters, except line feeds and tabs."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self.unescaped = stream
        self.escapes = True
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        with self._errors():
            shown = escape_controls(text, keeps_lines=True) if self.escapes else text
            self.unescaped.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write the buffered text."""
        with self._errors():
            self.unescaped.flush()

    def _errors(self) -> contextlib.AbstractContextManager[object]:
        return _named_errors(self._name)


class _Messages(_ShownText):
    """Stderr, whose errors are ignored."""

    def _errors(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.suppress(OSError)


class _Output(_ShownText):
    """Stdout, with its bytes."""

    def __init__(self, stream: TextIO, name: str) -> None:
        super().__init__(stream, name)
        # Once, since programs compare it with other outputs.
        self.buffer = _Bytes(stream, name) if hasattr(stream, "buffer") else None
        self._is_dropped = False

    def drop(self) -> None:
        """Drop the buffered text and all later output."""
        self._is_dropped = True

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        return len(text) if self._is_dropped else super().write(text)

    def flush(self) -> None:
        """Write the buffered text."""
        if not self._is_dropped:
            super().flush()


class _Bytes:
    """The bytes of stdout: unchanged, but escaped on a terminal."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._is_terminal = stream.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream.buffer, name)

    def write(self, data: Any) -> int:
        """Write bytes; return their number."""
        with _named_errors(self._name):
            if self._is_terminal:
                text = self._decoder.decode(bytes(data))
                self._stream.write(escape_controls(text, keeps_lines=True))
            else:
                self._stream.buffer.write(data)
        return memoryview(data).nbytes

    def writelines(self, lines: Iterable[Any]) -> None:
        """Write several pieces."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write the buffered text."""
        with _named_errors(self._name):
            if self._is_terminal:
                self._stream.flush()
            self._stream.buffer.flush()


@contextlib.contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Let errors of the system name the stream."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def control_stream(stream: TextIO) -> TextIO:
    """Return the stream below one that escapes, for cursor and color codes.

    Its user escapes all text that comes from data.
    """
    return stream.unescaped if isinstance(stream, _ShownText) else stream


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Escape the output of the block; open standard streams that are closed.

    A closed descriptor would be the next file that is opened, and a message of a library or a
    process would be written into that file.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    _open_closed_descriptors()
    sys.stdin, sys.stdout, sys.stderr = _prepare(*before)
    try:
        yield
    finally:
        for stream, earlier in ((sys.stdout, before[1]), (sys.stderr, before[2])):
            if isinstance(stream, _ShownText) and stream is not earlier:
                # Libraries keep streams and reset the colors of a terminal at exit.
                stream.escapes = False
        sys.stdin, sys.stdout, sys.stderr = before


def _prepare(stdin: Any, stdout: Any, stderr: Any) -> tuple[TextIO, TextIO, TextIO]:
    """Return the streams of a program; None stands for a closed stream."""
    if stdin is None:
        stdin = os.fdopen(0, closefd=False)
    if stdout is None:
        # Without a buffer, so that the first output fails.
        stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    if stderr is None:
        stderr = os.fdopen(2, "w", closefd=False)
    for stream in (stdout, stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            # Escape characters that the encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    if not isinstance(stdout, _ShownText):
        stdout = _Output(stdout, STDOUT)
    if not isinstance(stderr, _ShownText):
        stderr = _Messages(stderr, "stderr")
    return stdin, cast("TextIO", stdout), cast("TextIO", stderr)


def _open_closed_descriptors() -> None:
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one.
            os.set_inheritable(os.open(os.devnull, mode), True)


def discard_stdout() -> None:
    """Drop what stdout cannot write; Python would try again at exit."""
    output: Any = sys.stdout
    if isinstance(output, _Output):
        output.drop()
    stream = control_stream(output)
    if stream is not sys.__stdout__:
        return
    target = os.open(os.devnull, os.O_WRONLY)
    os.dup2(target, stream.fileno())
    os.close(target)
    with contextlib.suppress(OSError):
        stream.flush()
