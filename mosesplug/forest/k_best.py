"""The k best derivations of a search graph, optionally with distinct translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.growing import double_length
from mosesplug.forest.k_best_search import NONE, Entries, Graph, Nodes, entries_for, find_derivation
from mosesplug.forest.translations import append_words
from mosesplug.forest.viterbi import MOST_EDGES, inside_best
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import inlined_kernel, kernel

MOST_ALIKE = 1000
"""Maximum number of derivations examined per requested one when duplicates are skipped."""


@dataclass(frozen=True)
class Derivations:
    """Derivations of a graph's goal; k-best lists have the highest score first.

    Attributes:
        scores: float64 ``[n]``; the sum of the edge scores of each derivation.
        offsets: int64 ``[n + 1]``; the edges of derivation ``i`` are
            ``edges[offsets[i]:offsets[i + 1]]``, each edge before those of its tails.
        edges: int64; edge indices of all derivations.
    """

    scores: Floats
    offsets: Ints
    edges: Ints

    def __len__(self) -> int:
        return len(self.scores)

    def derivation(self, number: int) -> Ints:
        """Return the edges of one derivation, int64."""
        return self.edges[self.offsets[number] : self.offsets[number + 1]]

    def some(self, numbers: Ints) -> Derivations:
        """Return the derivations with these numbers, in the order of ``numbers``."""
        parts = [self.derivation(number) for number in numbers.tolist()]
        return Derivations.of(self.scores[numbers], parts)

    @classmethod
    def of(cls, scores: Floats, derivations: Sequence[Ints]) -> Derivations:
        """Create the list from the edges of each derivation."""
        offsets = np.cumsum([0, *map(len, derivations)], dtype=np.int64)
        return cls(scores, offsets, np.concatenate([np.empty(0, dtype=np.int64), *derivations]))


def k_best(
    graph: Hypergraph,
    scores: Floats,
    k: int,
    *,
    distinct: bool = False,
    most_alike: int = MOST_ALIKE,
) -> Derivations:
    """Return the ``k`` derivations with the highest scores, or all if there are fewer.

    Args:
        scores: float64 ``[n_edges]``; edges whose score is -inf or NaN are ignored.
        distinct: skip derivations with the same words as an earlier one.
        most_alike: with ``distinct``, examine at most ``k`` times this many derivations.

    Raises:
        DataError: no derivation builds the goal, or one has more than ten million edges.
    """
    if k < 1:
        raise ValueError(f"number of derivations must be positive: {k}")
    best, inside, sizes = inside_best(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    if best[-1] < 0:
        raise DataError("no derivation of the search graph builds its goal")
    if sizes[-1] > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {sizes[-1]:.3g} edges")
    arrays = Graph(
        graph.edge_offsets,
        graph.tail_offsets,
        graph.tails,
        graph.target_offsets,
        graph.targets,
        scores,
        inside,
    )
    most = k * most_alike if distinct else k
    totals, offsets, edges = _list_derivations(arrays, best, k, most, distinct)
    if not len(totals):
        raise DataError(f"a derivation of the search graph has over {MOST_EDGES:.0e} edges")
    return Derivations(totals, offsets, edges)


def translations(graph: Hypergraph, derivations: Derivations) -> list[list[bytes]]:
    """Return the words of each derivation."""
    words, ends = concatenate_words(
        graph.target_offsets, graph.targets, derivations.offsets, derivations.edges
    )
    known, numbers = graph.words, words.tolist()
    return [
        [known[number] for number in numbers[begin:end]] for begin, end in pairwise(ends.tolist())
    ]


@kernel
def _list_derivations(
    graph: Graph, best: Ints, k: int, most: int, distinct: bool
) -> tuple[Floats, Ints, Ints]:
    """Return scores, offsets and edges of the goal's first ``k`` derivations."""
    n_nodes = len(graph.edge_offsets) - 1
    most_tails = 1
    for edge in range(len(graph.tail_offsets) - 1):
        most_tails = max(most_tails, graph.tail_offsets[edge + 1] - graph.tail_offsets[edge])
    nodes = Nodes(
        np.full(n_nodes, NONE),
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int64),
        np.full(n_nodes, -1),
        np.zeros(n_nodes, dtype=np.int64),
    )
    entries, used = entries_for(1024, most_tails), 0
    ranked, top = np.empty(1024, dtype=np.int64), 0
    scores = np.empty(k)
    offsets = np.zeros(k + 1, dtype=np.int64)
    edges = np.empty(1024, dtype=np.int64)
    seen = _Seen(np.full(4 * k + 4, NONE), np.zeros(k + 1, dtype=np.int64))
    words = np.empty(1024, dtype=np.int32)
    count, goal = 0, n_nodes - 1
    for rank in range(most):
        entries, used, ranked, top = find_derivation(
            graph, nodes, entries, used, ranked, top, goal, rank
        )
        if count == k or nodes.counts[goal] <= rank:
            break
        entry = ranked[nodes.places[goal] + rank]
        edges, behind = _with_edges(
            graph, best, nodes, entries, ranked, entry, edges, offsets[count]
        )
        if behind - offsets[count] > MOST_EDGES:
            return scores[:0].copy(), offsets, edges
        if distinct:
            own = edges[offsets[count] : behind]
            words, end = append_words(
                graph.target_offsets, graph.targets, own, words, seen.offsets[count]
            )
            if not _is_new(seen, words, count, end):
                continue
        scores[count] = entries.scores[entry]
        count += 1
        offsets[count] = behind
        if count == k:
            break
    return scores[:count].copy(), offsets[: count + 1].copy(), edges[: offsets[count]].copy()


