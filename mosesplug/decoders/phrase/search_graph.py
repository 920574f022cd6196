"""The search graph of a sentence, and the feature values of its edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.phrase.model import Model
from mosesplug.decoders.phrase.model_file import N_REORDERING

__all__ = ["DISCONTINUOUS", "MONOTONE", "N_DIRECTION", "SWAP", "PhraseGraph"]

N_DIRECTION = N_REORDERING // 2
MONOTONE, SWAP, DISCONTINUOUS = range(N_DIRECTION)


@dataclass(frozen=True)
class PhraseGraph:
    """The result of a search: nodes are recombined hypotheses, edges extend them.

    Node 0 is the empty hypothesis. Nodes are numbered so that every edge goes to a higher one,
    and edges are ordered by ``head``, the best first.

    Attributes:
        model: the model with the phrase pairs of the edges.
        node_score: float64 ``[n_nodes]``; model score of the best path to the node.
        node_covered: int64 ``[n_nodes]``; number of translated source words.
        node_pair: int64 ``[n_nodes]``; the last phrase pair of the best path, -1 for node 0.
        goals: int64; nodes that cover the sentence, best first.
        first_edge: int64 ``[n_nodes + 1]``; edges into node ``i`` are
            ``first_edge[i]:first_edge[i + 1]``.
        head, tail: int64 ``[n_edges]``; nodes.
        pair: int64 ``[n_edges]``; phrase pair.
        start, end: int64 ``[n_edges]``; the source words ``start .. end`` that it translates.
        language_model: float64 ``[n_edges]``; log probability of the words at the phrase boundary.
        jump: int64 ``[n_edges]``; distance from the last word translated before.
        orientation: int64 ``[n_edges]``; backward plus 3 times forward orientation, forward 3
            for the first phrase.
        score: float64 ``[n_edges]``; model score of the edge alone.
    """

    model: Model
    node_score: NDArray[np.float64]
    node_covered: NDArray[np.int64]
    node_pair: NDArray[np.int64]
    goals: NDArray[np.int64]
    first_edge: NDArray[np.int64]
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    pair: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    language_model: NDArray[np.float64]
    jump: NDArray[np.int64]
    orientation: NDArray[np.int64]
    score: NDArray[np.float64]

    def edge_values(self, edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the feature values of edges, float64 ``[len(edges), n_values]``."""
        model = self.model
        values = model.values[self.pair[edges]]
        for feature in model.features.features:
            column = feature.columns.start
            if feature.kind == "KENLM":
                values[:, column] += self.language_model[edges]
            elif feature.kind == "Distortion":
                values[:, column] -= self.jump[edges]
            elif feature.kind == "LexicalReordering":
                rows = np.arange(len(edges))
                forward, backward = np.divmod(self.orientation[edges], N_DIRECTION)
                own = model.reordering[self.pair[edges], backward]
                values[rows, column + backward] += own
                later = np.flatnonzero(forward < N_DIRECTION)
                columns = N_DIRECTION + forward[later]
                before = self.node_pair[self.tail[edges[later]]]
                values[later, column + columns] += model.reordering[before, columns]
        return values
