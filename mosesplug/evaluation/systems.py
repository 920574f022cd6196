"""Systems to compare: files of translations, or working directories of tuning runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mosesplug.errors import DataError, UsageError
from mosesplug.tuning.repeats.files import find_run_directories
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["System", "find_tuned_translations", "parse_systems"]


@dataclass(frozen=True)
class System:
    """A system: its name, and one file of translations for each of its runs."""

    name: str
    paths: tuple[Path, ...]


def parse_systems(words: Sequence[str]) -> list[System]:
    """Return the systems that the words name: ``FILE[,FILE...]`` or ``NAME=FILE[,FILE...]``.

    A working directory stands for its tuned translations, see ``find_tuned_translations``.

    Raises:
        UsageError: a file is missing, or two systems have the same name.
        DataError: a working directory holds no tuned translations.
    """
    systems: list[System] = []
    for word in words:
        named = re.fullmatch(r"([^=/]+)=(.+)", word)
        name, files = (named[1], named[2]) if named and not Path(word).exists() else (word, word)
        given = [Path(files)] if Path(files).exists() else [Path(each) for each in files.split(",")]
        paths: list[Path] = []
        for path in given:
            if not path.exists():
                raise UsageError(f"there is no file {path} (in {word})")
            paths += find_tuned_translations(path) if path.is_dir() else [path]
        systems.append(System(name, tuple(paths)))
    names = [system.name for system in systems]
    if len(set(names)) < len(names):
        raise UsageError("two systems have the same name: name them with NAME=FILE")
    return systems


def find_tuned_translations(directory: Path) -> list[Path]:
    """Return the translations of the tuning set with the result's weights, one file for each run.

    Args:
        directory: a working directory, which may hold several runs.

    Raises:
        DataError: it is not the working directory of a finished run, or nothing was decoded with
            the weights of its result.
    """
    return [_find_in_run(run) for run in find_run_directories(directory) or (directory,)]


def _find_in_run(directory: Path) -> Path:
    """Return ``runN.out`` of the iteration that was decoded with the weights of the result."""
    workspace = Workspace(directory, 0)
    try:
        decoded = StoredSummary.read(workspace.summary).decoded_in_iteration
    except DataError as error:
        raise DataError(
            f"{directory} is not the working directory of a finished run: name files of"
            " translations instead"
        ) from error
    path = workspace.run(decoded or 0, "out")
    if not decoded or not path.is_file():
        raise DataError(
            f"the tuning set was not translated with the final weights of the run in {directory}:"
            " translate it, and name the file"
        )
    return path
