"""The search for the derivation of highest BLEU: partial derivations and what BLEU has of them.

BLEU does not fall into edges: a match counts only as often as a reference has the n-gram, and the
score is no sum. Partial derivations of a node are alike for all that may come only where they have
the same length, the same clipped counts of the references' n-grams, and the same sides
(``ngram_states``). A search that keeps all that differ is exact, and exponential: for real graphs a
beam keeps those of the highest BLEU so far, against the part of the reference length that their
source words have a claim to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER
from mosesplug.forest.ngrams.states import (
    NgramStates,
    TextGraph,
    joined,
    most_tails_of,
    open_sides,
)
from mosesplug.forest.partial_derivations import (
    Partials,
    best_rows,
    grown,
    moved,
    next_choice,
    partials_for,
)
from mosesplug.kernels import kernel
from mosesplug.metrics.bleu import bleu_score_row

__all__ = ["Judge", "Matches", "searched"]


class Judge(NamedTuple):
    """The data by which BLEU judges derivations.

    Attributes:
        limits: int32 ``[n_states]``; how often an n-gram counts at most.
        lengths: float64 ``[n_references]``, ascending; words of each reference.
        shares: float64 ``[n_nodes]``; the part of the source words that each node covers.
        background: float64 ``[9]``; statistics of ``metrics.Bleu`` that are added.
    """

    limits: NDArray[np.int32]
    lengths: NDArray[np.float64]
    shares: NDArray[np.float64]
    background: NDArray[np.float64]


class Matches(NamedTuple):
    """BLEU statistics of each partial derivation; rows as in ``Partials``.

    Attributes:
        counts: int32 ``[room, n_states]``; n-grams of the references, clipped.
        codes: uint64 ``[room]``; hash codes of the counts.
        matches: int32 ``[room, 4]``; sums of the counts of each length.
        words: int64 ``[room]``; how many the translation has.
        worths: float64 ``[room]``; BLEU so far.
    """

    counts: NDArray[np.int32]
    codes: NDArray[np.uint64]
    matches: NDArray[np.int32]
    words: NDArray[np.int64]
    worths: NDArray[np.float64]


@kernel
def searched(
    graph: TextGraph, scores: NDArray[np.float64], states: NgramStates, judge: Judge, beam: int
) -> tuple[Partials, Matches, int]:
    """Return all partial derivations that are kept, and the goal's best (-1 for none).

    Args:
        graph: of the sentence.
        scores: float64 ``[n_edges]``; they decide among equals.
        states: of the references' n-grams.
        judge: what BLEU goes by.
        beam: partial derivations of a node that are kept; 0 for all.
    """
    n_nodes = len(graph.edge_offsets) - 1
    open_left, open_right = open_sides(graph)
    most_tails = most_tails_of(graph)
    partials = partials_for(1024, most_tails)
    known = _matches_for(1024, len(states.depths))
    first = np.zeros(n_nodes + 1, dtype=np.int64)
    table = np.full(64, -1)
    chosen = np.zeros(most_tails, dtype=np.int64)
    lefts, rights = np.zeros_like(chosen), np.zeros_like(chosen)
    hits = np.empty(64, dtype=np.int64)
    used = 0
    for node in range(n_nodes):
        first[node] = used
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
            own = 0
            for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
                own += graph.targets[place] != -1 and graph.targets[place] != BOUNDARY
            more = scores[edge] > -np.inf
            for number in range(len(tails)):
                chosen[number] = first[tails[number]]
                more &= first[tails[number]] < first[tails[number] + 1]
            while more:
                # Made in the next free row, and left there if no row is like it.
                if used == len(partials.edges):
                    partials, known = grown(partials), _grown(known)
                partials.edges[used] = edge
                partials.scores[used], partials.sizes[used] = scores[edge], 1.0
                for number in range(len(tails)):
                    row = chosen[number]
                    partials.tails[used, number] = row
                    partials.scores[used] += partials.scores[row]
                    partials.sizes[used] += partials.sizes[row]
                    lefts[number], rights[number] = partials.sides[row]
                left, right, n_hits, hits = joined(graph, states, edge, lefts, rights, hits)
                partials.sides[used, 0] = left if open_left[node] else 0
                partials.sides[used, 1] = right if open_right[node] else 0
                _count(known, used, chosen[: len(tails)], own, hits[:n_hits], states, judge.limits)
                slot = _slot(partials, known, table, first[node], used)
                row = table[slot]
                if row < first[node]:
                    known.worths[used] = _worth(known, used, judge, judge.shares[node])
                    table[slot] = used
                    used += 1
                elif partials.scores[used] >= partials.scores[row]:
                    moved(partials, used, partials, row)
                if 2 * (used - first[node]) > len(table):
                    table = _larger(partials, known, table, first[node], used)
                more = next_choice(tails, first, chosen)
        if beam > 0 and used - first[node] > beam:
            used = _pruned(partials, known, first[node], used, beam)
            table[:] = -1
        first[node + 1] = used
    best = -1
    for row in range(first[n_nodes - 1], used):
        if best < 0 or not _before(partials, known, best, row):
            best = row
    return partials, known, best


@kernel
def _matches_for(room: int, n_states: int) -> Matches:
    return Matches(
        np.empty((room, n_states), dtype=np.int32),
        np.empty(room, dtype=np.uint64),
        np.empty((room, ORDER), dtype=np.int32),
        np.empty(room, dtype=np.int64),
        np.empty(room),
    )


@kernel
def _grown(known: Matches) -> Matches:
    """Return a copy with twice the room, of a table that is full."""
    used = len(known.words)
    larger = _matches_for(2 * used, known.counts.shape[1])
    for row in range(used):
        _moved(known, row, larger, row)
    return larger


@kernel
def _moved(known: Matches, row: int, others: Matches, place: int) -> None:
    """Write a row to a place of the same or another table (``others`` is an output)."""
    others.codes[place] = known.codes[row]
    others.words[place] = known.words[row]
    others.worths[place] = known.worths[row]
    for ngram in range(known.counts.shape[1]):
        others.counts[place, ngram] = known.counts[row, ngram]
    for order in range(ORDER):
        others.matches[place, order] = known.matches[row, order]


@kernel
def _count(
    known: Matches,
    row: int,
    tails: NDArray[np.int64],
    own: int,
    hits: NDArray[np.int64],
    states: NgramStates,
    limits: NDArray[np.int32],
) -> None:
    """Fill a row: words and n-grams of its tails' rows, its own words, n-grams that it makes."""
    counts, matches = known.counts[row], known.matches[row]
    words, code = own, np.uint64(0)
    counts[:], matches[:] = 0, 0
    for tail in tails:
        words += known.words[tail]
        if len(tails) == 1:
            for ngram in range(1, len(limits)):
                counts[ngram] = known.counts[tail, ngram]
            for order in range(ORDER):
                matches[order] = known.matches[tail, order]
            code = known.codes[tail]
            continue
        for ngram in range(1, len(limits)):
            more = min(known.counts[tail, ngram], limits[ngram] - counts[ngram])
            counts[ngram] += more
            matches[states.depths[ngram] - 1] += more
            code += np.uint64(more) * _code(ngram)
    for ngram in hits:
        if counts[ngram] < limits[ngram]:
            counts[ngram] += 1
            matches[states.depths[ngram] - 1] += 1
            code += _code(ngram)
    known.words[row], known.codes[row] = words, code


