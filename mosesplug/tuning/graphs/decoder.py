"""A decoder made of stored search graphs, and the stores that it reads.

After a text was decoded once, with its search graphs kept, its n-best lists for other weights come
from the graphs in milliseconds a sentence (Xiao et al. 2011; Watanabe 2012, section 5.1). The
lists are exact in the graphs, but hypotheses that the search pruned are lost.

LMDB lets a process open a store once. All users of a store in one process (shards that learn in
threads, the tasks of a cluster) share it, and it is closed when the last of them is gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from formats.nbest.block import NBestList
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import DataError, DecoderError, StoreMismatch
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures, make_nbest_list
from mosesplug.store import NBestStore, StoredGraphs, fingerprint_files
from mosesplug.tuning.workdir.workspace import Workspace


class _Shared:
    """The stores that this process has opened for their graphs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stores: weakref.WeakValueDictionary[Path, NBestStore] = weakref.WeakValueDictionary()


_SHARED = _Shared()


def open_shared_store(path: Path) -> NBestStore:
    """Open a store for reading, or return the one that this process has open."""
    place = path.resolve()
    with _SHARED.lock:
        store = _SHARED.stores.get(place)
        if store is None or not store.is_open:
            store = NBestStore.open(place)
            _SHARED.stores[place] = store
        return store


def share_store(store: NBestStore, path: Path) -> None:
    """Share a store that is open for writing with this process' readers of graphs."""
    with _SHARED.lock:
        _SHARED.stores[path.resolve()] = store


class GraphReader(Protocol):
    """Opens the search graphs of a decoder; one thread at a time uses it."""

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """Return the graphs, open during a mini-batch."""

    def close(self) -> None:
        """Close the store; a second call does nothing."""


class KeptGraphs:
    """The search graphs of a store as they are at the first call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: NBestStore | None = None
        self._graphs: StoredGraphs | None = None

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """Return the graphs, which stay open."""
        if self._graphs is None:
            self._store = open_shared_store(self._path)  # shared while it is referenced
            self._graphs = self._store.graphs()
        return nullcontext(self._graphs)

    def close(self) -> None:
        """Close the store."""
        self._graphs, self._store = None, None


class GrowingGraphs:
    """The search graphs of a store that the run writes, anew at each mini-batch.

    They include those of an iteration that has no lists yet. No transaction stays open between
    mini-batches, or the store could not grow.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: NBestStore | None = None

    def __call__(self) -> AbstractContextManager[StoredGraphs]:
        """Return the current graphs."""
        if self._store is None:
            self._store = open_shared_store(self._path)
        return self._store.graphs(unfinished=True)

    def close(self) -> None:
        """Close the store."""
        self._store = None


def find_graph_store(path: Path) -> Path | None:
    """Return the store at a path or in that working directory; None if missing."""
    for candidate in (Workspace(path, 1).store, path):
        if (candidate / "data.mdb").is_file():
            return candidate
    return None


def check_input(store: NBestStore, path: Path, text: Path) -> None:
    """Check that a store has search graphs of a text."""
    if not any(record.n_graphs for record in store.iterations()):
        raise DataError(f"the run in {path} has no search graphs: make some by a run with --forest")
    made_from = store.fingerprints.get("input")
    if made_from is not None and made_from != fingerprint_files([text]):
        raise StoreMismatch(
            f"the search graphs in {path} are of another text than {text}: give the text that they"
            " were made from"
        )


class ForestDecoder(BatchDecoder):
    """A ``BatchDecoder`` that lists the best translations in search graphs.

    Its lists depend only on the graphs and the weights, not on the number of threads.
    """

    def __init__(
        self,
        graphs: GraphReader,
        fixed: Mapping[str, float],
        nbest: int,
        *,
        source: str,
        threads: int = 1,
    ) -> None:
        """Set the place of the graphs.

        Args:
            graphs: gives them for the time of a batch; it is closed with the decoder.
            fixed: weights of features that are not tuned, by their names in the graphs.
        """
        self._graphs = graphs
        self._fixed = fixed
        self._nbest = nbest
        self._source = source
        self._features = GraphFeatures(FeatureSpace(()), fixed)
        self._threads = threads

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """As ``BatchDecoder.decode`` says; a sentence without a graph has no list.

        Raises:
            DecoderError: a graph cannot be searched, or the weights are for other features.
        """
        with self._graphs() as graphs:
            features = self._features_of(graphs.space)
            if weights.columns != graphs.space.groups:
                raise DecoderError(
                    f"{self._source}: the search graphs have the features"
                    f" {spelled_groups(graphs.space.groups)}, but the weights are for"
                    f" {spelled_groups(weights.columns)}"
                )
            dense = [v for group in weights.groups for v in group.values if v is not None]
            vector = features.vector(dense, weights.sparse)
            lock = threading.Lock()

            def listed(sentence: tuple[int, bytes]) -> NBestList | None:
                number, _ = sentence
                with lock:  # what reads is one transaction
                    found = graphs.of_sentence(number) if number < graphs.n_sentences else []
                try:
                    return make_nbest_list(
                        number, found, features, vector, self._nbest, source=self._source
                    )
                except DataError as error:
                    raise DecoderError(
                        f"{self._source}: the search graph of sentence {number}: {error}"
                    ) from error

            with ThreadPoolExecutor(self._threads, "forest") as pool:
                lists = list(pool.map(listed, sentences))
        return [found for found in lists if found is not None]

    def close(self) -> None:
        """Let go of the graphs; a batch after it asks for them again."""
        self._graphs.close()

    def _features_of(self, space: FeatureSpace) -> GraphFeatures:
        if self._features.space != space:
            self._features = GraphFeatures(space, self._fixed)
        return self._features
