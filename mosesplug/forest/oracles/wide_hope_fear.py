"""Hope and fear of batch MIRA with a beam of several partial derivations per node.

Moses keeps one derivation per node (``forest.oracles.hope_fear``), which finds the exact hope of
about half of all tiny graphs. A wider beam keeps the values that Moses maximizes: the model score
plus or minus BLEU with the background, times the reference length of both. Matches are clipped by
the maximum count in one reference from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import ORDER
from mosesplug.forest.ngrams.states import NgramStates, TextGraph, ngram_states
from mosesplug.forest.oracles.candidates import list_by_value
from mosesplug.forest.oracles.hope_fear import (
    MODEL_SHARE,
    GraphSearch,
    HopeFear,
    ScoredDerivation,
    describe_derivation,
    name_sentence,
    weigh,
)
from mosesplug.forest.pruning import score_in_single_precision
from mosesplug.forest.search_graph import SearchGraph


@dataclass(frozen=True, eq=False)
class WideGraphSearch(GraphSearch):
    """A search that keeps several partial derivations per node.

    Attributes:
        beam: number of partial derivations to keep per node; 0 keeps all, which is exact but
            feasible only for small graphs.
    """

    beam: int

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> HopeFear:
        """Find the hope and the fear derivation; see ``hope_fear.hope_and_fear``."""
        graph, wide = self.graphs[sentence], self._wide[sentence]
        scores = score_in_single_precision(graph.indptr, graph.columns, graph.values, weights)

        def search(gain: float, model: float = 1.0) -> ScoredDerivation:
            (edges,) = list_by_value(
                wide,
                scores.astype(np.float64),
                1,
                self.beam,
                gain=gain,
                model=model,
                background=background.astype(np.float64),
                per_word=True,
            )
            return describe_derivation(graph, edges, np.float32(scores[edges].sum()))

        with name_sentence(sentence):
            hope = search(1.0)
            gain = weigh(hope.statistics, background)
            if safe_hope and abs(hope.score) > np.float32(1e-8):
                scale = float(abs(gain * MODEL_SHARE) / abs(hope.score))
                if scale < 1.0:
                    hope = search(1.0, scale)
                    gain = weigh(hope.statistics, background)
            fear = search(-1.0)
        return HopeFear(hope, fear, gain, weigh(fear.statistics, background))

    def widen(self, beam: int) -> WideGraphSearch:
        """Return a search with another beam."""
        return replace(self, beam=beam)

    @cached_property
    def _wide(self) -> tuple[_WideGraph, ...]:
        return tuple(map(_WideGraph.of, self.graphs))


@dataclass(frozen=True)
class _WideGraph:
    """A graph with its references, as ``list_by_value`` needs it."""

    text: TextGraph
    shares: NDArray[np.float64]
    states: NgramStates
    limits: NDArray[np.int32]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, graph: SearchGraph) -> _WideGraph:
        whole = int(graph.covered[-1])
        covered = graph.covered.astype(np.float64)
        shares = np.minimum(covered / whole, 1.0) if whole > 0 else np.ones(len(covered))
        text = TextGraph(
            graph.edge_offsets, graph.tail_offsets, graph.tails, graph.target_offsets, graph.targets
        )
        tree = graph.tree
        return cls(
            text,
            shares,
            ngram_states(tree.children, ORDER),
            tree.largest,
            np.array([tree.length], dtype=np.float64),
        )