@kernel
def _code(number: int) -> np.uint64:
    """64 bits that look random; those of many n-grams are summed."""
    code = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ (code >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.uint64(code ^ (code >> np.uint64(29)))


@kernel
def _worth(known: Matches, row: int, judge: Judge, share: float) -> float:
    """Return BLEU with the background; of equally close reference lengths the shorter."""
    totals = judge.background.copy()
    words = known.words[row]
    for order in range(ORDER):
        totals[2 * order] += known.matches[row, order]
        totals[2 * order + 1] += max(0, words - order)
    closest = judge.lengths[0] * share
    for length in judge.lengths:
        if abs(length * share - words) < abs(closest - words):
            closest = length * share
    totals[2 * ORDER] += closest
    return bleu_score_row(totals)


@kernel
def _before(partials: Partials, known: Matches, row: int, other: int) -> bool:
    """Return whether a row is better than a later one; of equals the later is."""
    if known.worths[row] != known.worths[other]:
        return bool(known.worths[row] > known.worths[other])
    return bool(partials.scores[row] > partials.scores[other])


@kernel
def _slot(
    partials: Partials, known: Matches, table: NDArray[np.int64], first: int, row: int
) -> int:
    """Return where a row like this one is in the hash table, or would be.

    Rows below ``first`` are those of earlier nodes: such a slot is free.
    """
    code = known.codes[row] + _code(known.words[row])
    for side in partials.sides[row]:
        code = (code ^ np.uint64(side)) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((code >> np.uint64(32)) % np.uint64(len(table)))
    while table[slot] >= first:
        other = table[slot]
        if _alike(partials, known, row, other):
            break
        slot = (slot + 1) % len(table)
    return int(slot)


@kernel
def _alike(partials: Partials, known: Matches, row: int, other: int) -> bool:
    """Return whether two rows are alike for all that may come."""
    if known.words[row] != known.words[other] or known.codes[row] != known.codes[other]:
        return False
    for side in range(2):
        if partials.sides[row, side] != partials.sides[other, side]:
            return False
    for ngram in range(known.counts.shape[1]):
        if known.counts[row, ngram] != known.counts[other, ngram]:
            return False
    return True


@kernel
def _larger(
    partials: Partials, known: Matches, table: NDArray[np.int64], first: int, used: int
) -> NDArray[np.int64]:
    """Return a hash table of twice the size with the rows of this node."""
    larger = np.full(2 * len(table), -1)
    for row in range(first, used):
        larger[_slot(partials, known, larger, first, row)] = row
    return larger


@kernel
def _pruned(partials: Partials, known: Matches, first: int, used: int, beam: int) -> int:
    """Keep the ``beam`` best rows of a node, in their order; where they end."""
    place = first
    for row in best_rows(known.worths[first:used], beam):
        moved(partials, first + row, partials, place)
        _moved(known, first + row, known, place)
        place += 1
    return place
