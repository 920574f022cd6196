"""The n-grams of a sentence's references as a tree.

A node of the tree is an n-gram; its children are longer by one word. A search follows the tree
word by word to count matches and needs no n-gram lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Ints, Ints32
from mosesplug.kernels import kernel

ORDER = 4
"""Length of the longest n-grams of BLEU."""

BOUNDARIES = (b"<s>", b"</s>")
"""Words of search graphs that are not part of a translation."""

OTHER, BOUNDARY = -2, -3
"""Numbers of words that are in no reference, and of ``BOUNDARIES``."""


class NgramTree(NamedTuple):
    """The tree of n-grams, for kernels.

    Attributes:
        children: int32 ``[n_ngrams, n_words]``; the n-gram extended by a word, -1 if it is in no
            reference. Row 0 is the empty n-gram.
        total_counts: int32 ``[n_ngrams]``; total count in all references.
        largest: int32 ``[n_ngrams]``; maximum count in one reference.
        length: length of the shortest reference in words.
    """

    children: Ints32
    total_counts: Ints32
    largest: Ints32
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
        """Return the number of a word: its column in the tree, ``OTHER`` or ``BOUNDARY``."""
        return BOUNDARY if word in BOUNDARIES else self.words.get(word, OTHER)


@kernel
def _double_length(array: Ints32) -> Ints32:
    """Return the array with as many zeros appended."""
    larger = np.zeros(2 * len(array), dtype=np.int32)
    for place in range(len(array)):
        larger[place] = array[place]
    return larger


@kernel
def ngram_tree(
    words: Ints32, offsets: Ints, order: int, n_words: int
) -> tuple[Ints32, Ints32, Ints32]:
    """Build the tree of the n-grams of texts.

    Args:
        words: int32; word numbers from 0. Text ``i`` is ``words[offsets[i]:offsets[i + 1]]``.
        offsets: int64 ``[n_texts + 1]``.

    Returns:
        As in ``NgramTree``: children, int32 ``[n_ngrams, n_words]``; total counts in all texts and
        maximum counts in one text, int32 ``[n_ngrams]``.
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
                more = np.full((2 * len(summed), n_words), -1, dtype=np.int32)
                for row in range(size):
                    for word in range(n_words):
                        more[row, word] = children[row, word]
                children = more
                summed, largest = _double_length(summed), _double_length(largest)
                counts = _double_length(counts)
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
