"""Find the upper envelope of a search graph by decoding at intersections of lines.

Macherey et al. (2008) and Kumar et al. (2009) compute the envelopes of all nodes from the leaves to
the goal. This search computes only the goal's envelope, by decoding at the intersection of two of
its lines (Eisner & Severance 1976). Either no derivation scores higher there, and the two lines
are neighbors, or the winner is a line between them. ``k`` lines take about ``2 k`` decodings.
Eight decodings share a pass over the edges. On graphs of Moses, most of whose nodes have lines
that are in no envelope of the goal, this is about ten times as fast.

Derivations are compared by sums of inside scores. Scores that differ only by the rounding of such
sums count as ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.growing import double_length
from mosesplug.forest.viterbi import MOST_EDGES
from mosesplug.kernels import kernel

NO_DERIVATION, TOO_LARGE = -1, -2
"""Error codes in place of the size of an envelope; see ``envelope.reason``."""

_LANES = 8
"""Decodings in one pass: the doubles of a cache line, or of a wide vector register."""

_SAMPLES = (-1.0, -0.2, -0.04, 0.04, 0.2, 1.0)
"""Positions of the first decodings between both ends, in units of the sum of the edges' absolute
intercepts over that of their absolute slopes. Any positions work; these save passes."""

_NOWHERE, _IN_PLACE, _BETWEEN = 0, 1, 2
"""The outcomes for a decoded derivation: already known, replaces a loose one, or added."""

_SAME_SLOPE = 1e-13
_SAME_SCORE = 1e-15
"""Differences that count as rounding, relative to the sums of absolute values. The tolerance of
scores is smaller because a new line must score higher *and* have a slope between the two others."""


class LineGraph(NamedTuple):
    """A graph along a line, for kernels.

    Attributes:
        edge_offsets, tail_offsets, tails: as in ``Hypergraph``.
        intercepts, slopes: float64 ``[n_edges]``.
    """

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]


class Winners(NamedTuple):
    """An envelope, for kernels; only the first ``size`` rows are used.

    Attributes:
        size: number of lines; negative on errors, see ``envelope.reason``.
        lines: float64 ``[room, 2]``; intercept and slope, slopes ascending.
        starts: float64 ``[room]``; where each line begins to win, ascending from minus infinity.
        derivations: int64 ``[room, 2]``; start and end of each derivation's edges in ``edges``.
        edges: int64; within a derivation, each edge before those of its tails.
    """

    size: int
    lines: NDArray[np.float64]
    starts: NDArray[np.float64]
    derivations: NDArray[np.int64]
    edges: NDArray[np.int64]


class _Found(NamedTuple):
    """Derivations in the order in which they were found.

    Attributes:
        lines: float64 ``[room, 4]``; sums of the edges' intercepts, slopes, absolute intercepts
            and absolute slopes.
        derivations: int64 ``[room, 2]``; as in ``Winners``.
        after: int64 ``[room]``; the next derivation by slope, -1 after the last.
        loose: bool ``[room]``; the derivation has the minimum or maximum slope, but another one
            with the same slope may have a higher intercept.
    """

    lines: NDArray[np.float64]
    derivations: NDArray[np.int64]
    after: NDArray[np.int64]
    loose: NDArray[np.bool_]


@kernel
def find_winners(graph: LineGraph) -> Winners:
    """Return the upper envelope over all derivations, for kernels; see ``envelope``."""
    inside = np.empty((len(graph.edge_offsets) - 1, _LANES))
    goal = inside[-1]
    # Lane k decodes with shares[0, k] of the intercepts and shares[1, k] of the slopes.
    shares = _first_shares(graph.intercepts, graph.slopes)
    state = _room_for(16)
    edges, top = np.empty(256, dtype=np.int64), 0
    _decode(graph, shares, inside)
    if goal[1] == -np.inf:
        return _none(NO_DERIVATION)
    for lane in range(_LANES):
        edges, top = _read_back(graph, shares, inside, lane, state, lane, edges, top)
        if top < 0:
            return _none(TOO_LARGE)
    count = _LANES
    head = _link(state)
    # The left ones of pairs that may have something between them.
    waiting, n_waiting = _lefts(state, head)
    asked = np.empty(_LANES, dtype=np.int64)
    while n_waiting > 0:
        n_asked, n_waiting = _ask(state, waiting, n_waiting, asked, shares)
        if n_asked == 0:
            break
        _decode(graph, shares, inside)
        for lane in range(n_asked):
            left = asked[lane]
            # Nothing is above the intersection, so nothing lies between the two lines.
            if not _rises(state.lines[left], goal[lane], shares[1, lane]):
                continue
            if count == len(state.after):
                state = _enlarge(state)
            if n_waiting + 2 > len(waiting):
                waiting = double_length(waiting)
            edges, top = _read_back(graph, shares, inside, lane, state, count, edges, top)
            if top < 0:
                return _none(TOO_LARGE)
            placed = _place(state, left, count)
            if placed != _NOWHERE:
                waiting[n_waiting] = left
                n_waiting += 1
            if placed == _BETWEEN:
                waiting[n_waiting] = count
                n_waiting += 1
                count += 1
    return _by_slope(state, head, count, edges)


@kernel
def _none(why: int) -> Winners:
    nothing = np.empty(0, dtype=np.int64)
    return Winners(why, np.empty((0, 2)), np.empty(0), nothing.reshape((0, 2)), nothing)


@kernel
def _first_shares(
    intercepts: NDArray[np.float64], slopes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shares of the first decodings: minimum slope, samples, maximum slope."""
    shares = np.ones((2, _LANES))
    height, steepness = np.abs(intercepts).sum(), np.abs(slopes).sum()
    reach = height / steepness if steepness > 0.0 else 0.0
    for lane in range(1, _LANES - 1):
        point = _SAMPLES[lane - 1] * reach
        shares[1, lane] = point if abs(point) < np.inf else 0.0
    shares[0, 0], shares[1, 0] = 0.0, -1.0
    shares[0, _LANES - 1], shares[1, _LANES - 1] = 0.0, 1.0
    return shares


