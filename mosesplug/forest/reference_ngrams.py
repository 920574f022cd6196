"""The n-grams of a sentence's references as a tree, so that a search counts matches in steps.

A node of the tree is an n-gram; its children are longer by one word. A search that follows the
tree word by word never looks an n-gram up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BOUNDARIES", "BOUNDARY", "ORDER", "OTHER", "NgramTree", "ReferenceNgrams"]

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
class ReferenceNgrams:
    """The n-grams of one sentence's references, and the numbers of their words."""

    tree: NgramTree
    words: dict[bytes, int]

    @classmethod
    def of(cls, references: Sequence[Sequence[bytes]]) -> ReferenceNgrams:
        """Count the references of one sentence, given as words."""
        words = {word: 0 for reference in references for word in reference}
        words = {word: number for number, word in enumerate(words)}
        ngrams: dict[tuple[int, ...], int] = {(): 0}
        summed: Counter[int] = Counter()
        largest: Counter[int] = Counter()
        for reference in references:
            numbers = [words[word] for word in reference]
            counts = Counter(
                ngrams.setdefault(tuple(numbers[start : start + order]), len(ngrams))
                for order in range(1, ORDER + 1)
                for start in range(len(numbers) - order + 1)
            )
            summed += counts
            largest |= counts
        children = np.full((len(ngrams), len(words)), -1, dtype=np.int32)
        for ngram, place in ngrams.items():
            if ngram:
                children[ngrams[ngram[:-1]], ngram[-1]] = place
        tree = NgramTree(
            children,
            np.array([summed[place] for place in range(len(ngrams))], dtype=np.int32),
            np.array([largest[place] for place in range(len(ngrams))], dtype=np.int32),
            np.float32(min(map(len, references))),
        )
        return cls(tree, words)

    def number(self, word: bytes) -> int:
        """The number of a word: that of its column in the tree, ``OTHER`` or ``BOUNDARY``."""
        return BOUNDARY if word in BOUNDARIES else self.words.get(word, OTHER)
