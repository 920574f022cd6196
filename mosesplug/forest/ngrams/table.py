"""A table that numbers n-grams: a tree whose children extend parents by one word.

Kernels find an n-gram from its parent with one hash lookup, for any length, and add new n-grams
during the search. Bags are the n-gram counts of translations that are compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.forest.ngrams.reference_ngrams import ORDER, NgramTree
from mosesplug.kernels import kernel

ABSENT = -1
"""Number of an n-gram that is not in the table, or that has a word without a number."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


class NgramTable(NamedTuple):
    """The numbered n-grams, for kernels; number 0 is the empty n-gram.

    Attributes:
        parents: int32 ``[room]``; each n-gram without its last word; -1 for number 0.
        words: int32 ``[room]``; the last word of each n-gram.
        slots: int32; hash table of n-gram numbers, its size a power of two, -1 in free slots.
    """

    parents: Ints32
    words: Ints32
    slots: Ints32


def empty_table(room: int) -> NgramTable:
    """Return a table that has only the empty n-gram, with room for ``room`` n-grams."""
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
    """Return a power of two for which at least half of the slots stay free."""
    return 1 << (2 * room).bit_length()


@kernel
def find_child(table: NgramTable, parent: int, word: int) -> int:
    """Return the n-gram extended by a word, ``ABSENT`` if it is not in the table."""
    if parent < 0 or word < 0:
        return ABSENT
    return int(table.slots[_slot(table, parent, word)])


@kernel
def intern_ngram(table: NgramTable, count: Ints, parent: int, word: int) -> int:
    """Return the n-gram extended by a word; add it to the table if it is new.

    Args:
        count: output, int64 ``[1]``; number of n-grams in the table.
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
    """Return the slot of the n-gram, or the free slot for it."""
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
    """Enter the first ``count`` n-grams into ``table.slots`` (output)."""
    for ngram in range(1, count):
        table.slots[_slot(table, table.parents[ngram], table.words[ngram])] = ngram


def make_table(tree: NgramTree) -> NgramTable:
    """Return a table of the reference n-grams with the same numbers as in the tree."""
    count = len(tree.total_counts)
    table = empty_table(count)
    prefixes, last = np.nonzero(tree.children >= 0)
    ngrams = tree.children[prefixes, last]
    table.parents[ngrams], table.words[ngrams] = prefixes, last
    _fill(table, count)
    return table


def measure_orders(table: NgramTable, count: int) -> Ints32:
    """Return the length of each n-gram in words, int32 ``[count]``."""
    lengths = np.zeros(count, dtype=np.int32)
    _measure(table.parents, lengths)
    return lengths


@kernel
def _measure(parents: Ints32, lengths: Ints32) -> None:
    """Write the ``lengths``; parents have smaller numbers than their children."""
    for ngram in range(1, len(lengths)):
        lengths[ngram] = lengths[parents[ngram]] + 1


@dataclass(frozen=True)
class Bags:
    """The n-gram counts of translations.

    Attributes:
        lengths: int64 ``[n]``; length of each translation in words.
        offsets: int64 ``[n + 1]``; offsets into ``ngrams`` and ``counts``.
        ngrams: int32; the distinct n-grams of each translation.
        counts: int32; number of occurrences of each.
        orders: int32 ``[n_ngrams]``; length of each n-gram; 0 for number 0, the empty n-gram.
    """

    lengths: Ints
    offsets: Ints
    ngrams: Ints32
    counts: Ints32
    orders: Ints32

    def __len__(self) -> int:
        return len(self.lengths)

    def expected_counts(self, probabilities: Floats) -> Floats:
        """Return the expected count of each n-gram: float64 ``[n_ngrams]``.

        Args:
            probabilities: float64 ``[n]``; probability of each translation.
        """
        return self._sums(np.repeat(probabilities, np.diff(self.offsets)) * self.counts)

    def occurrence_probabilities(self, probabilities: Floats) -> Floats:
        """Return the probability that each n-gram occurs; as in ``expected_counts``."""
        return self._sums(np.repeat(probabilities, np.diff(self.offsets)))

    def _sums(self, values: Floats) -> Floats:
        sums = np.bincount(self.ngrams, weights=values, minlength=len(self.orders))
        return sums.astype(np.float64, copy=False)


def count_bags(translations: Sequence[Sequence[bytes]]) -> Bags:
    """Count the n-grams of up to four words in translations, given as words."""
    known: dict[bytes, int] = {}
    numbers = [[known.setdefault(word, len(known)) for word in words] for words in translations]
    table = empty_table(1 + ORDER * sum(map(len, numbers)))
    count = np.ones(1, dtype=np.int64)
    made = _make_bags(numbers, table, count, True)
    return Bags(*made, measure_orders(table, int(count[0])))


def count_bags_in(
    table: NgramTable, lengths: Ints32, translations: Sequence[Sequence[int]]
) -> Bags:
    """Count the n-grams of translations, numbered as in a split graph.

    Args:
        table, lengths: ``table`` and ``orders`` of the graph; other n-grams are ignored.
    """
    return Bags(*_make_bags(translations, table, np.ones(1, dtype=np.int64), False), lengths)


def _make_bags(
    translations: Sequence[Sequence[int]], table: NgramTable, count: Ints, grow: bool
) -> tuple[Ints, Ints, Ints32, Ints32]:
    lengths = np.array([len(words) for words in translations], dtype=np.int64)
    flat = np.array([word for words in translations for word in words], dtype=np.int32)
    return (lengths, *_count(lengths, flat, table, count, grow))


@kernel
def _count(
    lengths: Ints, words: Ints32, table: NgramTable, count: Ints, grow: bool
) -> tuple[Ints, Ints32, Ints32]:
    """Return offsets, n-grams and counts.

    With ``grow``, ``table`` and ``count`` are outputs.
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    ngrams = np.empty(ORDER * len(words), dtype=np.int32)
    counts = np.zeros(ORDER * len(words), dtype=np.int32)
    # The entry of an n-gram for the last translation that had it.
    places = np.full(len(table.words), -1, dtype=np.int64)
    first, used = 0, 0
    for row in range(len(lengths)):
        last = first + lengths[row]
        for start in range(first, last):
            ngram = 0
            for at in range(start, min(start + ORDER, last)):
                if grow:
                    ngram = intern_ngram(table, count, ngram, words[at])
                else:
                    ngram = find_child(table, ngram, words[at])
                if ngram < 0:
                    break
                if places[ngram] < offsets[row]:
                    places[ngram] = used
                    ngrams[used] = ngram
                    used += 1
                counts[places[ngram]] += 1
        first = last
        offsets[row + 1] = used
    return offsets, ngrams[:used].copy(), counts[:used].copy()
