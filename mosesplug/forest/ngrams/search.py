"""Search for the best derivation when n-grams of the translation have values.

The objective is the sum of the edge scores plus the value of every n-gram occurrence. Given the
states of ``ngrams.states``, this is a sum over edges, so the best derivation of each node and
state suffices: an exact dynamic program. A beam makes the search faster but approximate.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Floats, Ints
from mosesplug.forest.ngrams.states import (
    NgramStates,
    TextGraph,
    count_most,
    join_words,
    open_sides,
)
from mosesplug.forest.partial_derivations import (
    Partials,
    advance_choice,
    copy_row,
    double_room,
    extract_derivation,
    make_partials,
    select_best_rows,
)
from mosesplug.forest.viterbi import Derivation
from mosesplug.kernels import inlined_kernel, kernel


def find_best_with_ngrams(
    graph: TextGraph,
    scores: Floats,
    states: NgramStates,
    values: Floats,
    *,
    beam: int | None = None,
) -> Derivation:
    """Return the derivation with the highest sum of edge scores and n-gram values.

    Args:
        scores: float64 ``[n_edges]``; edges whose score is -inf or NaN are ignored.
        values: float64 ``[n_states]``, finite; value of each occurrence of an n-gram.
        beam: number of best partial derivations to keep per node; None keeps all that can become
            the best, which makes the search exact.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    if beam is not None and beam < 1:
        raise ValueError(f"beam must be positive: {beam}")
    partials, goal = _search(graph, scores, states, values, beam or 0)
    return extract_derivation(graph.tail_offsets, partials, goal, float(partials.scores[goal]))


@kernel
def _search(
    graph: TextGraph, scores: Floats, states: NgramStates, values: Floats, beam: int
) -> tuple[Partials, int]:
    """Return all partial derivations, at most ``beam`` per node, and the goal's row.

    A ``beam`` of 0 is no limit.
    """
    n_nodes = len(graph.edge_offsets) - 1
    open_left, open_right = open_sides(graph)
    most_tails = count_most(graph.tail_offsets)
    partials = make_partials(1024, most_tails)
    first = np.zeros(n_nodes + 1, dtype=np.int64)
    table = np.full(64, -1)
    chosen = np.zeros(most_tails, dtype=np.int64)
    lefts, rights = np.zeros_like(chosen), np.zeros_like(chosen)
    most_hits = count_most(graph.target_offsets) * states.texts.shape[1] ** 2
    hits = np.empty(most_hits, dtype=np.int64)
    used = 0
    for node in range(n_nodes):
        first[node] = used
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
            more = scores[edge] > -np.inf
            for number in range(len(tails)):
                chosen[number] = first[tails[number]]
                more &= first[tails[number]] < first[tails[number] + 1]
            while more:
                score, size = scores[edge], 1.0
                for number in range(len(tails)):
                    row = chosen[number]
                    score += partials.scores[row]
                    size += partials.sizes[row]
                    lefts[number], rights[number] = partials.sides[row]
                left, right, n_hits = join_words(graph, states, edge, lefts, rights, hits)
                for hit in hits[:n_hits]:
                    score += values[hit]
                left, right = left if open_left[node] else 0, right if open_right[node] else 0
                slot = _slot(partials, table, first[node], left, right)
                row = table[slot]
                if row < first[node]:
                    if used == len(partials.edges):
                        partials = double_room(partials)
                    row, table[slot] = used, used
                    partials.scores[row] = -np.inf
                    used += 1
                # Of equal ones the later edge, as everywhere.
                if score >= partials.scores[row]:
                    partials.edges[row], partials.scores[row] = edge, score
                    partials.sizes[row] = size
                    for number in range(len(tails)):
                        partials.tails[row, number] = chosen[number]
                    partials.sides[row, 0], partials.sides[row, 1] = left, right
                if 2 * (used - first[node]) > len(table):
                    table = _larger(partials, table, first[node], used)
                more = advance_choice(tails, first, chosen)
        if beam > 0 and used - first[node] > beam:
            used = _prune(partials, first[node], used, beam)
            table[:] = -1
        first[node + 1] = used
    # Nothing is remembered of the goal, so that it has one row or none.
    return partials, used - 1 if used > first[n_nodes - 1] else -1


@kernel
def _slot(partials: Partials, table: Ints, first: int, left: int, right: int) -> int:
    """Return the slot of the partial derivation with these sides, or its free slot.

    Rows below ``first`` belong to earlier nodes; a slot with such a row is free.
    """
    code = np.uint64(left) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(right)
    code *= np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((code >> np.uint64(32)) % np.uint64(len(table)))
    while table[slot] >= first:
        row = table[slot]
        if partials.sides[row, 0] == left and partials.sides[row, 1] == right:
            break
        slot = (slot + 1) % len(table)
    return int(slot)


@inlined_kernel
def _larger(partials: Partials, table: Ints, first: int, used: int) -> Ints:
    larger = np.full(2 * len(table), -1)
    for row in range(first, used):
        left, right = partials.sides[row]
        larger[_slot(partials, larger, first, left, right)] = row
    return larger


@inlined_kernel
def _prune(partials: Partials, first: int, used: int, beam: int) -> int:
    """Keep the ``beam`` best rows of a node in the same order; return their end."""
    place = first
    for row in select_best_rows(partials.scores[first:used], beam):
        copy_row(partials, first + row, partials, place)
        place += 1
    return place
