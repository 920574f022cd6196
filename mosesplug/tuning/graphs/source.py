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
from typing import Protocol

from mosesplug.errors import DataError, StoreMismatch
from mosesplug.store import NBestStore, StoredGraphs, fingerprint_files
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "GraphSource",
    "GrowingGraphs",
    "KeptGraphs",
    "check_input",
    "opened_store",
    "share_store",
    "store_at",
]


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
        if store is None or not store.is_open:
            store = NBestStore.open(place)
            _SHARED.stores[place] = store
        return store


def share_store(store: NBestStore, path: Path) -> None:
    """Let users of graphs in this process share a store that is open to be written."""
    with _SHARED.lock:
        _SHARED.stores[path.resolve()] = store


class GraphSource(Protocol):
    """Where a decoder has its graphs from; one thread at a time uses it."""

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """The graphs, for the time of a batch."""

    def close(self) -> None:
        """Let go of the store; a second call does nothing."""


class KeptGraphs:
    """The search graphs of a store as they are when they are first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: NBestStore | None = None
        self._graphs: StoredGraphs | None = None

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """The graphs, which stay open.

        Raises:
            StoreError: the store cannot be read.
        """
        if self._graphs is None:
            self._store = opened_store(self._path)  # shared for as long as somebody has it
            self._graphs = self._store.graphs()
        return nullcontext(self._graphs)

    def close(self) -> None:
        """Let go of the store."""
        self._graphs, self._store = None, None


class GrowingGraphs:
    """The search graphs of a store that the run itself writes, as they are at each batch.

    Those of an iteration that has no lists yet are among them. Nothing is held between batches:
    the store could not grow.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: NBestStore | None = None

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """The graphs of now.

        Raises:
            StoreError: the store cannot be read.
        """
        if self._store is None:
            self._store = opened_store(self._path)
        return self._store.graphs(unfinished=True)

    def close(self) -> None:
        """Let go of the store."""
        self._store = None


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
