"""Run a decoder, or one of its helper scripts, as a child process.

The child has its own process group: an interrupt at the terminal reaches this program only, which
then ends the whole group. Its output goes straight to files; while it runs, the lines in its
standard output are counted to report progress.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosesplug.decoders.processes import leash
from mosesplug.errors import DecoderError

_GRACE_SECONDS = 5.0
_PROGRESS_SECONDS = 0.2
_SHELLS_SIGNALS = 128
MESSAGES = "last messages:\n"
"""The line of an error before the messages of a child process."""

_LITTLE_ROOM = 1 << 16
_TAIL_LINES, _TAIL_BYTES = 10, 4096


@dataclass(frozen=True)
class FinishedProcess:
    """A child process that ended with exit code 0.

    Attributes:
        command: the command line.
        stdout, stderr: files with its output.
        seconds: wall time.
    """

    command: tuple[str, ...]
    stdout: Path
    stderr: Path
    seconds: float


def find_executable(program: str) -> Path | None:
    """Return the absolute path of a program; None if missing or not executable.

    A name with a ``/`` is a path relative to the current directory. A name without one is a file
    there, or is searched on ``PATH``.
    """
    here = Path.cwd() / program
    if here.is_file() and os.access(here, os.X_OK):
        return here.absolute()
    path = None if "/" in program else shutil.which(program)
    return None if path is None else Path(path).absolute()


def run_command(
    command: Sequence[str],
    *,
    directory: Path,
    stdout: Path,
    stderr: Path,
    stdin: Path | None = None,
    on_lines: Callable[[int], None] | None = None,
    what: str = "decoder",
    timeout: float | None = None,
    signs: Sequence[Path] = (),
) -> FinishedProcess:
    """Run a command to its end.

    Args:
        command: program and arguments; no shell is used.
        directory: the child's current directory.
        stdout, stderr: files that receive its output; they are replaced.
        stdin: file to read; nothing by default.
        on_lines: called a few times a second with the number of lines in ``stdout``.
        what: the child's role, for messages.
        timeout: seconds after which its process group is ended if it wrote to none of ``stdout``,
            ``stderr`` and ``signs``. None for no limit.
        signs: further files, or directories of files, that it writes.

    Raises:
        DecoderError: it did not start, wrote nothing for too long, or ended with a nonzero exit
            code. The message has the command, the exit code and the end of ``stderr``.
    """
    start = time.monotonic()
    # New files: a process that still writes the old ones does no harm.
    stdout.unlink(missing_ok=True)
    stderr.unlink(missing_ok=True)
    with contextlib.ExitStack() as files:
        child = subprocess.Popen(
            leash_command(command),
            cwd=directory,
            stdin=subprocess.DEVNULL if stdin is None else files.enter_context(stdin.open("rb")),
            stdout=files.enter_context(stdout.open("wb")),
            stderr=files.enter_context(stderr.open("wb")),
            start_new_session=True,
        )
        with _group_ended(child):
            counter = LineCounter(stdout)
            patience = None if timeout is None else _Patience(timeout, (stdout, stderr, *signs))
            while True:
                try:
                    code = child.wait(_pause(timeout, on_lines is not None))
                    break
                except subprocess.TimeoutExpired:
                    if on_lines is not None:
                        on_lines(counter.count())
                    if patience is not None and patience.is_over():
                        end_group(child)
                        raise make_error(
                            describe_silence(what, patience.limit), command, stderr
                        ) from None
    if on_lines is not None:
        on_lines(counter.count())
    if code != 0:
        end_group(child)  # its own children may still run
        raise make_error(f"the {what} {describe_exit(code)}", command, stderr)
    return FinishedProcess(tuple(command), stdout, stderr, time.monotonic() - start)


class _Patience:
    """Measures the time since a child last wrote to its files."""

    def __init__(self, limit: float, paths: Sequence[Path]) -> None:
        self.limit = limit
        self._paths = paths
        self._seen = self._now()
        self._since = time.monotonic()

    def is_over(self) -> bool:
        """Return whether no file has changed within the time limit."""
        seen = self._now()
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since >= self.limit

    def _now(self) -> list[tuple[int, int]]:
        return [_size_and_time(path) for path in self._paths]


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _pause(timeout: float | None, tells: bool) -> float | None:
    """Seconds between two checks of a child; None if only its end matters."""
    if timeout is None:
        return _PROGRESS_SECONDS if tells else None
    return min(_PROGRESS_SECONDS, timeout / 2)


def describe_silence(what: str, limit: float) -> str:
    """Return the message about a child that wrote nothing for ``limit`` seconds."""
    return (
        f"the {what} wrote nothing for {limit:g} s and was killed: it hangs, or"
        " {--decoder-timeout} is too short for it to load its model or to translate a sentence"
    )


def leash_command(command: Sequence[str]) -> list[str]:
    """Return a command whose process group dies with this thread.

    Start it as a new session.
    """
    return [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command]


def make_error(problem: str, command: Sequence[str], stderr: Path) -> DecoderError:
    """Return the error of a failed child, with its command and its last messages."""
    words = read_tail(stderr)
    messages = f"{MESSAGES}{words}" if words else "it wrote no messages"
    text = f"{problem}\ncommand: {shlex.join(command)}\n{messages}\n(in {stderr})"
    with contextlib.suppress(OSError):
        if shutil.disk_usage(stderr.parent).free < _LITTLE_ROOM:
            text += f"\nthe disk of {stderr.parent} is full: free some room"
    return DecoderError(text)


def read_tail(path: Path) -> str:
    """Return the last lines of a file that may be large, growing, or missing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(line.rstrip() for line in text.strip().splitlines()[-_TAIL_LINES:])


class LineCounter:
    """Counts the lines of a growing file, reading each byte once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._lines = 0

    def count(self) -> int:
        """Return the number of lines so far; 0 while the file is missing."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._position)
            while block := file.read(1 << 16):
                self._position += len(block)
                self._lines += block.count(b"\n")
        return self._lines


@contextlib.contextmanager
def _group_ended(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the child's whole process group if anything interrupts the block."""
    try:
        yield
    except BaseException:
        end_group(child)
        raise


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a child and its process group: first SIGTERM, then SIGKILL."""
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def describe_exit(code: int) -> str:
    """Describe how a process ended, from its exit code."""
    if code < 0:
        return f"was killed by {_signal_name(-code)}"
    if code - _SHELLS_SIGNALS in set(signal.Signals):  # of a script that called the decoder
        return f"ended with exit code {code} (killed by {_signal_name(code - _SHELLS_SIGNALS)})"
    return f"ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
