"""Upper envelopes of search graphs: every derivation that wins somewhere along a line.

Along ``w + x d`` an edge scores ``intercept + slope x``, and so does a derivation, with the sums
over its edges. A node's envelope is made of those of the nodes that it is built on (Macherey et
al. 2008; Kumar et al. 2009; as a semiring, Dyer et al. 2010):

- product: the derivations of an edge are all ways to put derivations of its tails together, and
  the best of them at ``x`` is made of the best at ``x``: the envelopes are added up, which merges
  their thresholds (the Minkowski sum of the hulls);
- sum: a node's derivations are those of all its edges: the envelope of a union.

Both take two envelopes whose lines are sorted by slope and pass over them once. Each line keeps
the edge that it came by and the lines of the tails, so that a derivation can be read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.viterbi import MOST_EDGES
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

__all__ = ["Envelope", "envelope"]

_PAIR = -1
"""In place of an edge: the sum of two lines, of tails of one edge."""

_MOST_LINES = 1 << 27
"""Lines of all nodes' envelopes together: 5 GB, where graphs of sentences have some 100,000."""


@dataclass(frozen=True)
class Envelope:
    """The derivations of the goal that score highest somewhere on a line, from left to right.

    Attributes:
        thresholds: float64 ``[n_lines - 1]``, ascending; derivation ``i`` wins between
            ``thresholds[i - 1]`` and ``thresholds[i]``.
        intercepts, slopes: float64 ``[n_lines]``; slopes ascend.
        first: which line of ``links`` is the first derivation's.
        links: int32 ``[..., 3]``; of each line of any node the edge that it came by, or -1 for
            the sum of two lines; and the lines that it was made of, -1 for none.
    """

    thresholds: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]
    first: int
    links: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.intercepts)

    def derivation(self, number: int) -> NDArray[np.int64]:
        """Edges of derivation ``number``, int64, each before those of its tails.

        Raises:
            DataError: it has more than ten million edges.
        """
        edges = _edges_of(self.links, self.first + number)
        if not len(edges):
            raise DataError(
                f"a derivation of the search graph has more than {MOST_EDGES:.3g} edges"
            )
        return edges


def envelope(
    graph: Hypergraph, intercepts: NDArray[np.float64], slopes: NDArray[np.float64]
) -> Envelope:
    """The upper envelope over all derivations of a graph.

    Args:
        graph: a graph whose goal can be built.
        intercepts: float64 ``[n_edges]``, ``w . h`` of each edge.
        slopes: float64 ``[n_edges]``, ``d . h`` of each edge.

    Raises:
        DataError: an edge's intercept or slope is not finite, no derivation builds the goal, or
            the envelopes do not fit into memory.
    """
    wrong = np.flatnonzero(~(np.isfinite(intercepts) & np.isfinite(slopes)))
    if len(wrong):
        edge = int(wrong[0])
        raise DataError(
            f"edge {edge} of the search graph scores {intercepts[edge]:g} + {slopes[edge]:g} x, "
            "and both must be finite numbers"
        )
    lines, first, end = _inside(
        graph.edge_offsets, graph.tail_offsets, graph.tails, intercepts, slopes
    )
    if first < 0:
        raise DataError(
            "no derivation of the search graph builds its goal"
            if first == -1
            else "the envelopes of the search graph have too many lines to be held in memory"
        )
    return Envelope(
        lines.starts[first + 1 : end].copy(),
        lines.values[first:end, 0].copy(),
        lines.values[first:end, 1].copy(),
        int(first),
        lines.links[:end],
    )


class _Lines(NamedTuple):
    """Envelopes one behind the other; a line takes the same row of every array.

    Attributes:
        values: float64 ``[room, 2]``; intercept and slope.
        starts: float64 ``[room]``; where the line begins to win.
        links: int32 ``[room, 3]``; its edge, and the two lines that it was made of.
    """

    values: NDArray[np.float64]
    starts: NDArray[np.float64]
    links: NDArray[np.int32]


class _Bench(NamedTuple):
    """Envelopes of the edges of one node, before they become one.

    Attributes:
        values, starts: as in ``_Lines``.
        edges, tails: int64 ``[room]``; the edge of each line, and the line of its tails or -1.
    """

    values: NDArray[np.float64]
    starts: NDArray[np.float64]
    edges: NDArray[np.int64]
    tails: NDArray[np.int64]


