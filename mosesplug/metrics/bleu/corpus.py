"""BLEU (Papineni et al. 2002) of summed statistics, equal to Moses and sacrebleu.

Statistics of a hypothesis, in Moses' order: for each n-gram order 1 to 4 the clipped matches and
the n-grams, then the reference length. The score of their sum is

    BLEU = min(1, exp(1 - r / c)) * (p1 * p2 * p3 * p4) ** (1 / 4),   p_n = match_n / total_n

where ``c`` is ``total1``, the length of the output, and ``r`` the summed reference length; it is
0 if any order has no match. There is no smoothing here; see ``bleu.sentence``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.kernels import kernel, read_only
from mosesplug.metrics.bleu.sentence import (
    sentence_bleu_lin_och,
    sentence_bleu_moses,
    sentence_bleu_nakov,
    smoothed_rows,
)
from mosesplug.metrics.hypotheses import HypothesisRanges, run_in_threads
from mosesplug.metrics.ngrams import ReferenceNgrams, compile_ngrams, count_matches
from mosesplug.metrics.plain import (
    CALL,
    HYPOTHESES,
    ORDER,
    ROWS,
    Allowance,
    ReferenceLines,
    bleu_of_rows,
    count_ngrams,
    split_hypotheses,
    split_words,
)
from mosesplug.metrics.protocol import PreparedReferences, Smoothing
from mosesplug.metrics.reference_metric import ReferenceMetric
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.words import ReferenceWords, compile_words

N_COUNTS = 2 * ORDER
"""Counts of a hypothesis: matches and total of each order."""

ReferenceLength = Literal["closest", "shortest", "average"]


@kernel
def bleu_score_row(totals: NDArray[Any]) -> float:
    """Return BLEU of one row of summed statistics of any number type, inside kernels.

    Args:
        totals: ``[9]``: match1, total1, ..., match4, total4, reference length; not negative.

    Returns:
        The score, in 0 to 1; 0 if any match count is 0, as in an empty corpus or if all sentences
        are shorter than four words. Two square roots replace four logarithms, and the exponential
        is computed only if the output is shorter than the reference.
    """
    # float() of a float32 stays a float32 in a kernel, hence np.float64 throughout.
    matches = (
        np.float64(totals[0])
        * np.float64(totals[2])
        * np.float64(totals[4])
        * np.float64(totals[6])
    )
    ngrams = (
        np.float64(totals[1])
        * np.float64(totals[3])
        * np.float64(totals[5])
        * np.float64(totals[7])
    )
    # Products of four counts below 1e77 each neither overflow nor lose a bit that matters.
    if not (matches > 0.0 and ngrams > 0.0):
        return 0.0
    score = math.sqrt(math.sqrt(matches / ngrams))
    if totals[8] > totals[1]:
        score *= math.exp(1.0 - np.float64(totals[8]) / np.float64(totals[1]))
    return score


@kernel
def bleu_scores(totals: NDArray[Any]) -> NDArray[np.float64]:
    """Return BLEU of each row of ``totals``, float64 ``[m]``; see ``bleu_score_row``.

    ``totals`` is ``[m, 9]`` of any number type.
    """
    scores = np.empty(len(totals), dtype=np.float64)
    for row in range(len(totals)):
        scores[row] = bleu_score_row(totals[row])
    return scores


_allowance = Allowance(ROWS)


def score_rows(totals: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``bleu_scores``, without a kernel if the process scored only a few rows."""
    if _allowance.take(len(totals) + CALL):
        return bleu_of_rows(totals)
    return bleu_scores(read_only(totals, np.float64))  # compiled only once


