"""METEOR (Banerjee & Lavie 2005) with exact and stem matches.

Words of hypothesis and reference are aligned one to one. The score rewards matches, recall more
than precision, and few *chunks*: runs of matches that are adjacent and in the same order on both
sides.
With the weighted matches ``m``, and the matches ``n`` without their weights,

    P = m / words of the hypothesis       F = P R / (alpha P + (1 - alpha) R)
    R = m / words of the reference        METEOR = F (1 - gamma (chunks / n) ** beta)

and 0 without a match. A sentence that equals its reference has no penalty. The statistics of a
hypothesis are exact matches, stem matches, chunks, and both lengths. As METEOR does, the score of a
corpus is that of their sums, where the exception for equal sentences does not apply. With several
references, the one with the best score for the hypothesis counts, the first in a tie.

The defaults are those of 2005, which NLTK has: alpha 0.9, beta 3, gamma 0.5, and weights of 1.
METEOR 1.5 tuned them for each language, for English ``alpha:0.85,beta:0.2,gamma:0.6,stem:0.6``. Its
matches of synonyms and paraphrases, which need WordNet and tables of paraphrases, and its discount
of function words (``delta``), which needs lists of them, are not part of this metric.

The alignment is that of METEOR 1.3 and later (Denkowski & Lavie 2011): the one that covers most
words; of these that with the fewest chunks; of these that with the least sum of distances between
the positions of matched words. The search keeps 40 partial alignments, as METEOR's. (NLTK aligns
from right to left and may find more chunks.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError, suggest
from mosesplug.kernels import kernel
from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts
from mosesplug.metrics.plain import HYPOTHESES, Allowance, ReferenceLines
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords, compile_words, encode

Ints = NDArray[np.int32]

BEAM = 40
"""Partial alignments that the search keeps."""

_MIX = np.uint64(0xBF58476D1CE4E5B9)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(31)

_NONE = -2
"""The reference position after an unmatched word; no position follows it."""


@kernel
def _code(position: int) -> np.uint64:
    """Return a random-looking number for a reference position."""
    code = (np.uint64(position) + np.uint64(1)) * _STEP
    code = (code ^ (code >> _HALF)) * _MIX
    return np.uint64(code ^ (code >> _HALF))


@kernel
def align_words(hypothesis: Ints, reference: Ints, links: Ints) -> int:
    """Align words of the same class, and return the number of chunks.

    Args:
        hypothesis: class of each word, below 0 for words that match nothing.
        reference: the same, from 0 on.
        links: output, the reference position of each word of the hypothesis, or -1.
    """
    n, m = len(hypothesis), len(reference)
    n_classes = 1
    for j in range(m):
        n_classes = max(n_classes, reference[j] + 1)
    first, following = np.full(n_classes, -1, np.int32), np.full(m, -1, np.int32)
    # More words of a class here than in the reference: that many of them have no match.
    unmatched, seen = np.zeros(n_classes, np.int32), np.zeros(n_classes, np.int32)
    for j in range(m - 1, -1, -1):
        following[j] = first[reference[j]]
        first[reference[j]] = j
        unmatched[reference[j]] -= 1
    for i in range(n):
        if 0 <= hypothesis[i] < n_classes:
            unmatched[hypothesis[i]] += 1

    used, used_next = np.zeros((BEAM, m), np.bool_), np.zeros((BEAM, m), np.bool_)
    # Columns of a partial alignment: chunks, distance, last position.
    states, states_next = np.zeros((BEAM, 3), np.int64), np.zeros((BEAM, 3), np.int64)
    codes, codes_next = np.zeros(BEAM, np.uint64), np.zeros(BEAM, np.uint64)
    parents, choices = np.zeros((n, BEAM), np.int32), np.full((n, BEAM), -1, np.int32)
    states[0, 2] = _NONE
    size = 1
    for i in range(n):
        word = hypothesis[i]
        if word < 0 or word >= n_classes or first[word] < 0:
            for state in range(size):
                parents[i, state] = state
                states[state, 2] = _NONE
            continue
        kept = 0
        for state in range(size):
            matched = 0
            position = first[word]
            while position >= 0:
                matched += used[state, position]
                position = following[position]
            position = first[word]
            may_skip = seen[word] - matched < unmatched[word]
            while position >= 0 or may_skip:
                chunks, distance, last = states[state]
                place, code = -1, codes[state]
                if position >= 0:
                    place = position
                    position = following[position]
                    if used[state, place]:
                        continue
                    chunks += place != last + 1 or last < 0
                    distance += abs(i - place)
                    code ^= _code(place)
                    last = place
                else:
                    may_skip = False
                    last = _NONE
                kept = _keep(
                    states_next, codes_next, parents[i], choices[i], kept,
                    chunks, distance, last, code, state, place,
                )  # fmt: skip
        seen[word] += 1
        for state in range(kept):
            used_next[state] = used[parents[i, state]]
            if choices[i, state] >= 0:
                used_next[state, choices[i, state]] = True
        used, used_next = used_next, used
        states, states_next = states_next, states
        codes, codes_next = codes_next, codes
        size = kept
    best = 0
    for state in range(1, size):
        if states[state, 0] < states[best, 0] or (
            states[state, 0] == states[best, 0] and states[state, 1] < states[best, 1]
        ):
            best = state
    chunks = states[best, 0]
    for i in range(n - 1, -1, -1):
        links[i] = choices[i, best]
        best = parents[i, best]
    return int(chunks)


@kernel
def _keep(
    states: NDArray[np.int64],
    codes: NDArray[np.uint64],
    parents: Ints,
    choices: Ints,
    kept: int,
    chunks: int,
    distance: int,
    last: int,
    code: np.uint64,
    parent: int,
    choice: int,
) -> int:
    """Insert a partial alignment into the sorted best ones; return their number.

    Of those that use the same words and end alike, only the best is kept: what follows is the same.
    """
    gap, grown = kept, kept + 1
    for place in range(kept):
        if codes[place] == code and states[place, 2] == last:
            if (states[place, 0], states[place, 1]) <= (chunks, distance):
                return kept
            gap, grown = place, kept
            break
    if gap == BEAM:
        gap, grown = BEAM - 1, BEAM
        if (states[gap, 0], states[gap, 1]) <= (chunks, distance):
            return kept
    # In a tie, earlier ones stay before.
    while gap > 0 and (states[gap - 1, 0], states[gap - 1, 1]) > (chunks, distance):
        states[gap], codes[gap] = states[gap - 1], codes[gap - 1]
        parents[gap], choices[gap] = parents[gap - 1], choices[gap - 1]
        gap -= 1
    states[gap, 0], states[gap, 1], states[gap, 2] = chunks, distance, last
    codes[gap], parents[gap], choices[gap] = code, parent, choice
    return grown


@kernel
def _count_matches(
    token_offsets: NDArray[np.int64],
    words: Ints,
    classes: Ints,
    n_references: int,
    number: int,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypothesis_words: Ints,
    hypothesis_classes: Ints,
    counts: Ints,
) -> None:
    """Write statistics against one reference to ``counts``, int32 ``[n, 5]``.

    Args:
        words: the word of each reference token.
        classes: its stem, or the word itself.
        number: the reference.
        hypothesis_words, hypothesis_classes: the same of the hypotheses' tokens.
    """
    longest = 0
    for row in range(len(sentence_ids)):
        longest = max(longest, offsets[row + 1] - offsets[row])
    links = np.empty(longest, np.int32)
    for row in range(len(sentence_ids)):
        line = sentence_ids[row] * n_references + number
        start, end = token_offsets[line], token_offsets[line + 1]
        first, last = offsets[row], offsets[row + 1]
        chunks = align_words(
            hypothesis_classes[first:last], classes[start:end], links[: last - first]
        )
        exact = stems = 0
        for place in range(last - first):
            if links[place] >= 0:
                if hypothesis_words[first + place] == words[start + links[place]]:
                    exact += 1
                else:
                    stems += 1
        counts[row, 0], counts[row, 1], counts[row, 2] = exact, stems, chunks
        counts[row, 3], counts[row, 4] = last - first, end - start


@lru_cache(maxsize=1)
def _load_stemmers() -> Any:
    """Return the module of stemmers.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import snowballstemmer
    except ImportError:
        raise UsageError(
            "stems of METEOR need the package snowballstemmer: pip install 'mosesplug[stems]', or "
            "leave out stems"
        ) from None
    return snowballstemmer


