"""Pruning of search graphs: keep the edges of the best derivations.

The max-marginal of an edge is the score of the best derivation that uses it: its own score, the
inside scores of its tails and the outside score of its head (max-product inside-outside).
``prune_to_edges`` keeps a number of edges like Moses' tools. ``prune_to_beam`` keeps the edges near
the best one, by max-marginal (Huang 2008).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mosesplug.arrays import Bools, Floats, Floats32, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.inside_outside import best_outside
from mosesplug.forest.viterbi import inside_best, viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, read_only

SMALLEST = np.float32(1e-8)
"""Moses' tools treat weights up to this absolute value as 0."""


def prune_to_edges(graph: Hypergraph, weights: Floats32, edges: int) -> Hypergraph:
    """Prune a graph to the edges of its best derivations.

    This follows Moses' ``kbmira --hg-prune``. Scores are in single precision, and features are
    summed in the order of their columns.

    Args:
        weights: float32, one per column.
        edges: number of edges to keep. Edges tied with the last of them, and the edges of the
            best derivation, are always kept too.

    Raises:
        DataError: no derivation builds the goal, or its score overflows single precision.
    """
    ordered = sort_columns(graph)
    scores = score_in_single_precision(
        ordered.feature_indptr, ordered.feature_indices, ordered.feature_values, weights
    )
    through, inside = score_best_through_edges(
        graph.edge_offsets, graph.tail_offsets, graph.tails, scores
    )
    if not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    place = min(max(edges, 1), graph.n_edges)
    threshold = np.partition(through, graph.n_edges - place)[graph.n_edges - place]
    kept = (through >= threshold) & (through > -np.inf)
    _complete(graph.edge_offsets, graph.tail_offsets, graph.tails, scores, inside, kept)
    return take_subgraph(graph, kept)


def prune_to_beam(graph: Hypergraph, scores: Floats, beam: float) -> Hypergraph:
    """Prune a graph to edges whose log-probability is within a beam of the best one's.

    The log-probability of an edge is that of the best derivation that uses it (max-marginal).

    Args:
        scores: float64 ``[n_edges]``; the log-probability of a derivation is its sum of scores up
            to a constant.
        beam: keep an edge if its log-probability is at most this much (0 or more) below that of
            the best edge. The edges that connect it to the goal and the leaves in its best
            derivation, and the best derivation of the graph, are always kept too.

    Raises:
        DataError: no derivation builds the goal with a finite score, or the best one has more
            than ten million edges.
    """
    if not beam >= 0.0:
        raise ValueError(f"beam must be 0 or more: {beam}")
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    kept = np.zeros(graph.n_edges, dtype=np.bool_)
    kept[viterbi(graph, scores).edges] = True
    _, inside, _ = inside_best(*arrays, scores)
    outside, above = best_outside(*arrays, scores, inside)
    through = score_through_edges(*arrays, scores, inside, outside)
    kept |= (through >= through.max() - beam) & (through > -np.inf)
    _connect(*arrays, above, kept)
    _complete(*arrays, scores, inside, kept)
    return take_subgraph(graph, kept)


def sort_columns(graph: Hypergraph) -> Hypergraph:
    """Return the graph with the features of each edge sorted by column."""
    indices, values = _sort(
        read_only(graph.feature_indptr),
        read_only(graph.feature_indices),
        read_only(graph.feature_values),
    )
    return replace(graph, feature_indices=read_only(indices), feature_values=read_only(values))


def take_subgraph(graph: Hypergraph, kept: Bools) -> Hypergraph:
    """Return the graph of the kept edges, in the same order, and of their head nodes.

    Args:
        kept: bool ``[n_edges]``; the goal, and every tail of a kept edge, is the head of at least
            one kept edge.
    """
    heads = np.repeat(np.arange(graph.n_nodes), np.diff(graph.edge_offsets))[kept]
    nodes, numbers = np.unique(heads, return_inverse=True)
    renumbered = np.full(graph.n_nodes, -1, dtype=np.int32)
    renumbered[nodes] = np.arange(len(nodes))
    tail_offsets, tails = _select_rows(graph.tail_offsets, kept)
    target_offsets, targets = _select_rows(graph.target_offsets, kept)
    indptr, entries = _select_rows(graph.feature_indptr, kept)
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


def _select_rows(offsets: Ints, kept: Bools) -> tuple[Ints, Bools]:
    """Return the offsets of the kept rows and the mask of their entries."""
    sizes = np.diff(offsets)
    return _offsets(sizes[kept]), np.repeat(kept, sizes)


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@kernel
def score_in_single_precision(
    indptr: Ints, columns: Ints32, values: Floats32, weights: Floats32
) -> Floats32:
    """Return ``w . h`` of every edge, summed in single precision.

    The sums are in the order of the features.

    Args:
        indptr: int64 ``[n_edges + 1]``; row offsets into ``columns`` and ``values``.
        columns: int32; see ``sort_columns``.
        values: float32.
        weights: float32, one per column; absolute values up to 1e-8 count as 0.

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
def _sort(indptr: Ints, indices: Ints32, values: Floats32) -> tuple[Ints32, Floats32]:
    """Sort the features of each edge by insertion, since an edge has few features.

    Most edges have the columns of the edge before, and so the same order.
    """
    columns, sorted_values = np.empty_like(indices), np.empty_like(values)
    order = np.zeros(0, dtype=np.int64)  # of the columns from ``before`` on
    before = 0
    for edge in range(len(indptr) - 1):
        first = indptr[edge]
        size = indptr[edge + 1] - first
        alike = size == len(order)
        for place in range(size if alike else 0):
            alike &= indices[first + place] == indices[before + place]
        if not alike:
            order = np.arange(size)
            for entry in range(1, size):
                place = entry
                while place > 0 and indices[first + order[place - 1]] > indices[first + entry]:
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = entry
            before = first
        for place in range(size):
            columns[first + place] = indices[first + order[place]]
            sorted_values[first + place] = values[first + order[place]]
    return columns, sorted_values


@kernel
def score_best_through_edges(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, scores: Floats32
) -> tuple[Floats32, Floats32]:
    """Return the best derivation's score through each edge, and nodes' inside scores.

    Args:
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
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    scores: Floats32 | Floats,
    inside: Floats32 | Floats,
    kept: Bools,
) -> None:
    """Keep an edge into the goal and each tail of kept edges; ``kept`` is an output.

    The score of a derivation depends on the order in which its edges are summed. Rounding can
    therefore drop an edge that a kept edge needs.
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
def score_through_edges(
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    scores: Floats,
    inside: Floats,
    outside: Floats,
) -> Floats:
    """Return the inside plus outside score of each edge, float64 ``[n_edges]``."""
    through = np.empty(len(scores))
    for node in range(len(edge_offsets) - 1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            through[edge] = outside[node] + scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                through[edge] += inside[tails[entry]]
    return through


@kernel
def _connect(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, above: Ints, kept: Bools
) -> None:
    """Keep edges that connect kept edges' heads to the goal; ``kept`` is an output.

    An edge can have a high posterior because many improbable derivations use it.

    Args:
        above: int64 ``[n_nodes]``; the best edge that has each node as a tail.
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
