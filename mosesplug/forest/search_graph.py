"""A search graph as arrays for kernels: with its references, or for line search.

Line search needs the slopes along one feature at a time, without the zeros that Moses writes for
every edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Floats32, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, NgramTree, ReferenceNgramTree
from mosesplug.forest.pruning import sort_columns
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, read_only


class SearchGraph(NamedTuple):
    """The arrays of a graph and of its references that search kernels read.

    Attributes:
        edge_offsets, tail_offsets, tails, target_offsets, covered: as in ``Hypergraph``.
        targets: int32; word numbers in the n-gram tree, -1 at the position of each tail.
        indptr, columns, values: features of the edges, sorted by column.
        tree: the n-grams of the references.
    """

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    target_offsets: Ints
    targets: Ints32
    indptr: Ints
    columns: Ints32
    values: Floats32
    covered: Ints32
    tree: NgramTree


def search_graph(graph: Hypergraph, references: ReferenceNgramTree) -> SearchGraph:
    """Combine a graph with the references of its sentence."""
    ordered = sort_columns(graph)
    # The last one is for -1, a tail.
    numbers = np.array([*map(references.number, graph.words), -1], dtype=np.int32)
    return SearchGraph(
        # Always copies, so that kernels are compiled for one type.
        np.array(graph.edge_offsets),
        np.array(graph.tail_offsets),
        np.array(graph.tails),
        np.array(graph.target_offsets),
        numbers[graph.targets],
        np.array(graph.feature_indptr),
        np.array(ordered.feature_indices),
        np.array(ordered.feature_values),
        np.array(graph.covered),
        references.tree,
    )


class SentenceGraph(NamedTuple):
    """The arrays of a graph that line search kernels read; copies, and read-only.

    Attributes:
        edge_offsets, tail_offsets, tails: as in ``Hypergraph``.
        target_offsets, targets: as in ``Hypergraph``, without ``<s>`` and ``</s>``.
        columns: int32 ``[n_columns]``, ascending; the features with a non-zero value.
        entry_offsets: int64 ``[n_columns + 1]``; offsets into ``entries`` and ``values``.
        entries: int32; the edges that have the feature, ascending.
        values: float32; the feature values of these edges.
    """

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    target_offsets: Ints
    targets: Ints32
    columns: Ints32
    entry_offsets: Ints
    entries: Ints32
    values: Floats32


def sentence_graph(graph: Hypergraph) -> SentenceGraph:
    """Convert a graph to features by column."""
    filled = np.flatnonzero(graph.feature_values)
    order = filled[np.argsort(graph.feature_indices[filled], kind="stable")]
    edges = np.repeat(np.arange(graph.n_edges, dtype=np.int32), np.diff(graph.feature_indptr))
    columns, counts = np.unique(graph.feature_indices[filled], return_counts=True)
    # Word numbers, then the number of a tail; <s> and </s> are not words.
    said = np.array([*(word not in BOUNDARIES for word in graph.words), True])[graph.targets]
    said_before = np.concatenate([[0], np.cumsum(said)])
    return SentenceGraph(
        _copy(graph.edge_offsets, np.int64),
        _copy(graph.tail_offsets, np.int64),
        _copy(graph.tails, np.int32),
        _copy(said_before[graph.target_offsets], np.int64),
        _copy(graph.targets[said], np.int32),
        _copy(columns, np.int32),
        _copy(np.concatenate([[0], np.cumsum(counts)]), np.int64),
        _copy(edges[order], np.int32),
        _copy(graph.feature_values[order], np.float32),
    )


def _copy(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return a copy: kernels see one array type, and no view keeps its base alive."""
    return read_only(np.array(array, dtype=dtype, order="C"))


@kernel
def score_edges(graph: SentenceGraph, weights: Floats) -> Floats:
    """Return ``w . h`` of every edge from weights of columns, float64 ``[n_edges]``."""
    scores = np.zeros(len(graph.tail_offsets) - 1)
    for column in range(len(weights)):
        weight = weights[column]
        if weight != 0.0:
            for entry in range(graph.entry_offsets[column], graph.entry_offsets[column + 1]):
                scores[graph.entries[entry]] += weight * graph.values[entry]
    return scores
