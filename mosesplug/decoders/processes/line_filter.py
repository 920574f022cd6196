"""Pass lines through a command that runs once, in bounded memory."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mosesplug.decoders.processes.run import describe_exit, end_group, leash_command, make_error
from mosesplug.errors import DecoderError
from mosesplug.scratch import ScratchDirectory

_CHUNK_BYTES = 1 << 16


class LineFilter:
    """A shell command that reads lines and writes one line for each, in their order.

    The command may buffer its output: ``send`` returns at once, and ``receive`` returns what has
    come back. A thread reads all the while, so that neither side waits for the other forever.

    Args:
        command: the command of ``/bin/sh``, run in the current directory.
        what: its role, for messages.

    Raises:
        DecoderError: the command failed, or wrote another number of lines than it got.
    """

    def __init__(self, command: str, what: str) -> None:
        self._command, self._what = ("/bin/sh", "-c", command), what
        self._directory = ScratchDirectory()
        self._messages = Path(self._directory.name) / "messages"
        with self._messages.open("wb") as messages:
            self._child = subprocess.Popen(
                leash_command(self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                start_new_session=True,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._input: IO[bytes] = self._child.stdin
        self._lines: deque[bytes] = deque()
        self._sent = self._received = 0
        self._reader = threading.Thread(target=self._read, args=[self._child.stdout], daemon=True)
        self._reader.start()

    def send(self, lines: list[bytes]) -> None:
        """Send lines without their ``\\n``."""
        self._sent += len(lines)
        # A command that ends early closes its input; ``finish`` reports it.
        with contextlib.suppress(BrokenPipeError):
            self._input.write(b"".join(line + b"\n" for line in lines))

    def receive(self, count: int) -> list[bytes] | None:
        """Return the next ``count`` lines, or None if they have not come back yet."""
        if len(self._lines) < count:
            return None
        self._received += count
        return [self._lines.popleft() for _ in range(count)]

    def finish(self) -> None:
        """End the input, and wait until all lines have come back.

        Raises:
            DecoderError: the command failed, or wrote another number of lines than it got.
        """
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._reader.join()
        if code := self._child.wait():
            raise make_error(
                f"the {self._what} {describe_exit(code)}", self._command, self._messages
            )
        written = self._received + len(self._lines)
        if written != self._sent:
            raise DecoderError(
                f"the {self._what} {self._command[-1]!r} wrote {written} lines for {self._sent}: "
                "it must write one line for each input line"
            )

    def close(self) -> None:
        """End the command if it still runs, and remove its files."""
        if self._child.poll() is None:
            end_group(self._child)
        with contextlib.suppress(OSError):
            self._input.close()
        self._reader.join()
        self._directory.cleanup()

    def _read(self, output: IO[bytes]) -> None:
        with output:
            for line in _iter_lines(output):
                self._lines.append(line)


def _iter_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines without ``\\n``; the last may lack it."""
    waiting = b""
    while chunk := file.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
        *lines, waiting = (waiting + chunk).split(b"\n")
        yield from lines
    if waiting:
        yield waiting
