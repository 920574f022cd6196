"""Several search graphs of one sentence as one, which has the derivations of all.

Every graph keeps its nodes. A new goal can be built from the goal of each by an edge that adds
nothing. So whatever finds a best derivation in a graph finds the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph_reader import TAIL
from mosesplug.hypergraph import Hypergraph, read_only

__all__ = ["united"]


def united(graphs: Sequence[Hypergraph]) -> Hypergraph:
    """Return one graph of several; of a single one, itself.

    The edges of the goal stand in the opposite order of the graphs: of equal derivations searches
    take the last, which is the first graph's.

    Args:
        graphs: of one sentence, one at least, with the same columns.
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
        _joined([*tails, goals], np.int32),
        _offsets([np.diff(graph.target_offsets) for graph in graphs] + [ones]),
        _joined([*targets, np.full(n, TAIL)], np.int32),
        _offsets([np.diff(graph.feature_indptr) for graph in graphs] + [nothing]),
        _joined([graph.feature_indices for graph in graphs], np.int32),
        _joined([graph.feature_values for graph in graphs], np.float32),
        _joined([*(graph.covered for graph in graphs), graphs[0].covered[-1:]], np.int32),
        tuple(words),
    )


def _offsets(sizes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return read_only(np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64))


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return read_only(np.concatenate(arrays).astype(dtype, copy=False))
