"""The translations that a tuning run made of its tuning set with the weights that it ended with."""

from __future__ import annotations

import json
from pathlib import Path

from mosesplug.errors import DataError
from mosesplug.tuning.repeats.files import run_directories
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["tuned_translations"]


def tuned_translations(directory: Path) -> list[Path]:
    """Files of the decoder's translations, one a run: a working directory may hold several.

    Raises:
        DataError: it is no working directory of a finished run, or nothing was decoded with the
            weights of its result.
    """
    return [_of_run(run) for run in run_directories(directory) or (directory,)]


def _of_run(directory: Path) -> Path:
    """``runN.out`` of the iteration that was decoded with the weights of the result."""
    workspace = Workspace(directory, 0)
    try:
        decoded = json.loads(workspace.summary.read_bytes())["result"]["decoded_in_iteration"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{directory} is not the working directory of a finished run: name files of"
            " translations"
        ) from error
    path = workspace.run(decoded or 0, "out")
    if not decoded or not path.is_file():
        raise DataError(
            f"the tuning set was not translated with the weights that the run in {directory} ended"
            " with: translate it, and name the file"
        )
    return path
