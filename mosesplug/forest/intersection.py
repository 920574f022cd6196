"""Derivations of a search graph that yield a reference, as a graph of their own.

This is the product of the graph with an automaton that accepts the references (Bar-Hillel
intersection). In a decoder, the same search is forced decoding (Neubig & Watanabe 2016, sections
2.4 and 4.1). An item is a node with the part of a reference that it translates to, from ``begin``
up to ``end``. Items are built bottom-up, as in CKY parsing. A node whose translation no words
precede can begin only at the start of a reference, and one that no words follow can end only at its
end. In graphs of phrase-based decoders, which grow from left to right, a node therefore has one
item for each length. Items that the goal does not need are removed.

The words of a derivation determine the span of each of its nodes. The derivations of the product
therefore correspond one to one to those of the graph that yield a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formats.graphs.hypergraph import TAIL
from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.forest.growing import double_length
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY
from mosesplug.forest.ngrams.split import SplitGraph
from mosesplug.forest.ngrams.states import TextGraph, count_most, open_sides, renumber_words
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import inlined_kernel, kernel, read_only


@dataclass(frozen=True)
class ReferenceGraph:
    """The derivations of a graph that yield a reference; its nodes are items.

    Attributes:
        edge_offsets, tail_offsets, tails: as in ``Hypergraph``; the last node is the goal.
        origins: int64 ``[n_edges]``; the edge of the original graph that each edge is a copy of.
    """

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    origins: Ints

    def best(self, scores: Floats) -> Ints:
        """Return the derivation with the highest score, as edges of the original graph.

        Returns:
            int64; each edge before those of its tails.
        """
        return self.origins[viterbi(self, scores[self.origins]).edges]


def intersect_references(
    graph: Hypergraph, references: Sequence[Sequence[bytes]], split: SplitGraph | None = None
) -> ReferenceGraph | None:
    """Return the derivations that yield a reference; None if there is none.

    Args:
        graph: the graph of the sentence. ``<s>`` and ``</s>`` do not count as words.
        split: a split of this graph, whose derivations are returned instead of those of the graph.
    """
    numbers: dict[bytes, int] = {}
    texts = dict.fromkeys(
        tuple(numbers.setdefault(word, len(numbers)) for word in words) for words in references
    )
    # No word of the graph has the number that ends each reference.
    text = [number for sequence in texts for number in (*sequence, len(numbers))]
    ends = np.cumsum([len(sequence) + 1 for sequence in texts], dtype=np.int64) - 1
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    spelled = renumber_words(graph, numbers)
    if split is not None:
        spelled = _spell_split(spelled, split)
    product = _multiply(spelled, _Words(np.array(text, dtype=np.int32), starts, ends))
    if not len(product.origins):
        return None
    widths = np.diff(spelled.tail_offsets)[product.origins]
    return ReferenceGraph(
        read_only(np.concatenate([[0], np.cumsum(np.bincount(product.heads))]).astype(np.int64)),
        read_only(np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)),
        read_only(product.tails.astype(np.int32)),
        read_only(product.origins),
    )


def _spell_split(graph: TextGraph, split: SplitGraph) -> TextGraph:
    """Return a split graph with the words of the graph that it is a split of."""
    first, last = (graph.target_offsets[split.origins + more] for more in (0, 1))
    offsets = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64)
    places = np.repeat(first - offsets[:-1], last - first) + np.arange(offsets[-1])
    return TextGraph(
        np.array(split.edge_offsets),
        np.array(split.tail_offsets),
        np.array(split.tails),
        offsets,
        graph.targets[places],
    )


class _Words(NamedTuple):
    """The distinct references, for kernels.

    Attributes:
        text: int32; the word numbers of one reference after the other, each with an end mark.
        starts, ends: int64 ``[n_references]``; positions of the first word and of the end mark.
    """

    text: Ints32
    starts: Ints
    ends: Ints


class _Product(NamedTuple):
    """The edges of the product, sorted by head.

    Attributes:
        heads: int64 ``[n_edges]``; an item each, and the last one is the goal.
        origins: int64 ``[n_edges]``; original edges.
        tails: int64; the items of the tails of all edges, in the order of the original tails.
    """

    heads: Ints
    origins: Ints
    tails: Ints


@kernel
def _multiply(graph: TextGraph, words: _Words) -> _Product:
    """Build all items bottom-up, and keep those that the goal needs."""
    n_nodes, n_places = len(graph.edge_offsets) - 1, len(words.text) + 1
    preceded, followed = open_sides(graph)
    first = np.zeros(n_nodes + 1, dtype=np.int64)
    begins, ends = _numbers(64), _numbers(64)
    # The item of the current node that spans two places; smaller numbers are of earlier nodes.
    numbers = np.full((n_places, n_places), -1)
    heads, origins, tails = _numbers(64), _numbers(64), _numbers(64)
    n_items = n_edges = n_tails = 0
    most_tails = count_most(graph.tail_offsets)
    # The item, the place before it and the rest of the target, for each tail of an edge.
    chosen, before, rest = _numbers(most_tails), _numbers(most_tails), _numbers(most_tails)
    is_end = np.zeros(n_places, dtype=np.bool_)
    for end in words.ends:
        is_end[end] = True
    everywhere = np.arange(n_places - 1)
    for node in range(n_nodes):
        first[node] = n_items
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            own_tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
            last = graph.target_offsets[edge + 1]
            for begin in everywhere if preceded[node] else words.starts:
                depth, place, position = 0, graph.target_offsets[edge], begin
                while True:
                    place, position = _read_words(graph.targets, place, last, words.text, position)
                    if place == last and (followed[node] or is_end[position]):
                        head = numbers[begin, position]
                        if head < first[node]:
                            head = n_items
                            if n_items == len(begins):
                                begins, ends = double_length(begins), double_length(ends)
                            begins[head], ends[head] = begin, position
                            numbers[begin, position] = head
                            n_items += 1
                        if n_edges == len(heads):
                            heads, origins = double_length(heads), double_length(origins)
                        heads[n_edges], origins[n_edges] = head, edge
                        n_edges += 1
                        while n_tails + depth > len(tails):
                            tails = double_length(tails)
                        for number in range(depth):
                            tails[n_tails + number] = chosen[number]
                        n_tails += depth
                    elif place < last and graph.targets[place] == TAIL:
                        chosen[depth] = first[own_tails[depth]] - 1
                        before[depth], rest[depth] = position, place + 1
                        depth += 1
                    # The next item for the last tail, or else for the one before it.
                    while depth > 0:
                        item, beyond = chosen[depth - 1] + 1, first[own_tails[depth - 1] + 1]
                        while item < beyond and begins[item] != before[depth - 1]:
                            item += 1
                        if item < beyond:
                            chosen[depth - 1] = item
                            place, position = rest[depth - 1], ends[item]
                            break
                        depth -= 1
                    if depth == 0:
                        break
        first[node + 1] = n_items
    is_goal = np.zeros(n_items, dtype=np.bool_)
    for item in range(first[n_nodes - 1], n_items):
        for reference in range(len(words.starts)):
            if begins[item] == words.starts[reference] and ends[item] == words.ends[reference]:
                is_goal[item] = True
    return _keep_needed(
        graph.tail_offsets, is_goal, heads[:n_edges], origins[:n_edges], tails[:n_tails]
    )


@inlined_kernel
def _numbers(size: int) -> Ints:
    return np.empty(size, dtype=np.int64)


@inlined_kernel
def _read_words(
    targets: Ints32, place: int, last: int, text: Ints32, position: int
) -> tuple[int, int]:
    """Read words of a target from ``place`` on as long as they are those of the text.

    Returns:
        The place of a tail or of another word, or ``last``; and the position in the text.
    """
    while place < last:
        if targets[place] == BOUNDARY:
            place += 1
            continue
        if targets[place] == TAIL or targets[place] != text[position]:
            break
        place += 1
        position += 1
    return place, position


@inlined_kernel
def _keep_needed(
    tail_offsets: Ints, is_goal: Bools, heads: Ints, origins: Ints, tails: Ints
) -> _Product:
    """Return the product without items that are not used; all goals become one item.

    Args:
        is_goal: bool ``[n_items]``; these items are the last ones.
        heads, origins, tails: see ``_Product``, in the order in which edges were built: the tails
            of an edge are heads of earlier ones.
    """
    needed = is_goal.copy()
    kept = np.zeros(len(heads), dtype=np.bool_)
    places = np.zeros(len(heads) + 1, dtype=np.int64)
    for edge in range(len(heads)):
        width = tail_offsets[origins[edge] + 1] - tail_offsets[origins[edge]]
        places[edge + 1] = places[edge] + width
    for edge in range(len(heads) - 1, -1, -1):
        kept[edge] = needed[heads[edge]]
        for entry in range(places[edge], places[edge + 1]):
            needed[tails[entry]] |= kept[edge]
    renumbered = np.empty(len(needed), dtype=np.int64)
    n_items = 0
    for item in range(len(needed)):
        renumbered[item] = n_items
        n_items += int(needed[item] and not is_goal[item])
    # Edges of one node are together, but not yet those of one item.
    ends = np.zeros(n_items + 2, dtype=np.int64)
    for edge in range(len(heads)):
        if kept[edge]:
            ends[renumbered[heads[edge]] + 1] += 1
    for item in range(n_items + 1):
        ends[item + 1] += ends[item]
    edges = _numbers(ends[-1])
    for edge in range(len(heads)):
        if kept[edge]:
            item = renumbered[heads[edge]]
            edges[ends[item]] = edge
            ends[item] += 1
    own_heads, own_origins = _numbers(len(edges)), _numbers(len(edges))
    own_tails, n_tails = _numbers(len(tails)), 0
    for place in range(len(edges)):
        edge = edges[place]
        own_heads[place], own_origins[place] = renumbered[heads[edge]], origins[edge]
        for entry in range(places[edge], places[edge + 1]):
            own_tails[n_tails] = renumbered[tails[entry]]
            n_tails += 1
    return _Product(own_heads, own_origins, own_tails[:n_tails])
