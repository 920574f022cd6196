"""METEOR (Banerjee & Lavie 2005) with exact and stem matches.

Words of hypothesis and reference are aligned one to one. The score rewards matches, recall more
than precision, and few *chunks*: runs of matches that are adjacent and in the same order on both
sides.
With the weighted matches ``m``, and the matches ``n`` without their weights,

    P = m / words of the hypothesis       F = P R / (alpha P + (1 - alpha) R)
    R = m / words of the reference        METEOR = F (1 - gamma (chunks / n) ** beta)

and 0 without a match. A sentence whose words all match in one chunk has no penalty: it counts no
chunk. The statistics of a hypothesis are exact matches, stem matches, chunks, and both lengths. The
score of a corpus is that of their sums. With several references, the one with the best score for
the hypothesis counts, the first in a tie.

The defaults are those of 2005, which NLTK has: alpha 0.9, beta 3, gamma 0.5, and weights of 1.
METEOR 1.5 tuned them for each language, for English ``alpha:0.85,beta:0.2,gamma:0.6,stem:0.6``. Its
matches of synonyms and paraphrases, which need WordNet and tables of paraphrases, and its discount
of function words (``delta``), which needs lists of them, are not part of this metric.

Matches and chunks are those of the alignment of METEOR 1.3 and later (see ``alignment``), whose
program searches with a beam (``-x``) and may find more chunks. NLTK aligns from right to left and
may find more, too. With a beam that is large enough, and all words weighted alike (``delta`` 0.5),
statistics and scores are those of ``meteor-1.5.jar``.
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

from mosesplug.arrays import Ints32
from mosesplug.errors import UsageError, suggest
from mosesplug.kernels import kernel
from mosesplug.metrics.alignment import align_words
from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords, compile_words, encode


@kernel
def _count_matches(
    token_offsets: NDArray[np.int64],
    words: Ints32,
    classes: Ints32,
    n_references: int,
    number: int,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypothesis_words: Ints32,
    hypothesis_classes: Ints32,
    counts: Ints32,
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
        if chunks == 1 and exact + stems == last - first == end - start:
            chunks = 0
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
    statistics_limits: ClassVar[tuple[tuple[str, str], ...]] = tuple(
        (matches, length)
        for matches in ("exact_matches", "stem_matches", "chunks")
        for length in ("length", "reference_length")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("alpha", "gamma"):
            if not 0.0 <= (value := getattr(self, setting)) <= 1.0:
                raise UsageError(
                    f"{setting} of METEOR must be at least 0 and at most 1, not {value:g}"
                )
        for setting in ("beta", "stem"):
            if not 0.0 <= (value := getattr(self, setting)) < math.inf:
                raise UsageError(f"{setting} of METEOR must be at least 0, not {value:g}")
        if not 0.0 < self.exact < math.inf:
            raise UsageError(f"exact of METEOR must be a number above 0, not {self.exact:g}")
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
        classes: tuple[Ints32, Ints32],
        counts: Ints32,
    ) -> None:
        """Write the statistics with the best reference to ``counts``."""
        words = references.words

        def compare(number: int) -> Ints32:
            statistics = np.empty_like(counts)
            _count_matches(
                words.token_offsets,
                words.ids,
                classes[0],
                references.n_references,
                number,
                *hypotheses[:2],
                hypotheses.ids,
                classes[1],
                statistics,
            )
            return statistics

        counts[:] = self._choose_references(references, compare)

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> MeteorReferences:
        lines = self._split_references(references)
        return MeteorReferences(lines=lines, stems=self.stems, **known)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        exact, stems, chunks, length, reference_length = np.moveaxis(totals, -1, 0)
        matches, weighted = exact + stems, self.exact * exact + self.stem * stems
        precision = divide(weighted, length, 0.0)
        recall = divide(weighted, reference_length, 0.0)
        weights = self.alpha * precision + (1.0 - self.alpha) * recall
        mean = divide(precision * recall, weights, 0.0)
        fragmentation = divide(chunks, matches, 0.0)
        return np.asarray(mean * (1.0 - self.gamma * fragmentation**self.beta))
