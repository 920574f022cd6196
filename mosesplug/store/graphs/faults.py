"""Validate a stored search graph, since the searches do not check bounds.

A graph is looked at whenever it is read, which takes about as long as the best derivation: half a
millisecond for 30,000 edges. A record that was damaged, or made to do harm, ends with one message.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph_reader import TAIL
from mosesplug.hypergraph import Hypergraph
from mosesplug.store.graphs.records import decode_graph

__all__ = ["graph_faults", "sound_graph"]


def sound_graph(buffer: NDArray[np.uint8], n_features: int) -> Hypergraph:
    """Return the graph of a record.

    Args:
        buffer: its bytes.
        n_features: columns of the feature space.

    Raises:
        ValueError: these are not the bytes of such a record, or something in it is wrong.
    """
    graph = decode_graph(buffer)
    if found := _faults(graph, n_features):
        raise ValueError(found[0])
    return graph


def graph_faults(buffer: NDArray[np.uint8], n_features: int) -> list[str]:
    """Return the errors of a graph's record, in words; arguments as for ``sound_graph``."""
    try:
        graph = decode_graph(buffer)
    except ValueError as error:
        return [f"its search graph cannot be read: {error}"]
    return _faults(graph, n_features)


def _faults(graph: Hypergraph, n_features: int) -> list[str]:
    offsets = (graph.edge_offsets, graph.tail_offsets, graph.target_offsets, graph.feature_indptr)
    if any((each[1:] < each[:-1]).any() for each in offsets):
        return ["its search graph is out of order"]
    n_edges = np.diff(graph.edge_offsets)
    checks = {
        "an edge of its search graph comes from a node that does not come before it": _ordered(
            graph, n_edges
        ),
        "an edge of its search graph has other tails than its target says": _same_tails(graph),
        "its search graph has an invalid word": _within(graph.targets, TAIL, len(graph.words)),
        "a feature of its search graph has no name": _within(graph.feature_indices, 0, n_features),
        "a feature of its search graph is not a finite number": bool(
            np.isfinite(graph.feature_values).all()
        ),
        "a node of its search graph covers less than nothing": bool((graph.covered >= 0).all()),
    }
    found = [fault for fault, is_sound in checks.items() if not is_sound]
    if not found and not (n_edges.all() or _leads_to_the_goal(graph)):
        found.append("nothing leads to the goal of its search graph")
    return found


def _within(values: NDArray[np.int32], low: int, end: int) -> bool:
    return not len(values) or bool(low <= values.min() and values.max() < end)


def _ordered(graph: Hypergraph, n_edges: NDArray[np.int64]) -> bool:
    """Return whether every tail is a node before the head of its edge."""
    heads = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), n_edges)
    of_tails = np.repeat(heads, np.diff(graph.tail_offsets))
    return bool((graph.tails < of_tails).all()) and _within(graph.tails, 0, graph.n_nodes)


def _same_tails(graph: Hypergraph) -> bool:
    """Return whether a target has as many places for tails as its edge has tails."""
    before = np.zeros(len(graph.targets) + 1, dtype=np.int32)
    np.cumsum(graph.targets == TAIL, out=before[1:], dtype=np.int32)
    return bool((before[graph.target_offsets] == graph.tail_offsets).all())


def _leads_to_the_goal(graph: Hypergraph) -> bool:
    """Return whether some derivation ends there: not sure only where a node has no edge."""
    bounds, tails = graph.tail_offsets.tolist(), graph.tails.tolist()
    is_built: list[bool] = []
    for first, end in itertools.pairwise(graph.edge_offsets.tolist()):
        is_built.append(
            any(
                all(is_built[tail] for tail in tails[bounds[edge] : bounds[edge + 1]])
                for edge in range(first, end)
            )
        )
    return is_built[-1]
