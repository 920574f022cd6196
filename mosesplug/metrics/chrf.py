"""chrF (Popovic 2015): F-score of n-grams of 1 to 6 characters, as in sacrebleu.

Statistics of a hypothesis, in the order of Moses' ``CHRF``: for each order the matching n-grams,
the n-grams of the hypothesis and those of the reference; then both lengths in characters. The
score of their sum is the F-score of average precision and average recall,

    chrF = (1 + beta^2) P R / (beta^2 P + R)

averaged over the orders for which both sides have n-grams. Blanks do not count as characters.
A character is a Unicode code point in UTF-8, or a byte that is not part of valid UTF-8.

With ``smooth`` 0, statistics and scores are those of sacrebleu 2's ``CHRF`` with ``word_order=0,
whitespace=False, eps_smoothing=False`` and the same ``beta``: Moses' default is 3, sacrebleu's
is 2. With several references, the one with the best score for the hypothesis counts.

Moses' own scores cannot be reproduced: where its program should append a blank to each character,
it adds a number to the address of a string and counts the memory found there. It also treats bytes
as characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.kernels import kernel, read_only
from mosesplug.metrics.characters import space_out, space_out_lines
from mosesplug.metrics.hypotheses import HypothesisRanges, run_in_threads
from mosesplug.metrics.ngrams import ReferenceNgrams, compile_ngrams, count_matches
from mosesplug.metrics.plain import (
    CALL,
    HYPOTHESES,
    ROWS,
    Allowance,
    ReferenceLines,
    count_ngrams,
    split_hypotheses,
)
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.metrics.reference_metric import ReferenceMetric
from mosesplug.metrics.words import ReferenceWords, compile_words
from mosesplug.version import __version__

ORDER = 6
"""Characters in the longest n-gram."""

N_COUNTS = 3 * ORDER


@kernel
def _scores(totals: NDArray[np.float64], beta: float, smooth: float) -> NDArray[np.float64]:
    """Return the F-score of each row of ``totals`` ``[m, 20]``: float64 ``[m]``."""
    scores = np.zeros(len(totals), dtype=np.float64)
    weight = beta * beta
    for row in range(len(totals)):
        precision = recall = 0.0
        orders = 0
        for order in range(ORDER):
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
    for order in range(ORDER):
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


@dataclass(frozen=True, kw_only=True)
class ChrfReferences(PreparedReferences):
    """References compiled for chrF, each as a separate text.

    Reference ``k`` of sentence ``s`` is text ``s * n_references + k``.

    Attributes:
        lengths: int64 ``[n_sentences * n_references]``; number of characters.
    """

    lines: ReferenceLines
    lengths: NDArray[np.int64]

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
    """

    lowercase: bool = False
    beta: float = 3.0
    smooth: float = 0.0

    name: ClassVar[str] = "CHRF"
    statistics_names: ClassVar[tuple[str, ...]] = (
        *(
            f"{kind}{order}"
            for order in range(1, ORDER + 1)
            for kind in ("match", "total", "reference_total")
        ),
        "length",
        "reference_length",
    )

    def __post_init__(self) -> None:
        if not (0 < self.beta < math.inf):
            raise UsageError(f"beta of CHRF must be a number above 0, not {self.beta}")
        if not (0 <= self.smooth < math.inf):
            raise UsageError(f"smooth of CHRF must be a number of at least 0, not {self.smooth}")

    def _settings(self) -> str:
        case = "lc-ascii" if self.lowercase else "mixed"
        return (
            f"case:{case}|beta:{self.beta:.12g}|smooth:{self.smooth:.12g}|eff:yes|nc:{ORDER}|nw:0"
            f"|space:no|version:mosesplug-{__version__}"
        )

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> ChrfReferences:
        texts = [line for sentence in zip(*references, strict=True) for line in sentence]
        return ChrfReferences(
            lines=ReferenceLines(references, self.lowercase, Allowance(HYPOTHESES)),
            lengths=np.array([len(_characters(line)) for line in texts], dtype=np.int64),
            **known,
        )

    def _count(
        self, prepared: ChrfReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        n = len(hypotheses.sentence_ids)
        if prepared.lines.allowance.take(n * prepared.n_references):
            characters = [
                (sentence, _characters(text, self.lowercase))
                for sentence, text in split_hypotheses(hypotheses)
            ]
            return self._choose(
                prepared, lambda number: self._compare_few(prepared, characters, number)
            )
        statistics = np.empty((n, self.n_statistics), dtype=np.int32)

        def fill(rows: slice) -> None:
            spaced = space_out(hypotheses.part(rows))
            statistics[rows] = self._choose(
                prepared, lambda number: self._compare(prepared, spaced, number)
            )

        run_in_threads(fill, n, threads)
        return statistics

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = read_only(totals.reshape(-1, self.n_statistics), np.float64)
        compute = _plain_scores if _allowance.take(len(rows) + CALL) else _scores
        return compute(rows, float(self.beta), float(self.smooth)).reshape(totals.shape[:-1])

    def _choose(
        self, references: ChrfReferences, compare: Callable[[int], NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        """Return the statistics with the reference that scores best; the first in a tie."""
        best = compare(0)
        for number in range(1, references.n_references):
            other = compare(number)
            better = self.score(other) > self.score(best)
            best[better] = other[better]
        return best

    def _compare_few(
        self, references: ChrfReferences, hypotheses: list[tuple[int, str]], number: int
    ) -> NDArray[np.int32]:
        """Return what ``_compare`` returns, without kernels."""
        texts = [
            (sentence * references.n_references + number, text) for sentence, text in hypotheses
        ]
        counts = count_ngrams(texts, lambda text: [references.read_characters(text)], ORDER)
        return self._arrange(
            references,
            np.array([text for text, _ in texts], dtype=np.int64),
            np.reshape(counts, (len(texts), 2 * ORDER)),
        )

    def _compare(
        self, references: ChrfReferences, spaced: HypothesisRanges, number: int
    ) -> NDArray[np.int32]:
        """Return statistics against one reference of each sentence, int32 ``[n, 20]``."""
        texts = spaced.sentence_ids * references.n_references + number
        counts = np.empty((len(texts), 2 * ORDER), dtype=np.int32)
        count_matches(
            references.characters,
            references.ngrams,
            1,
            ORDER,
            self.lowercase,
            spaced._replace(sentence_ids=read_only(texts, np.int64)),
            counts,
        )
        return self._arrange(references, texts, counts)

    def _arrange(
        self, references: ChrfReferences, texts: NDArray[np.int64], counts: NDArray[Any]
    ) -> NDArray[np.int32]:
        """Return the statistics that the counts ``[n, 12]`` with these texts make."""
        lengths = references.lengths[texts]
        rows = np.empty((len(texts), self.n_statistics), dtype=np.int32)
        rows[:, 0:N_COUNTS:3] = counts[:, 0::2]
        theirs = np.maximum(lengths[:, np.newaxis] - np.arange(ORDER), 0)
        # As in sacrebleu, orders for which the reference has no n-grams are ignored.
        rows[:, 1:N_COUNTS:3] = np.where(theirs > 0, counts[:, 1::2], 0)
        rows[:, 2:N_COUNTS:3] = theirs
        rows[:, N_COUNTS] = counts[:, 1]
        rows[:, N_COUNTS + 1] = lengths
        return rows
