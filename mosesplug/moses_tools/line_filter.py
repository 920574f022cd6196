"""A command that rewrites text line by line: a tokeniser, a stemmer."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from formats.text import read_lines
from mosesplug.decoders.process import run_command
from mosesplug.errors import DecoderError

__all__ = ["filter_lines"]


def filter_lines(command: str, lines: Sequence[bytes]) -> list[bytes]:
    """Pass lines through a command and return its output lines.

    Equal lines are sent once, so the command must process each line independently. The command
    reads all lines from one file, so it may read ahead and need not flush its output.

    Args:
        command: a ``bash`` command, run in the current directory.
        lines: lines without ``\\n``.

    Raises:
        DecoderError: the command could not be started, failed, or did not write one line for
            each input line.
    """
    distinct = list(dict.fromkeys(lines))
    with tempfile.TemporaryDirectory(prefix="mosesplug-filter-") as directory:
        sent, got = Path(directory) / "in", Path(directory) / "out"
        sent.write_bytes(b"".join(line + b"\n" for line in distinct))
        run_command(
            ("bash", "-c", command),
            directory=Path.cwd(),
            stdin=sent,
            stdout=got,
            stderr=Path(directory) / "messages",
            what="filter",
        )
        given = read_lines(got)
    if len(given) != len(distinct):
        raise DecoderError(
            f"the filter {command!r} wrote {len(given)} lines for {len(distinct)}: it must write "
            "one line for each input line"
        )
    changed = dict(zip(distinct, given, strict=True))
    return [changed[line] for line in lines]