@kernel
def _inside(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    intercepts: NDArray[np.float64],
    slopes: NDArray[np.float64],
) -> tuple[_Lines, int, int]:
    """Envelopes of all nodes; where the last one, the goal's, begins and ends.

    It begins at -1 if nothing builds the goal, and at -2 if there are too many lines.
    """
    n_nodes = len(edge_offsets) - 1
    arena = _room_for(16 * (n_nodes + 1))
    begins = np.zeros(n_nodes + 1, dtype=np.int64)
    most = 1
    for node in range(n_nodes):
        most = max(most, edge_offsets[node + 1] - edge_offsets[node])
    # The lines of each edge's tails; those of one tail are its own.
    sums = np.zeros((most, 2), dtype=np.int64)
    ends = np.zeros(n_nodes, dtype=np.int64)
    bench, other = _bench_for(64), _bench_for(64)
    top = 0
    for node in range(n_nodes):
        first, last = edge_offsets[node], edge_offsets[node + 1]
        total = 0
        for edge in range(first, last):
            low, high = tail_offsets[edge], tail_offsets[edge + 1]
            arena, top = _sum_tails(arena, top, tails[low:high], begins, ends, sums[edge - first])
            total += 1 if low == high else sums[edge - first, 1] - sums[edge - first, 0]
        if top + total > _MOST_LINES:
            return arena, -2, -2
        if total > len(bench.starts):
            bench, other = _bench_for(2 * total), _bench_for(2 * total)
        cuts = _set_out(bench, arena, first, last, tail_offsets, sums, intercepts, slopes)
        count = last - first
        while count > 1:
            count = _halved(bench, other, cuts, count)
            bench, other = other, bench
        arena = _at_least(arena, top, top + total)
        begins[node] = top
        for row in range(cuts[1] if last > first else 0):
            arena.values[top] = bench.values[row]
            arena.starts[top] = bench.starts[row]
            arena.links[top, 0] = bench.edges[row]
            arena.links[top, 1] = bench.tails[row]
            arena.links[top, 2] = -1
            top += 1
        ends[node] = top
    goal = n_nodes - 1
    return arena, begins[goal] if ends[goal] > begins[goal] else -1, top


@kernel
def _room_for(room: int) -> _Lines:
    return _Lines(np.empty((room, 2)), np.empty(room), np.empty((room, 3), dtype=np.int32))


@kernel
def _bench_for(room: int) -> _Bench:
    return _Bench(
        np.empty((room, 2)),
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
    )


@kernel
def _at_least(arena: _Lines, used: int, needed: int) -> _Lines:
    """The arena, or a larger copy of what is used of it."""
    if needed <= len(arena.starts):
        return arena
    larger = _room_for(2 * needed)
    larger.values[:used] = arena.values[:used]
    larger.starts[:used] = arena.starts[:used]
    larger.links[:used] = arena.links[:used]
    return larger


