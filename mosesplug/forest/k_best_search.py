"""The search for a node's next best derivation (Huang & Chiang 2005, algorithm 3).

The inside pass computes the best derivation of a node. The following ones come from a heap of
candidates; a candidate is an edge and the rank of a derivation for each of its tails. When a
candidate is taken from the heap, its successors become candidates: each successor uses the next
derivation of one tail. Only then is the next derivation of that tail searched, so the search
computes only what the goal's list needs.

Each candidate is created from exactly one predecessor: only the ranks of the last tail with a rank
above 0 and of later tails are increased. Therefore no candidate appears twice, and the search
needs no table of seen candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.kernels import inlined_kernel, kernel

NONE = -1
"""Marks a missing entry or node."""


class Graph(NamedTuple):
    """The input of the search: the graph's arrays, edge scores and inside scores."""

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    target_offsets: Ints
    targets: Ints32
    scores: Floats
    inside: Floats


class Nodes(NamedTuple):
    """The state of the search at each node; int64 ``[n_nodes]`` each.

    Attributes:
        heap: the best candidate, the root of a pairing heap; -1 if the heap is empty.
        places: start of the node's derivations in the list of all nodes.
        rooms: capacity of the node's part of that list.
        counts: number of derivations found; -1 before the first search at this node.
        followed: number of derivations whose successors are in the heap.
    """

    heap: Ints
    places: Ints
    rooms: Ints
    counts: Ints
    followed: Ints


class Entries(NamedTuple):
    """The candidates and derivations of all nodes, one per row.

    Attributes:
        scores: float64 ``[room]``.
        links: int64 ``[room, 3]``; the edge, and the first child and next sibling in the heap.
        ranks: int32 ``[room, most_tails]``; the rank of the derivation of each tail.
    """

    scores: Floats
    links: Ints
    ranks: Ints32


@kernel
def _meld(entries: Entries, one: int, other: int) -> int:
    """Meld two heaps and return the root; the later edge wins ties, as in ``viterbi``."""
    if one < 0:
        return other
    if other < 0:
        return one
    first, second = entries.scores[one], entries.scores[other]
    later = entries.links[other, 0] > entries.links[one, 0]
    if second > first or (second == first and later):
        one, other = other, one
    entries.links[other, 2] = entries.links[one, 1]
    entries.links[one, 1] = other
    return one


@inlined_kernel
def _without_root(entries: Entries, root: int) -> int:
    """Remove the root and return the new one.

    The children are melded in pairs, and then the pairs, from the last one on.
    """
    pairs = NONE
    child = entries.links[root, 1]
    while child >= 0:
        second = entries.links[child, 2]
        rest = entries.links[second, 2] if second >= 0 else NONE
        entries.links[child, 2] = NONE
        if second >= 0:
            entries.links[second, 2] = NONE
        pair = _meld(entries, child, second)
        entries.links[pair, 2] = pairs
        pairs, child = pair, rest
    heap = NONE
    while pairs >= 0:
        rest = entries.links[pairs, 2]
        entries.links[pairs, 2] = NONE
        heap = _meld(entries, heap, pairs)
        pairs = rest
    return heap


@inlined_kernel
def entries_for(room: int, most_tails: int) -> Entries:
    return Entries(
        np.empty(room), np.empty((room, 3), np.int64), np.zeros((room, most_tails), np.int32)
    )


@inlined_kernel
def _with_room(entries: Entries, used: int, needed: int) -> Entries:
    """Return the entries, or a larger copy if the room is too small."""
    if needed <= len(entries.scores):
        return entries
    larger = entries_for(2 * needed, entries.ranks.shape[1])
    for entry in range(used):
        larger.scores[entry] = entries.scores[entry]
        for link in range(3):
            larger.links[entry, link] = entries.links[entry, link]
        for number in range(entries.ranks.shape[1]):
            larger.ranks[entry, number] = entries.ranks[entry, number]
    return larger


@inlined_kernel
def _begun(
    graph: Graph, nodes: Nodes, entries: Entries, used: int, node: int
) -> tuple[Entries, int]:
    """Create a node's first candidates: edges with the best derivation of each tail."""
    first, last = graph.edge_offsets[node], graph.edge_offsets[node + 1]
    entries = _with_room(entries, used, used + last - first)
    nodes.counts[node] = 0
    for edge in range(first, last):
        score = graph.scores[edge]
        for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
            score += graph.inside[graph.tails[entry]]
        if not score > -np.inf:
            continue
        entries.scores[used] = score
        entries.links[used, 0] = edge
        entries.links[used, 1] = entries.links[used, 2] = NONE
        for number in range(entries.ranks.shape[1]):
            entries.ranks[used, number] = 0
        nodes.heap[node] = _meld(entries, nodes.heap[node], used)
        used += 1
    return entries, used


