"""Whether a stored search graph is one: what searches it looks at no bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.hypergraph_reader import TAIL
from mosesplug.hypergraph import Hypergraph
from mosesplug.store.graph_records import decode_graph

__all__ = ["graph_faults"]


def graph_faults(buffer: NDArray[np.uint8], n_features: int) -> list[str]:
    """What is wrong with the record of a graph, in words.

    Args:
        buffer: its bytes.
        n_features: columns of the feature space.
    """
    try:
        graph = decode_graph(buffer)
    except (ValueError, TypeError) as error:
        return [f"its search graph cannot be read: {error}"]
    offsets = (graph.edge_offsets, graph.tail_offsets, graph.target_offsets, graph.feature_indptr)
    if any((np.diff(each) < 0).any() for each in offsets):
        return ["its search graph is out of order"]
    checks = {
        "an edge of its search graph comes from a node that does not come before it": _ordered(
            graph
        ),
        "an edge of its search graph has other tails than its target says": _same_tails(graph),
        "its search graph has a word that is none": _within(graph.targets, TAIL, len(graph.words)),
        "a feature of its search graph has no name": _within(graph.feature_indices, 0, n_features),
        "a feature of its search graph is not a finite number": bool(
            np.isfinite(graph.feature_values).all()
        ),
        "a node of its search graph covers less than nothing": bool((graph.covered >= 0).all()),
    }
    return [fault for fault, is_sound in checks.items() if not is_sound]


def _within(values: NDArray[np.int32], low: int, end: int) -> bool:
    return bool(((values >= low) & (values < end)).all())


def _ordered(graph: Hypergraph) -> bool:
    heads = np.repeat(np.arange(graph.n_nodes), np.diff(graph.edge_offsets))
    of_tails = np.repeat(heads, np.diff(graph.tail_offsets))
    return bool(((graph.tails >= 0) & (graph.tails < of_tails)).all())


def _same_tails(graph: Hypergraph) -> bool:
    edges = np.repeat(np.arange(graph.n_edges), np.diff(graph.target_offsets))
    said = np.bincount(edges[graph.targets == TAIL], minlength=graph.n_edges)
    return bool((said == np.diff(graph.tail_offsets)).all())
