"""Numbers for n-grams: a tree in which the n-gram of a parent is followed by one more word.

Kernels reach an n-gram from the one that is shorter by its last word in one look-up, whatever its
length, and make new ones as they go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import NgramTree
from mosesplug.kernels import kernel

__all__ = [
    "ABSENT",
    "NgramTable",
    "child",
    "empty_table",
    "interned",
    "larger_table",
    "orders",
    "table_of",
]

ABSENT = -1
"""In the place of an n-gram that is in no table, or has a word that is."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


class NgramTable(NamedTuple):
    """N-grams, for kernels; number 0 is the empty one.

    Attributes:
        parents: int32 ``[room]``; of each n-gram, the one without its last word; -1 of number 0.
        words: int32 ``[room]``; its last word.
        slots: int32, a power of two; numbers of n-grams by their hashes, -1 where free.
    """

    parents: NDArray[np.int32]
    words: NDArray[np.int32]
    slots: NDArray[np.int32]


def empty_table(room: int) -> NgramTable:
    """Return a table of the empty n-gram alone, with room for that many."""
    parents = np.full(room, ABSENT, dtype=np.int32)
    return NgramTable(parents, parents.copy(), np.full(_slots_for(room), ABSENT, dtype=np.int32))


def larger_table(table: NgramTable, count: int, room: int) -> NgramTable:
    """Return a copy of the first ``count`` n-grams, with room for ``room``."""
    larger = empty_table(room)
    larger.parents[:count] = table.parents[:count]
    larger.words[:count] = table.words[:count]
    _fill(larger, count)
    return larger


def _slots_for(room: int) -> int:
    """Return a power of two, such that half of the slots or more stay free."""
    return 1 << (2 * room).bit_length()


@kernel
def child(table: NgramTable, parent: int, word: int) -> int:
    """Return the n-gram that a word makes of another, ``ABSENT`` if it is in no table."""
    if parent < 0 or word < 0:
        return ABSENT
    return int(table.slots[_slot(table, parent, word)])


@kernel
def interned(table: NgramTable, count: NDArray[np.int64], parent: int, word: int) -> int:
    """Return the n-gram that a word makes of another, which joins the table if it is new.

    Args:
        table: output, with room for one more.
        count: output, int64 ``[1]``; n-grams that it has.
        parent, word: numbers that are not negative.
    """
    slot = _slot(table, parent, word)
    ngram = int(table.slots[slot])
    if ngram < 0:
        ngram = int(count[0])
        table.slots[slot] = ngram
        table.parents[ngram], table.words[ngram] = parent, word
        count[0] += 1
    return ngram


@kernel
def _slot(table: NgramTable, parent: int, word: int) -> int:
    """Return where the n-gram is, or would be."""
    mask = len(table.slots) - 1
    code = (np.uint64(parent) << np.uint64(32)) | np.uint64(word)
    slot = int(np.int64((code * _MIX) >> np.uint64(32))) & mask
    while True:
        ngram = table.slots[slot]
        if ngram < 0 or (table.parents[ngram] == parent and table.words[ngram] == word):
            return slot
        slot = (slot + 1) & mask


@kernel
def _fill(table: NgramTable, count: int) -> None:
    """Write the slots of the first ``count`` n-grams; ``table.slots`` is an output."""
    for ngram in range(1, count):
        table.slots[_slot(table, table.parents[ngram], table.words[ngram])] = ngram


def table_of(tree: NgramTree) -> NgramTable:
    """Return the n-grams of references, with the numbers that they have there."""
    count = len(tree.summed)
    table = empty_table(count)
    prefixes, last = np.nonzero(tree.children >= 0)
    ngrams = tree.children[prefixes, last]
    table.parents[ngrams], table.words[ngrams] = prefixes, last
    _fill(table, count)
    return table


def orders(table: NgramTable, count: int) -> NDArray[np.int32]:
    """Return how many words each n-gram has, int32 ``[count]``."""
    lengths = np.zeros(count, dtype=np.int32)
    _measure(table.parents, lengths)
    return lengths


@kernel
def _measure(parents: NDArray[np.int32], lengths: NDArray[np.int32]) -> None:
    """Write the lengths, the output; parents have smaller numbers."""
    for ngram in range(1, len(lengths)):
        lengths[ngram] = lengths[parents[ngram]] + 1