@inlined_kernel
def _with_edges(
    graph: Graph,
    best: Ints,
    nodes: Nodes,
    entries: Entries,
    ranked: Ints,
    entry: int,
    edges: Ints,
    place: int,
) -> tuple[Ints, int]:
    """Write the edges of a derivation from ``place`` on; return the array and the end.

    The order is depth first. The stack has derivations, and nodes (as ``-2 - node``) that stand for
    their best derivation.
    """
    stack = np.empty(64, dtype=np.int64)
    stack[0] = entry
    height, start = 1, place
    while height > 0:
        height -= 1
        item = stack[height]
        edge = entries.links[item, 0] if item >= 0 else best[-2 - item]
        if place == len(edges):
            edges = double_length(edges)
        edges[place] = edge
        place += 1
        if place - start > MOST_EDGES:
            break
        low, high = graph.tail_offsets[edge], graph.tail_offsets[edge + 1]
        if height + high - low > len(stack):
            higher = np.empty(2 * (height + high - low), dtype=np.int64)
            for level in range(height):
                higher[level] = stack[level]
            stack = higher
        for number in range(high - low - 1, -1, -1):
            tail = graph.tails[low + number]
            rank = entries.ranks[item, number] if item >= 0 else 0
            stack[height] = ranked[nodes.places[tail] + rank] if rank > 0 else -2 - tail
            height += 1
    return edges, place


class _Seen(NamedTuple):
    """The words of the accepted derivations and a hash table of them.

    Attributes:
        table: int64; derivation numbers, -1 in empty slots.
        offsets: int64 ``[k + 1]``; where the words of each derivation begin.
    """

    table: Ints
    offsets: Ints


@kernel
def concatenate_words(
    target_offsets: Ints, targets: Ints32, offsets: Ints, edges: Ints
) -> tuple[Ints32, Ints]:
    """Return the concatenated words of derivations and their offsets."""
    words = np.empty(1024, dtype=np.int32)
    ends = np.zeros(len(offsets), dtype=np.int64)
    for number in range(len(offsets) - 1):
        own = edges[offsets[number] : offsets[number + 1]]
        words, ends[number + 1] = append_words(target_offsets, targets, own, words, ends[number])
    return words[: ends[-1]].copy(), ends


@inlined_kernel
def _is_new(seen: _Seen, words: Ints32, count: int, end: int) -> bool:
    """Return whether no earlier derivation has the words of the last one, ``count``."""
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
