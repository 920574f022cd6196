"""What an earlier run left in the working directory, and what becomes of it."""

from __future__ import annotations

from typing import Literal

from mosesplug.errors import StoreError, UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.events import Note, Watcher
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["Earlier", "earlier_run"]

Earlier = Literal["none", "replaced", "continued"]
"""What becomes of an earlier run in the working directory."""


def earlier_run(configuration: Configuration, workspace: Workspace, watch: Watcher) -> Earlier:
    """What is to become of an earlier run in the working directory, if there is one.

    Raises:
        UsageError: there is one, and nothing is said about it.
    """
    found = workspace.finished_step.is_file() or _holds_lists(workspace)
    if not found:
        if configuration.existing == "continue":
            watch(Note(f"there is nothing to continue in {workspace.directory}: starting anew"))
        return "none"
    if configuration.existing == "refuse":
        raise UsageError(
            f"{workspace.directory} holds an earlier run: continue it with --continue, replace it"
            " with --overwrite, or name another --working-dir"
        )
    return "continued" if configuration.existing == "continue" else "replaced"


def _holds_lists(workspace: Workspace) -> bool:
    """Whether an earlier run left lists; none are there where its first decoding failed."""
    if any(workspace.directory.glob("shard.*")):
        return True
    if not workspace.store.exists():
        return False
    try:
        with NBestStore.open(workspace.store) as store:
            return bool(store.iterations()) or store.open_iteration() is not None
    except StoreError:
        return True  # of what cannot be read, nobody knows
