"""N-gram counts in a search graph, edge by edge.

An edge concatenates the translations of its tails and its own words. Only the two ends of a tail's
translation take part in new n-grams: its first three and its last three words, or all words of a
shorter translation.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Floats32, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER, NgramTree
from mosesplug.forest.search_graph import SearchGraph
from mosesplug.kernels import kernel, lean_kernel

CONTEXT = ORDER - 1
"""Maximum number of final words of a translation in an n-gram that continues after it."""


@lean_kernel
def partial_length(covered: int, total: int, length: np.float32) -> np.float32:
    """Return the reference length of a part, in proportion to covered source words."""
    if total == 0:
        return length
    return np.float32(covered) / np.float32(total) * length


def most_touched(graph: SearchGraph) -> int:
    """Return the maximum number of n-grams that an edge of the graph creates."""
    return ORDER * CONTEXT * int(np.diff(graph.target_offsets).max(initial=0))


@lean_kernel
def count_edge(
    graph: SearchGraph,
    edge: int,
    left: Ints32,
    n_left: Ints,
    right: Ints32,
    n_right: Ints,
    counts: Ints32,
    ngrams: Ints32,
    touched: Ints32,
    statistics: Floats32,
) -> None:
    """Add the statistics of n-grams that an edge creates, not those inside its tails.

    Args:
        left, right: int32 ``[n_nodes, 3]``; first and last words of each node.
        n_left, n_right: int64 ``[n_nodes]``; number of these words.
        counts: int32 ``[n_ngrams]``, zeros; scratch space, reset to zeros on return.
        ngrams: int32 ``[3]``; scratch space for the open n-grams.
        touched: int32 ``[most_touched(graph)]``; scratch space for the n-grams that occur.
        statistics: output, float32 ``[9]``; matches and totals of each order are added.
    """
    tree = graph.tree
    size = 0
    n_touched = 0
    tail = graph.tail_offsets[edge]
    for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
        node, n_first, n_last = -1, 1, 0
        if graph.targets[place] == -1:
            node = graph.tails[tail]
            tail += 1
            n_first = n_left[node]
            n_last = n_right[node] if n_first == CONTEXT else 0
        for position in range(n_first + n_last):
            # N-grams that lie within the tail were counted there.
            if node < 0:
                word, least = graph.targets[place], 1
            elif position < n_first:
                word, least = left[node, position], position + 2
            else:
                word, least = right[node, position - n_first], ORDER + 1
                size = 0 if position == n_first else size
            if word == BOUNDARY:
                continue
            n_touched = _extend(
                tree, ngrams, size, word, least, counts, touched, n_touched, statistics
            )
            size = min(size + 1, CONTEXT)
    for place in range(n_touched):
        counts[touched[place]] = 0


@lean_kernel
def _extend(
    tree: NgramTree,
    ngrams: Ints32,
    size: int,
    word: int,
    least: int,
    counts: Ints32,
    touched: Ints32,
    n_touched: int,
    statistics: Floats32,
) -> int:
    """Extend the open n-grams by a word, and count those of at least ``least`` words.

    Args:
        ngrams: output, int32 ``[3]``; tree indices of the open n-grams, the shortest first.
        least: length of the shortest n-gram that is counted.
        counts: output, int32 ``[n_ngrams]``; occurrences so far.
        touched: output, int32; ``touched[:n_touched]`` are the n-grams that occurred.
        statistics: output, float32 ``[9]``.

    Returns:
        The new ``n_touched``.
    """
    for shorter in range(size, -1, -1):
        longer = -1
        if word >= 0:
            prefix = ngrams[shorter - 1] if shorter > 0 else 0
            if prefix >= 0:
                longer = tree.children[prefix, word]
        if shorter < CONTEXT:
            ngrams[shorter] = longer
        if shorter + 1 < least:
            continue
        statistics[2 * shorter + 1] += 1
        if longer >= 0:
            touched[n_touched] = longer
            n_touched += 1
            counts[longer] += 1
            if counts[longer] <= tree.total_counts[longer]:
                statistics[2 * shorter] += 1
    return n_touched


@lean_kernel
def edge_context(
    graph: SearchGraph, edge: int, contexts: Ints32, sizes: Ints, context: Ints32, backwards: bool
) -> int:
    """Write the first or last words of an edge's translation; return their number.

    Args:
        contexts: int32 ``[n_nodes, 3]``; the first or last words of each node.
        sizes: int64 ``[n_nodes]``; number of these words.
        context: output, int32 ``[3]``, in the order of the translation.
    """
    first, last = graph.target_offsets[edge], graph.target_offsets[edge + 1]
    tail = graph.tail_offsets[edge + 1] - 1 if backwards else graph.tail_offsets[edge]
    step = -1 if backwards else 1
    size = 0
    for number in range(last - first):
        word = graph.targets[last - 1 - number if backwards else first + number]
        node, n_words = -1, 1
        if word == -1:
            node = graph.tails[tail]
            n_words = sizes[node]
            tail += step
        for position in range(n_words):
            if size == CONTEXT:
                break
            if node >= 0:
                word = contexts[node, n_words - 1 - position if backwards else position]
            context[size] = word
            size += 1
    if backwards:
        for place in range(size // 2):
            other = size - 1 - place
            context[place], context[other] = context[other], context[place]
    return size


@kernel
def translation_statistics(tree: NgramTree, words: Ints32) -> Floats32:
    """Return the ``metrics.Bleu`` statistics of a translation.

    The reference length is that of the shortest reference.

    Args:
        words: int32; word numbers.

    Returns:
        float32 ``[9]``.
    """
    statistics = np.zeros(2 * ORDER + 1, dtype=np.float32)
    counts = np.zeros(len(tree.largest), dtype=np.int32)
    words = words[words != BOUNDARY]
    for start in range(len(words)):
        ngram = 0
        for order in range(min(ORDER, len(words) - start)):
            statistics[2 * order + 1] += 1
            word = words[start + order]
            if ngram >= 0:
                ngram = tree.children[ngram, word] if word >= 0 else -1
            if ngram >= 0:
                counts[ngram] += 1
                if counts[ngram] <= tree.largest[ngram]:
                    statistics[2 * order] += 1
    statistics[2 * ORDER] = tree.length
    return statistics
