"""Contexts: outer words of partial translations that further n-grams can include."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER, OTHER
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.ngrams.table import NgramTable, find_child
from mosesplug.kernels import kernel

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
    preceded: NDArray[np.bool_]
    followed: NDArray[np.bool_]


@kernel
def write_context(
    graph: TextGraph,
    edge: int,
    states: NDArray[np.int64],
    contexts: NDArray[np.int32],
    width: int,
    backwards: bool,
    context: NDArray[np.int32],
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
def context_size(contexts: NDArray[np.int32], state: int) -> int:
    """Return the number of words of a context."""
    size = 0
    while size < LONGEST and contexts[state, size] != NOTHING:
        size += 1
    return size


@kernel
def forget_unused(
    table: NgramTable, context: NDArray[np.int32], size: int, backwards: bool
) -> None:
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