@lru_cache(maxsize=1 << 20)
def _find_stem(language: str, word: bytes) -> bytes:
    text = word.decode("utf-8", "surrogateescape").lower()
    stem: str = _load_stemmers().stemmer(language).stemWord(text)
    # A word without a stem, or with a blank in it, would lose its place.
    return (stem if stem.split() == [stem] else text).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, kw_only=True)
class MeteorReferences(WordReferences):
    """References compiled for METEOR.

    Attributes:
        stems: the language of the stems; ``none``: no stems.
    """

    stems: str

    @cached_property
    def classes(self) -> ReferenceWords:
        """The stems of each sentence as words."""
        stemmed = [stem_lines(self.stems, lines) for lines in self.lines.references]
        return compile_words(stemmed, fold=False)

    def compile_shared(self) -> None:
        """Compile what threads share, before they ask for it."""
        super().compile_shared()
        if self.stems != "none":
            _ = self.classes


def _stemmer_version() -> str:
    return f"snowballstemmer-{version('snowballstemmer')}"


def stem_lines(language: str, lines: Iterable[bytes]) -> list[bytes]:
    """Return lines with the stem of each word."""
    return [
        b" ".join(_find_stem(language, word) for word in line.split(b" ") if word) for line in lines
    ]


@dataclass(frozen=True)
class Meteor(WordMetric):
    """METEOR of exact and stem matches.

    Attributes:
        alpha: weight of recall in the mean of precision and recall, 0 to 1.
        beta: exponent of the penalty for fragmentation.
        gamma: largest penalty for fragmentation, 0 to 1.
        exact: weight of exact matches, above 0.
        stem: weight of matches of stems.
        stems: the language of the stems, such as ``english``, or ``porter`` for those of NLTK, by
            the package snowballstemmer; ``none``: exact matches only. Stems are lower-case, so they
            require ``lowercase``, or a normalization that lower-cases.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    exact: float = 1.0
    stem: float = 1.0
    stems: str = "none"

    name: ClassVar[str] = "METEOR"
    statistics_names: ClassVar[tuple[str, ...]] = (
        *("exact_matches", "stem_matches", "chunks"),
        *("length", "reference_length"),
    )

    _plain_allowance: ClassVar[float] = HYPOTHESES

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting, most in (("alpha", 1.0), ("gamma", 1.0), ("exact", math.inf)):
            if not 0.0 <= (value := getattr(self, setting)) <= most or math.isinf(value):
                raise UsageError(
                    f"{setting} of METEOR must be at least 0 and at most {most:g}, not {value:g}"
                )
        for setting in ("beta", "stem"):
            if not 0.0 <= (value := getattr(self, setting)) < math.inf:
                raise UsageError(f"{setting} of METEOR must be at least 0, not {value:g}")
        if self.exact == 0.0:
            raise UsageError("exact of METEOR must be above 0")
        if self.stems == "none":
            return
        known = tuple(_load_stemmers().algorithms())
        if self.stems not in known:
            raise UsageError(
                f"stems:{self.stems} is invalid for METEOR: stems must be one of none, "
                f"{', '.join(known)}{suggest(self.stems, known)}"
            )
        if not self.lowercase and "lower" not in self.normalization.steps:
            raise UsageError("stems of METEOR are lower-case: add case:false or normalize:lower")

    def _extra_settings(self) -> str:
        numbers = "|".join(
            f"{setting}:{getattr(self, setting):.12g}"
            for setting in ("alpha", "beta", "gamma", "exact", "stem")
        )
        version = "" if self.stems == "none" else f"stemmer:{_stemmer_version()}|"
        return f"{numbers}|stems:{self.stems}|{version}"

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        self._fill_classes(references, hypotheses, (references.words.ids, hypotheses.ids), counts)

    def _count_part(
        self,
        references: WordReferences,
        hypotheses: HypothesisRanges,
        counts: NDArray[np.int32],
    ) -> None:
        if self.stems == "none":
            super()._count_part(references, hypotheses, counts)
            return
        assert isinstance(references, MeteorReferences)
        n_references, fold = references.n_references, references.lines.fold
        stemmed = rewrite_texts(hypotheses, lambda lines: stem_lines(self.stems, lines))
        classes = encode(references.classes, n_references, False, stemmed)
        encoded = encode(references.words, n_references, fold, hypotheses)
        self._fill_classes(references, encoded, (references.classes.ids, classes.ids), counts)

    def _fill_classes(
        self,
        references: WordReferences,
        hypotheses: EncodedHypotheses,
        classes: tuple[Ints, Ints],
        counts: Ints,
    ) -> None:
        """Write the statistics with the best reference to ``counts``."""
        words, other = references.words, np.empty_like(counts)
        for number in range(references.n_references):
            _count_matches(
                words.token_offsets,
                words.ids,
                classes[0],
                references.n_references,
                number,
                *hypotheses[:2],
                hypotheses.ids,
                classes[1],
                other,
            )
            better = self.score(other) > self.score(counts) if number else slice(None)
            counts[better] = other[better]

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> MeteorReferences:
        splitting = self._splitting()
        texts = splitting.references(self.normalization.references(references))
        lines = ReferenceLines(texts, splitting.fold, Allowance(HYPOTHESES))
        return MeteorReferences(lines=lines, stems=self.stems, **known)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        exact, stems, chunks, length, reference_length = np.moveaxis(totals, -1, 0)
        matches, weighted = exact + stems, self.exact * exact + self.stem * stems
        precision = divide(weighted, length, 0.0)
        recall = divide(weighted, reference_length, 0.0)
        weights = self.alpha * precision + (1.0 - self.alpha) * recall
        mean = divide(precision * recall, weights, 0.0)
        same = (matches == length) & (matches == reference_length) & (chunks == 1.0)
        fragmentation = np.where(same, 0.0, divide(chunks, matches, 0.0))
        return np.asarray(mean * (1.0 - self.gamma * fragmentation**self.beta))
