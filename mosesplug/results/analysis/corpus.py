"""Texts as word numbers of one vocabulary, and counts of their items.

Texts are references and translations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class NumberedText:
    """The words of all sentences of a text.

    Attributes:
        words: int64 ``[n_words]``; numbers in a vocabulary.
        offsets: int64 ``[n_sentences + 1]``; the words of sentence ``i`` are
            ``words[offsets[i]:offsets[i + 1]]``.
    """

    words: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each sentence, int64 ``[n_sentences]``."""
        return np.diff(self.offsets)

    @cached_property
    def sentences(self) -> NDArray[np.int64]:
        """The sentence of each word, int64 ``[n_words]``."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)


@dataclass(frozen=True)
class NumberedCorpus:
    """References and systems of the same sentences.

    Attributes:
        vocabulary: the distinct words, in order of appearance.
        systems: the translations of each run of each system, by name, the baseline first.
    """

    vocabulary: tuple[bytes, ...]
    references: tuple[NumberedText, ...]
    systems: Mapping[str, tuple[NumberedText, ...]]

    @classmethod
    def of_lines(
        cls,
        references: Sequence[Sequence[bytes]],
        systems: Mapping[str, Sequence[Sequence[bytes]]],
    ) -> NumberedCorpus:
        """Number the words of ``references[k][line]`` and ``systems[name][run][line]``.

        Only blanks (byte 32) separate words, as in the metrics.
        """
        numbers: dict[bytes, int] = {}
        known = tuple(_encode(lines, numbers) for lines in references)
        runs = {name: tuple(_encode(run, numbers) for run in systems[name]) for name in systems}
        return cls(tuple(numbers), known, runs)

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.references[0].offsets) - 1


def _encode(lines: Sequence[bytes], numbers: dict[bytes, int]) -> NumberedText:
    """Number the words of a text; new words are added to ``numbers``."""
    words: list[int] = []
    offsets = np.zeros(len(lines) + 1, dtype=np.int64)
    for place, line in enumerate(lines, start=1):
        words += [numbers.setdefault(word, len(numbers)) for word in line.split(b" ") if word]
        offsets[place] = len(words)
    return NumberedText(np.array(words, dtype=np.int64), offsets)


class SentenceCounts(NamedTuple):
    """Counts of each item (a word or an n-gram) in each sentence.

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
    """
    keys, counts = np.unique(sentences * n_items + items, return_counts=True)
    return SentenceCounts(keys, counts)


def find_limits(references: Sequence[SentenceCounts]) -> SentenceCounts:
    """Return the highest count of each item of a sentence in any one reference."""
    if len(references) == 1:
        return references[0]
    keys = np.concatenate([reference.keys for reference in references])
    counts = np.concatenate([counted.counts for counted in references])
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    if not len(distinct):
        return SentenceCounts(distinct, counts)
    return SentenceCounts(distinct, np.maximum.reduceat(counts[order], starts))


def match_counts(counts: SentenceCounts, limits: SentenceCounts) -> NDArray[np.int64]:
    """Return ``min(count, limit)`` for each key of ``counts``, int64; 0 if unknown."""
    if not len(limits.keys):
        return np.zeros(len(counts.keys), dtype=np.int64)
    places = np.searchsorted(limits.keys, counts.keys)
    places[places == len(limits.keys)] = 0
    limit = np.where(limits.keys[places] == counts.keys, limits.counts[places], 0)
    return np.minimum(counts.counts, limit)
