"""States of partial translations that suffice to find the n-grams of given texts.

The n-grams form a tree whose nodes are the states of an automaton that reads a translation word by
word (Aho & Corasick 1975). The state is the longest n-gram of the texts that ends at the current
word. All parts of an n-gram are n-grams of the texts too. The n-grams that end at a word are
therefore the state, the state without its first word, and so on.

In a graph whose edges concatenate translations, an n-gram can also begin in words to the left. A
search therefore keeps two states per partial translation. The right state is the automaton's state
at its end, without the first word if that n-gram has the maximum length. The left state is the
longest prefix that is an n-gram of the texts and shorter than the maximum length. No n-gram that
crosses the boundary extends further inwards, so partial translations with equal left and right
states are equivalent for all continuations (Li & Khudanpur 2008). A side to which no words can be
added needs no state, such as the left side of all nodes in graphs of phrase-based decoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Bools, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, BOUNDARY, OTHER
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, lean_kernel

_TAIL = -1


class TextGraph(NamedTuple):
    """The structure and the words of a graph, for kernels.

    Attributes:
        edge_offsets, tail_offsets, tails, target_offsets: as in ``Hypergraph``.
        targets: int32; word numbers in the n-gram tree, -1 at the position of each tail, ``OTHER``
            and ``BOUNDARY`` as in ``reference_ngrams``.
    """

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    target_offsets: Ints
    targets: Ints32


class NgramStates(NamedTuple):
    """The automaton; state 0 is the empty n-gram.

    Attributes:
        step: int32 ``[n_states, n_words]``; the state after another word.
        shorter: int32 ``[n_states]``; the state without its first word.
        texts: int32 ``[n_states, order]``; the words of each state.
        depths: int64 ``[n_states]``; the number of these words.
    """

    step: Ints32
    shorter: Ints32
    texts: Ints32
    depths: Ints


def renumber_words(graph: Hypergraph, words: Mapping[bytes, int]) -> TextGraph:
    """Return a graph with its words renumbered.

    Args:
        words: the numbers of words. ``<s>`` and ``</s>`` become ``BOUNDARY``, all other words
            ``OTHER``.
    """
    # The last one is for -1, a tail.
    numbers = [BOUNDARY if word in BOUNDARIES else words.get(word, OTHER) for word in graph.words]
    return TextGraph(
        # Always copies, so that kernels are compiled for one type.
        np.array(graph.edge_offsets),
        np.array(graph.tail_offsets),
        np.array(graph.tails),
        np.array(graph.target_offsets),
        np.array([*numbers, _TAIL], dtype=np.int32)[graph.targets],
    )


@kernel
def ngram_states(children: Ints32, order: int) -> NgramStates:
    """Return the automaton of a tree of n-grams.

    Args:
        children: int32 ``[n_ngrams, n_words]``; see ``reference_ngrams.ngram_tree``.
    """
    n_states, n_words = children.shape
    step = np.zeros((n_states, n_words), dtype=np.int32)
    shorter = np.zeros(n_states, dtype=np.int32)
    texts = np.zeros((n_states, order), dtype=np.int32)
    depths = np.zeros(n_states, dtype=np.int64)
    # Breadth first: shorter n-grams come first.
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
def count_most(offsets: Ints) -> int:
    """Return the largest difference of successive offsets, at least 1.

    It is the maximum number of tails or targets of an edge.

    Args:
        offsets: int64 ``[n_edges + 1]``, of ``TextGraph``.
    """
    most = 1
    for edge in range(len(offsets) - 1):
        most = max(most, offsets[edge + 1] - offsets[edge])
    return most


@kernel
def open_sides(graph: TextGraph) -> tuple[Bools, Bools]:
    """Return whether words can precede, and can follow, each node's translation."""
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


@lean_kernel
def join_words(
    graph: TextGraph, states: NgramStates, edge: int, lefts: Ints, rights: Ints, hits: Ints
) -> tuple[int, int, int]:
    """Concatenate the words of an edge and the partial translations of its tails.

    Args:
        lefts: int64; the left state of each tail: twice the n-gram at its beginning, plus 1 if
            that n-gram is the tail's whole translation.
        hits: output, int64, ``order ** 2`` for each target of an edge; begins with the n-grams
            of the result that are not within a tail.

    Returns:
        The left and the right state of the result, and the number of ``hits``.
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
            joined = state
            while states.depths[joined] > least:
                hits[size] = joined
                size += 1
                joined = states.shorter[joined]
        if inside:
            if lefts[tail] & 1 == 0:
                state, whole = rights[tail], False
            tail += 1
    if states.depths[state] > longest:
        state = states.shorter[state]
    return 2 * left + (1 if whole else 0), state, size
