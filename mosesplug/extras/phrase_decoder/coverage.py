"""Coverage of source words: its extensions, and estimates for uncovered words.

A coverage is a pair: the first word not yet translated (the gap), and a bit for each word after
it. The distortion limit keeps those bits few, however long the sentence is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats, Ints
from mosesplug.errors import DataError
from mosesplug.extras.phrase_decoder.model import Model
from mosesplug.templates.derivation import Phrase, PhrasePair, Words
from mosesplug.templates.reading import split_words
from mosesplug.templates.template import PhraseTemplate

LONGEST_SENTENCE = 500
"""Estimates are stored for every span: memory grows with the square, time even faster."""
LONGEST_WINDOW = 48
"""Coverage bits after the first gap; together with the gap they fit in a 63-bit key."""


@dataclass(frozen=True)
class Options:
    """The phrase pairs that apply to a sentence, by span.

    Attributes:
        start, end, width: int64 ``[n_spans]``; source words ``start .. end``.
        first: int64 ``[n_spans + 1]``; a span's pairs are ``pairs[first[i]:first[i + 1]]``.
        counts: int64 ``[n_spans]``; number of phrase pairs of each span.
        phrases: the phrase pairs with their words; empty if no sparse feature sees other words.
        contextual: for each phrase pair, the values of sparse features that see the sentence, by
            name; empty if the model has none.
        score: float64 ``[n_pairs]``; ``Model.score`` plus the weighted sum of these features.
        estimate: float64 ``[n_pairs]``; ``Model.estimate`` plus the same.
    """

    start: Ints
    end: Ints
    first: Ints
    pairs: Ints
    width: Ints
    counts: Ints
    phrases: Sequence[Phrase]
    contextual: Sequence[Mapping[str, float]]
    score: Floats
    estimate: Floats


def find_phrase_pairs(model: Model, words: Sequence[bytes]) -> Options:
    """Return all phrase pairs for all spans of the sentence."""
    spans, pairs, first = [], [], [0]
    for start in range(len(words)):
        for end in range(start, min(start + model.longest, len(words))):
            found = model.options.get(b" ".join(words[start : end + 1]))
            if found is not None:
                spans.append((start, end))
                pairs.append(found)
                first.append(first[-1] + len(found))
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    options = np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64)
    counts = np.diff(first)
    source = split_words(b" ".join(words))
    templates = model.features.templates_of("source")
    phrases = []
    if templates or model.features.target_templates:
        phrases = _describe(model, source, np.repeat(bounds, counts, axis=0), options)
    contextual: list[dict[str, float]] = []
    if templates:
        contextual = [_count_contextual(templates, phrase, source) for phrase in phrases]
    more = np.array([model.features.weigh(values) for values in contextual] or 0.0)
    return Options(
        start=bounds[:, 0],
        end=bounds[:, 1],
        first=np.array(first, dtype=np.int64),
        pairs=options,
        width=bounds[:, 1] - bounds[:, 0] + 1,
        counts=counts,
        phrases=phrases,
        contextual=contextual,
        score=model.score[options] + more,
        estimate=model.estimate[options] + more,
    )


def _describe(model: Model, source: Words, spans: Ints, pairs: Ints) -> list[Phrase]:
    """Return the words and the alignment of each phrase pair at its span."""
    return [
        Phrase(
            start,
            PhrasePair(
                source[start : end + 1],
                split_words(b" ".join(model.target(pair))),
                model.alignments[pair],
            ),
        )
        for (start, end), pair in zip(spans.tolist(), pairs.tolist(), strict=True)
    ]


def _count_contextual(
    templates: Sequence[PhraseTemplate], phrase: Phrase, source: Words
) -> dict[str, float]:
    """Return the values of features of source contexts."""
    counts: dict[str, float] = {}
    for template in templates:
        counts.update(template.count_phrase(phrase, source))
    return counts


def _future_costs(options: Options, length: int) -> list[list[float]]:
    """Return best estimates of spans ``[start][end + 1]``, as one phrase or two parts."""
    future = np.full((length + 1, length + 1), -math.inf)
    np.fill_diagonal(future, 0.0)
    if len(options.pairs):
        best = np.maximum.reduceat(options.estimate, options.first[:-1])
        future[options.start, options.end + 1] = best
    for width in range(2, length + 1):
        for start in range(length - width + 1):
            end = start + width
            split = (future[start, start + 1 : end] + future[start + 1 : end, end]).max()
            future[start, end] = max(future[start, end], split)
    rows: list[list[float]] = future.tolist()
    return rows


class Coverages:
    """The distinct coverages of a sentence, numbered in the order of their creation.

    Attributes:
        gap: the first untranslated word of each coverage.
        bits: bit ``k`` is set if word ``gap + k`` is translated.
        rest: the best estimate for all untranslated words.

    Args:
        distortion_limit: -1 for none.

    Raises:
        DataError: the sentence has more than 500 words, or more than 48 words without a distortion
            limit of at most 48.
    """

    def __init__(self, options: Options, length: int, distortion_limit: int) -> None:
        self.options = options
        self.length = length
        self.reach = length if distortion_limit < 0 else distortion_limit
        if length > LONGEST_SENTENCE:
            raise DataError(
                f"a sentence of {length} words: the bundled decoder supports {LONGEST_SENTENCE}"
            )
        if min(length, self.reach) > LONGEST_WINDOW:
            raise DataError(
                f"a sentence of {length} words with distortion limit {distortion_limit}: the "
                f"bundled decoder needs a limit of {LONGEST_WINDOW} or less for sentences longer "
                f"than {LONGEST_WINDOW} words"
            )
        self.future = _future_costs(options, length)
        self.numbers: dict[int, int] = {}
        self.gap: list[int] = []
        self.bits: list[int] = []
        self.rest: list[float] = []

    def number(self, gap: int, bits: int) -> int:
        """Return the number of a coverage; add the coverage if it is new."""
        key = bits * (self.length + 1) + gap
        number = self.numbers.setdefault(key, len(self.gap))
        if number == len(self.gap):
            self.gap.append(gap)
            self.bits.append(bits)
            self.rest.append(self._rest(gap, bits))
        return number

    def _rest(self, gap: int, bits: int) -> float:
        total = 0.0
        start = gap
        while bits:
            run = (bits & -bits).bit_length() - 1
            total += self.future[start][start + run]
            bits >>= run
            run_covered = (~bits & (bits + 1)).bit_length() - 1
            bits >>= run_covered
            start += run + run_covered
        return total + self.future[start][self.length]

    def after(self, coverages: Ints) -> tuple[Ints, Floats]:
        """Return the coverage after each span, and the estimate of its untranslated words.

        Returns int64 and float64 ``[len(coverages), n_spans]``; the coverage is -1 if the span
        overlaps covered words, or ends too far from the first gap to jump back.
        """
        options = self.options
        gap = np.array([self.gap[number] for number in coverages])[:, None]
        bits = np.array([self.bits[number] for number in coverages])[:, None]
        width = options.width
        ones = (np.int64(1) << np.minimum(width, LONGEST_WINDOW)) - 1
        shift = options.start - gap
        free = (shift >= 0) & (((bits >> np.clip(shift, 0, LONGEST_WINDOW)) & ones) == 0)
        free &= (shift == 0) | (options.end + 1 - gap <= self.reach)
        row, span = np.nonzero(free)
        shift, at_gap = shift[row, span], shift[row, span] == 0
        gap, bits, width, ones = gap[row, 0], bits[row, 0], width[span], ones[span]
        gap = gap + np.where(at_gap, width, 0)
        bits = np.where(at_gap, bits >> np.minimum(width, LONGEST_WINDOW), bits | (ones << shift))
        # The words covered right after the closed gap: the run of lowest one bits.
        lowest_zero = ~bits & (bits + 1)
        run = np.frexp(lowest_zero.astype(np.float64))[1] - 1
        gap, bits = gap + run, bits >> run
        keys, inverse = np.unique(bits * (self.length + 1) + gap, return_inverse=True)
        known = [
            self.number(int(key % (self.length + 1)), int(key // (self.length + 1))) for key in keys
        ]
        estimates = np.array([self.rest[number] for number in known])
        numbers = np.full(free.shape, -1, dtype=np.int64)
        rest = np.zeros(free.shape)
        numbers[row, span] = np.array(known, dtype=np.int64)[inverse]
        rest[row, span] = estimates[inverse]
        return numbers, rest
