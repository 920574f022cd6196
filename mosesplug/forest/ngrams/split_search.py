"""Kernels of ``ngrams.split`` that find states of nodes and n-grams of edges.

A state has contexts: outer words of partial translations that further n-grams can include.

Kernels fill arrays of fixed size. When an array is full, the search stops before the current node
and resumes there with larger arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Bools, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER, OTHER
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.ngrams.table import ABSENT, NgramTable, find_child, intern_ngram
from mosesplug.kernels import inlined_kernel, kernel


class States(NamedTuple):
    """The states of all nodes; the states of a node are adjacent.

    Attributes:
        firsts: int64 ``[n_nodes + 1]``; the first state of each node.
        nodes: int64 ``[room]``; the node of each state.
        left, right: int32 ``[room, 3]``; first and last words, then ``NOTHING``.
        slots: int64; hash table of states, its size a power of two, -1 in free slots.
    """

    firsts: Ints
    nodes: Ints
    left: Ints32
    right: Ints32
    slots: Ints


class SplitEdges(NamedTuple):
    """Edges between states, in the order in which they are found.

    Attributes:
        origins, heads: int64 ``[room]``; the original edge and the head state of each edge.
        totals: int32 ``[room, order]``; as in ``SplitGraph``.
        tail_offsets: int64 ``[room + 1]``; offsets into ``tails``.
        tails: int32 ``[room]``; the tail states of each edge.
        ngram_offsets: int64 ``[room + 1]``; offsets into ``ngrams``.
        ngrams: int32 ``[room]``; the n-grams that each edge creates.
    """

    origins: Ints
    heads: Ints
    totals: Ints32
    tail_offsets: Ints
    tails: Ints32
    ngram_offsets: Ints
    ngrams: Ints32


class Sizes(NamedTuple):
    """The used sizes of the arrays; int64 ``[1]`` each.

    Attributes:
        states, edges: number of states and edges.
        table: number of numbered n-grams.
    """

    states: Ints
    edges: Ints
    table: Ints


@kernel
def worst_edge(source: SplitSource) -> tuple[int, int]:
    """Return the maximum number of tails of an edge, and of words its n-grams include."""
    most_tails, most_words = 1, 1
    for edge in range(len(source.graph.tail_offsets) - 1):
        n_tails = source.graph.tail_offsets[edge + 1] - source.graph.tail_offsets[edge]
        n_items = source.graph.target_offsets[edge + 1] - source.graph.target_offsets[edge]
        most_tails = max(most_tails, n_tails)
        most_words = max(most_words, n_items + n_tails * LONGEST)
    return most_tails, most_words


@kernel
def search_nodes(
    source: SplitSource,
    states: States,
    edges: SplitEdges,
    table: NgramTable,
    sizes: Sizes,
    node: int,
    most_ngrams: int,
    grow: bool,
) -> int:
    """Find the states of nodes from ``node`` on, and the edges into them.

    Args:
        table: the n-grams; an output if ``grow``.
        grow: number all n-grams; otherwise only those of the table have numbers.

    Returns:
        The node whose states did not fit (``sizes`` shows which array is full), or the number of
        nodes if all fitted.
    """
    order = edges.totals.shape[1]
    n_nodes = len(source.graph.edge_offsets) - 1
    chosen = np.zeros(worst_edge(source)[0], dtype=np.int64)
    contexts = np.empty((2, LONGEST), dtype=np.int32)
    open_ngrams = np.empty(ORDER, dtype=np.int64)
    most_new = most_ngrams if grow else 0
    while node < n_nodes:
        states.firsts[node] = sizes.states[0]
        for edge in range(source.graph.edge_offsets[node], source.graph.edge_offsets[node + 1]):
            going_on = _first_choice(source, edge, states, chosen)
            while going_on:
                if not _has_room(states, edges, table, sizes, len(chosen), most_ngrams, most_new):
                    return node
                _write_contexts(source, node, edge, states, chosen, table, order, grow, contexts)
                place = sizes.edges[0]
                edges.origins[place] = edge
                edges.heads[place] = _state(states, sizes.states, node, contexts)
                _write_tails(source, edge, chosen, edges, place)
                _write_ngrams(source, edge, states, chosen, table, sizes, grow, edges, open_ngrams)
                sizes.edges[0] += 1
                going_on = _next_choice(source, edge, states, chosen)
        node += 1
        states.firsts[node] = sizes.states[0]
    return node


@inlined_kernel
def _has_room(
    states: States,
    edges: SplitEdges,
    table: NgramTable,
    sizes: Sizes,
    most_tails: int,
    most_ngrams: int,
    most_new: int,
) -> bool:
    """Return whether one more edge fits into all arrays."""
    place = sizes.edges[0]
    if sizes.states[0] == len(states.nodes) or place == len(edges.origins):
        return False
    if edges.tail_offsets[place] + most_tails > len(edges.tails):
        return False
    if edges.ngram_offsets[place] + most_ngrams > len(edges.ngrams):
        return False
    return bool(sizes.table[0] + most_new <= len(table.words))


@inlined_kernel
def _first_choice(source: SplitSource, edge: int, states: States, chosen: Ints) -> bool:
    """Write the first state of each tail to ``chosen``; return False if one has none."""
    for number in range(source.graph.tail_offsets[edge + 1] - source.graph.tail_offsets[edge]):
        tail = source.graph.tails[source.graph.tail_offsets[edge] + number]
        if states.firsts[tail] == states.firsts[tail + 1]:
            return False
        chosen[number] = states.firsts[tail]
    return True


@inlined_kernel
def _next_choice(source: SplitSource, edge: int, states: States, chosen: Ints) -> bool:
    """Advance to the next combination of tail states; return False after the last."""
    for number in range(source.graph.tail_offsets[edge + 1] - source.graph.tail_offsets[edge]):
        tail = source.graph.tails[source.graph.tail_offsets[edge] + number]
        chosen[number] += 1
        if chosen[number] < states.firsts[tail + 1]:
            return True
        chosen[number] = states.firsts[tail]
    return False


@inlined_kernel
def _write_contexts(
    source: SplitSource,
    node: int,
    edge: int,
    states: States,
    chosen: Ints,
    table: NgramTable,
    order: int,
    grow: bool,
    contexts: Ints32,
) -> None:
    """Write the needed first and last words of an edge's translation to ``contexts``."""
    contexts[:] = NOTHING
    width = order - 1
    if source.preceded[node]:
        size = write_context(source.graph, edge, chosen, states.left, width, False, contexts[0])
        # Of a shorter translation this is all of it, and all words are of use to what follows.
        if not grow and size == width:
            forget_unused(table, contexts[0], size, False)
    if source.followed[node]:
        size = write_context(source.graph, edge, chosen, states.right, width, True, contexts[1])
        if not grow:
            forget_unused(table, contexts[1], size, True)


