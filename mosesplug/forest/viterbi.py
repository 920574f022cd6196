"""The highest-scoring derivation of a search graph (Huang 2008, section 3.1).

One pass from the leaves to the goal computes inside scores. The inside score of a node is the
maximum, over its edges, of the edge's score plus the inside scores of the tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.inside_outside import GraphEdges
from mosesplug.kernels import kernel, read_only

MOST_EDGES = 10_000_000
"""Limit of edges: a derivation that uses nodes more than once can be exponentially large."""


@dataclass(frozen=True)
class Derivation:
    """A choice of edges that builds the goal.

    Attributes:
        score: the sum of the edge scores.
        edges: int64; each edge before those of its tails. The head of the first one is the goal.
    """

    score: float
    edges: Ints


def viterbi(graph: GraphEdges, scores: Floats) -> Derivation:
    """Return the best derivation; of tied edges, the later one wins, as in Moses.

    Args:
        scores: float64 ``[n_edges]``, finite.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    tail_offsets, tails = read_only(graph.tail_offsets), read_only(graph.tails)
    best, inside, sizes = inside_best(read_only(graph.edge_offsets), tail_offsets, tails, scores)
    if best[-1] < 0:
        raise DataError("no derivation of the search graph builds its goal")
    if sizes[-1] > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {sizes[-1]:.3g} edges")
    edges = derivation_edges(tail_offsets, tails, best, int(sizes[-1]))
    return Derivation(float(inside[-1]), edges)


@kernel
def inside_best(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, scores: Floats
) -> tuple[Ints, Floats, Floats]:
    """Find each node's best edge, its score and its derivation's number of edges.

    The edge is -1 if the node has no derivation.
    """
    n_nodes = len(edge_offsets) - 1
    best = np.full(n_nodes, -1, dtype=np.int64)
    inside = np.full(n_nodes, -np.inf)
    sizes = np.zeros(n_nodes)
    for node in range(n_nodes):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            total = scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                total += inside[tails[entry]]
            if total > -np.inf and total >= inside[node]:
                inside[node] = total
                best[node] = edge
        if best[node] >= 0:
            edge = best[node]
            sizes[node] = 1.0
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                sizes[node] += sizes[tails[entry]]
    return best, inside, sizes


@kernel
def derivation_edges(tail_offsets: Ints, tails: Ints32, best: Ints, size: int) -> Ints:
    """Return the edges of the goal's best derivation, depth first.

    Args:
        best: int64 ``[n_nodes]``; the best edge of each node.

    Returns:
        int64 ``[size]``.
    """
    edges = np.empty(size, dtype=np.int64)
    # Every edge is put on the stack once, so that it cannot grow beyond their number.
    stack = np.empty(size, dtype=np.int64)
    stack[0] = best[-1]
    height, count = 1, 0
    while height > 0:
        height -= 1
        edge = stack[height]
        edges[count] = edge
        count += 1
        for entry in range(tail_offsets[edge + 1] - 1, tail_offsets[edge] - 1, -1):
            stack[height] = best[tails[entry]]
            height += 1
    return edges
