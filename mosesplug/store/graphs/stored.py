"""Search graphs read without a copy, from the store as it was at one moment."""

from __future__ import annotations

from typing import Self

from mosesplug.errors import DataError, StoreError
from mosesplug.features import FeatureSpace
from mosesplug.hypergraph import Hypergraph
from mosesplug.store.environment import Environment, Pinned
from mosesplug.store.graphs.faults import sound_graph
from mosesplug.store.state import Graphed, Growing, StoreState, kbest_key

__all__ = ["StoredGraphs"]


class StoredGraphs:
    """The search graphs of some iterations; a context manager.

    Arrays of the graphs are read-only views on the memory map. They keep its transaction open,
    and stay valid for as long as one of them lives, whatever becomes of this object and of the
    store. Do not hoard them: old pages cannot be used again meanwhile, nor the map grow.

    Attributes:
        space: the columns of their features.
        n_sentences: sentences of the input; before its first list, as far as there are graphs.
        iterations: those that have graphs, ascending.
    """

    def __init__(
        self,
        environment: Environment,
        pinned: Pinned,
        state: StoreState,
        iterations: tuple[int, ...],
        opened: Growing | Graphed | None = None,
    ) -> None:
        self._environment = environment
        self._pinned: Pinned | None = pinned
        space, self.n_sentences = state.space, state.n_sentences
        self.iterations = tuple(i for i in iterations if state.iterations[i - 1].n_graphs)
        if opened is not None and opened.n_graphs:
            space = FeatureSpace(opened.groups or (), opened.sparse)
            self.n_sentences = self.n_sentences or opened.n_sentences
            self.iterations += (opened.iteration,)
        self.space = space or FeatureSpace(())

    def graph(self, iteration: int, sentence: int) -> Hypergraph | None:
        """Return one sentence's graph of one of ``iterations``, or None if there is none.

        Raises:
            StoreError: this is closed, or what is stored is no graph.
            DataError: there is no such sentence.
        """
        if self._pinned is None:
            raise StoreError("these search graphs are closed")
        self._environment.check()
        if not 0 <= sentence < self.n_sentences:
            raise DataError(
                f"there is no sentence {sentence}: the input has {self.n_sentences} sentences"
            )
        if iteration not in self.iterations:
            return None
        value = self._pinned.transaction.get(
            kbest_key(iteration, sentence), db=self._environment["forest"]
        )
        if value is None:
            return None
        try:
            return sound_graph(self._pinned.view(value), len(self.space))
        except ValueError as error:
            raise StoreError(
                f"the n-best store at {self._environment.path} is damaged: the search graph of "
                f"sentence {sentence} in iteration {iteration} is corrupt: {error}. Start in an "
                "empty directory"
            ) from None

    def of_sentence(self, sentence: int) -> list[Hypergraph]:
        """Return all graphs of a sentence, the oldest first.

        Raises:
            StoreError, DataError: as ``graph``.
        """
        graphs = (self.graph(iteration, sentence) for iteration in self.iterations)
        return [graph for graph in graphs if graph is not None]

    def close(self) -> None:
        """Let go of the transaction; it ends with the last array that needs it."""
        self._pinned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
