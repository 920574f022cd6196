"""The search graphs of one sentence as one, with its features by column.

Graphs of several decodings are used together: a goal above theirs has an edge to each, so that a
derivation of any of them is one of the whole, and everything computed is that of their union.
Where derivations score the same, a later graph's comes first, as a later edge's does.

Line search needs the slopes along one feature after the other: features are held by column,
without the zeros that Moses writes for every edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.hypergraph import Hypergraph, read_only
from mosesplug.kernels import kernel

__all__ = ["SentenceGraph", "joined", "score_edges", "sentence_graph"]


class SentenceGraph(NamedTuple):
    """A graph as line search goes through it, for kernels; arrays are read-only.

    Attributes:
        edge_offsets, tail_offsets, tails, target_offsets, targets: as in ``Hypergraph``.
        columns: int32 ``[n_columns]``, ascending; features that are not 0 everywhere.
        entry_offsets: int64 ``[n_columns + 1]``, into the two that follow.
        entries: int32; edges that have the feature, ascending.
        values: float32; its values there.
    """

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    columns: NDArray[np.int32]
    entry_offsets: NDArray[np.int64]
    entries: NDArray[np.int32]
    values: NDArray[np.float32]


def sentence_graph(graph: Hypergraph) -> SentenceGraph:
    """A graph with its features by column."""
    filled = np.flatnonzero(graph.feature_values)
    order = filled[np.argsort(graph.feature_indices[filled], kind="stable")]
    edges = np.repeat(np.arange(graph.n_edges, dtype=np.int32), np.diff(graph.feature_indptr))
    columns, counts = np.unique(graph.feature_indices[filled], return_counts=True)
    return SentenceGraph(
        _plain(graph.edge_offsets, np.int64),
        _plain(graph.tail_offsets, np.int64),
        _plain(graph.tails, np.int32),
        _plain(graph.target_offsets, np.int64),
        _plain(graph.targets, np.int32),
        _plain(columns, np.int32),
        _plain(_offsets(counts), np.int64),
        _plain(edges[order], np.int32),
        _plain(graph.feature_values[order], np.float32),
    )


def joined(graphs: Sequence[Hypergraph]) -> Hypergraph:
    """The union of graphs of one sentence; a single one is itself.

    Args:
        graphs: at least one, of the same feature columns; of derivations that score the same, one
            of the latest wins.
    """
    if len(graphs) == 1:
        return graphs[0]
    words: dict[bytes, int] = {}
    targets, tails = [], []
    first_node = 0
    for graph in graphs:
        # The last one is for -1, a tail.
        numbers = [words.setdefault(word, len(words)) for word in graph.words]
        targets.append(np.array([*numbers, -1], dtype=np.int32)[graph.targets])
        tails.append(graph.tails + np.int32(first_node))
        first_node += graph.n_nodes
    goals = np.cumsum([graph.n_nodes for graph in graphs]) - 1
    one_each = np.arange(1, len(graphs) + 1)
    edge_offsets = _chained([graph.edge_offsets for graph in graphs])
    tail_offsets = _chained([graph.tail_offsets for graph in graphs])
    target_offsets = _chained([graph.target_offsets for graph in graphs])
    indptr = _chained([graph.feature_indptr for graph in graphs])
    covered = [graph.covered for graph in graphs]
    return Hypergraph(
        read_only(np.append(edge_offsets, edge_offsets[-1] + len(graphs))),
        read_only(np.append(tail_offsets, tail_offsets[-1] + one_each)),
        read_only(np.concatenate([*tails, goals]).astype(np.int32)),
        read_only(np.append(target_offsets, target_offsets[-1] + one_each)),
        read_only(np.concatenate([*targets, np.full(len(graphs), -1)]).astype(np.int32)),
        read_only(np.append(indptr, np.full(len(graphs), indptr[-1]))),
        read_only(np.concatenate([graph.feature_indices for graph in graphs])),
        read_only(np.concatenate([graph.feature_values for graph in graphs])),
        read_only(np.concatenate([*covered, covered[0][-1:]])),
        tuple(words),
    )


def _chained(offsets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of arrays that are put one behind the other."""
    return _offsets(np.concatenate([np.diff(each) for each in offsets]))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _plain(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """One kind of array, whatever it is a view of: one type to compile for."""
    return read_only(np.require(array, dtype, ["C", "A"]))


@kernel
def score_edges(graph: SentenceGraph, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """``w . h`` of every edge, float64 ``[n_edges]``; ``weights`` are those of its columns."""
    scores = np.zeros(len(graph.tail_offsets) - 1)
    for column in range(len(weights)):
        weight = weights[column]
        if weight != 0.0:
            for entry in range(graph.entry_offsets[column], graph.entry_offsets[column + 1]):
                scores[graph.entries[entry]] += weight * graph.values[entry]
    return scores
