"""A pseudo-terminal for commands that run in this process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from typing import TextIO, cast

import pytest

from mosesplug.cli.main import main

SIZE = 1 << 16


def run_on_terminal(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    columns: int = 80,
) -> tuple[int, bytes]:
    """Run a command of ``mosesplug`` on a terminal of so many columns.

    Returns:
        The exit code, and the bytes that the terminal got.
    """
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with capfd.disabled(), _terminal(columns, monkeypatch) as shown:
        with pytest.raises(SystemExit) as end:
            main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    return int(end.value.code or 0), b"".join(shown)


@contextlib.contextmanager
def _terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Connect the three standard streams to a terminal; yield what it gets."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    modes = termios.tcgetattr(slave)
    modes[1] &= ~termios.OPOST  # line feeds stay as they are
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # when the last writer is gone
            while data := os.read(master, SIZE):
                shown.append(data)

    reader = threading.Thread(target=read)
    saved = [os.dup(number) for number in range(3)]
    try:
        for number in range(3):
            os.dup2(slave, number)
        os.close(slave)
        reader.start()
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False) as err,
            monkeypatch.context() as streams,
        ):
            for name, stream in (("stdout", out), ("stderr", err)):
                streams.setattr(sys, name, cast(TextIO, stream))
                streams.setattr(sys, f"__{name}__", cast(TextIO, stream))
            yield shown
    finally:
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)
        reader.join()
        os.close(master)
