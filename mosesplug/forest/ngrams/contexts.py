"""The words at the ends of translations that n-grams of longer translations can use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY, ORDER, OTHER
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.ngrams.table import NgramTable, child
from mosesplug.kernels import kernel

__all__ = ["LONGEST", "NOTHING", "SplitSource", "context_size", "forget_unused", "write_context"]

LONGEST = ORDER - 1
"""Words of a context, at most."""

NOTHING = -1
"""In a context, behind its last word."""


class SplitSource(NamedTuple):
    """A graph to be split, for kernels.

    Attributes:
        graph: its structure, and the words as numbers.
        preceded, followed: bool ``[n_nodes]``; whether something can stand before or behind it.
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
    """Write the first or the last words of an edge's translation, and tell how many there are.

    Args:
        graph: of the sentence.
        edge: which one.
        states: int64; of each tail of the edge, the row of its context.
        contexts: int32 ``[n_states, 3]``; words in their order, then ``NOTHING``.
        width: how many are wanted.
        backwards: the last words, not the first.
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
    """Return how many words a context has."""
    size = 0
    while size < LONGEST and contexts[state, size] != NOTHING:
        size += 1
    return size


@kernel
def forget_unused(
    table: NgramTable, context: NDArray[np.int32], size: int, backwards: bool
) -> None:
    """Make ``OTHER`` of the words of a context that no n-gram of the table can use (an output).

    A last word is of use if from there on the context is an n-gram, a first word if up to there it
    is one.

    Args:
        table: of n-grams and of all n-grams within them.
        context: output, int32 ``[3]``.
        size: how many words it has.
        backwards: they are the last words of a translation, not the first.
    """
    for number in range(size):
        start = number if backwards else 0
        end = size if backwards else size - number
        ngram = 0
        for place in range(start, end):
            ngram = child(table, ngram, context[place])
        if ngram >= 0:
            break
        context[start if backwards else end - 1] = OTHER