@inlined_kernel
def _write_tails(
    source: SplitSource, edge: int, chosen: Ints, edges: SplitEdges, place: int
) -> None:
    n_tails = source.graph.tail_offsets[edge + 1] - source.graph.tail_offsets[edge]
    first = edges.tail_offsets[place]
    for number in range(n_tails):
        edges.tails[first + number] = chosen[number]
    edges.tail_offsets[place + 1] = first + n_tails


@inlined_kernel
def _write_ngrams(
    source: SplitSource,
    edge: int,
    states: States,
    chosen: Ints,
    table: NgramTable,
    sizes: Sizes,
    grow: bool,
    edges: SplitEdges,
    open_ngrams: Ints,
) -> None:
    """Write the n-grams that an edge creates, without those within its tails.

    Args:
        states, chosen: all states, and the chosen state of each tail.
        table, sizes, grow: see ``search_nodes``.
        edges: output; ``ngrams`` and ``totals`` of the next edge.
        open_ngrams: int64 ``[4]``; scratch space for the n-grams that the next word extends.
    """
    place = sizes.edges[0]
    order = edges.totals.shape[1]
    edges.totals[place] = 0
    end = edges.ngram_offsets[place]
    n_open, tail = 0, 0
    at_start = True
    for at in range(source.graph.target_offsets[edge], source.graph.target_offsets[edge + 1]):
        word = source.graph.targets[at]
        if word == BOUNDARY:
            continue
        state, n_words = -1, 1
        if word == -1:
            state = chosen[tail]
            tail += 1
            n_words = 0 if at_start else context_size(states.left, state)
        for position in range(n_words):
            if state >= 0:
                word = states.left[state, position]
            # N-grams that lie within the tail were made there.
            least = 1 if state < 0 else position + 2
            # From the longest on: each is made of the next shorter one that was open before.
            for length in range(min(n_open + 1, order), 0, -1):
                prefix = open_ngrams[length - 2] if length > 1 else 0
                if grow:
                    ngram = intern_ngram(table, sizes.table, prefix, word)
                else:
                    ngram = find_child(table, prefix, word)
                open_ngrams[length - 1] = ngram
                if length >= least:
                    edges.totals[place, length - 1] += 1
                    if ngram != ABSENT:
                        edges.ngrams[end] = ngram
                        end += 1
            n_open = min(n_open + 1, order - 1)
        if state >= 0 and (at_start or n_words == order - 1):
            # What precedes the tail's last words is too far away.
            n_open = _reopen(states, state, table, open_ngrams)
        at_start = False
    edges.ngram_offsets[place + 1] = end


