"""The newest iteration taken back, from a store and from what its working directory tells of it."""

from __future__ import annotations

from pathlib import Path

from mosesplug.store import NBestStore
from mosesplug.tuning.workdir.iteration_files import read_finished_step, write_finished_step
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["drop"]


def drop(store: Path, iteration: int) -> list[Path]:
    """Remove the newest iteration of a store; files of a working directory that are mended.

    ``finished_step.txt`` then names the iteration before, or goes, lest a run that is continued
    take the iteration over from its files; ``summary.json`` tells of a run that is not as it says,
    and goes. Both are mended first: a kill leaves an iteration that is not called finished yet, as
    a kill of a run does. ``moses.ini`` and files of single iterations stay until a run writes them.

    Args:
        store: the store.
        iteration: the newest.

    Raises:
        StoreError: it is not, or the store is being written.
        DataError: ``finished_step.txt`` holds no number.
    """
    workspace = Workspace(store.parent, 0)
    mended: list[Path] = []
    with NBestStore.open(store, writable=True) as opened:
        is_newest = opened.open_iteration() is None and len(opened.iterations()) == iteration
        if is_newest and workspace.store == store:
            mended = _mend(workspace, iteration)
        opened.drop_last(iteration)
    return mended


def _mend(workspace: Workspace, iteration: int) -> list[Path]:
    """Let the working directory say that an iteration is not finished."""
    step, summary = workspace.finished_step, workspace.summary
    mended = []
    if step.is_file() and read_finished_step(workspace) >= iteration:
        if iteration > 1:
            write_finished_step(workspace, iteration - 1)
        else:
            step.unlink()
        mended.append(step)
    if summary.is_file():
        summary.unlink()
        mended.append(summary)
    return mended
