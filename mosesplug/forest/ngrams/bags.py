"""Bags of n-grams to compare translations of a sentence with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import ORDER
from mosesplug.forest.ngrams.table import (
    NgramTable,
    empty_table,
    find_child,
    intern_ngram,
    measure_orders,
)
from mosesplug.kernels import kernel


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

    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ngrams: NDArray[np.int32]
    counts: NDArray[np.int32]
    orders: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    def expected_counts(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected count of each n-gram: float64 ``[n_ngrams]``.

        Args:
            probabilities: float64 ``[n]``; probability of each translation.
        """
        return self._sums(np.repeat(probabilities, np.diff(self.offsets)) * self.counts)

    def occurrence_probabilities(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability that each n-gram occurs; as in ``expected_counts``."""
        return self._sums(np.repeat(probabilities, np.diff(self.offsets)))

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
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
    table: NgramTable, lengths: NDArray[np.int32], translations: Sequence[Sequence[int]]
) -> Bags:
    """Count the n-grams of translations, numbered as in a split graph.

    Args:
        table, lengths: ``table`` and ``orders`` of the graph; other n-grams are ignored.
    """
    return Bags(*_make_bags(translations, table, np.ones(1, dtype=np.int64), False), lengths)


def _make_bags(
    translations: Sequence[Sequence[int]], table: NgramTable, count: NDArray[np.int64], grow: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    lengths = np.array([len(words) for words in translations], dtype=np.int64)
    flat = np.array([word for words in translations for word in words], dtype=np.int32)
    return (lengths, *_count(lengths, flat, table, count, grow))


@kernel
def _count(
    lengths: NDArray[np.int64],
    words: NDArray[np.int32],
    table: NgramTable,
    count: NDArray[np.int64],
    grow: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
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
