"""Find and open the n-best store of a working directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.repeats.files import find_run_directories, run_directory
from mosesplug.tuning.workdir.iteration_files import find_nbest_lists
from mosesplug.tuning.workdir.records import keeps_lists
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace

_DATABASE = "data.mdb"


def find_store(path: Path) -> Path:
    """Return the path of a store, given its own path or that of a working directory.

    Raises:
        StoreError: there is no store, or the directory holds several runs.
    """
    inside = Workspace(path, 0).store
    for place in (path, inside):
        if (place / _DATABASE).exists():
            return place.absolute()
    if runs := find_run_directories(path):
        raise StoreError(
            f"{path} holds {len(runs)} runs, each with a store of its own: name one of them, as "
            f"{', '.join(map(str, runs))}"
        )
    if path.is_dir() and find_nbest_lists(path):
        raise StoreError(
            f"{path} holds lists of mert-moses.pl, and no n-best store. Make one: mosesplug nbest"
            f" import --refs REFERENCES {path} {path.name}.lmdb"
        )
    raise StoreError(
        f"there is no n-best store at {path}: name a working directory of mosesplug, or the "
        f"{inside.name} in it"
    )


def find_run(path: Path, number: int | None = None) -> Path:
    """Return the directory of a single run.

    Args:
        path: a store, or a working directory, which may hold several runs.
        number: the number of one of several runs; None: the run whose weights are the result.

    Raises:
        UsageError: there is no such run, or none of several is the result.
        DataError: the summary of several runs is damaged.
    """
    runs = find_run_directories(path)
    if number is not None:
        if (wanted := run_directory(path, number)) in runs:
            return wanted
        raise UsageError(f"{path} has no run {number}: it holds {len(runs)} runs")
    if not runs:
        return path
    summary = Workspace(path, 0).summary
    if summary.is_file():
        chosen = StoredSummary.read(summary).document["result"].get("run")
        if chosen is not None:
            return run_directory(path, chosen)
    raise UsageError(
        f"{path} holds {len(runs)} runs, and none of them is the result. Name one of them, as "
        f"{runs[0]} (in Python, run=1)"
    )


@contextmanager
def open_run_store(
    path: Path, *, with_lists: bool = False, opened: NBestStore | None = None
) -> Iterator[tuple[Path, NBestStore]]:
    """Open the store of a run for reading.

    Args:
        path: the store, or the working directory that holds it.
        opened: the same store, if this process has it open: it is used, and stays open.

    Yields:
        The store's path, and the store, which has at least one finished iteration.

    Raises:
        StoreError: there is no store, or it cannot be read.
        DataError: it has no finished iteration, or no hypotheses.
    """
    place = find_store(path)
    shared = nullcontext(opened) if opened is not None and opened.is_open else None
    with shared or NBestStore.open(place) as store:
        records = store.iterations()
        if not records:
            raise DataError(f"the n-best store at {place} has no finished iteration yet")
        if with_lists and not any(record.n_lists for record in records):
            raise _no_lists_error(place, records[-1])
        yield place, store


def _no_lists_error(store: Path, newest: IterationRecord) -> DataError:
    if not keeps_lists(newest):
        return DataError(
            f"the n-best store at {store} has no lists: {{--no-keep-lists}} did not keep them. Tune"
            " without it to learn from the lists, or to look at them"
        )
    shards = sorted(store.parent.glob("shard.*"))
    if not shards:
        return DataError(f"the n-best store at {store} has no hypotheses")
    return DataError(
        f"the n-best store at {store} has no lists: they lie in the stores of the run's shards; "
        f"name one of them, as {shards[0]}"
    )
