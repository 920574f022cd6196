"""Stores of search graphs: where they are, and how several users of one process share them.

LMDB lets a process open a store once. So whoever needs the graphs of one shares it with all others
in the process, be they shards that learn in threads or a cluster's tasks; it is closed when the
last of them is gone.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from mosesplug.errors import DataError, StoreMismatch
from mosesplug.store import NBestStore, StoredGraphs, fingerprint_files
from mosesplug.tuning.workspace import Workspace

__all__ = ["KeptGraphs", "check_input", "opened_store", "store_at"]


class _Shared:
    """The stores that this process has open for their graphs; the one thing it has to remember."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stores: weakref.WeakValueDictionary[Path, NBestStore] = weakref.WeakValueDictionary()


_SHARED = _Shared()


def opened_store(path: Path) -> NBestStore:
    """A store, open to be read; the one that this process has open, if it does.

    Raises:
        StoreError: it cannot be read.
    """
    place = path.resolve()
    with _SHARED.lock:
        store = _SHARED.stores.get(place)
        if store is None:
            store = NBestStore.open(place)
            _SHARED.stores[place] = store
        return store


class KeptGraphs:
    """The search graphs of a store as they are now, for as long as this object is used."""

    def __init__(self, path: Path) -> None:
        """Open the store, or share it.

        Raises:
            StoreError: it cannot be read.
        """
        self._store = opened_store(path)  # shared as long as somebody has it
        self._graphs = self._store.graphs()

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """The graphs, which stay open."""
        return nullcontext(self._graphs)


def store_at(path: Path) -> Path | None:
    """The store in a place: a tuning run's working directory, or its ``nbests.lmdb``; or None."""
    for candidate in (Workspace(path, 1).store, path):
        if (candidate / "data.mdb").is_file():
            return candidate
    return None


def check_input(store: NBestStore, path: Path, text: Path) -> None:
    """See that a store has search graphs of this text.

    Raises:
        StoreMismatch: they are of another one.
        DataError: it has none.
    """
    if not any(record.n_graphs for record in store.iterations()):
        raise DataError(f"the run in {path} has no search graphs: make some by a run with --forest")
    made_from = store.fingerprints.get("input")
    if made_from is not None and made_from != fingerprint_files([text]):
        raise StoreMismatch(
            f"the search graphs in {path} are of another text than {text}: give the text that they"
            " were made from"
        )
