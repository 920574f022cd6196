"""A search graph and the references of its sentence as arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import NgramTree, ReferenceNgramTree
from mosesplug.forest.pruning import sort_columns
from mosesplug.hypergraph import Hypergraph

__all__ = ["SearchGraph", "search_graph"]


class SearchGraph(NamedTuple):
    """The arrays of a graph and of its references that search kernels read.

    Attributes:
        edge_offsets, tail_offsets, tails, target_offsets, covered: as in ``Hypergraph``.
        targets: int32; word numbers in the n-gram tree, -1 at the position of each tail.
        indptr, columns, values: features of the edges, sorted by column.
        tree: the n-grams of the references.
    """

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    covered: NDArray[np.int32]
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
