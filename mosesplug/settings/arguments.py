"""Checks of programs and other arguments that several commands take."""

from __future__ import annotations

import shlex
from pathlib import Path

from mosesplug.decoders.description import DecodedGraphs
from mosesplug.decoders.process import find_executable
from mosesplug.errors import UsageError

_FOREST = "forest:"


def require_program(name: str, what: str) -> Path:
    """Return the absolute path of a program, given by its path or found on ``PATH``.

    Raises:
        UsageError: it is not an executable file.
    """
    program = find_executable(name) if name else None
    if program is None:
        raise UsageError(
            f"{what} {name} is not an executable file. Give the path of a program, or make it"
            " executable: chmod +x"
        )
    return program


def find_decoder(name: str, what: str) -> Path | DecodedGraphs:
    """Return the path of a program, or the search graphs of ``forest:PATH``.

    Args:
        name: a program as ``require_program`` takes it, or ``forest:PATH``.

    Raises:
        UsageError: there is no such program or path.
    """
    if not name.startswith(_FOREST):
        return require_program(name, what)
    place = Path(name.removeprefix(_FOREST)).expanduser().absolute()
    if not place.exists():
        raise UsageError(
            f"{what} {name}: {place} does not exist. Give the working directory of a run with"
            " --forest, or search graphs of Moses."
        )
    return DecodedGraphs(place)


def check_transform(text: str | None, option: str) -> str | None:
    """Return the command that rewrites lists: a script, a command line, or ``bpe``.

    Raises:
        UsageError: the text is neither a file, nor a command with arguments, nor ``bpe``.
    """
    if text is None or " " in text:
        return text
    if Path(text).is_file():
        return shlex.quote(str(Path(text).absolute()))
    if text[:1] == "'" and len(shlex.split(text)) == 1:
        return text  # a quoted path, as it is returned here
    if text.lower() == "bpe":
        return "bpe"
    raise UsageError(
        f"{option} {text}: not a file. Give a script, a command with arguments, or bpe."
    )
