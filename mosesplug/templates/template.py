"""Kinds of templates: pure functions from a derivation to counts of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair, Words

__all__ = [
    "BOS",
    "EOS",
    "Counts",
    "Need",
    "NgramTemplate",
    "PhraseContext",
    "PhraseTemplate",
    "Scope",
    "Template",
    "Vocabulary",
]

Scope = Literal["phrase", "source", "target"]
"""What features depend on.

``phrase``: one phrase pair; ``source``: also the source sentence; ``target``: also target words
outside the phrase.
"""

Need = Literal["segmentation", "alignment"]
"""What n-best lists must contain besides texts."""

Counts = dict[str, float]
"""Values of features by name; those that are not 0."""

Vocabulary = frozenset[str] | None
"""The words that have features of their own; None for all words."""

BOS, EOS = "<s>", "</s>"


class PhraseContext(NamedTuple):
    """The sentences that a phrase is part of, and its position.

    Attributes:
        source, target: the words of the source sentence and of the hypothesis.
        begin: position of the first target word of the phrase.
    """

    source: Words
    target: Words
    begin: int


@dataclass(frozen=True)
class Template:
    """A template with its settings.

    Attributes:
        name: the beginning of the names of its features, without the underscore.
    """

    name: str

    @property
    def scope(self) -> Scope:
        """What its features depend on; tables can hold sums of all but ``target``."""
        return "target"

    @property
    def needs(self) -> frozenset[Need]:
        """What n-best lists must contain besides texts."""
        return frozenset()

    @property
    def source_vocabulary(self) -> Vocabulary:
        """The source words that have features of their own."""
        return None

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The target words that have features of their own."""
        return None

    @property
    def reach(self) -> int | None:
        """How many earlier target words features of a phrase depend on; None: all."""
        return 0

    def split_scopes(self) -> tuple[Template, ...]:
        """Return templates of one scope each that together have its features."""
        return (self,)

    def count(self, derivation: AlignedDerivation) -> Counts:
        """Return the features of a derivation."""
        raise NotImplementedError

    def count_extension(self, history: Words, pair: PhrasePair, *, is_final: bool) -> Counts:
        """Return the features that a phrase pair adds to a hypothesis.

        Args:
            history: the last words of the hypothesis, at least as many as ``reach``, or ``<s>`` and
                all of its words.
            is_final: whether the sentence ends after the pair.
        """
        raise NotImplementedError

    def _collect(self, features: Iterable[str]) -> Counts:
        counts = Counter(features)
        return {f"{self.name}_{feature}": float(n) for feature, n in counts.items()}


@dataclass(frozen=True)
class PhraseTemplate(Template):
    """A template whose features belong to phrases."""

    @property
    def scope(self) -> Scope:
        return "phrase"

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        """Yield the features of a phrase without prefix, one as often as it occurs."""
        raise NotImplementedError

    def split_scopes(self) -> tuple[PhraseTemplate, ...]:
        return (self,)

    def split_phrase(self, phrase: Phrase) -> Iterator[Phrase]:
        """Yield the smallest phrases whose features add up to those of a phrase."""
        yield phrase

    def count(self, derivation: AlignedDerivation) -> Counts:
        target, begin = derivation.target, 0
        features: list[str] = []
        for phrase in derivation.phrases:
            features += self.features(phrase, PhraseContext(derivation.source, target, begin))
            begin += len(phrase.pair.target)
        return self._collect(features)

    def count_extension(self, history: Words, pair: PhrasePair, *, is_final: bool) -> Counts:
        before = history[1:] if history[:1] == (BOS,) else history
        context = PhraseContext((), before + pair.target, len(before))
        return self._collect(self.features(Phrase(0, pair), context))

    def count_pair(self, pair: PhrasePair) -> Counts:
        """Return the features of a phrase pair, wherever it is.

        Raises:
            ValueError: they depend on what surrounds it.
        """
        if self.scope != "phrase":
            raise ValueError(f"features of {self.name} depend on what surrounds a phrase")
        return self.count_phrase(Phrase(0, pair), pair.source)

    def count_phrase(self, phrase: Phrase, source: Words) -> Counts:
        """Return the features of one phrase pair in a source sentence.

        Raises:
            ValueError: they depend on other target words.
        """
        return self._collect(self._features_in(phrase, source))

    def sum_weights(self, phrase: Phrase, source: Words, weights: Mapping[str, float]) -> float:
        """Return the sum of weights times values of the features of ``count_phrase``.

        Args:
            weights: by name; others are 0.

        Raises:
            ValueError: as ``count_phrase``.
        """
        names = (f"{self.name}_{feature}" for feature in self._features_in(phrase, source))
        return sum(weights.get(name, 0.0) for name in names)

    def _features_in(self, phrase: Phrase, source: Words) -> Iterator[str]:
        if self.scope == "target":
            raise ValueError(f"features of {self.name} depend on other target words")
        return self.features(phrase, PhraseContext(source, phrase.pair.target, 0))


@dataclass(frozen=True)
class NgramTemplate(Template):
    """A template whose features are n-grams of the hypothesis."""

    @property
    def order(self) -> int:
        """The length of the longest n-gram."""
        raise NotImplementedError

    @property
    def reach(self) -> int:
        return self.order - 1

    def features(self, window: Words) -> Iterator[str]:
        """Yield the n-grams that end with a window, without prefix.

        Args:
            window: as many words as the order has, or all up to the last one, which is ``</s>``
                behind the hypothesis; ``<s>`` is before its first word.
        """
        raise NotImplementedError

    def count(self, derivation: AlignedDerivation) -> Counts:
        return self.count_extension((BOS,), PhrasePair((), derivation.target), is_final=True)

    def count_extension(self, history: Words, pair: PhrasePair, *, is_final: bool) -> Counts:
        words = history + pair.target + (EOS,) * is_final
        return self._collect(
            feature
            for end in range(len(history) + 1, len(words) + 1)
            for feature in self.features(words[max(0, end - self.order) : end])
        )

    def count_window(self, window: Words) -> Counts:
        """Return the features of a window, as ``features`` takes it."""
        return self._collect(self.features(window))