@kernel
def _decode(graph: LineGraph, shares: NDArray[np.float64], inside: NDArray[np.float64]) -> None:
    """Write the inside scores of all nodes, -inf for nodes without a derivation.

    ``inside`` is an output, float64 ``[n_nodes, _LANES]``. The processor runs the loops over lanes
    as vector instructions.
    """
    edge_offsets, tail_offsets, tails, intercepts, slopes = graph
    best = np.empty(_LANES)
    for node in range(len(edge_offsets) - 1):
        for lane in range(_LANES):
            best[lane] = -np.inf
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            intercept, slope = intercepts[edge], slopes[edge]
            low, high = tail_offsets[edge], tail_offsets[edge + 1]
            if high - low == 1:  # as all edges of phrase-based search but the first
                tail = tails[low]
                for lane in range(_LANES):
                    total = shares[0, lane] * intercept + shares[1, lane] * slope
                    total += inside[tail, lane]
                    best[lane] = total if total > best[lane] else best[lane]
            else:
                for lane in range(_LANES):
                    total = shares[0, lane] * intercept + shares[1, lane] * slope
                    for entry in range(low, high):
                        total += inside[tails[entry], lane]
                    best[lane] = total if total > best[lane] else best[lane]
        for lane in range(_LANES):
            inside[node, lane] = best[lane]