@inlined_kernel
def _missing(graph: Graph, nodes: Nodes, entries: Entries, parent: int) -> tuple[int, int]:
    """Return a tail and rank that a successor needs and no search has found, or -1."""
    low = graph.tail_offsets[entries.links[parent, 0]]
    n_tails = graph.tail_offsets[entries.links[parent, 0] + 1] - low
    for k in range(n_tails - 1, -1, -1):
        tail, rank = graph.tails[low + k], entries.ranks[parent, k] + 1
        # A tail whose list has ended has no candidate left, and all successors are in its heap.
        known = nodes.counts[tail] > rank or (
            nodes.counts[tail] >= 0
            and nodes.heap[tail] < 0
            and nodes.followed[tail] == nodes.counts[tail]
        )
        if not known:
            return tail, rank
        if entries.ranks[parent, k] > 0:
            break
    return NONE, 0


@inlined_kernel
def _with_successors(
    graph: Graph, nodes: Nodes, entries: Entries, used: int, ranked: Ints, node: int, parent: int
) -> tuple[Entries, int]:
    """Put a derivation's successors into its node's heap once their tails are known."""
    edge = entries.links[parent, 0]
    low = graph.tail_offsets[edge]
    n_tails = graph.tail_offsets[edge + 1] - low
    entries = _with_room(entries, used, used + n_tails)
    for k in range(n_tails - 1, -1, -1):
        tail, rank = graph.tails[low + k], entries.ranks[parent, k]
        if rank + 1 < nodes.counts[tail]:
            for j in range(entries.ranks.shape[1]):
                entries.ranks[used, j] = entries.ranks[parent, j]
            entries.ranks[used, k] = rank + 1
            score = graph.scores[edge]
            for j in range(n_tails):
                other = graph.tails[low + j]
                if entries.ranks[used, j] == 0:
                    score += graph.inside[other]
                else:
                    score += entries.scores[ranked[nodes.places[other] + entries.ranks[used, j]]]
            entries.scores[used] = score
            entries.links[used, 0] = edge
            entries.links[used, 1] = entries.links[used, 2] = NONE
            nodes.heap[node] = _meld(entries, nodes.heap[node], used)
            used += 1
        if rank > 0:
            break
    nodes.followed[node] += 1
    return entries, used


@inlined_kernel
def _append(nodes: Nodes, ranked: Ints, top: int, node: int, entry: int) -> tuple[Ints, int]:
    """Append a derivation to its node's list; move the list if it is full."""
    count = nodes.counts[node]
    if count == nodes.rooms[node]:
        room = max(4, 2 * count)
        if top + room > len(ranked):
            larger = np.empty(2 * (top + room), dtype=np.int64)
            for at in range(top):
                larger[at] = ranked[at]
            ranked = larger
        place = nodes.places[node]
        for rank in range(count):
            ranked[top + rank] = ranked[place + rank]
        nodes.places[node], nodes.rooms[node] = top, room
        top += room
    ranked[nodes.places[node] + count] = entry
    nodes.counts[node] = count + 1
    return ranked, top


@kernel
def find_derivation(
    graph: Graph,
    nodes: Nodes,
    entries: Entries,
    used: int,
    ranked: Ints,
    top: int,
    node: int,
    rank: int,
) -> tuple[Entries, int, Ints, int]:
    """Find derivation ``rank`` (from 0) of a node and the tail derivations it needs."""
    stack = np.empty((64, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = node, rank
    height = 1
    while height > 0:
        node, rank = stack[height - 1, 0], stack[height - 1, 1]
        if nodes.counts[node] < 0:
            entries, used = _begun(graph, nodes, entries, used, node)
        count = nodes.counts[node]
        if count > rank:
            height -= 1
            continue
        if nodes.followed[node] < count:
            parent = ranked[nodes.places[node] + count - 1]
            tail, needed = _missing(graph, nodes, entries, parent)
            if tail >= 0:
                if height == len(stack):
                    higher = np.empty((2 * height, 2), dtype=np.int64)
                    for level in range(height):
                        higher[level, 0], higher[level, 1] = stack[level, 0], stack[level, 1]
                    stack = higher
                stack[height, 0], stack[height, 1] = tail, needed
                height += 1
                continue
            entries, used = _with_successors(graph, nodes, entries, used, ranked, node, parent)
        root = nodes.heap[node]
        if root < 0:  # there are no more
            height -= 1
            continue
        nodes.heap[node] = _without_root(entries, root)
        ranked, top = _append(nodes, ranked, top, node, root)
    return entries, used, ranked, top
