"""Fold sums of sparse weights into phrase tables of one sentence.

Moses' server takes dense weights by request, and reads sparse weights only when it starts. Features
that depend on one phrase pair and the source sentence need no weights there: each entry of its
phrase table carries the sum of their weights, and their values are computed here, from the
segmentation of each hypothesis.

The sum must act where Moses applies the weights of its own functions: on the score of a hypothesis,
but neither on the table limit nor on estimates of future scores. (A text table is loaded before
``-weight-file`` is read, and ``WordTranslationFeature`` is evaluated after the options are scored.)
A score of the table would act on both. Therefore the sum is written as three digits, the factors 1
to 3 of an aligned target word. Three ``WordTranslationFeature`` with a vocabulary of digits, whose
weights never change, add it up again. The search is that of the decoder's own functions, hypothesis
by hypothesis.

For unknown words Moses evaluates its functions during the search, so that the weights of all but
``WordTranslationFeature`` and source contexts act on estimates, too. Each unknown word gets an
entry with one more score: the sum of these weights and the penalty of unknown words.

Source contexts differ from place to place: for them, each place of a sentence has entries of its
own. The position of a source word is its second factor, which only the phrase table reads.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np

from formats.moses.ini import FeatureLine
from formats.weights.encoding import encode
from mosesplug.arrays import Floats, Ints
from mosesplug.decoders.servers.folded_entries import FoldableEntry, format_entries, parse_entry
from mosesplug.templates.derivation import Phrase, PhrasePair, Words
from mosesplug.templates.functions import WordTranslationFeature
from mosesplug.templates.template import Counts, PhraseTemplate

_UNKNOWN = -100.0
"""Value of UnknownWordPenalty: Moses' logarithm of 0."""

_DIGIT = re.compile(rb"[0-9]")


@dataclass(frozen=True)
class UnknownWords:
    """Settings of the decoder for words that its phrase table lacks.

    Attributes:
        weight: the weight of UnknownWordPenalty.
        are_dropped: whether the decoder drops unknown words without digits.
    """

    weight: float
    are_dropped: bool


