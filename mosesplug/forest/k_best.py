"""The k best derivations of a search graph, one after the other (Huang & Chiang 2005, algorithm 3).

A node's best derivation is known from the inside pass. Its next ones come from a heap of
candidates: an edge, and which derivation of each of its tails. When a candidate is taken, its
successors, that take the next derivation of one tail, become candidates too; and only then is that
tail asked for its next derivation. So nothing is computed that the goal's list does not need.

A successor is made from one predecessor only: the tails before the last one that is not at its
best stay as they are. So no candidate appears twice, and none is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.hypergraph import Hypergraph
from mosesplug.forest.viterbi import MOST_EDGES, inside_best
from mosesplug.kernels import kernel

__all__ = ["Derivations", "k_best"]

MOST_ALIKE = 1000
"""Derivations looked at for each one wanted, where those with the same words are left out."""

_NONE = -1


@dataclass(frozen=True)
class Derivations:
    """Some derivations of a graph's goal, the highest score first.

    Attributes:
        scores: float64 ``[n]``, sums of their edges' scores.
        offsets: int64 ``[n + 1]``; the edges of derivation ``i`` are
            ``edges[offsets[i]:offsets[i + 1]]``, each before those of its tails.
        edges: int64.
    """

    scores: NDArray[np.float64]
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def derivation(self, number: int) -> NDArray[np.int64]:
        """The edges of one of them, int64."""
        return self.edges[self.offsets[number] : self.offsets[number + 1]]


def k_best(
    graph: Hypergraph,
    scores: NDArray[np.float64],
    k: int,
    *,
    distinct: bool = False,
    most_alike: int = MOST_ALIKE,
) -> Derivations:
    """The ``k`` derivations of highest score, or as many as there are.

    Args:
        graph: a graph whose goal can be built.
        scores: float64 ``[n_edges]``; an edge whose score is -inf or NaN is left out.
        k: how many.
        distinct: leave out derivations whose words an earlier one has.
        most_alike: with ``distinct``, look at no more than ``k`` times this many derivations.

    Raises:
        ValueError: ``k`` is not positive.
        DataError: no derivation builds the goal, or one has more than ten million edges.
    """
    if k < 1:
        raise ValueError(f"{k} derivations are wanted")
    best, inside, sizes = inside_best(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    if best[-1] < 0:
        raise DataError("no derivation of the search graph builds its goal")
    if sizes[-1] > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {sizes[-1]:.3g} edges")
    arrays = _Graph(
        graph.edge_offsets,
        graph.tail_offsets,
        graph.tails,
        graph.target_offsets,
        graph.targets,
        scores,
        inside,
    )
    most = k * most_alike if distinct else k
    found, offsets, edges = _listed(arrays, best, k, most, distinct)
    if not len(found):
        raise DataError(f"a derivation of the search graph has over {MOST_EDGES:.0e} edges")
    return Derivations(found, offsets, edges)


class _Graph(NamedTuple):
    """What the search reads: the graph's arrays, scores of its edges and inside scores."""

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    scores: NDArray[np.float64]
    inside: NDArray[np.float64]


class _Nodes(NamedTuple):
    """The search at each node; int64 ``[n_nodes]`` each.

    Attributes:
        heap: the best candidate, the root of a pairing heap; -1 for none.
        places: where the derivations found lie in the list of all nodes.
        rooms: for how many there is room at that place.
        counts: how many have been found; -1 where nobody asked yet.
        followed: of how many of these the successors are in the heap.
    """

    heap: NDArray[np.int64]
    places: NDArray[np.int64]
    rooms: NDArray[np.int64]
    counts: NDArray[np.int64]
    followed: NDArray[np.int64]


class _Entries(NamedTuple):
    """Candidates and derivations of all nodes, which grow together; a row is one of them.

    Attributes:
        scores: float64 ``[room]``.
        links: int64 ``[room, 3]``: edge; in the heap, first child and next sibling.
        ranks: int32 ``[room, most_tails]``; which derivation of each tail.
    """

    scores: NDArray[np.float64]
    links: NDArray[np.int64]
    ranks: NDArray[np.int32]


@kernel
def _melded(entries: _Entries, one: int, other: int) -> int:
    """The root of two heaps made one; of equal scores the later edge wins, as in Viterbi."""
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


@kernel
def _without_root(entries: _Entries, root: int) -> int:
    """The root of the heap that is left: children melded in pairs, then from the last pair on."""
    pairs = _NONE
    child = entries.links[root, 1]
    while child >= 0:
        second = entries.links[child, 2]
        rest = entries.links[second, 2] if second >= 0 else _NONE
        entries.links[child, 2] = _NONE
        if second >= 0:
            entries.links[second, 2] = _NONE
        pair = _melded(entries, child, second)
        entries.links[pair, 2] = pairs
        pairs, child = pair, rest
    heap = _NONE
    while pairs >= 0:
        rest = entries.links[pairs, 2]
        entries.links[pairs, 2] = _NONE
        heap = _melded(entries, heap, pairs)
        pairs = rest
    return heap


