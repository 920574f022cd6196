"""Find and open the n-best store of a working directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from mosesplug.errors import DataError, StoreError
from mosesplug.store import NBestStore
from mosesplug.tuning.repeats.files import find_run_directories
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["find_store", "open_run_store"]

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
    raise StoreError(
        f"there is no n-best store at {path}: name a working directory of mosesplug, or the "
        f"{inside.name} in it"
    )


@contextmanager
def open_run_store(
    path: Path, *, with_lists: bool = False, opened: NBestStore | None = None
) -> Iterator[tuple[Path, NBestStore]]:
    """Open the store of a run for reading.

    Args:
        path: the store, or the working directory that holds it.
        with_lists: reject a store that holds no hypotheses.
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
            raise _no_lists_error(place)
        yield place, store


def _no_lists_error(store: Path) -> DataError:
    shards = sorted(store.parent.glob("shard.*"))
    if not shards:
        return DataError(f"the n-best store at {store} has no hypotheses")
    return DataError(
        f"the n-best store at {store} has no lists: they lie in the stores of the run's shards; "
        f"name one of them, as {shards[0]}"
    )
