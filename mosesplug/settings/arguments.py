"""Arguments that several commands check alike."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

from mosesplug.decoders.process import find_executable
from mosesplug.errors import UsageError

__all__ = [
    "check_transform",
    "find_decoder",
    "parse_assignments",
    "require_file",
    "require_program",
    "require_references",
]

_FOREST = "forest:"


def require_file(name: str | PathLike[str], what: str) -> Path:
    """Absolute path of a file.

    Raises:
        UsageError: there is none.
    """
    path = Path(name).absolute()
    if not path.is_file():
        raise UsageError(f"{what} {fspath(name)} is not a file")
    return path


def require_program(name: str, what: str) -> Path:
    """Absolute path of a program, given by path or found on ``PATH``.

    Raises:
        UsageError: there is none that may be executed.
    """
    program = find_executable(name) if name else None
    if program is None:
        raise UsageError(
            f"{what} {name} is not an executable file: name an existing one, or allow it with"
            " chmod +x"
        )
    return program


def find_decoder(name: str, what: str) -> tuple[Path, Path | None]:
    """A decoder: the path of a program, and None; or a name for search graphs, and their place.

    Args:
        name: a program as ``require_program`` takes it, or ``forest:PLACE``.
        what: it is, for messages.

    Raises:
        UsageError: there is none.
    """
    if not name.startswith(_FOREST):
        return require_program(name, what), None
    place = Path(name.removeprefix(_FOREST)).expanduser().absolute()
    if not place.exists():
        raise UsageError(
            f"{what} {name}: there is no {place}; name the working directory of a run with"
            " --forest, or search graphs of Moses"
        )
    return Path(f"{_FOREST}{place}"), place


def require_references(name: str | PathLike[str]) -> Path:
    """Absolute path of the references, one file or the prefix of several.

    Raises:
        UsageError: there are none.
    """
    path = Path(name).absolute()
    if not any(Path(f"{path}{end}").is_file() for end in ("", "0", ".ref0")):
        name = fspath(name)
        raise UsageError(
            f"there are no references {name}: neither this file, nor {name}0, nor {name}.ref0"
        )
    return path


def check_transform(text: str | None, option: str) -> str | None:
    """What rewrites n-best lists: a script by its path, a command line by its blanks, or ``bpe``.

    Raises:
        UsageError: it is none of these.
    """
    if text is None or " " in text:
        return text
    if Path(text).is_file():
        return shlex.quote(str(Path(text).absolute()))
    if text[:1] == "'" and len(shlex.split(text)) == 1:
        return text  # a quoted path, as it is returned here
    if text.lower() == "bpe":
        return "bpe"
    raise UsageError(f"{option} {text}: neither a file, nor a command with arguments, nor bpe")


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, object]:
    """``name=value`` as a dictionary; the last value of a name counts.

    Raises:
        UsageError: one is not of that form.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: write name=value")
        found[name] = value
    return found
