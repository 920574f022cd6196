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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from formats.nbest.block import NBestList
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import DataError, DecoderError, StoreMismatch
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures, make_nbest_list
from mosesplug.store import NBestStore, StoredGraphs, fingerprint_files
from mosesplug.tuning.workdir.workspace import Workspace

_LOCK = threading.Lock()
_STORES: weakref.WeakValueDictionary[Path, NBestStore] = weakref.WeakValueDictionary()
"""The stores that this process has opened for their graphs."""


def open_shared_store(path: Path) -> NBestStore:
    """Open a store for reading, or return the one that this process has open."""
    path = path.resolve()
    with _LOCK:
        store = _STORES.get(path)
        if store is None or not store.is_open:
            store = NBestStore.open(path)
            _STORES[path] = store
        return store


def share_store(store: NBestStore, path: Path) -> None:
    """Share a store that is open for writing with this process' readers of graphs."""
    with _LOCK:
        _STORES[path.resolve()] = store


def find_graph_store(path: Path) -> Path | None:
    """Return the store at a path or in that working directory; None if missing."""
    for candidate in (Workspace(path, 1).store, path):
        if (candidate / "data.mdb").is_file():
            return candidate
    return None


def check_input(store: NBestStore, path: Path, text: Path) -> None:
    """Check that a store has search graphs of a text."""
    if not any(record.n_graphs for record in store.iterations()):
        raise DataError(
            f"the run in {path} has no search graphs: make some by a run with {{--forest}}"
        )
    made_from = store.fingerprints.get("input")
    if made_from is not None and made_from != fingerprint_files([text]):
        raise StoreMismatch(
            f"the search graphs in {path} were made from another text than {text}: give that text"
        )


@dataclass(frozen=True)
class ForestRecipe:
    """How to make a decoder from search graphs, in any process that can read them.

    Attributes:
        fixed_weights: weights of features that are not tuned, by their names in the graphs.
        nbest: length of the n-best lists.
        source: the place of the graphs, for messages.
        threads: for the sentences of a mini-batch.
        is_growing: whether the run itself adds graphs: then each mini-batch reads them anew, also
            those of an iteration that has no lists yet. No transaction stays open between
            mini-batches, or the store could not grow.
    """

    store: Path
    fixed_weights: Mapping[str, float]
    nbest: int
    source: str
    threads: int
    is_growing: bool = False

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> ForestDecoder:
        """Return a new decoder. It writes no files and sends no messages."""
        return ForestDecoder(self)

    def shared_among(self, users: int) -> ForestRecipe:
        """Return the recipe for several decoders at once, which share the threads."""
        return replace(self, threads=max(1, self.threads // users))


class ForestDecoder(BatchDecoder):
    """A ``BatchDecoder`` that lists the best translations in search graphs.

    Its lists depend only on the graphs and the weights, not on the number of threads.
    """

    def __init__(self, recipe: ForestRecipe) -> None:
        self.recipe = recipe
        self._features = GraphFeatures(FeatureSpace(()), recipe.fixed_weights)
        self._store: NBestStore | None = None
        self._graphs: StoredGraphs | None = None

    def _open_graphs(self) -> AbstractContextManager[StoredGraphs]:
        """Return the graphs, open during a mini-batch."""
        if self._store is None:
            self._store = open_shared_store(self.recipe.store)  # shared while it is referenced
        if self.recipe.is_growing:
            return self._store.graphs(unfinished=True)
        if self._graphs is None:
            self._graphs = self._store.graphs()
        return nullcontext(self._graphs)

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """As ``BatchDecoder.decode`` says; a sentence without a graph has no list.

        Raises:
            DecoderError: a graph cannot be searched, or the weights are for other features.
        """
        recipe = self.recipe
        with self._open_graphs() as graphs:
            if self._features.space != graphs.space:
                self._features = GraphFeatures(graphs.space, recipe.fixed_weights)
            features = self._features
            if weights.columns != graphs.space.groups:
                raise DecoderError(
                    f"{recipe.source}: the search graphs have the features"
                    f" {spelled_groups(graphs.space.groups)}, but the weights are for"
                    f" {spelled_groups(weights.columns)}"
                )
            dense = [v for group in weights.groups for v in group.values if v is not None]
            vector = features.vector(dense, weights.sparse)
            lock = threading.Lock()

            def listed(sentence: tuple[int, bytes]) -> NBestList | None:
                number, _ = sentence
                with lock:  # what reads is one transaction
                    own_graphs = graphs.of_sentence(number) if number < graphs.n_sentences else []
                try:
                    return make_nbest_list(
                        number, own_graphs, features, vector, recipe.nbest, source=recipe.source
                    )
                except DataError as error:
                    raise DecoderError(
                        f"{recipe.source}: the search graph of sentence {number}: {error}"
                    ) from error

            with ThreadPoolExecutor(recipe.threads, "forest") as pool:
                lists = list(pool.map(listed, sentences))
        return [own_list for own_list in lists if own_list is not None]

    def close(self) -> None:
        """Let go of the graphs; a batch after it asks for them again."""
        self._graphs, self._store = None, None