@kernel
def _floored(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of ``totals [m, 9]``; ``2 ** -n`` replaces 0 matches of order n.

    Totals of n-grams of two or more words become at least 1.
    """
    floored = totals.copy()
    for row in range(len(floored)):
        least = 1.0
        for order in range(ORDER):
            least *= 0.5
            match, total = 2 * order, 2 * order + 1
            floored[row, match] = max(floored[row, match], least)
            if order > 0:  # the total of single words is the length, too
                floored[row, total] = max(floored[row, total], 1.0)
    return floored


@dataclass(frozen=True, kw_only=True)
class BleuReferences(PreparedReferences):
    """References compiled for BLEU.

    Attributes:
        lengths: int32 ``[n_sentences, n_references]``, tokens, ascending in each row.
    """

    lines: ReferenceLines
    lengths: NDArray[np.int32]

    @cached_property
    def words(self) -> ReferenceWords:
        """The vocabulary of each sentence."""
        return compile_words(self.lines.references, fold=self.lines.fold)

    @cached_property
    def ngrams(self) -> ReferenceNgrams:
        """The n-grams of each sentence with their clipping limits."""
        return compile_ngrams(self.words, self.n_references, ORDER)


@dataclass(frozen=True)
class Bleu(ReferenceMetric[BleuReferences]):
    """Corpus BLEU with up to four-grams.

    Attributes:
        reference_length: the length for the brevity penalty if a sentence has several
            references: the closest to the hypothesis' length (the shorter one in a tie), the
            shortest, or the average, truncated to an integer in each sentence as Moses does.
        lowercase: fold ``A`` to ``Z`` to ``a`` to ``z`` (Moses' ``case:false``, which folds
            bytes in the C locale). Letters outside ASCII keep their case, unlike in sacrebleu's
            ``lc``, and the signature says ``lc-ascii``. With a tokenizer, it is sacrebleu's ``lc``.
        tokenizer: one of ``tokenizers.TOKENIZERS``.
    """

    reference_length: ReferenceLength = "closest"
    lowercase: bool = False
    tokenizer: str = field(default="none", kw_only=True)

    name: ClassVar[str] = "BLEU"
    statistics_names: ClassVar[tuple[str, ...]] = (
        *(f"{kind}{order}" for order in (1, 2, 3, 4) for kind in ("match", "total")),
        "reference_length",
    )
    statistics_limits: ClassVar[tuple[tuple[str, str], ...]] = (
        *((f"match{order}", f"total{order}") for order in (1, 2, 3, 4)),
        *((f"total{order + 1}", f"total{order}") for order in (1, 2, 3)),
    )

    def __post_init__(self) -> None:
        known = get_args(ReferenceLength)
        if self.reference_length not in known:
            raise UsageError(
                f"unknown reference length {self.reference_length!r} for BLEU: "
                f"use one of {', '.join(known)}"
            )
        self._tokenization()  # raises for an unknown tokenizer

    def _tokenization(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase)

    def _settings(self) -> str:
        tokenization = self._tokenization()
        return (
            f"{tokenization.signature()}|reflen:{self.reference_length}|smooth:none"
            f"|version:{tokenization.version()}"
        )

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> BleuReferences:
        tokenization = self._tokenization()
        lines = ReferenceLines(
            tokenization.references(references), tokenization.fold, Allowance(HYPOTHESES)
        )
        lengths = lines.count_words().reshape(known["n_sentences"], len(references))
        return BleuReferences(
            lines=lines, lengths=np.sort(lengths, axis=1).astype(np.int32), **known
        )

    def _count(
        self, prepared: BleuReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        tokenization, lines = self._tokenization(), prepared.lines
        hypotheses = tokenization.hypotheses(hypotheses)
        n = len(hypotheses.sentence_ids)
        statistics = np.empty((n, self.n_statistics), dtype=np.int32)
        if lines.allowance.take(n):
            texts = (
                (sentence, split_words(text, tokenization.fold))
                for sentence, text in split_hypotheses(hypotheses)
            )
            counts = count_ngrams(texts, lines.split, ORDER)
            statistics[:, :N_COUNTS] = np.reshape(counts, (n, N_COUNTS))
        else:
            words, ngrams = prepared.words, prepared.ngrams

            def fill(rows: slice) -> None:
                own, counts = hypotheses.part(rows), statistics[rows]
                count_matches(words, ngrams, prepared.n_references, ORDER, lines.fold, own, counts)

            run_in_threads(fill, n, threads)
        statistics[:, N_COUNTS] = self._reference_lengths(
            prepared.lengths, hypotheses.sentence_ids, statistics[:, 1]
        )
        return statistics

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return score_rows(totals.reshape(-1, self.n_statistics)).reshape(totals.shape[:-1])

    has_bleu_statistics: ClassVar[bool] = True
    has_smoothing: ClassVar[bool] = True
    sentence_metric: ClassVar[str] = "BLEU+1"

    @property
    def can_search_graphs(self) -> bool:
        """Whether words are matched as they are, like the n-grams of search graphs."""
        return self.tokenizer == "none" and not self.lowercase

    def sentence_scores(
        self, stats: NDArray[np.float64], smoothing: Smoothing = "lin-och"
    ) -> NDArray[np.float64]:
        """Return smoothed BLEU of each row of ``stats``; see ``Metric.sentence_scores``."""
        smoothed = {
            "lin-och": sentence_bleu_lin_och,
            "moses": sentence_bleu_moses,
            "nakov": sentence_bleu_nakov,
        }
        if _allowance.take(len(stats) + CALL):
            return smoothed_rows(stats, smoothing)
        return smoothed[smoothing](stats)

    def floor_matches(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a copy of ``totals`` with no zero match counts; see ``few_sentences``."""
        return _floored(totals)

    def _reference_lengths(
        self,
        lengths: NDArray[np.int32],
        sentence_ids: NDArray[np.int64],
        hypothesis_lengths: NDArray[np.int32],
    ) -> NDArray[np.int32]:
        """Return the reference length of each hypothesis, int32 ``[n]``."""
        candidates = lengths[sentence_ids]
        if self.reference_length == "shortest":
            chosen = candidates[:, 0]
        elif self.reference_length == "average":
            chosen = candidates.sum(axis=1, dtype=np.int64) // candidates.shape[1]
        else:
            distances = np.abs(candidates - hypothesis_lengths[:, np.newaxis])
            # Lengths ascend, and argmin returns the first of equal values: the shorter.
            nearest = np.argmin(distances, axis=1)
            chosen = candidates[np.arange(len(candidates)), nearest]
        return chosen.astype(np.int32)
