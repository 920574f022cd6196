"""The partial derivations that a search keeps for each node.

All partial derivations are rows of one table. The rows of a node are adjacent, and each row has
the row numbers of its tails' partial derivations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.growing import sift_down
from mosesplug.forest.viterbi import MOST_EDGES, Derivation
from mosesplug.kernels import kernel, lean_kernel


class Partials(NamedTuple):
    """A table of partial derivations, one per row.

    Attributes:
        edges: int64 ``[room]``; the first edge of each.
        tails: int64 ``[room, most_tails]``; the row of each tail of that edge.
        sides: int64 ``[room, 2]``; left and right state (``ngrams.states.joined``).
        scores: float64 ``[room]``.
        sizes: float64 ``[room]``; the number of edges of each.
    """

    edges: Ints
    tails: Ints
    sides: Ints
    scores: Floats
    sizes: Floats


@kernel
def make_partials(room: int, most_tails: int) -> Partials:
    """Return an empty table."""
    return Partials(
        np.empty(room, dtype=np.int64),
        np.zeros((room, most_tails), dtype=np.int64),
        np.empty((room, 2), dtype=np.int64),
        np.empty(room),
        np.empty(room),
    )


@kernel
def double_room(partials: Partials) -> Partials:
    """Return a copy of a full table with twice the room."""
    used = len(partials.edges)
    larger = make_partials(2 * used, partials.tails.shape[1])
    for row in range(used):
        copy_row(partials, row, larger, row)
    return larger


@lean_kernel
def copy_row(partials: Partials, row: int, others: Partials, place: int) -> None:
    """Copy a row to row ``place`` of the output ``others``, which may be ``partials``.

    The copy is made number by number because slices would take seconds to compile.
    """
    others.edges[place] = partials.edges[row]
    others.scores[place] = partials.scores[row]
    others.sizes[place] = partials.sizes[row]
    for side in range(2):
        others.sides[place, side] = partials.sides[row, side]
    for number in range(partials.tails.shape[1]):
        others.tails[place, number] = partials.tails[row, number]


@kernel
def select_best_rows(values: Floats, beam: int) -> Ints:
    """Return indices of the ``beam`` highest values, ascending; the last win ties.

    Args:
        values: float64, at least ``beam``, not NaN.
    """
    # A heap of the negated highest values; the lowest of them is on top.
    heap = np.empty(beam)
    for row in range(beam):
        heap[row] = -values[row]
    for row in range(beam // 2 - 1, -1, -1):
        sift_down(heap, row, beam)
    for row in range(beam, len(values)):
        if -values[row] < heap[0]:
            heap[0] = -values[row]
            sift_down(heap, 0, beam)
    threshold = -heap[0]
    missing = beam
    for value in values:
        missing -= value > threshold
    rows = np.empty(beam, dtype=np.int64)
    place = beam
    for row in range(len(values) - 1, -1, -1):
        if values[row] == threshold:
            missing -= 1
        if values[row] > threshold or (values[row] == threshold and missing >= 0):
            place -= 1
            rows[place] = row
    return rows


@lean_kernel
def advance_choice(tails: Ints32, first: Ints, chosen: Ints) -> bool:
    """Advance to the next choice of one row per tail; return False after the last.

    Args:
        tails: int32; the tail nodes.
        first: int64; the rows of node ``v`` are ``first[v]:first[v + 1]``.
        chosen: int64; the row of each tail (input and output).
    """
    for number in range(len(tails) - 1, -1, -1):
        chosen[number] += 1
        if chosen[number] < first[tails[number] + 1]:
            return True
        chosen[number] = first[tails[number]]
    return False


def extract_derivation(
    tail_offsets: Ints, partials: Partials, row: int, score: float
) -> Derivation:
    """Return the derivation of a row of the table.

    Args:
        row: the row; -1 if there is no derivation.

    Raises:
        DataError: there is no derivation, or it has more than ten million edges.
    """
    if row < 0:
        raise DataError("no derivation of the search graph builds its goal")
    size = partials.sizes[row]
    if size > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {size:.3g} edges")
    return Derivation(score, _edges(tail_offsets, partials, row))


@kernel
def _edges(tail_offsets: Ints, partials: Partials, row: int) -> Ints:
    """Return the edges of a row's derivation, depth first."""
    edges = np.empty(int(partials.sizes[row]), dtype=np.int64)
    # Every row is put on the stack once, so that it cannot grow beyond their number.
    stack = np.empty_like(edges)
    stack[0] = row
    height, count = 1, 0
    while height > 0:
        height -= 1
        row = stack[height]
        edge = partials.edges[row]
        edges[count] = edge
        count += 1
        for number in range(tail_offsets[edge + 1] - tail_offsets[edge] - 1, -1, -1):
            stack[height] = partials.tails[row, number]
            height += 1
    return edges
