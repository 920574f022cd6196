"""Smaller search graphs: the edges that lie on the best derivations.

An edge is worth the score of the best derivation that goes through it: its own score, the inside
scores of its tails, and the outside score of its head (max-product inside-outside). ``pruned``
keeps a number of edges as Moses' tools do; ``within_beam`` keeps what is near the best, by that
worth (Huang 2008) or by the sum of all derivations that go through an edge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.inside_outside import best_outside, log_outside, posterior
from mosesplug.forest.viterbi import inside_best, viterbi
from mosesplug.hypergraph import Hypergraph, read_only
from mosesplug.kernels import kernel

__all__ = [
    "edges_of_best",
    "in_order_of_columns",
    "pruned",
    "single_scores",
    "subgraph",
    "within_beam",
]

SMALLEST = np.float32(1e-8)
"""Moses' tools take weights that are no larger for 0."""


def pruned(graph: Hypergraph, weights: NDArray[np.float32], edges: int) -> Hypergraph:
    """Return the part of a graph that its best derivations need, as Moses' ``kbmira --hg-prune``.

    Scores are in single precision, and features are summed in the order of their columns.

    Args:
        graph: a graph whose goal can be built.
        weights: float32, one for each column.
        edges: how many are to be kept. Those as good as the last of them stay too, and always
            the best derivation.

    Raises:
        DataError: no derivation builds the goal, or its score overflows single precision.
    """
    ordered = in_order_of_columns(graph)
    scores = single_scores(
        ordered.feature_indptr, ordered.feature_indices, ordered.feature_values, weights
    )
    through, inside = edges_of_best(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    if not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    place = min(max(edges, 1), graph.n_edges)
    threshold = np.partition(through, graph.n_edges - place)[graph.n_edges - place]
    kept = (through >= threshold) & (through > -np.inf)
    _complete(graph.edge_offsets, graph.tail_offsets, graph.tails, scores, inside, kept)
    return subgraph(graph, kept)


def within_beam(
    graph: Hypergraph,
    scores: NDArray[np.float64],
    beam: float,
    *,
    over: Literal["best", "all"] = "best",
) -> Hypergraph:
    """Return the part of a graph whose edges are nearly as good as the best edges.

    Args:
        graph: a graph whose goal can be built.
        scores: float64 ``[n_edges]``; a derivation is as likely as ``exp`` of its sum.
        beam: keep an edge whose log-probability is lower than the best edge's by no more than
            this (0 and more), with edges that connect it to the goal and to leaves by its best
            derivation; and always the best derivation.
        over: an edge is as likely as the ``best`` derivation that goes through it (max-marginal),
            or as ``all`` of them together (posterior).

    Raises:
        ValueError: the beam is negative or no number.
        DataError: no derivation builds the goal with a finite score, or the best one has more
            than ten million edges.
    """
    if not beam >= 0.0:
        raise ValueError(f"a beam of {beam}: it is 0 or more")
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    kept = np.zeros(graph.n_edges, dtype=np.bool_)
    kept[viterbi(graph, scores).edges] = True
    _, inside, _ = inside_best(*arrays, scores)
    outside, above = best_outside(*arrays, scores, inside)
    if over == "best":
        through = _through(*arrays, scores, inside, outside)
    else:
        sums = posterior(graph, scores).inside
        through = _through(*arrays, scores, sums, log_outside(*arrays, scores, sums))
    kept |= (through >= through.max() - beam) & (through > -np.inf)
    _connect(*arrays, above, kept)
    _complete(*arrays, scores, inside, kept)
    return subgraph(graph, kept)


def in_order_of_columns(graph: Hypergraph) -> Hypergraph:
    """Return the same graph, the features of each edge in ascending columns."""
    indices, values = _sorted(graph.feature_indptr, graph.feature_indices, graph.feature_values)
    return replace(graph, feature_indices=read_only(indices), feature_values=read_only(values))


def subgraph(graph: Hypergraph, kept: NDArray[np.bool_]) -> Hypergraph:
    """Return the graph of some edges, in their order, and of the nodes that they lead to.

    Args:
        graph: of which.
        kept: bool ``[n_edges]``; one edge at least leads to the goal, and some to every tail of
            those that are kept.
    """
    heads = np.repeat(np.arange(graph.n_nodes), np.diff(graph.edge_offsets))[kept]
    nodes, numbers = np.unique(heads, return_inverse=True)
    renumbered = np.full(graph.n_nodes, -1, dtype=np.int32)
    renumbered[nodes] = np.arange(len(nodes))
    tail_offsets, tails = _taken(graph.tail_offsets, kept)
    target_offsets, targets = _taken(graph.target_offsets, kept)
    indptr, entries = _taken(graph.feature_indptr, kept)
    return Hypergraph(
        read_only(_offsets(np.bincount(numbers, minlength=len(nodes)))),
        read_only(tail_offsets),
        read_only(renumbered[graph.tails[tails]]),
        read_only(target_offsets),
        read_only(graph.targets[targets]),
        read_only(indptr),
        read_only(graph.feature_indices[entries]),
        read_only(graph.feature_values[entries]),
        read_only(graph.covered[nodes]),
        graph.words,
    )


def _taken(
    offsets: NDArray[np.int64], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return offsets of the rows that are kept, and which entries are theirs."""
    sizes = np.diff(offsets)
    return _offsets(sizes[kept]), np.repeat(kept, sizes)


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@kernel
def single_scores(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> NDArray[np.float32]:
    """``w . h`` of every edge, summed in single precision in the order that the features have.

    Args:
        indptr: int64 ``[n_edges + 1]``, into the two that follow.
        columns: int32; see ``in_order_of_columns``.
        values: float32.
        weights: float32, one for each column; one up to 1e-8 counts as 0.

    Returns:
        float32 ``[n_edges]``.
    """
    scores = np.empty(len(indptr) - 1, dtype=np.float32)
    for edge in range(len(scores)):
        total = np.float32(0.0)
        for entry in range(indptr[edge], indptr[edge + 1]):
            weight = weights[columns[entry]]
            if abs(weight) > SMALLEST:
                total += values[entry] * weight
        scores[edge] = total
    return scores


@kernel
def _sorted(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Insertion sort, edge by edge: an edge has few features."""
    columns, sorted_values = indices.copy(), values.copy()
    for edge in range(len(indptr) - 1):
        for entry in range(indptr[edge] + 1, indptr[edge + 1]):
            column, value = columns[entry], sorted_values[entry]
            place = entry
            while place > indptr[edge] and columns[place - 1] > column:
                columns[place], sorted_values[place] = columns[place - 1], sorted_values[place - 1]
                place -= 1
            columns[place], sorted_values[place] = column, value
    return columns, sorted_values


@kernel
def edges_of_best(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Score for each edge the best derivation that has it, and each node's inside part.

    Args:
        edge_offsets, tail_offsets, tails: of the graph.
        scores: float32 ``[n_edges]``.

    Returns:
        float32 ``[n_edges]`` and float32 ``[n_nodes]``; -inf where there is no derivation. Sums
        are in the order of Moses' tools.
    """
    nothing = np.float32(-np.inf)
    n_nodes = len(edge_offsets) - 1
    inside = np.full(n_nodes, nothing, dtype=np.float32)
    up_to = np.empty(len(scores), dtype=np.float32)
    for node in range(n_nodes):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            total = scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                total += inside[tails[entry]]
            up_to[edge] = total
            inside[node] = max(inside[node], total)
    outside = np.full(n_nodes, nothing, dtype=np.float32)
    outside[-1] = 0.0
    through = np.empty(len(scores), dtype=np.float32)
    for node in range(n_nodes - 1, -1, -1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            through[edge] = outside[node] + up_to[edge]
            first, last = tail_offsets[edge], tail_offsets[edge + 1]
            for entry in range(first, last):
                total = outside[node]
                for other in range(first, last):
                    if other != entry:
                        total += inside[tails[other]]
                total += scores[edge]
                outside[tails[entry]] = max(outside[tails[entry]], total)
    return through, inside


@kernel
def _complete(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    scores: NDArray[np.float32] | NDArray[np.float64],
    inside: NDArray[np.float32] | NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> None:
    """Keep an edge to the goal and to every tail of an edge kept (``kept`` is an output).

    Scores of one derivation differ by the order in which its edges are summed, so that rounding
    can leave an edge out that another needs.
    """
    needed = np.zeros(len(edge_offsets) - 1, dtype=np.bool_)
    needed[-1] = True
    for node in range(len(needed) - 1, -1, -1):
        best, highest, has_one = -1, np.float32(-np.inf), False
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            total = scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                total += inside[tails[entry]]
            if total > -np.inf and total >= highest:
                best, highest = edge, total
            has_one |= kept[edge]
        if needed[node] and not has_one:
            kept[best] = True
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            if kept[edge]:
                needed_from, needed_to = tail_offsets[edge], tail_offsets[edge + 1]
                for entry in range(needed_from, needed_to):
                    needed[tails[entry]] = True


@kernel
def _through(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    scores: NDArray[np.float64],
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Inside and outside of each edge together, float64 ``[n_edges]``."""
    through = np.empty(len(scores))
    for node in range(len(edge_offsets) - 1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            through[edge] = outside[node] + scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                through[edge] += inside[tails[entry]]
    return through


@kernel
def _connect(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    above: NDArray[np.int64],
    kept: NDArray[np.bool_],
) -> None:
    """Keep an edge from the head of every edge kept, up to the goal (``kept`` is an output).

    An edge can be likely because many derivations go through it, none of which is likely itself.

    Args:
        edge_offsets, tail_offsets, tails: of the graph.
        above: int64 ``[n_nodes]``; the edge that uses each node best.
        kept: bool ``[n_edges]``.
    """
    used = np.zeros(len(above), dtype=np.bool_)
    for edge in range(len(kept)):
        if kept[edge]:
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                used[tails[entry]] = True
    for node in range(len(above) - 1):
        if not used[node] and kept[edge_offsets[node] : edge_offsets[node + 1]].any():
            kept[above[node]] = True
            for entry in range(tail_offsets[above[node]], tail_offsets[above[node] + 1]):
                used[tails[entry]] = True
