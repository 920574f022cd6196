"""A child process that keeps running, and the thread that started it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mosesplug.decoders.processes.run import describe_exit, end_group, leash_command
from mosesplug.errors import DecoderError


class Child:
    """The process, and a thread that starts it and waits for its end.

    ``leash`` ties a process to the *thread* that started it, so the thread must live as long.

    Args:
        role: what it is, for messages.
        command: program and arguments; no shell is used.
        directory: its current directory.
        stderr: file that receives its messages; it is replaced.
        descriptors: open files that it inherits.
        talks: whether its standard input and output are pipes; else it has none.

    Attributes:
        ended: is set when the process has ended.
        over: whether it was ended by ``end``.

    Raises:
        DecoderError: it did not start.
    """

    def __init__(
        self,
        role: str,
        command: Sequence[str],
        directory: Path,
        stderr: Path,
        descriptors: Sequence[int] = (),
        *,
        talks: bool = False,
    ) -> None:
        self.ended = threading.Event()
        self.over = False
        self._role = role
        self._process: subprocess.Popen[bytes] | None = None
        self._error: Exception | None = None
        started = threading.Event()
        arguments = (leash_command(command), directory, stderr, descriptors, talks, started)
        threading.Thread(target=self._keep, args=arguments, daemon=True).start()
        started.wait()
        if self._error is not None:
            raise DecoderError(f"{command[0]}: {self._error}") from self._error

    def _keep(
        self,
        command: Sequence[str],
        directory: Path,
        stderr: Path,
        descriptors: Sequence[int],
        talks: bool,
        started: threading.Event,
    ) -> None:
        pipe = subprocess.PIPE if talks else subprocess.DEVNULL
        try:
            with stderr.open("wb") as file:
                self._process = subprocess.Popen(
                    command,
                    cwd=directory,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=file,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
        except Exception as error:  # another thread waits for the process
            self._error = error
            return
        finally:
            started.set()
        self._process.wait()
        self.ended.set()

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Standard input and output of a child that ``talks``."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise ValueError(f"the {self._role} has no pipes")
        return process.stdin, process.stdout

    def problem(self) -> str | None:
        """Return how the process ended; None while it runs."""
        if self._process is None or not self.ended.is_set():
            return None
        return f"the {self._role} {describe_exit(self._process.returncode)}"

    def end(self) -> None:
        """End the process and its children."""
        if self._process is not None and not self.over:
            self.over = True  # later, another process may have its number
            end_group(self._process)
            self.ended.wait()
