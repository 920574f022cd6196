"""The templates that can be declared.

Names and counts are those of Moses' feature functions of the same names (``moses/FF``, February
2025), so that a template and a decoder with that function give the same lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from mosesplug.options import Opt
from mosesplug.templates.derivation import Phrase, PhrasePair, Words
from mosesplug.templates.template import (
    BOS,
    EOS,
    Need,
    NgramTemplate,
    PhraseContext,
    PhraseTemplate,
    Scope,
    Vocabulary,
)

__all__ = [
    "OTHER",
    "PhraseLengthFeature",
    "PhrasePairFeature",
    "ShapeFeature",
    "SourceWordDeletionFeature",
    "TargetBigramFeature",
    "TargetNgramFeature",
    "TargetWordInsertionFeature",
    "WordTranslationFeature",
]

OTHER = "OTHER"
"""Stands for words outside a vocabulary."""

_PUNCTUATION = frozenset("\"'!?¿·()#_,.:;•&@‑/\\0123456789~=".encode())
"""First bytes of words that ``ignore-punctuation`` ignores; Moses compares bytes, too."""


@dataclass(frozen=True)
class WordTranslationFeature(PhraseTemplate):
    """Aligned words: ``WT_haus~house``.

    With contexts, ``WT_das,haus~house`` and ``WT_haus~the,house``. Source contexts are all other
    words of the source sentence, on their side of the comma, and ``<s>`` for the first word. Target
    contexts are all earlier words of the hypothesis, or ``<s>`` for the first one; Moses declares
    them, but refuses to compute them. The bundled decoder computes them with a ``window``. With
    vocabularies, other words are ``OTHER``, and contexts are words of the vocabulary only.
    """

    simple: Annotated[bool, Opt("Features without contexts")] = True
    source_context: Annotated[bool, Opt("Features with a source word as context")] = False
    target_context: Annotated[bool, Opt("Features with an earlier target word as context")] = False
    ignore_punctuation: Annotated[
        bool, Opt("Ignore words that begin with punctuation or digits")
    ] = False
    window: Annotated[int, Opt("Largest distance of contexts; 0: any", minimum=0)] = 0
    source_words: Annotated[
        Vocabulary, Opt("Source words to distinguish; others: OTHER", name="source-path")
    ] = None
    target_words: Annotated[
        Vocabulary, Opt("Target words to distinguish; others: OTHER", name="target-path")
    ] = None

    @property
    def scope(self) -> Scope:
        if self.target_context:
            return "target"
        return "source" if self.source_context else "phrase"

    @property
    def reach(self) -> int | None:
        return (self.window or None) if self.target_context else 0

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("alignment",))

    @property
    def source_vocabulary(self) -> Vocabulary:
        return self.source_words

    @property
    def target_vocabulary(self) -> Vocabulary:
        return self.target_words

    def split_scopes(self) -> tuple[PhraseTemplate, ...]:
        if not self.target_context or not (self.simple or self.source_context):
            return _split_contexts(self)
        return (
            *_split_contexts(replace(self, target_context=False)),
            replace(self, simple=False, source_context=False),
        )

    def split_phrase(self, phrase: Phrase) -> Iterator[Phrase]:
        """Yield the aligned words."""
        for i, j in phrase.pair.alignment:
            words = PhrasePair((phrase.pair.source[i],), (phrase.pair.target[j],), ((0, 0),))
            yield Phrase(phrase.start + i, words)

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        for i, j in phrase.pair.alignment:
            source, target = phrase.pair.source[i], phrase.pair.target[j]
            if self._is_ignored(source) or self._is_ignored(target):
                continue
            source = _restrict(source, self.source_words)
            target = _restrict(target, self.target_words)
            if self.simple:
                yield f"{source}~{target}"
            if self.source_context:
                at = phrase.start + i
                if at == 0:
                    yield f"{BOS},{source}~{target}"
                for k in self._near(at, 0, len(context.source)):
                    trigger = context.source[k]
                    if self._triggers(trigger, self.source_words):
                        pair = f"{trigger},{source}" if k < at else f"{source},{trigger}"
                        yield f"{pair}~{target}"
            if self.target_context:
                at = context.begin + j
                if at == 0:
                    yield f"{source}~{BOS},{target}"
                for k in self._near(at, 0, at):
                    trigger = context.target[k]
                    if self._triggers(trigger, self.target_words):
                        yield f"{source}~{trigger},{target}"

    def _near(self, at: int, first: int, last: int) -> Iterator[int]:
        """Yield the positions of contexts of a word."""
        if self.window:
            first, last = max(first, at - self.window), min(last, at + self.window + 1)
        return (k for k in range(first, last) if k != at)

    def _is_ignored(self, word: str) -> bool:
        return self.ignore_punctuation and _begins_with_punctuation(word)

    def _triggers(self, word: str, vocabulary: Vocabulary) -> bool:
        return not self._is_ignored(word) and (vocabulary is None or word in vocabulary)


@dataclass(frozen=True)
class TargetWordInsertionFeature(PhraseTemplate):
    """Target words without alignment: ``TWI_of``.

    It is ``TWI_OTHER`` outside the vocabulary.
    """

    words: Annotated[Vocabulary, Opt("Words to distinguish; others: OTHER", name="path")] = None

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("alignment",))

    @property
    def target_vocabulary(self) -> Vocabulary:
        return self.words

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        aligned = {j for _, j in phrase.pair.alignment}
        return _unaligned(phrase.pair, phrase.pair.target, aligned, self.words)


@dataclass(frozen=True)
class SourceWordDeletionFeature(PhraseTemplate):
    """Source words without alignment: ``SWD_es``.

    It is ``SWD_OTHER`` outside the vocabulary.
    """

    words: Annotated[Vocabulary, Opt("Words to distinguish; others: OTHER", name="path")] = None

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("alignment",))

    @property
    def source_vocabulary(self) -> Vocabulary:
        return self.words

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        aligned = {i for i, _ in phrase.pair.alignment}
        return _unaligned(phrase.pair, phrase.pair.source, aligned, self.words)


@dataclass(frozen=True)
class PhrasePairFeature(PhraseTemplate):
    """Phrase pairs: ``PP_das~haus~~the~house``.

    With contexts, ``PP_alte~das~haus~~the~house``. Contexts are all words of the source sentence,
    the phrase's own included, or those of the vocabulary. A tilde in a phrase is ``<TILDE>``.
    """

    simple: Annotated[bool, Opt("Features without contexts")] = True
    source_context: Annotated[bool, Opt("Features with a source word as context")] = False
    ignore_punctuation: Annotated[
        bool, Opt("Ignore contexts that begin with punctuation or digits")
    ] = False
    words: Annotated[Vocabulary, Opt("Words that are contexts", name="path")] = None

    @property
    def scope(self) -> Scope:
        return "source" if self.source_context else "phrase"

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("segmentation",))

    @property
    def source_vocabulary(self) -> Vocabulary:
        return self.words

    def split_scopes(self) -> tuple[PhraseTemplate, ...]:
        return _split_contexts(self)

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        pair = f"{_join(phrase.pair.source)}~~{_join(phrase.pair.target)}"
        if self.simple:
            yield pair
        if self.source_context:
            for word in context.source:
                is_ignored = self.ignore_punctuation and _begins_with_punctuation(word)
                if not is_ignored and (self.words is None or word in self.words):
                    yield f"{word}~{pair}"


@dataclass(frozen=True)
class PhraseLengthFeature(PhraseTemplate):
    """Numbers of words of phrases: ``PL_s2``, ``PL_t1``, ``PL_2,1``."""

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("segmentation",))

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        source, target = len(phrase.pair.source), len(phrase.pair.target)
        yield from (f"s{source}", f"t{target}", f"{source},{target}")


@dataclass(frozen=True)
class ShapeFeature(PhraseTemplate):
    """Shapes of phrase pairs; Moses has no such function.

    Of its words, ``SH_A9~~a9``: a word is ``9`` if it has a digit, ``.`` without letters,
    ``A`` with an upper-case first letter, else ``a``; equal neighbors are written once. (Chiang et
    al. 2008 bin rules in this way by terminals and nonterminals.) Of its alignment,
    ``SH_2,1:0-0,1-0``: numbers of words and aligned positions, as in an alignment template
    (Och & Ney 2004).
    """

    of_words: Annotated[bool, Opt("Kinds of the words", name="words")] = True
    of_alignment: Annotated[bool, Opt("Lengths and alignment points", name="alignment")] = False

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset(("segmentation", "alignment") if self.of_alignment else ("segmentation",))

    def features(self, phrase: Phrase, context: PhraseContext) -> Iterator[str]:
        source, target, alignment = phrase.pair.source, phrase.pair.target, phrase.pair.alignment
        if self.of_words:
            yield f"{_shape(source)}~~{_shape(target)}"
        if self.of_alignment:
            points = ",".join(f"{i}-{j}" for i, j in alignment)
            yield f"{len(source)},{len(target)}:{points}"


@dataclass(frozen=True)
class TargetBigramFeature(NgramTemplate):
    """Pairs of target words: ``TB_<s>:the``, ``TB_the:house``, ``TB_house:</s>``.

    With a vocabulary, pairs with other words are no features.
    """

    words: Annotated[Vocabulary, Opt("Words of the bigrams", name="path")] = None

    @property
    def order(self) -> int:
        return 2

    @property
    def target_vocabulary(self) -> Vocabulary:
        return self.words

    def features(self, window: Words) -> Iterator[str]:
        return _join_known(window, self.words)


@dataclass(frozen=True)
class TargetNgramFeature(NgramTemplate):
    """n-grams of target words: ``TN_the``, ``TN_<s>:the``, ``TN_old:house:</s>``.

    With a vocabulary, n-grams with other words are no features. An n-gram with ``</s>`` that would
    begin before the first word is ``</s>`` alone, as Moses has it. From n = 4 on, Moses forgets
    n-grams at the beginning of a sentence whose first phrase is shorter than n - 2 words; the
    template has all of them.
    """

    n: Annotated[int, Opt("Length of the n-grams", minimum=1)] = 3
    lower_ngrams: Annotated[bool, Opt("Shorter n-grams, too")] = True
    words: Annotated[Vocabulary, Opt("Words of the n-grams", name="file")] = None

    @property
    def order(self) -> int:
        return self.n

    @property
    def target_vocabulary(self) -> Vocabulary:
        return self.words

    def features(self, window: Words) -> Iterator[str]:
        for n in range(1 if self.lower_ngrams else self.n, self.n + 1):
            if window[-1] == EOS and n > 1:
                before = window[:-1][-(n - 1) :]
                is_whole = len(before) == n - 1 and before[0] != BOS
                yield from _join_known((*before, EOS) if is_whole else (EOS,), self.words)
            elif len(window) >= n and window[-1] != EOS:
                yield from _join_known(window[-n:], self.words)


def _split_contexts(
    template: WordTranslationFeature | PhrasePairFeature,
) -> tuple[PhraseTemplate, ...]:
    """Return the template without contexts, and that of the contexts alone."""
    if template.scope != "source" or not template.simple:
        return (template,)
    return (replace(template, source_context=False), replace(template, simple=False))


def _join_known(words: Words, vocabulary: Vocabulary) -> Iterator[str]:
    if vocabulary is None or all(word in (BOS, EOS) or word in vocabulary for word in words):
        yield ":".join(words)


def _restrict(word: str, vocabulary: Vocabulary) -> str:
    return word if vocabulary is None or word in vocabulary else OTHER


def _begins_with_punctuation(word: str) -> bool:
    return word.encode("utf-8", "surrogateescape")[0] in _PUNCTUATION


def _unaligned(
    pair: PhrasePair, words: Words, aligned: set[int], vocabulary: Vocabulary
) -> Iterator[str]:
    """Yield words without alignment; none of an unknown word, which has no points."""
    if len(pair.source) == len(pair.target) == 1 and not pair.alignment:
        return
    for position, word in enumerate(words):
        if position not in aligned and word not in (BOS, EOS):
            yield _restrict(word, vocabulary)


def _join(words: Words) -> str:
    return "~".join(word.replace("~", "<TILDE>") for word in words)


def _shape(words: Words) -> str:
    shape = ""
    for word in words:
        if any(character.isdigit() for character in word):
            kind = "9"
        elif not any(character.isalpha() for character in word):
            kind = "."
        else:
            kind = "A" if word[0].isupper() else "a"
        if not shape.endswith(kind):
            shape += kind
    return shape
