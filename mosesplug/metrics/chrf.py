"""chrF (Popovic 2015): F-score of n-grams of 1 to 6 characters, as in sacrebleu.

chrF++ (Popovic 2017) also counts n-grams of 1 and 2 words (``word_order`` 2). Punctuation at the
end or the beginning of a word is a word of its own, one character of each, as in sacrebleu.

Statistics of a hypothesis, in the order of Moses' ``CHRF``: for each order the matching n-grams,
the n-grams of the hypothesis and those of the reference, first of characters, then of words; then
both lengths in characters. The score of their sum is the F-score of average precision and average
recall,

    chrF = (1 + beta^2) P R / (beta^2 P + R)

averaged over the orders for which both sides have n-grams. Blanks do not count as characters.
A character is a Unicode code point in UTF-8, or a byte that is not part of valid UTF-8.

With ``smooth`` 0, statistics and scores are those of sacrebleu 2's ``CHRF`` with the same
``word_order`` and ``beta``, ``whitespace=False`` and ``eps_smoothing=False``: Moses' default of
beta is 3, sacrebleu's is 2. With several references, the one with the best score for the hypothesis
counts.

Moses' own scores cannot be reproduced: where its program should append a blank to each character,
it adds a number to the address of a string and counts the memory found there. It also treats bytes
as characters.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.kernels import kernel, read_only
from mosesplug.metrics.characters import space_out, space_out_lines
from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts, run_in_threads
from mosesplug.metrics.ngrams import ReferenceNgrams, compile_ngrams, count_matches
from mosesplug.metrics.plain import (
    CALL,
    HYPOTHESES,
    ROWS,
    Allowance,
    ReferenceLines,
    count_ngrams,
    split_hypotheses,
    split_words,
)
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.metrics.reference_metric import ReferenceMetric
from mosesplug.metrics.words import ReferenceWords, compile_words
from mosesplug.version import __version__

ORDER = 6
"""Characters in the longest n-gram."""

_PUNCTUATION = frozenset(string.punctuation)


@kernel
def _scores(totals: NDArray[np.float64], beta: float, smooth: float) -> NDArray[np.float64]:
    """Return the F-score of each row of ``totals [m, n_statistics]``, float64."""
    scores = np.zeros(len(totals), dtype=np.float64)
    weight = beta * beta
    for row in range(len(totals)):
        precision = recall = 0.0
        orders = 0
        for order in range((totals.shape[1] - 2) // 3):
            match, ours, theirs = totals[row, 3 * order : 3 * order + 3]
            if ours > 0 and theirs > 0:
                precision += (match + smooth) / (ours + smooth)
                recall += (match + smooth) / (theirs + smooth)
                orders += 1
        if precision > 0 and recall > 0:
            precision /= orders
            recall /= orders
            scores[row] = (1 + weight) * precision * recall / (weight * precision + recall)
    return scores


def _plain_scores(totals: NDArray[np.float64], beta: float, smooth: float) -> NDArray[np.float64]:
    """Return what ``_scores`` returns, without compiling it."""
    weight = beta * beta
    precision, recall = np.zeros(len(totals)), np.zeros(len(totals))
    orders = np.zeros(len(totals))
    for order in range((totals.shape[1] - 2) // 3):
        match, ours, theirs = totals[:, 3 * order : 3 * order + 3].T
        both = (ours > 0) & (theirs > 0)
        precision[both] += (match[both] + smooth) / (ours[both] + smooth)
        recall[both] += (match[both] + smooth) / (theirs[both] + smooth)
        orders[both] += 1
    scores = np.zeros(len(totals))
    some = (precision > 0) & (recall > 0)
    first, second = precision[some] / orders[some], recall[some] / orders[some]
    scores[some] = (1 + weight) * first * second / (weight * first + second)
    return scores


_allowance = Allowance(ROWS)


def _characters(line: bytes, fold: bool = False) -> str:
    """Return the characters without whitespace; a byte that is not UTF-8 is one, too."""
    text = (line.lower() if fold else line).decode("utf-8", "surrogateescape")
    return "".join(text.split())


def split_punctuation(line: bytes) -> list[str]:
    """Return the words of chrF++, as sacrebleu has them.

    The last character of a word, or else its first one, is a word if it is ASCII punctuation.
    """
    words: list[str] = []
    for word in line.decode("utf-8", "surrogateescape").split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            words += (word[:-1], word[-1])
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            words += (word[0], word[1:])
        else:
            words.append(word)
    return words


def _rewrite_words(lines: Iterable[bytes]) -> list[bytes]:
    return [" ".join(split_punctuation(line)).encode("utf-8", "surrogateescape") for line in lines]


@dataclass(frozen=True, kw_only=True)
class ChrfReferences(PreparedReferences):
    """References compiled for chrF, each as a separate text.

    Reference ``k`` of sentence ``s`` is text ``s * n_references + k``.

    Attributes:
        lengths: int64 ``[n_sentences * n_references]``; number of characters.
        word_order: words in the longest n-gram of words.
        word_texts: the texts with blanks between words; empty if ``word_order`` is 0.
        word_counts: int64 ``[n_sentences * n_references]``; number of words; 0 likewise.
    """

    lines: ReferenceLines
    lengths: NDArray[np.int64]
    word_order: int
    word_texts: tuple[bytes, ...]
    word_counts: NDArray[np.int64]

    @cached_property
    def characters(self) -> ReferenceWords:
        """The vocabulary of each text."""
        texts = zip(*self.lines.references, strict=True)
        lines = [line for sentence in texts for line in sentence]
        return compile_words([space_out_lines(lines)], fold=self.lines.fold)

    @cached_property
    def ngrams(self) -> ReferenceNgrams:
        """The n-grams of each text with their clipping limits."""
        return compile_ngrams(self.characters, 1, ORDER)

    @cached_property
    def words(self) -> ReferenceWords:
        """The words of each text."""
        return compile_words([self.word_texts], fold=self.lines.fold)

    @cached_property
    def word_ngrams(self) -> ReferenceNgrams:
        """The n-grams of words of each text with their clipping limits."""
        return compile_ngrams(self.words, 1, self.word_order)

    def read_words(self, number: int) -> list[bytes]:
        """Return the words of a text."""
        return split_words(self.word_texts[number], self.lines.fold)

    def read_characters(self, number: int) -> str:
        """Return the characters of a text that are no blanks."""
        sentence, reference = divmod(number, self.n_references)
        return _characters(self.lines.references[reference][sentence], self.lines.fold)


@dataclass(frozen=True)
class Chrf(ReferenceMetric[ChrfReferences]):
    """Corpus chrF.

    Attributes:
        lowercase: fold ``A`` to ``Z`` to ``a`` to ``z`` (``case:false``).
        beta: weight of recall relative to precision, above 0.
        smooth: added to all counts before division, as Moses does; at least 0.
        word_order: words in the longest n-gram of words, 0 to 4; 2 is chrF++.
    """

    lowercase: bool = False
    beta: float = 3.0
    smooth: float = 0.0
    word_order: int = 0

    name: ClassVar[str] = "CHRF"

    @property
    def _orders(self) -> tuple[str, ...]:
        """Endings of the names of statistics: orders of characters, then of words."""
        words = range(1, self.word_order + 1)
        return (*map(str, range(1, ORDER + 1)), *(f"_words{order}" for order in words))

    @property
    def statistics_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the statistics."""
        kinds = ("match", "total", "reference_total")
        return (
            *(f"{kind}{order}" for order in self._orders for kind in kinds),
            "length",
            "reference_length",
        )

    @property
    def statistics_limits(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """Pairs of names; the first statistic never exceeds the second."""
        kinds = ("total", "reference_total")
        return tuple(
            (f"match{order}", f"{kind}{order}") for order in self._orders for kind in kinds
        )

    def __post_init__(self) -> None:
        if not (0 < self.beta < math.inf):
            raise UsageError(f"beta of CHRF must be a number above 0, not {self.beta}")
        if not (0 <= self.smooth < math.inf):
            raise UsageError(f"smooth of CHRF must be a number of at least 0, not {self.smooth}")
        if not 0 <= self.word_order <= 4:
            raise UsageError(f"words of CHRF must be 0 to 4, not {self.word_order}")

    def _settings(self) -> str:
        case = "lc-ascii" if self.lowercase else "mixed"
        return (
            f"case:{case}|beta:{self.beta:.12g}|smooth:{self.smooth:.12g}|eff:yes|nc:{ORDER}"
            f"|nw:{self.word_order}|space:no|version:mosesplug-{__version__}"
        )

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> ChrfReferences:
        texts = [line for sentence in zip(*references, strict=True) for line in sentence]
        word_texts = tuple(_rewrite_words(texts)) if self.word_order else (b"",) * len(texts)
        return ChrfReferences(
            lines=ReferenceLines(references, self.lowercase, Allowance(HYPOTHESES)),
            lengths=np.array([len(_characters(line)) for line in texts], dtype=np.int64),
            word_order=self.word_order,
            word_texts=word_texts,
            word_counts=np.array([len(text.split(b" ")) if text else 0 for text in word_texts]),
            **known,
        )

    def _count(
        self, prepared: ChrfReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        n = len(hypotheses.sentence_ids)
        if prepared.lines.allowance.take(n * prepared.n_references):
            texts = list(split_hypotheses(hypotheses))
            return self._choose_references(
                prepared, lambda number: self._compare_few(prepared, texts, number)
            )
        statistics = np.empty((n, self.n_statistics), dtype=np.int32)

        def fill(rows: slice) -> None:
            own = hypotheses.part(rows)
            spaced = space_out(own)
            words = rewrite_texts(own, _rewrite_words) if self.word_order else own
            statistics[rows] = self._choose_references(
                prepared, lambda number: self._compare(prepared, spaced, words, number)
            )

        run_in_threads(fill, n, threads)
        return statistics

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = read_only(totals.reshape(-1, self.n_statistics), np.float64)
        compute = _plain_scores if _allowance.take(len(rows) + CALL) else _scores
        return compute(rows, float(self.beta), float(self.smooth)).reshape(totals.shape[:-1])

    def _compare_few(
        self, references: ChrfReferences, hypotheses: list[tuple[int, bytes]], number: int
    ) -> NDArray[np.int32]:
        """Return what ``_compare`` returns, without kernels."""
        texts = [sentence * references.n_references + number for sentence, _ in hypotheses]
        lines = [line for _, line in hypotheses]
        characters = [_characters(line, self.lowercase) for line in lines]
        counts = count_ngrams(
            zip(texts, characters, strict=True),
            lambda text: [references.read_characters(text)],
            ORDER,
        )
        word_counts: list[list[int]] = []
        if self.word_order:
            rewritten = _rewrite_words(lines)
            word_counts = count_ngrams(
                zip(texts, (split_words(line, self.lowercase) for line in rewritten), strict=True),
                lambda text: [references.read_words(text)],
                self.word_order,
            )
        return self._arrange(
            references,
            np.array(texts, dtype=np.int64),
            np.reshape(counts, (len(texts), 2 * ORDER)),
            np.reshape(word_counts, (len(texts), 2 * self.word_order)),
        )

    def _compare(
        self,
        references: ChrfReferences,
        spaced: HypothesisRanges,
        words: HypothesisRanges,
        number: int,
    ) -> NDArray[np.int32]:
        """Return statistics against one reference of each sentence."""
        texts = spaced.sentence_ids * references.n_references + number
        counts = np.empty((len(texts), 2 * ORDER), dtype=np.int32)
        word_counts = np.empty((len(texts), 2 * self.word_order), dtype=np.int32)
        if self.word_order:
            count_matches(
                references.words,
                references.word_ngrams,
                1,
                self.word_order,
                self.lowercase,
                words._replace(sentence_ids=read_only(texts, np.int64)),
                word_counts,
            )
        count_matches(
            references.characters,
            references.ngrams,
            1,
            ORDER,
            self.lowercase,
            spaced._replace(sentence_ids=read_only(texts, np.int64)),
            counts,
        )
        return self._arrange(references, texts, counts, word_counts)

    def _arrange(
        self,
        references: ChrfReferences,
        texts: NDArray[np.int64],
        counts: NDArray[Any],
        word_counts: NDArray[Any],
    ) -> NDArray[np.int32]:
        """Return the statistics that counts ``[n, 12]`` and ``[n, 2 word_order]`` make."""
        lengths = references.lengths[texts]
        rows = np.empty((len(texts), self.n_statistics), dtype=np.int32)
        place = 0
        for sizes, own in ((lengths, counts), (references.word_counts[texts], word_counts)):
            end = place + 3 * (own.shape[1] // 2)
            theirs = np.maximum(sizes[:, np.newaxis] - np.arange(own.shape[1] // 2), 0)
            rows[:, place:end:3] = own[:, 0::2]
            # As in sacrebleu, orders for which the reference has no n-grams are ignored.
            rows[:, place + 1 : end : 3] = np.where(theirs > 0, own[:, 1::2], 0)
            rows[:, place + 2 : end : 3] = theirs
            place = end
        rows[:, place] = counts[:, 1]
        rows[:, place + 1] = lengths
        return rows
