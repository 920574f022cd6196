"""Where several runs of one tuning lie, and how their directory is told from that of a single run.

Kept apart from what does the runs, which brings every optimizer: a look at a directory is cheap.
"""

from __future__ import annotations

import re
from pathlib import Path

from mosesplug.errors import UsageError
from mosesplug.tuning.workdir import caches
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["PLAN", "check_single", "run_directories", "run_directory", "share_filtered"]

PLAN = "runs.json"
"""In the working directory of several runs: how many there are, and which were begun."""

_RUN = re.compile(r"run\.([1-9]\d*)")


def run_directory(directory: Path, number: int) -> Path:
    """Where run ``number``, from 1, lies in the working directory of several."""
    return directory / f"run.{number}"


def run_directories(directory: Path) -> tuple[Path, ...]:
    """The runs in a working directory, the first one first; none if it is not one of several.

    A run that was not begun has no store yet.
    """
    if not (directory / PLAN).is_file():
        return ()
    found = (
        (int(match[1]), path)
        for path in directory.iterdir()
        if (match := _RUN.fullmatch(path.name)) and Workspace(path, 0).store.exists()
    )
    return tuple(path for _, path in sorted(found))


def share_filtered(config: Path, first: Path, other: Path) -> None:
    """Let a run use the model that the first one filtered, if it would filter the same files.

    Relative names in the configuration are those of other files in another directory.

    Args:
        config: the configuration of both.
        first, other: their working directories.
    """
    source, link = Workspace(first, 0).filtered, Workspace(other, 0).filtered
    if caches.model_files(config, first) != caches.model_files(config, other):
        return
    if source.is_dir() and not link.exists() and not link.is_symlink():
        other.mkdir(exist_ok=True)
        caches.share(source, link)


def check_single(directory: Path) -> None:
    """Refuse a working directory of several runs where a single one is to be done.

    Raises:
        UsageError: it is one.
    """
    runs = run_directories(directory) if directory.is_dir() else ()
    if runs:
        raise UsageError(
            f"{directory} holds {len(runs)} runs: go on with them by --runs {len(runs)} --continue,"
            " or name another --working-dir"
        )