@inlined_kernel
def _reopen(states: States, state: int, table: NgramTable, open_ngrams: Ints) -> int:
    """Write a tail's last n-grams that later words extend; return their number."""
    size = context_size(states.right, state)
    for length in range(1, size + 1):
        ngram = 0
        for place in range(size - length, size):
            ngram = find_child(table, ngram, states.right[state, place])
        open_ngrams[length - 1] = ngram
    return size


@inlined_kernel
def _state(states: States, count: Ints, node: int, contexts: Ints32) -> int:
    """Return the state of these contexts; add it to ``states`` if it is new."""
    slot = _slot(states, node, contexts)
    state = int(states.slots[slot])
    if state < 0:
        state = int(count[0])
        states.slots[slot] = state
        states.nodes[state] = node
        states.left[state] = contexts[0]
        states.right[state] = contexts[1]
        count[0] += 1
    return state


@kernel
def _slot(states: States, node: int, contexts: Ints32) -> int:
    """Return the slot of the state, or the free slot for it."""
    code = np.uint64(node) + np.uint64(14695981039346656037)
    for position in range(LONGEST):
        code = (code ^ np.uint64(contexts[0, position] + 3)) * np.uint64(1099511628211)
        code = (code ^ np.uint64(contexts[1, position] + 3)) * np.uint64(1099511628211)
    mask = len(states.slots) - 1
    slot = int(np.int64(code >> np.uint64(24))) & mask
    while True:
        state = states.slots[slot]
        if state < 0:
            return slot
        same = states.nodes[state] == node
        for position in range(LONGEST):
            same &= states.left[state, position] == contexts[0, position]
            same &= states.right[state, position] == contexts[1, position]
        if same:
            return slot
        slot = (slot + 1) & mask


@kernel
def fill_slots(states: States, count: int) -> None:
    """Enter the first ``count`` states into ``states.slots`` (output)."""
    states.slots[:] = -1
    contexts = np.empty((2, LONGEST), dtype=np.int32)
    for state in range(count):
        contexts[0], contexts[1] = states.left[state], states.right[state]
        states.slots[_slot(states, states.nodes[state], contexts)] = state


LONGEST = ORDER - 1
"""Maximum number of words of a context."""

NOTHING = -1
"""Marks unused entries after the last word of a context."""


class SplitSource(NamedTuple):
    """A graph to split, for kernels.

    Attributes:
        graph: the structure of the graph, with numbered words.
        preceded, followed: bool ``[n_nodes]``; whether words can precede or follow the node's
            translation.
    """

    graph: TextGraph
    preceded: Bools
    followed: Bools


@kernel
def write_context(
    graph: TextGraph,
    edge: int,
    states: Ints,
    contexts: Ints32,
    width: int,
    backwards: bool,
    context: Ints32,
) -> int:
    """Write the first or last words of an edge's translation; return their number.

    Args:
        states: int64; for each tail of the edge, the row of its context.
        contexts: int32 ``[n_states, 3]``; words in order, then ``NOTHING``.
        context: output, int32 ``[3]``.
    """
    first, last = graph.target_offsets[edge], graph.target_offsets[edge + 1]
    n_tails = graph.tail_offsets[edge + 1] - graph.tail_offsets[edge]
    tail = n_tails - 1 if backwards else 0
    size = 0
    for number in range(last - first):
        if size == width:
            break
        word = graph.targets[last - 1 - number if backwards else first + number]
        if word == -1:
            state = states[tail]
            tail += -1 if backwards else 1
            n_words = context_size(contexts, state)
            for position in range(min(n_words, width - size)):
                at = n_words - 1 - position if backwards else position
                context[size] = contexts[state, at]
                size += 1
        elif word != BOUNDARY:
            context[size] = word
            size += 1
    if backwards:
        for position in range(size // 2):
            other = size - 1 - position
            context[position], context[other] = context[other], context[position]
    context[size:] = NOTHING
    return size


@kernel
def context_size(contexts: Ints32, state: int) -> int:
    """Return the number of words of a context."""
    size = 0
    while size < LONGEST and contexts[state, size] != NOTHING:
        size += 1
    return size


@kernel
def forget_unused(table: NgramTable, context: Ints32, size: int, backwards: bool) -> None:
    """Replace words that no n-gram of the table can include by ``OTHER``.

    A last word is kept if the words from it to the end of the context are an n-gram of the table.
    A first word is kept if the words from the start of the context to it are one.

    Args:
        context: output, int32 ``[3]``.
        backwards: the context has the last words of a translation instead of the first.
    """
    for number in range(size):
        start = number if backwards else 0
        end = size if backwards else size - number
        ngram = 0
        for place in range(start, end):
            ngram = find_child(table, ngram, context[place])
        if ngram >= 0:
            break
        context[start if backwards else end - 1] = OTHER
