"""The n-grams of a sentence's references as a tree, so that a search counts matches in steps.

A node of the tree is an n-gram; its children are longer by one word. A search that follows the
tree word by word never looks an n-gram up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = [
    "BOUNDARIES",
    "BOUNDARY",
    "ORDER",
    "OTHER",
    "NgramTree",
    "ReferenceNgramTree",
    "ngram_tree",
]

ORDER = 4
"""Longest n-grams of BLEU."""

BOUNDARIES = (b"<s>", b"</s>")
"""Words of search graphs that are no part of a translation."""

OTHER, BOUNDARY = -2, -3
"""Numbers of words that no reference has, and of ``BOUNDARIES``."""


class NgramTree(NamedTuple):
    """The n-grams, for kernels.

    Attributes:
        children: int32 ``[n_ngrams, n_words]``; the n-gram that a word makes of another, -1 if no
            reference has it. Row 0 is the empty one.
        summed: int32 ``[n_ngrams]``; occurrences in all references.
        largest: int32 ``[n_ngrams]``; occurrences in the reference that has most.
        length: words of the shortest reference.
    """

    children: NDArray[np.int32]
    summed: NDArray[np.int32]
    largest: NDArray[np.int32]
    length: np.float32


@dataclass(frozen=True)
class ReferenceNgramTree:
    """The n-grams of one sentence's references, and the numbers of their words."""

    tree: NgramTree
    words: dict[bytes, int]

    @classmethod
    def of(cls, references: Sequence[Sequence[bytes]]) -> ReferenceNgramTree:
        """Count the references of one sentence, given as words."""
        words: dict[bytes, int] = {}
        numbers = [
            words.setdefault(word, len(words)) for reference in references for word in reference
        ]
        sizes = [len(reference) for reference in references]
        children, summed, largest = ngram_tree(
            np.array(numbers, dtype=np.int32),
            np.cumsum([0, *sizes], dtype=np.int64),
            ORDER,
            len(words),
        )
        return cls(NgramTree(children, summed, largest, np.float32(min(sizes))), words)

    def number(self, word: bytes) -> int:
        """The number of a word: that of its column in the tree, ``OTHER`` or ``BOUNDARY``."""
        return BOUNDARY if word in BOUNDARIES else self.words.get(word, OTHER)


@kernel
def ngram_tree(
    words: NDArray[np.int32], offsets: NDArray[np.int64], order: int, n_words: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the n-grams of some texts as a tree.

    Args:
        words: int32; those of text ``i`` are ``words[offsets[i]:offsets[i + 1]]``, each a number
            from 0.
        offsets: int64 ``[n_texts + 1]``.
        order: words of the longest n-grams.
        n_words: numbers of words are below it.

    Returns:
        As in ``NgramTree``: children, int32 ``[n_ngrams, n_words]``; occurrences in all texts and
        in the text that has most, int32 ``[n_ngrams]``.
    """
    room = len(words) + order
    children = np.full((room, n_words), -1, dtype=np.int32)
    summed, largest = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
    counts = np.zeros(room, dtype=np.int32)
    size = 1
    for text in range(len(offsets) - 1):
        counts[:size] = 0
        for start in range(offsets[text], offsets[text + 1]):
            if size + order > len(summed):
                more = len(summed)
                children = np.concatenate((children, np.full((more, n_words), -1, np.int32)))
                summed = np.concatenate((summed, np.zeros(more, dtype=np.int32)))
                largest = np.concatenate((largest, np.zeros(more, dtype=np.int32)))
                counts = np.concatenate((counts, np.zeros(more, dtype=np.int32)))
            ngram = 0
            for place in range(start, min(start + order, offsets[text + 1])):
                word = words[place]
                if children[ngram, word] < 0:
                    children[ngram, word] = size
                    size += 1
                ngram = children[ngram, word]
                counts[ngram] += 1
                summed[ngram] += 1
                largest[ngram] = max(largest[ngram], counts[ngram])
    return children[:size].copy(), summed[:size].copy(), largest[:size].copy()
