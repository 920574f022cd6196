"""The union of several search graphs of one sentence, with the derivations of all.

Every graph keeps its nodes. A new goal has an edge without features from the goal of each graph.
A search in the union therefore finds the best derivation of all graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import TAIL
from mosesplug.arrays import Ints
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import read_only


def unite_graphs(graphs: Sequence[Hypergraph]) -> Hypergraph:
    """Return the union of several graphs; a single graph is returned unchanged.

    The edges of the goal are in the reverse order of the graphs. Searches break ties in favor of
    the last edge, so the first graph wins ties.

    Args:
        graphs: at least one graph of the sentence; all have the same columns.
    """
    if len(graphs) == 1:
        return graphs[0]
    words: dict[bytes, int] = {}
    targets = []
    for graph in graphs:
        numbers = np.array(
            [*(words.setdefault(word, len(words)) for word in graph.words), TAIL], dtype=np.int32
        )
        targets.append(numbers[graph.targets])
    first_nodes = np.cumsum([0, *(graph.n_nodes for graph in graphs)])
    goals = (first_nodes[1:] - 1)[::-1].astype(np.int32)
    n = len(graphs)
    tails = [
        graph.tails + np.int32(first) for graph, first in zip(graphs, first_nodes, strict=False)
    ]
    ones, nothing = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return Hypergraph(
        _offsets([np.diff(graph.edge_offsets) for graph in graphs] + [np.array([n])]),
        _offsets([np.diff(graph.tail_offsets) for graph in graphs] + [ones]),
        _concatenate([*tails, goals], np.int32),
        _offsets([np.diff(graph.target_offsets) for graph in graphs] + [ones]),
        _concatenate([*targets, np.full(n, TAIL)], np.int32),
        _offsets([np.diff(graph.feature_indptr) for graph in graphs] + [nothing]),
        _concatenate([graph.feature_indices for graph in graphs], np.int32),
        _concatenate([graph.feature_values for graph in graphs], np.float32),
        _concatenate([*(graph.covered for graph in graphs), graphs[0].covered[-1:]], np.int32),
        tuple(words),
    )


def _offsets(sizes: Sequence[Ints]) -> Ints:
    return read_only(np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64))


def _concatenate(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return read_only(np.concatenate(arrays).astype(dtype, copy=False))