@kernel
def _entries_for(room: int, most_tails: int) -> _Entries:
    return _Entries(
        np.empty(room), np.empty((room, 3), np.int64), np.zeros((room, most_tails), np.int32)
    )


@kernel
def _with_room(entries: _Entries, used: int, needed: int) -> _Entries:
    """The entries, or a larger copy of those that are used."""
    if needed <= len(entries.scores):
        return entries
    larger = _entries_for(2 * needed, entries.ranks.shape[1])
    larger.scores[:used] = entries.scores[:used]
    larger.links[:used] = entries.links[:used]
    larger.ranks[:used] = entries.ranks[:used]
    return larger


@kernel
def _begun(
    graph: _Graph, nodes: _Nodes, entries: _Entries, used: int, node: int
) -> tuple[_Entries, int]:
    """Make a node's first candidates: every edge with the best derivation of each tail."""
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
        entries.links[used, 1] = entries.links[used, 2] = _NONE
        entries.ranks[used] = 0
        nodes.heap[node] = _melded(entries, nodes.heap[node], used)
        used += 1
    return entries, used


@kernel
def _missing(graph: _Graph, nodes: _Nodes, entries: _Entries, parent: int) -> tuple[int, int]:
    """A tail, and its derivation that a successor needs and nobody has looked for; or -1."""
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
    return _NONE, 0


@kernel
def _with_successors(
    graph: _Graph,
    nodes: _Nodes,
    entries: _Entries,
    used: int,
    found: NDArray[np.int64],
    node: int,
    parent: int,
) -> tuple[_Entries, int]:
    """Put the successors of a derivation into its node's heap; what they need is known."""
    edge = entries.links[parent, 0]
    low = graph.tail_offsets[edge]
    n_tails = graph.tail_offsets[edge + 1] - low
    entries = _with_room(entries, used, used + n_tails)
    for k in range(n_tails - 1, -1, -1):
        tail, rank = graph.tails[low + k], entries.ranks[parent, k]
        if rank + 1 < nodes.counts[tail]:
            entries.ranks[used] = entries.ranks[parent]
            entries.ranks[used, k] = rank + 1
            score = graph.scores[edge]
            for j in range(n_tails):
                other = graph.tails[low + j]
                if entries.ranks[used, j] == 0:
                    score += graph.inside[other]
                else:
                    score += entries.scores[found[nodes.places[other] + entries.ranks[used, j]]]
            entries.scores[used] = score
            entries.links[used, 0] = edge
            entries.links[used, 1] = entries.links[used, 2] = _NONE
            nodes.heap[node] = _melded(entries, nodes.heap[node], used)
            used += 1
        if rank > 0:
            break
    nodes.followed[node] += 1
    return entries, used


@kernel
def _kept(
    nodes: _Nodes, found: NDArray[np.int64], top: int, node: int, entry: int
) -> tuple[NDArray[np.int64], int]:
    """Add a derivation to its node's list, which may have to move."""
    count = nodes.counts[node]
    if count == nodes.rooms[node]:
        room = max(4, 2 * count)
        if top + room > len(found):
            larger = np.empty(2 * (top + room), dtype=np.int64)
            larger[:top] = found[:top]
            found = larger
        place = nodes.places[node]
        found[top : top + count] = found[place : place + count].copy()
        nodes.places[node], nodes.rooms[node] = top, room
        top += room
    found[nodes.places[node] + count] = entry
    nodes.counts[node] = count + 1
    return found, top


@kernel
def _sought(
    graph: _Graph,
    nodes: _Nodes,
    entries: _Entries,
    used: int,
    found: NDArray[np.int64],
    top: int,
    node: int,
    rank: int,
) -> tuple[_Entries, int, NDArray[np.int64], int]:
    """Look for derivation ``rank`` (from 0) of a node, and for all that it needs."""
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
            parent = found[nodes.places[node] + count - 1]
            tail, needed = _missing(graph, nodes, entries, parent)
            if tail >= 0:
                if height == len(stack):
                    higher = np.empty((2 * height, 2), dtype=np.int64)
                    higher[:height] = stack
                    stack = higher
                stack[height, 0], stack[height, 1] = tail, needed
                height += 1
                continue
            entries, used = _with_successors(graph, nodes, entries, used, found, node, parent)
        root = nodes.heap[node]
        if root < 0:  # there are no more
            height -= 1
            continue
        nodes.heap[node] = _without_root(entries, root)
        found, top = _kept(nodes, found, top, node, root)
    return entries, used, found, top


