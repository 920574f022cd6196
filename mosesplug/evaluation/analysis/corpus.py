"""References and translations as word numbers of one vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumberedCorpus", "NumberedText"]


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
        references: the references.
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
