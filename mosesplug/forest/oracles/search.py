"""Search for derivations of highest BLEU among partial ones with statistics.

The value of a derivation is BLEU, alone for an oracle, and with the model score for hope and fear.

BLEU is not a sum over edges: matches are clipped by reference counts, and the score is not
additive. Partial derivations of a node are equivalent for all continuations only if they have the
same length, the same clipped counts of reference n-grams, and the same left and right states
(``ngrams.states``). A search that keeps all non-equivalent ones is exact but exponential. For real
graphs a beam keeps those with the highest value so far, against a reference length in proportion to
the covered source words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER
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
    make_partials,
    select_best_rows,
)
from mosesplug.kernels import inlined_kernel, kernel, lean_kernel
from mosesplug.metrics.bleu.corpus import bleu_score_row


class Judge(NamedTuple):
    """The data that BLEU needs to score derivations.

    Attributes:
        limits: int32 ``[n_states]``; clipping limit of each n-gram.
        lengths: float64 ``[n_references]``, ascending; length of each reference in words.
        shares: float64 ``[n_nodes]``; the fraction of source words that each node covers.
        background: float64 ``[9]``; statistics of ``metrics.Bleu`` that are added.
        gain: factor of BLEU in the value of a derivation; below 0 for a fear.
        per_word: whether BLEU is multiplied by the reference length, that of the background
            included.
        model: factor of the model score in the value, 0 or more.
    """

    limits: Ints32
    lengths: Floats
    shares: Floats
    background: Floats
    gain: float = 1.0
    per_word: bool = False
    model: float = 0.0


class Matches(NamedTuple):
    """BLEU statistics of each partial derivation; rows as in ``Partials``.

    Attributes:
        counts: int32 ``[room, n_states]``; clipped counts of the reference n-grams.
        codes: uint64 ``[room]``; hash codes of the counts.
        matches: int32 ``[room, 4]``; sums of the counts of each order.
        words: int64 ``[room]``; length of the translation in words.
        values: float64 ``[room]``; BLEU and model score so far, with their factors.
    """

    counts: Ints32
    codes: NDArray[np.uint64]
    matches: Ints32
    words: Ints
    values: Floats


@kernel
def search_partials(
    graph: TextGraph, scores: Floats, states: NgramStates, judge: Judge, beam: int
) -> tuple[Partials, Matches, int, int]:
    """Return all partial derivations kept, and the rows of the goal's derivations.

    Returns:
        The tables, and the first row of the goal and the one after its last.

    Args:
        scores: float64 ``[n_edges]``; model scores, which break ties of values.
        beam: number of partial derivations to keep per node; 0 keeps all.
    """
    n_nodes = len(graph.edge_offsets) - 1
    open_left, open_right = open_sides(graph)
    most_tails = count_most(graph.tail_offsets)
    partials = make_partials(1024, most_tails)
    known = _matches_for(1024, len(states.depths))
    first = np.zeros(n_nodes + 1, dtype=np.int64)
    table = np.full(64, -1)
    scratch = _Scratch(
        np.zeros((3, most_tails), dtype=np.int64),
        np.empty(count_most(graph.target_offsets) * ORDER**2, dtype=np.int64),
        np.empty(len(judge.background)),
    )
    used = 0
    for node in range(n_nodes):
        first[node] = used
        edge, begun = graph.edge_offsets[node], False
        while edge < graph.edge_offsets[node + 1]:
            if used == len(partials.edges):
                partials, known = double_room(partials), _double_room(known)
            if 2 * (used - first[node]) > len(table):
                table = _larger(partials, known, table, first[node], used)
            edge, used = _extend(
                graph, scores, states, judge, partials, known, first, table, scratch,
                node, open_left[node], open_right[node], edge, begun, used,
            )  # fmt: skip
            begun = True
        if beam > 0 and used - first[node] > beam:
            used = _prune(partials, known, first[node], used, beam)
            table[:] = -1
        first[node + 1] = used
    return partials, known, int(first[n_nodes - 1]), used


class _Scratch(NamedTuple):
    """Working memory of a search.

    Attributes:
        tails: int64 ``[3, most_tails]``; the row of each tail, and its left and right state.
        hits: the output of ``join_words``.
        totals: float64 ``[9]``.
    """

    tails: Ints
    hits: Ints
    totals: Floats


@lean_kernel
def _extend(
    graph: TextGraph,
    scores: Floats,
    states: NgramStates,
    judge: Judge,
    partials: Partials,
    known: Matches,
    first: Ints,
    table: Ints,
    scratch: _Scratch,
    node: int,
    open_left: bool,
    open_right: bool,
    edge: int,
    begun: bool,
    used: int,
) -> tuple[int, int]:
    """Add the partial derivations of a node until ``partials`` or ``table`` is full.

    Args:
        graph, scores, states, judge: see ``search_partials``.
        partials, known: outputs; their first ``used`` rows are filled.
        first: the rows of node ``v`` are ``first[v]:first[v + 1]``.
        scratch: holds the tails' rows of the next partial derivation between calls.
        open_left, open_right: whether words can precede and follow its translation.
        begun: whether an earlier call stopped at this edge.

    Returns:
        The edge to continue with, and the new ``used``.
    """
    chosen, lefts, rights = scratch.tails[0], scratch.tails[1], scratch.tails[2]
    for current in range(edge, graph.edge_offsets[node + 1]):
        tails = graph.tails[graph.tail_offsets[current] : graph.tail_offsets[current + 1]]
        own = 0
        for place in range(graph.target_offsets[current], graph.target_offsets[current + 1]):
            own += graph.targets[place] != -1 and graph.targets[place] != BOUNDARY
        more = scores[current] > -np.inf
        for number in range(len(tails)):
            if not (begun and current == edge):
                chosen[number] = first[tails[number]]
            more &= first[tails[number]] < first[tails[number] + 1]
        while more:
            if used == len(partials.edges) or 2 * (used - first[node]) > len(table):
                return current, used
            # Made in the next free row, and left there if no row is like it.
            partials.edges[used] = current
            partials.scores[used], partials.sizes[used] = scores[current], 1.0
            for number in range(len(tails)):
                row = chosen[number]
                partials.tails[used, number] = row
                partials.scores[used] += partials.scores[row]
                partials.sizes[used] += partials.sizes[row]
                lefts[number], rights[number] = partials.sides[row, 0], partials.sides[row, 1]
            left, right, n_hits = join_words(graph, states, current, lefts, rights, scratch.hits)
            partials.sides[used, 0] = left if open_left else 0
            partials.sides[used, 1] = right if open_right else 0
            hits = scratch.hits[:n_hits]
            _count(known, used, chosen[: len(tails)], own, hits, states, judge.limits)
            slot = _slot(partials, known, table, first[node], used)
            # Rows that no continuation can tell apart are one: the better model score is kept.
            row = table[slot]
            if row < first[node]:
                bleu = _background_bleu(known, used, judge, judge.shares[node], scratch.totals)
                known.values[used] = judge.gain * bleu + judge.model * partials.scores[used]
                table[slot] = used
                used += 1
            elif partials.scores[used] >= partials.scores[row]:
                gained = partials.scores[used] - partials.scores[row]
                known.values[row] += judge.model * gained
                copy_row(partials, used, partials, row)
            more = advance_choice(tails, first, chosen)
    return graph.edge_offsets[node + 1], used


@kernel
def rank_rows(partials: Partials, known: Matches, begin: int, end: int, k: int) -> Ints:
    """Return the ``k`` best rows of ``begin:end``, best first; the last wins ties."""
    rows = np.arange(begin, end)
    size = min(k, len(rows))
    for place in range(size):
        best = place
        for other in range(place + 1, len(rows)):
            if not _before(partials, known, rows[best], rows[other]):
                best = other
        rows[place], rows[best] = rows[best], rows[place]
    return rows[:size].copy()


@kernel
def _matches_for(room: int, n_states: int) -> Matches:
    return Matches(
        np.empty((room, n_states), dtype=np.int32),
        np.empty(room, dtype=np.uint64),
        np.empty((room, ORDER), dtype=np.int32),
        np.empty(room, dtype=np.int64),
        np.empty(room),
    )


@inlined_kernel
def _double_room(known: Matches) -> Matches:
    used = len(known.words)
    larger = _matches_for(2 * used, known.counts.shape[1])
    for row in range(used):
        _copy_row(known, row, larger, row)
    return larger


@lean_kernel
def _copy_row(known: Matches, row: int, others: Matches, place: int) -> None:
    """Copy a row to row ``place`` of the output ``others``, which may be ``known``."""
    others.codes[place] = known.codes[row]
    others.words[place] = known.words[row]
    others.values[place] = known.values[row]
    for ngram in range(known.counts.shape[1]):
        others.counts[place, ngram] = known.counts[row, ngram]
    for order in range(ORDER):
        others.matches[place, order] = known.matches[row, order]


@inlined_kernel
def _count(
    known: Matches, row: int, tails: Ints, own: int, hits: Ints, states: NgramStates, limits: Ints32
) -> None:
    """Fill a row with the words and n-grams of its tails' rows, and with its own."""
    counts, matches = known.counts[row], known.matches[row]
    words, code = own, np.uint64(0)
    # With one tail, counts are copied; with several, their sum must be clipped again.
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