@kernel
def _listed(
    graph: _Graph, best: NDArray[np.int64], k: int, most: int, distinct: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Scores, offsets and edges of the goal's first ``k`` derivations."""
    n_nodes = len(graph.edge_offsets) - 1
    most_tails = 1
    for edge in range(len(graph.tail_offsets) - 1):
        most_tails = max(most_tails, graph.tail_offsets[edge + 1] - graph.tail_offsets[edge])
    nodes = _Nodes(
        np.full(n_nodes, _NONE),
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int64),
        np.full(n_nodes, -1),
        np.zeros(n_nodes, dtype=np.int64),
    )
    entries, used = _entries_for(1024, most_tails), 0
    found, top = np.empty(1024, dtype=np.int64), 0
    scores = np.empty(k)
    offsets = np.zeros(k + 1, dtype=np.int64)
    edges = np.empty(1024, dtype=np.int64)
    seen = _Seen(np.full(4 * k + 4, _NONE), np.zeros(k + 1, dtype=np.int64))
    words = np.empty(1024, dtype=np.int32)
    count, goal = 0, n_nodes - 1
    for rank in range(most):
        entries, used, found, top = _sought(graph, nodes, entries, used, found, top, goal, rank)
        if count == k or nodes.counts[goal] <= rank:
            break
        entry = found[nodes.places[goal] + rank]
        edges, behind = _with_edges(
            graph, best, nodes, entries, found, entry, edges, offsets[count]
        )
        if behind - offsets[count] > MOST_EDGES:
            return scores[:0].copy(), offsets, edges
        if distinct:
            own = edges[offsets[count] : behind]
            words, end = _with_words(graph, own, words, seen.offsets[count])
            if not _is_new(seen, words, count, end):
                continue
        scores[count] = entries.scores[entry]
        count += 1
        offsets[count] = behind
        if count == k:
            break
    return scores[:count].copy(), offsets[: count + 1].copy(), edges[: offsets[count]].copy()


@kernel
def _with_edges(
    graph: _Graph,
    best: NDArray[np.int64],
    nodes: _Nodes,
    entries: _Entries,
    found: NDArray[np.int64],
    entry: int,
    edges: NDArray[np.int64],
    place: int,
) -> tuple[NDArray[np.int64], int]:
    """Put the edges of a derivation at ``place``, depth first; the array, and where they end.

    On the stack stand derivations, and nodes (as ``-2 - node``) whose best one is meant.
    """
    stack = np.empty(64, dtype=np.int64)
    stack[0] = entry
    height, start = 1, place
    while height > 0:
        height -= 1
        item = stack[height]
        edge = entries.links[item, 0] if item >= 0 else best[-2 - item]
        if place == len(edges):
            larger = np.empty(2 * place, dtype=np.int64)
            larger[:place] = edges
            edges = larger
        edges[place] = edge
        place += 1
        if place - start > MOST_EDGES:
            break
        low, high = graph.tail_offsets[edge], graph.tail_offsets[edge + 1]
        if height + high - low > len(stack):
            higher = np.empty(2 * (height + high - low), dtype=np.int64)
            higher[:height] = stack[:height]
            stack = higher
        for number in range(high - low - 1, -1, -1):
            tail = graph.tails[low + number]
            rank = entries.ranks[item, number] if item >= 0 else 0
            stack[height] = found[nodes.places[tail] + rank] if rank > 0 else -2 - tail
            height += 1
    return edges, place


class _Seen(NamedTuple):
    """The words of the derivations that are kept, and a hash table of them.

    Attributes:
        table: int64; numbers of derivations, -1 where the table is empty.
        offsets: int64 ``[k + 1]``; where the words of each begin.
    """

    table: NDArray[np.int64]
    offsets: NDArray[np.int64]


@kernel
def _with_words(
    graph: _Graph, edges: NDArray[np.int64], words: NDArray[np.int32], place: int
) -> tuple[NDArray[np.int32], int]:
    """Put the words of a derivation at ``place``; the array, and where they end."""
    stack = np.empty((len(edges), 2), dtype=np.int64)
    height, used = 0, 0
    while used < len(edges) or height > 0:
        if height == 0:
            edge = edges[used]
            used += 1
            stack[0, 0], stack[0, 1] = graph.target_offsets[edge], graph.target_offsets[edge + 1]
            height = 1
        at = stack[height - 1, 0]
        if at == stack[height - 1, 1]:
            height -= 1
            if height == 0:
                break
            continue
        stack[height - 1, 0] += 1
        if graph.targets[at] >= 0:
            if place == len(words):
                larger = np.empty(2 * place, dtype=np.int32)
                larger[:place] = words
                words = larger
            words[place] = graph.targets[at]
            place += 1
        else:
            edge = edges[used]
            used += 1
            stack[height, 0] = graph.target_offsets[edge]
            stack[height, 1] = graph.target_offsets[edge + 1]
            height += 1
    return words, place


@kernel
def _is_new(seen: _Seen, words: NDArray[np.int32], count: int, end: int) -> bool:
    """Whether no earlier derivation has the last one's words; if so it is number ``count``."""
    start = seen.offsets[count]
    code = np.uint64(14695981039346656037)
    for place in range(start, end):
        code = (code ^ np.uint64(words[place])) * np.uint64(1099511628211)
    size = len(seen.table)
    slot = np.int64((code ^ (code >> np.uint64(32))) % np.uint64(size))
    while seen.table[slot] >= 0:
        other = seen.table[slot]
        same = seen.offsets[other + 1] - seen.offsets[other] == end - start
        if same:
            for number in range(end - start):
                if words[seen.offsets[other] + number] != words[start + number]:
                    same = False
                    break
        if same:
            return False
        slot = (slot + 1) % size
    seen.table[slot] = count
    seen.offsets[count + 1] = end
    return True