@kernel
def _read_back(
    graph: LineGraph,
    shares: NDArray[np.float64],
    inside: NDArray[np.float64],
    lane: int,
    state: _Found,
    line: int,
    edges: NDArray[np.int64],
    top: int,
) -> tuple[NDArray[np.int64], int]:
    """Write the goal's best derivation of a lane to ``line`` of ``found``.

    The later of tied edges wins. The edges are appended to ``edges``. Return the array and its new
    top, -1 if there are too many edges.
    """
    edge_offsets, tail_offsets, tails, intercepts, slopes = graph
    begin = top
    sums = state.lines[line]
    sums[:] = 0.0
    nodes = np.empty(64, dtype=np.int64)
    nodes[0] = len(edge_offsets) - 2
    height = 1
    while height > 0:
        height -= 1
        node = nodes[height]
        best, highest = -1, -np.inf
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            total = shares[0, lane] * intercepts[edge] + shares[1, lane] * slopes[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                total += inside[tails[entry], lane]
            # Summed in the order of `_decode`, so that the best edge is the one that it found.
            if total > -np.inf and total >= highest:
                best, highest = edge, total
        if top - begin == MOST_EDGES:
            return edges, -1
        if top == len(edges):
            edges = double_length(edges)
        edges[top] = best
        top += 1
        sums[0] += intercepts[best]
        sums[1] += slopes[best]
        sums[2] += abs(intercepts[best])
        sums[3] += abs(slopes[best])
        low, high = tail_offsets[best], tail_offsets[best + 1]
        while height + high - low > len(nodes):
            nodes = double_length(nodes)
        for entry in range(high - 1, low - 1, -1):
            nodes[height] = tails[entry]
            height += 1
    state.derivations[line, 0], state.derivations[line, 1] = begin, top
    return edges, top


@kernel
def _room_for(room: int) -> _Found:
    return _Found(
        np.empty((room, 4)),
        np.empty((room, 2), dtype=np.int64),
        np.full(room, -1, dtype=np.int64),
        np.zeros(room, dtype=np.bool_),
    )


@kernel
def _enlarge(state: _Found) -> _Found:
    room = len(state.after)
    larger = _room_for(2 * room)
    larger.lines[:room] = state.lines
    larger.derivations[:room] = state.derivations
    larger.after[:room] = state.after
    larger.loose[:room] = state.loose
    return larger


@kernel
def _link(state: _Found) -> int:
    """Link the distinct derivations of the first pass by slope; return the first.

    Both ends are loose. An end is dropped if a sample has the same slope, since samples are on the
    envelope.
    """
    head = last = 1
    for line in range(2, _LANES - 1):
        rise = state.lines[line, 1] - state.lines[last, 1]
        if rise > _noise(state.lines[last], state.lines[line]):
            state.after[last] = line
            last = line
    end = _LANES - 1
    if state.lines[end, 1] - state.lines[last, 1] > _noise(state.lines[last], state.lines[end]):
        state.after[last] = end
        state.loose[end] = True
    if state.lines[head, 1] - state.lines[0, 1] > _noise(state.lines[0], state.lines[head]):
        state.after[0] = head
        state.loose[0] = True
        head = 0
    return head


@kernel
def _noise(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the largest difference of two slopes that counts as zero."""
    return float(_SAME_SLOPE * (one[3] + other[3]))


@kernel
def _meeting(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    return float((left[0] - right[0]) / (right[1] - left[1]))


@kernel
def _rises(line: NDArray[np.float64], score: float, point: float) -> bool:
    noise = _SAME_SCORE * (line[2] + abs(point) * line[3])
    return bool(score - (line[0] + point * line[1]) > noise)


@kernel
def _lefts(state: _Found, head: int) -> tuple[NDArray[np.int64], int]:
    """Return all lines but the last in an array with spare room, and their number."""
    lefts = np.empty(64, dtype=np.int64)
    size, line = 0, head
    while state.after[line] >= 0:
        lefts[size] = line
        size += 1
        line = state.after[line]
    return lefts, size


@kernel
def _ask(
    state: _Found,
    waiting: NDArray[np.int64],
    n_waiting: int,
    asked: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> tuple[int, int]:
    """Take one waiting pair per lane and set ``shares`` for the pairs' intersections.

    Write the left line of each pair to ``asked``. Unused lanes repeat the first lane.

    Returns:
        The number of pairs taken that intersect, and the number of pairs still waiting.
    """
    n_asked = 0
    while n_waiting > 0 and n_asked < _LANES:
        n_waiting -= 1
        left = waiting[n_waiting]
        # Lines of nearly one slope may meet beyond all numbers.
        point = _meeting(state.lines[left], state.lines[state.after[left]])
        if abs(point) < np.inf:
            asked[n_asked] = left
            shares[0, n_asked], shares[1, n_asked] = 1.0, point
            n_asked += 1
    shares[0, n_asked:], shares[1, n_asked:] = shares[0, 0], shares[1, 0]
    return n_asked, n_waiting


@kernel
def _place(state: _Found, left: int, new: int) -> int:
    """Insert ``new`` between ``left`` and its successor, or replace one of them.

    ``new`` was found where the two lines meet.
    """
    right = state.after[left]
    from_left = state.lines[new, 1] - state.lines[left, 1]
    to_right = state.lines[right, 1] - state.lines[new, 1]
    if min(from_left, to_right) > _noise(state.lines[left], state.lines[right]):
        state.after[new] = right
        state.after[left] = new
        return _BETWEEN
    other = left if from_left < to_right else right
    if not state.loose[other]:
        return _NOWHERE
    state.lines[other] = state.lines[new]
    state.derivations[other] = state.derivations[new]
    state.loose[other] = False
    return _IN_PLACE


@kernel
def _by_slope(state: _Found, head: int, count: int, edges: NDArray[np.int64]) -> Winners:
    """Return derivations by slope, without those that win nowhere, due to rounding."""
    lines = np.empty((count, 2))
    starts = np.empty(count)
    derivations = np.empty((count, 2), dtype=np.int64)
    top, line = 0, head
    while line >= 0:
        intercept, slope = state.lines[line, 0], state.lines[line, 1]
        start = -np.inf
        while top > 0:
            start = (lines[top - 1, 0] - intercept) / (slope - lines[top - 1, 1])
            if start > starts[top - 1]:
                break
            top -= 1
            start = -np.inf
        if start < np.inf:  # else beyond all numbers
            # Lines that this one overtakes before they begin have been dropped.
            lines[top, 0], lines[top, 1] = intercept, slope
            starts[top] = start
            derivations[top] = state.derivations[line]
            top += 1
        line = state.after[line]
    return Winners(top, lines, starts, derivations, edges)
