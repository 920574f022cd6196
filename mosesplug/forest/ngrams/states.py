"""The state that a search keeps of a translation to find n-grams of given texts.

The n-grams form a tree; its nodes are the states of an automaton that reads a translation word by
word (Aho & Corasick 1975): the state is the longest n-gram of the texts that ends there. All parts
of an n-gram are n-grams of the texts too, so the n-grams that end at a word are the state, and the
state less its first word, and so on.

In a graph whose edges join translations, an n-gram can also begin in the words to the left. So of
each partial translation are remembered the state at its end, less the first word of a longest
n-gram, and the longest beginning that is an n-gram of the texts, but for the longest ones; no
n-gram reaches further in. Two partial translations that are alike in both are alike for all that
may come (Li & Khudanpur 2008). Where nothing can come at that side of a node, as at the left of
all nodes of a phrase-based decoder's graph, nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, BOUNDARY, OTHER
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

__all__ = [
    "NgramStates",
    "TextGraph",
    "joined",
    "most_tails_of",
    "ngram_states",
    "open_sides",
    "text_graph",
]

_TAIL = -1


class TextGraph(NamedTuple):
    """The structure and the words of a graph, for kernels.

    Attributes:
        edge_offsets, tail_offsets, tails, target_offsets: as in ``Hypergraph``.
        targets: int32; the words' numbers in the tree of n-grams, -1 in the place of each tail,
            ``OTHER`` and ``BOUNDARY`` as in ``reference_ngrams``.
    """

    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]


class NgramStates(NamedTuple):
    """The automaton; state 0 is the empty n-gram.

    Attributes:
        step: int32 ``[n_states, n_words]``; the state after another word.
        shorter: int32 ``[n_states]``; the state less its first word.
        texts: int32 ``[n_states, order]``; the words of each.
        depths: int64 ``[n_states]``; how many there are.
    """

    step: NDArray[np.int32]
    shorter: NDArray[np.int32]
    texts: NDArray[np.int32]
    depths: NDArray[np.int64]


def text_graph(graph: Hypergraph, words: Mapping[bytes, int]) -> TextGraph:
    """Return a graph with other numbers for its words.

    Args:
        graph: of the sentence.
        words: numbers of words; all others are ``OTHER``, but for the borders of the sentence.
    """
    # The last one is for -1, a tail.
    numbers = [BOUNDARY if word in BOUNDARIES else words.get(word, OTHER) for word in graph.words]
    return TextGraph(
        # Copies, whatever the arrays are: one type to compile for.
        np.array(graph.edge_offsets),
        np.array(graph.tail_offsets),
        np.array(graph.tails),
        np.array(graph.target_offsets),
        np.array([*numbers, _TAIL], dtype=np.int32)[graph.targets],
    )


@kernel
def ngram_states(children: NDArray[np.int32], order: int) -> NgramStates:
    """Return the automaton of a tree of n-grams.

    Args:
        children: int32 ``[n_ngrams, n_words]``; see ``reference_ngrams.ngram_tree``.
        order: words of its longest n-grams.
    """
    n_states, n_words = children.shape
    step = np.zeros((n_states, n_words), dtype=np.int32)
    shorter = np.zeros(n_states, dtype=np.int32)
    texts = np.zeros((n_states, order), dtype=np.int32)
    depths = np.zeros(n_states, dtype=np.int64)
    # Breadth first: what is shorter is known before.
    queue = np.zeros(n_states, dtype=np.int64)
    size = 1
    for visited in range(n_states):
        state = queue[visited]
        for word in range(n_words):
            longer = children[state, word]
            if longer < 0:
                step[state, word] = step[shorter[state], word] if state > 0 else 0
                continue
            shorter[longer] = step[shorter[state], word] if state > 0 else 0
            depth = depths[state]
            depths[longer] = depth + 1
            for place in range(depth):
                texts[longer, place] = texts[state, place]
            texts[longer, depth] = word
            step[state, word] = longer
            queue[size] = longer
            size += 1
    return NgramStates(step, shorter, texts, depths)


@kernel
def most_tails_of(graph: TextGraph) -> int:
    """Return tails of the edge that has most, at least 1."""
    most = 1
    for edge in range(len(graph.tail_offsets) - 1):
        most = max(most, graph.tail_offsets[edge + 1] - graph.tail_offsets[edge])
    return most


@kernel
def open_sides(graph: TextGraph) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether words can come to the left of each node's translation, and to its right."""
    n_nodes = len(graph.edge_offsets) - 1
    left, right = np.zeros(n_nodes, dtype=np.bool_), np.zeros(n_nodes, dtype=np.bool_)
    for node in range(n_nodes - 1, -1, -1):
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            before = left[node]
            tail = graph.tail_offsets[edge]
            for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
                if graph.targets[place] == _TAIL:
                    left[graph.tails[tail]] |= before
                    tail += 1
                before |= graph.targets[place] != BOUNDARY
            after = right[node]
            first, last = graph.target_offsets[edge], graph.target_offsets[edge + 1]
            for place in range(last - 1, first - 1, -1):
                if graph.targets[place] == _TAIL:
                    tail -= 1
                    right[graph.tails[tail]] |= after
                after |= graph.targets[place] != BOUNDARY
    return left, right


@kernel
def joined(
    graph: TextGraph,
    states: NgramStates,
    edge: int,
    lefts: NDArray[np.int64],
    rights: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> tuple[int, int, int, NDArray[np.int64]]:
    """Join the words of an edge and the partial translations of its tails.

    Args:
        graph: of the sentence.
        states: of the n-grams that are looked for.
        edge: which one.
        lefts: int64; what is remembered of the left of each tail: twice the n-gram that it begins
            with, and 1 more where that is all of it.
        rights: int64; the state at the end of each tail.
        hits: output, int64; grows where it is too small.

    Returns:
        Left and right of what they make; how many n-grams that lie in none of the tails it has;
        and ``hits``, which begins with these.
    """
    longest = states.texts.shape[1] - 1
    state, left, whole, size = 0, 0, True, 0
    tail = 0
    for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
        word = graph.targets[place]
        if word == BOUNDARY:
            continue
        inside = word == _TAIL
        begin = lefts[tail] >> 1 if inside else 0
        for position in range(states.depths[begin] if inside else 1):
            if inside:
                word = states.texts[begin, position]
            state = states.step[state, word] if word >= 0 else 0
            if whole:
                longer = states.step[left, word] if word >= 0 else 0
                whole = states.depths[longer] == states.depths[left] + 1
                whole &= states.depths[longer] <= longest
                left = longer if whole else left
            # Those that lie within the tail were found there.
            least = position + 1 if inside else 0
            found = state
            while states.depths[found] > least:
                if size == len(hits):
                    hits = np.append(hits, np.empty_like(hits))
                hits[size] = found
                size += 1
                found = states.shorter[found]
        if inside:
            if lefts[tail] & 1 == 0:
                state, whole = rights[tail], False
            tail += 1
    if states.depths[state] > longest:
        state = states.shorter[state]
    return 2 * left + (1 if whole else 0), state, size, hits
