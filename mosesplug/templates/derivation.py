"""How a hypothesis was translated: aligned phrase pairs in target order."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AlignedDerivation", "Phrase", "PhrasePair", "Words"]

Words = tuple[str, ...]


@dataclass(frozen=True)
class PhrasePair:
    """A source phrase, its translation, and the alignment of their words.

    Attributes:
        source: the source words; at least one.
        target: the target words; none if the phrase is deleted.
        alignment: (source position, target position) inside the phrase, ascending and distinct.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Phrase:
    """A phrase pair at a place of the source sentence.

    Attributes:
        start: position of its first source word, from 0.
    """

    start: int
    pair: PhrasePair


@dataclass(frozen=True)
class AlignedDerivation:
    """The phrases of a hypothesis in target order, which cover the source sentence.

    A hypothesis without segmentation has one phrase, the sentence.
    """

    source: tuple[str, ...]
    phrases: tuple[Phrase, ...]

    @property
    def target(self) -> tuple[str, ...]:
        """The words of the hypothesis."""
        return tuple(word for phrase in self.phrases for word in phrase.pair.target)
