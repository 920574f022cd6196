"""A hypergraph: nodes, and hyperedges that derive a node from its tails.

A derivation is a choice of one edge for the goal, one for each tail of that edge, and so on. The
nodes are in topological order, tails before heads, so bottom-up computations are one loop over
the edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import TAIL, HypergraphFile
from mosesplug.kernels import kernel, read_only

__all__ = ["Hypergraph"]


@dataclass(frozen=True)
class Hypergraph:
    """The hypergraph of one sentence. Arrays may be read-only.

    Attributes:
        edge_offsets: int64 ``[n_nodes + 1]``; the edges that lead to node ``v`` are
            ``edge_offsets[v]:edge_offsets[v + 1]``. The last node is the goal.
        tail_offsets: int64 ``[n_edges + 1]``, into ``tails``.
        tails: int32; the tail nodes of each edge, in the order of its target.
        target_offsets: int64 ``[n_edges + 1]``, into ``targets``.
        targets: int32; words, and -1 in the place of each tail's translation.
        feature_indptr: int64 ``[n_edges + 1]``, into ``feature_indices`` and ``feature_values``.
        feature_indices: int32; the columns of an edge's features.
        feature_values: float32.
        covered: int32 ``[n_nodes]``; number of source words that a node covers.
        words: the words that ``targets`` index.
    """

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    feature_indptr: NDArray[np.int64]
    feature_indices: NDArray[np.int32]
    feature_values: NDArray[np.float32]
    covered: NDArray[np.int32]
    words: tuple[bytes, ...]

    @classmethod
    def of_file(cls, file: HypergraphFile, columns: Mapping[str, int]) -> Hypergraph:
        """Return the hypergraph of a graph file.

        Args:
            file: the contents of the file.
            columns: the column of every feature in the file.

        Raises:
            KeyError: a feature has no column.
        """
        renumbered = np.array([columns[name] for name in file.names], dtype=np.int32)
        return cls(
            read_only(file.edge_offsets),
            read_only(file.tail_offsets),
            read_only(file.tails),
            read_only(file.target_offsets),
            read_only(file.targets),
            read_only(file.feature_indptr),
            read_only(renumbered.take(file.feature_indices)),
            read_only(file.feature_values),
            read_only(file.covered),
            file.words,
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.edge_offsets) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.tail_offsets) - 1

    def edge_scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w . h`` of every edge, float64 ``[n_edges]``; one weight per column."""
        return _edge_scores(self.feature_indptr, self.feature_indices, self.feature_values, weights)

    def target(self, edge: int) -> NDArray[np.int32]:
        """Return the words of an edge, with -1 in the place of each tail."""
        return self.targets[self.target_offsets[edge] : self.target_offsets[edge + 1]]

    def translation(self, edges: NDArray[np.int64]) -> list[bytes]:
        """Return the words of a derivation.

        ``edges`` lists each edge before those of its tails.
        """
        rest = iter(edges.tolist())
        waiting = [iter(self.target(next(rest)).tolist())]
        words: list[bytes] = []
        while waiting:
            word = next(waiting[-1], None)
            if word is None:
                waiting.pop()
            elif word == TAIL:
                waiting.append(iter(self.target(next(rest)).tolist()))
            else:
                words.append(self.words[word])
        return words

    def features(self, edges: NDArray[np.int64], n_columns: int) -> NDArray[np.float64]:
        """Return the sum of the features of the given edges, float64 ``[n_columns]``."""
        totals = np.zeros(n_columns)
        for edge in edges:
            part = slice(self.feature_indptr[edge], self.feature_indptr[edge + 1])
            np.add.at(totals, self.feature_indices[part], self.feature_values[part])
        return totals


@kernel
def _edge_scores(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    scores = np.empty(len(indptr) - 1)
    for edge in range(len(scores)):
        total = 0.0
        for entry in range(indptr[edge], indptr[edge + 1]):
            total += values[entry] * weights[indices[entry]]
        scores[edge] = total
    return scores