@lean_kernel
def _code(number: int) -> np.uint64:
    """Return a 64-bit hash of a number; the hashes of many n-grams are summed."""
    code = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ (code >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.uint64(code ^ (code >> np.uint64(29)))


@inlined_kernel
def _background_bleu(known: Matches, row: int, judge: Judge, share: float, totals: Floats) -> float:
    """Return BLEU with the background, times the reference length if ``per_word``.

    The shorter of equally close reference lengths wins. ``totals`` is scratch space.
    """
    for column in range(len(totals)):
        totals[column] = judge.background[column]
    words = known.words[row]
    for order in range(ORDER):
        totals[2 * order] += known.matches[row, order]
        totals[2 * order + 1] += max(0, words - order)
    closest = judge.lengths[0] * share
    for length in judge.lengths:
        if abs(length * share - words) < abs(closest - words):
            closest = length * share
    totals[2 * ORDER] += closest
    return bleu_score_row(totals) * (totals[2 * ORDER] if judge.per_word else 1.0)


@lean_kernel
def _before(partials: Partials, known: Matches, row: int, other: int) -> bool:
    """Return whether a row is better than another one; the other one wins ties."""
    if known.values[row] != known.values[other]:
        return bool(known.values[row] > known.values[other])
    return bool(partials.scores[row] > partials.scores[other])


@lean_kernel
def _slot(partials: Partials, known: Matches, table: Ints, first: int, row: int) -> int:
    """Return the slot of a row equivalent to this one, or the free slot for it.

    Rows below ``first`` belong to earlier nodes; a slot with such a row is free.
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


@inlined_kernel
def _alike(partials: Partials, known: Matches, row: int, other: int) -> bool:
    """Return whether two rows are equivalent for all continuations."""
    if known.words[row] != known.words[other] or known.codes[row] != known.codes[other]:
        return False
    for side in range(2):
        if partials.sides[row, side] != partials.sides[other, side]:
            return False
    for ngram in range(known.counts.shape[1]):
        if known.counts[row, ngram] != known.counts[other, ngram]:
            return False
    return True


@inlined_kernel
def _larger(partials: Partials, known: Matches, table: Ints, first: int, used: int) -> Ints:
    larger = np.full(2 * len(table), -1)
    for row in range(first, used):
        larger[_slot(partials, known, larger, first, row)] = row
    return larger


@inlined_kernel
def _prune(partials: Partials, known: Matches, first: int, used: int, beam: int) -> int:
    """Keep the ``beam`` best rows of a node in the same order; return their end."""
    place = first
    for row in select_best_rows(known.values[first:used], beam):
        copy_row(partials, first + row, partials, place)
        _copy_row(known, first + row, known, place)
        place += 1
    return place