@dataclass(frozen=True)
class Folding:
    """Features that are computed here instead of by the decoder.

    Attributes:
        lines: feature functions of the decoder, as lines of its configuration.
        functions: how they are computed; each has one scope, ``phrase`` or ``source``.
        unknown: settings for unknown words.
    """

    lines: tuple[FeatureLine, ...]
    functions: tuple[PhraseTemplate, ...]
    unknown: UnknownWords

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, as ``WT`` of the features ``WT_...``."""
        return tuple(line.name for line in self.lines)

    @property
    def local(self) -> tuple[PhraseTemplate, ...]:
        """The functions of scope ``phrase``."""
        return tuple(template for template in self.functions if template.scope == "phrase")

    @property
    def contextual(self) -> tuple[PhraseTemplate, ...]:
        """The functions of scope ``source``."""
        return tuple(template for template in self.functions if template.scope == "source")

    @property
    def scale(self) -> float:
        """Weight of the additional score; so large that the penalty of unknown words fits."""
        return math.ldexp(1.0, max(1, math.ceil(math.log2(max(1.0, 2 * abs(self.unknown.weight))))))

    def folds(self, feature: str) -> bool:
        """Return whether a sparse feature is computed here."""
        name, underscore, _ = feature.partition("_")
        return bool(underscore) and name in self.names


@dataclass(frozen=True)
class _Features:
    """Sparse features of entries; entry i has ``[bounds[i]:bounds[i + 1]]``."""

    bounds: Ints
    ids: Ints
    values: Floats

    @classmethod
    def of(cls, rows: Sequence[Mapping[int, float]]) -> _Features:
        bounds = np.cumsum([0, *map(len, rows)])
        ids = np.array([name for row in rows for name in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        return cls(bounds, ids, values)

    def row(self, number: int) -> Iterable[tuple[int, float]]:
        part = slice(self.bounds[number], self.bounds[number + 1])
        return zip(self.ids[part].tolist(), self.values[part].tolist(), strict=True)


@dataclass(frozen=True, eq=False)
class FoldedPhrase:
    """The entries of a source phrase and their features, except for contexts.

    Attributes:
        entries: in the order of the table.
        late: features whose weights act on the score of a hypothesis only.
        early: features whose weights also act on estimates.
        penalty: added to the early sum of each entry.
        rows: numbers of the entries by target phrase.
    """

    entries: tuple[FoldableEntry, ...]
    late: _Features
    early: _Features
    penalty: float = 0.0
    rows: Mapping[bytes, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class FoldedPlace:
    """The entries for a place of a sentence.

    Attributes:
        start: position of the first source word.
        source: the source phrase in the table.
        phrase: the entries.
    """

    start: int
    source: bytes
    phrase: FoldedPhrase


class PhraseFolder:
    """Fold entries; features are numbered as they appear. Several threads may use it."""

    def __init__(self, folding: Folding) -> None:
        """Begin with no features."""
        self._folding = folding
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._labels: list[bytes] = []
        self._lock = threading.Lock()

    def fold(self, lines: bytes) -> FoldedPhrase:
        """Parse the entries of a source phrase.

        Args:
            lines: whole lines of the phrase table, as ``FoldableEntryCheck`` admits them.
        """
        entries = tuple(parse_entry(line) for line in lines.split(b"\n") if line)
        late = [self._count(entry.pair, self._folding.local) for entry in entries]
        return self._collect(entries, late, [{} for _ in entries])

    def fold_unknown(self, word: bytes, n_scores: int) -> FoldedPhrase:
        """Return the entry for an unknown word.

        Args:
            word: the word.
            n_scores: number of scores of the phrase table.
        """
        functions, unknown = self._folding.local, self._folding.unknown
        is_dropped = unknown.are_dropped and not _DIGIT.search(word)
        target = b"" if is_dropped else word
        scores = b" ".join([b"1"] * n_scores)
        alignment = b"" if is_dropped else b"0-0"
        line = b" ||| ".join((word, target, scores, alignment))
        entry = parse_entry(line)
        late = [t for t in functions if isinstance(t, WordTranslationFeature)]
        early = [t for t in functions if t not in late]
        return self._collect(
            (entry,),
            [self._count(entry.pair, late)],
            [self._count(entry.pair, early)],
            _UNKNOWN * unknown.weight,
        )

    def write(
        self, places: Sequence[FoldedPlace], source: Words, weights: Mapping[str, float]
    ) -> bytes:
        """Return the entries of a sentence with the sums of their weights.

        Args:
            source: the sentence.
            weights: weights of features by name; others are 0.

        Raises:
            DecoderError: a sum is too large.
        """
        phrases = [place.phrase for place in places]
        entries = [entry for phrase in phrases for entry in phrase.entries]
        late = self._sum([phrase.late for phrase in phrases], weights)
        late += self._sum_contexts(places, source, weights)
        early = self._sum([phrase.early for phrase in phrases], weights)
        early += np.repeat([p.penalty for p in phrases], [len(p.entries) for p in phrases])
        sources = [place.source for place in places for _ in place.phrase.entries]
        return format_entries(sources, entries, late, early / self._folding.scale)

    def count(
        self, start: int, phrase: FoldedPhrase, row: int, source: Words
    ) -> tuple[tuple[int, float], ...]:
        """Return the features of an entry: numbers and values.

        Args:
            start: position of its first source word.
            phrase: has the entry.
            row: its number there.
            source: the sentence.
        """
        at = Phrase(start, phrase.entries[row].pair)
        contexts = self._number_all(
            template.count_phrase(at, source) for template in self._folding.contextual
        )
        return (*phrase.early.row(row), *phrase.late.row(row), *contexts.items())

    def format_features(self, counts: Iterable[Iterable[tuple[int, float]]]) -> bytes:
        """Return the features of a hypothesis as they stand in an n-best list.

        Args:
            counts: from ``count``, of its entries in target order.
        """
        totals: dict[int, float] = {}
        for features in counts:
            for number, value in features:
                totals[number] = totals.get(number, 0.0) + value
        return b"".join(b" %b= %g" % (self._labels[n], value) for n, value in totals.items())

    @property
    def names(self) -> Sequence[str]:
        """The features of the entries so far, except for contexts."""
        return self._names

    def list_contexts(self, places: Iterable[FoldedPlace], source: Words) -> set[str]:
        """Return the features with source contexts that a sentence can have."""
        return {
            name
            for place in places
            for entry in place.phrase.entries
            for template in self._folding.contextual
            for name in template.count_phrase(Phrase(place.start, entry.pair), source)
        }

    def _count(self, pair: PhrasePair, templates: Iterable[PhraseTemplate]) -> dict[int, float]:
        return self._number_all(template.count_pair(pair) for template in templates)

    def _number_all(self, counts: Iterable[Counts]) -> dict[int, float]:
        return {self._number(name): value for own in counts for name, value in own.items()}

    def _number(self, name: str) -> int:
        if (number := self._numbers.get(name)) is not None:
            return number
        with self._lock:
            if name not in self._numbers:
                self._names.append(name)
                self._labels.append(encode(name))
                self._numbers[name] = len(self._names) - 1
            return self._numbers[name]

    def _collect(
        self,
        entries: tuple[FoldableEntry, ...],
        late: Sequence[Mapping[int, float]],
        early: Sequence[Mapping[int, float]],
        penalty: float = 0.0,
    ) -> FoldedPhrase:
        rows: dict[bytes, list[int]] = {}
        for row, entry in enumerate(entries):
            rows.setdefault(encode(" ".join(entry.pair.target)), []).append(row)
        return FoldedPhrase(entries, _Features.of(late), _Features.of(early), penalty, rows)

    def _sum(self, parts: Sequence[_Features], weights: Mapping[str, float]) -> Floats:
        """Return the sum of weights times values of each entry."""
        lengths = [np.diff(part.bounds) for part in parts]
        counts = np.concatenate(lengths) if lengths else np.empty(0, dtype=np.int64)
        ids = np.concatenate([part.ids for part in parts]) if parts else counts
        if not len(ids) or not weights:
            return np.zeros(len(counts))
        distinct, places = np.unique(ids, return_inverse=True)
        own = np.array([weights.get(self._names[n], 0.0) for n in distinct.tolist()])
        products = own[places] * np.concatenate([part.values for part in parts])
        rows = np.repeat(np.arange(len(counts)), counts)
        return np.bincount(rows, weights=products, minlength=len(counts)).astype(np.float64)

    def _sum_contexts(
        self, places: Sequence[FoldedPlace], source: Words, weights: Mapping[str, float]
    ) -> Floats:
        """Return the sum of the weights of contexts of each entry."""
        sums = np.zeros(sum(len(place.phrase.entries) for place in places))
        if not weights:
            return sums
        entries = [
            Phrase(place.start, entry.pair) for place in places for entry in place.phrase.entries
        ]
        for template in self._folding.contextual:
            # Most parts are in several entries, and names are not kept: each sentence has others.
            add_up = cache(partial(template.sum_weights, source=source, weights=weights))
            sums += [sum(map(add_up, template.split_phrase(phrase))) for phrase in entries]
        return sums
