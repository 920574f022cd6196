"""The directories of several runs of one tuning.

This module does not import the optimizers, so that looking at a directory is cheap.
"""

from __future__ import annotations

import re
from pathlib import Path

from mosesplug.decoders import caches
from mosesplug.errors import UsageError
from mosesplug.tuning.workdir.workspace import Workspace

PLAN = "runs.json"
"""The file, in the working directory of several runs, that lists the runs."""

_RUN = re.compile(r"run\.([1-9]\d*)")


def run_directory(directory: Path, number: int) -> Path:
    """Return the directory of a run, counted from 1."""
    return directory / f"run.{number}"


def find_run_directories(directory: Path) -> tuple[Path, ...]:
    """Return the directories of runs that have begun; empty for a single run's."""
    if not (directory / PLAN).is_file():
        return ()
    numbered = (
        (int(match[1]), path)
        for path in directory.iterdir()
        if (match := _RUN.fullmatch(path.name)) and Workspace(path, 0).store.exists()
    )
    return tuple(path for _, path in sorted(numbered))


def share_filtered(config: Path, first: Path, other: Path) -> None:
    """Link the first run's filtered model into a run that filters the same files.

    Relative names in the configuration name other files in another directory.
    """
    source, link = Workspace(first, 0).filtered_model, Workspace(other, 0).filtered_model
    if caches.describe_model_files(config, first) != caches.describe_model_files(config, other):
        return
    if source.is_dir() and not link.exists() and not link.is_symlink():
        other.mkdir(exist_ok=True)
        caches.share(source, link)


def check_single(directory: Path) -> None:
    """Reject the working directory of several runs for a single run.

    Raises:
        UsageError: it holds several runs.
    """
    runs = find_run_directories(directory) if directory.is_dir() else ()
    if runs:
        raise UsageError(
            f"{directory} holds {len(runs)} runs: continue them with {{--runs}} {len(runs)}"
            " {--continue}, or name another {--working-dir}"
        )
