"""Check that files and directories exist that a user has named."""

from __future__ import annotations

import re
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

from mosesplug.errors import UsageError, suggest

FOREST = "forest:"
"""Prefix of search graphs that are named in the place of a decoder."""

_ITERATION = re.compile(r"(.+):([0-9]+)", re.DOTALL)

_MOST_NEIGHBORS = 1000
"""Files among which one with a similar name is looked for."""


def require_path(name: str | PathLike[str], what: str) -> Path:
    """Return the absolute path of a file, a directory or a pipe.

    Args:
        what: what messages call it: an option, or "the input".

    Raises:
        UsageError: nothing is there.
    """
    path = Path(name)
    if not path.exists():
        remedy = _suggest_neighbor(path) or ". Check the name"
        raise UsageError(f"{what} {fspath(name)}: No such file or directory{remedy}")
    return path.absolute()


def require_file(name: str | PathLike[str], what: str) -> Path:
    """Return the absolute path of a file.

    Raises:
        UsageError: it is missing, or not a file.
    """
    path = require_path(name, what)
    if not path.is_file():
        raise UsageError(f"{what} {fspath(name)} is not a file")
    return path


def require_references(name: str | PathLike[str], what: str = "references") -> Path:
    """Return the absolute path of the references, one file or the prefix of several.

    Raises:
        UsageError: there is no such file.
    """
    path = Path(name).absolute()
    if not any(Path(f"{path}{end}").is_file() for end in ("", "0", ".ref0")):
        name = fspath(name)
        raise UsageError(
            f"{what} {name} not found: neither {name} nor {name}0 nor {name}.ref0 is a file"
        )
    return path


def split_iteration(name: str) -> tuple[Path, int] | None:
    """Return directory and iteration of ``DIRECTORY:N``; None of another name."""
    match = _ITERATION.fullmatch(name)
    if match is None or not Path(match[1]).is_dir():
        return None
    return Path(match[1]), int(match[2])


def _suggest_neighbor(path: Path) -> str:
    try:
        neighbors = [entry.name for entry in islice(path.parent.iterdir(), _MOST_NEIGHBORS)]
    except OSError:
        return ""
    return suggest(path.name, neighbors)
