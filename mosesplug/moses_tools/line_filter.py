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
    """Return the lines as a command gives them back.

    Equal lines are sent once, so the command must treat each line by itself. It gets them all in
    one file: unlike with a pipe to and fro, it may read ahead and need not flush its output.

    Args:
        command: for ``bash``, in the current directory.
        lines: without ``\\n``.

    Raises:
        DecoderError: it could not be started, failed, or does not give one line for each.
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
            f"the filter {command!r} gave {len(given)} lines for {len(distinct)}: it must give one "
            "line for each"
        )
    changed = dict(zip(distinct, given, strict=True))
    return [changed[line] for line in lines]
