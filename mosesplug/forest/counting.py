"""Count the derivations of a search graph: the inside pass over counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mosesplug.errors import DataError
from mosesplug.forest.inside_outside import GraphEdges, log_inside

__all__ = ["MOST_DIGITS", "count_derivations", "log_count"]

MOST_DIGITS = 10_000
"""A graph whose hyperedges use a node twice can have a number of derivations too long to print."""


def log_count(graph: GraphEdges) -> float:
    """Return the natural logarithm of the number of derivations; -inf for zero."""
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    inside, _ = log_inside(*arrays, np.zeros(len(graph.tail_offsets) - 1))
    return float(inside[-1])


def count_derivations(graph: GraphEdges) -> int:
    """Return the number of derivations of the goal, exactly.

    Raises:
        DataError: the number has more than ten thousand digits.
    """
    digits = log_count(graph) / np.log(10.0)
    if digits > MOST_DIGITS:
        raise DataError(
            f"the search graph has about 10^{digits:.3g} derivations: too many to count"
        )
    edge_offsets, tail_offsets = graph.edge_offsets.tolist(), graph.tail_offsets.tolist()
    tails = graph.tails.tolist()
    counts: list[int] = []
    for first, last in pairwise(edge_offsets):
        total = 0
        for edge in range(first, last):
            ways = 1
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                ways *= counts[tails[entry]]
            total += ways
        counts.append(total)
    return counts[-1]