@kernel
def _sum_tails(
    arena: _Lines,
    top: int,
    tails: NDArray[np.int32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    found: NDArray[np.int64],
) -> tuple[_Lines, int]:
    """Add up the envelopes of an edge's tails; write where the sum begins and ends to ``found``.

    A sum of two or more goes to the arena, whose new top is returned with it.
    """
    found[:] = 0
    for number in range(len(tails)):
        begin, end = begins[tails[number]], ends[tails[number]]
        if begin == end:  # a node that nothing builds
            found[:] = 0
            break
        if number == 0:
            found[0], found[1] = begin, end
            continue
        arena = _at_least(arena, top, top + found[1] - found[0] + end - begin)
        behind = _sum(arena, found[0], found[1], begin, end, top)
        found[0], found[1] = top, behind
        top = behind
    return arena, top


@kernel
def _sum(arena: _Lines, left: int, left_end: int, right: int, right_end: int, top: int) -> int:
    """Put the Minkowski sum of two envelopes of the arena on top of it; the new top."""
    while True:
        for k in range(2):
            arena.values[top, k] = arena.values[left, k] + arena.values[right, k]
        arena.starts[top] = max(arena.starts[left], arena.starts[right])
        arena.links[top, 0] = _PAIR
        arena.links[top, 1] = left
        arena.links[top, 2] = right
        top += 1
        next_left = arena.starts[left + 1] if left + 1 < left_end else np.inf
        next_right = arena.starts[right + 1] if right + 1 < right_end else np.inf
        if min(next_left, next_right) == np.inf:
            return top
        # Where both change at once, no line lies between.
        left += next_left <= next_right
        right += next_right <= next_left


@kernel
def _set_out(
    bench: _Bench,
    arena: _Lines,
    first: int,
    last: int,
    tail_offsets: NDArray[np.int64],
    sums: NDArray[np.int64],
    intercepts: NDArray[np.float64],
    slopes: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Put the lines of the edges ``first:last`` on the bench; where each one's begin.

    An edge adds its own line to those of its tails, which moves no threshold.
    """
    cuts = np.zeros(last - first + 1, dtype=np.int64)
    place = 0
    for edge in range(first, last):
        if tail_offsets[edge] == tail_offsets[edge + 1]:
            bench.values[place, 0] = intercepts[edge]
            bench.values[place, 1] = slopes[edge]
            bench.starts[place] = -np.inf
            bench.edges[place] = edge
            bench.tails[place] = -1
            place += 1
        for line in range(sums[edge - first, 0], sums[edge - first, 1]):
            bench.values[place, 0] = arena.values[line, 0] + intercepts[edge]
            bench.values[place, 1] = arena.values[line, 1] + slopes[edge]
            bench.starts[place] = arena.starts[line]
            bench.edges[place] = edge
            bench.tails[place] = line
            place += 1
        cuts[edge - first + 1] = place
    return cuts


@kernel
def _halved(bench: _Bench, into: _Bench, cuts: NDArray[np.int64], count: int) -> int:
    """Make one envelope of every two; writes them to ``into`` and their ends to ``cuts``.

    Returns how many there are now.
    """
    pairs = (count + 1) // 2
    top = 0
    for pair in range(pairs):
        left, middle = cuts[2 * pair], cuts[2 * pair + 1]
        right = cuts[min(2 * pair + 2, count)]
        cuts[pair] = top
        top = _union(bench, left, middle, right, into, top)
    cuts[pairs] = top
    return pairs


@kernel
def _union(bench: _Bench, left: int, middle: int, right: int, into: _Bench, bottom: int) -> int:
    """The envelope of those at ``left:middle`` and ``middle:right``, put at ``bottom``; its top."""
    one, other, top = left, middle, bottom
    while one < middle or other < right:
        if other == right or (one < middle and bench.values[one, 1] <= bench.values[other, 1]):
            row = one
            one += 1
        else:
            row = other
            other += 1
        top = _pushed(bench, row, into, bottom, top)
    return top


@kernel
def _pushed(bench: _Bench, row: int, into: _Bench, bottom: int, top: int) -> int:
    """Put a line of no lower slope on the envelope at ``bottom:top``; its new top.

    Lines that then win nowhere are taken off. Among equal lines the later one stays, as among
    equal edges of a node.
    """
    intercept, slope = bench.values[row, 0], bench.values[row, 1]
    start = -np.inf
    while top > bottom:
        rise = slope - into.values[top - 1, 1]
        fall = into.values[top - 1, 0] - intercept
        if rise > 0.0:
            start = fall / rise
            if start == np.inf:  # beyond all numbers
                return top
            if start > into.starts[top - 1]:
                break
            start = -np.inf
        elif fall > 0.0:
            return top
        top -= 1
    into.values[top, 0] = intercept
    into.values[top, 1] = slope
    into.starts[top] = start
    into.edges[top] = bench.edges[row]
    into.tails[top] = bench.tails[row]
    return top + 1


@kernel
def _edges_of(links: NDArray[np.int32], line: int) -> NDArray[np.int64]:
    """The edges of the derivation that a line stands for, depth first; none if too many."""
    found = np.empty(64, dtype=np.int64)
    stack = np.empty(64, dtype=np.int64)
    stack[0] = line
    height, count = 1, 0
    while height > 0:
        height -= 1
        line = stack[height]
        if links[line, 0] != _PAIR:
            if count == MOST_EDGES:
                return found[:0].copy()
            if count == len(found):
                larger = np.empty(2 * count, dtype=np.int64)
                larger[:count] = found
                found = larger
            found[count] = links[line, 0]
            count += 1
        if height + 2 > len(stack):
            higher = np.empty(2 * len(stack), dtype=np.int64)
            higher[:height] = stack[:height]
            stack = higher
        for side in (2, 1):
            if links[line, side] >= 0:
                stack[height] = links[line, side]
                height += 1
    return found[:count].copy()
