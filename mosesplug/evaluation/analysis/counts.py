"""Count items in sentences, and match the counts of a translation with those of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SentenceCounts", "count_items", "find_limits", "match_counts"]


class SentenceCounts(NamedTuple):
    """How often each item (a word or an n-gram) occurs in each sentence.

    Attributes:
        keys: int64 ``[m]``, ascending; the sentence times the number of items, plus the item.
        counts: int64 ``[m]``, above 0.
    """

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]


def count_items(
    sentences: NDArray[np.int64], items: NDArray[np.int64], n_items: int
) -> SentenceCounts:
    """Count the items of each sentence.

    Args:
        sentences: int64 ``[n]``; the sentence of each occurrence.
        items: int64 ``[n]``; the item of each occurrence, below ``n_items``.
        n_items: number of different items.
    """
    keys, counts = np.unique(sentences * n_items + items, return_counts=True)
    return SentenceCounts(keys, counts)


def find_limits(references: Sequence[SentenceCounts]) -> SentenceCounts:
    """Return the highest count of each item of a sentence in any one reference."""
    if len(references) == 1:
        return references[0]
    keys = np.concatenate([each.keys for each in references])
    counts = np.concatenate([each.counts for each in references])
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    if not len(distinct):
        return SentenceCounts(distinct, counts)
    return SentenceCounts(distinct, np.maximum.reduceat(counts[order], starts))


def match_counts(counts: SentenceCounts, limits: SentenceCounts) -> NDArray[np.int64]:
    """Return ``min(count, limit)`` for each key of ``counts``, int64; unknown keys have 0."""
    if not len(limits.keys):
        return np.zeros(len(counts.keys), dtype=np.int64)
    places = np.searchsorted(limits.keys, counts.keys)
    places[places == len(limits.keys)] = 0
    limit = np.where(limits.keys[places] == counts.keys, limits.counts[places], 0)
    return np.minimum(counts.counts, limit)
