"""GLEU, the sentence BLEU of Google (Wu et al. 2016, section 4.3).

It counts all n-grams of one to four words together, and divides the clipped matches by the n-grams
of the longer side: the smaller one of precision and recall,

    GLEU = matches / max(n-grams of the hypothesis, n-grams of the reference)

Statistics of a hypothesis are the two numbers of this quotient, and the score of a corpus is the
quotient of their sums, as in ``corpus_gleu`` of NLTK. With several references, the one with the
largest quotient counts, the first in a tie.

Another GLEU scores corrections of grammar (Napoles et al. 2015): it compares hypotheses with the
source sentence, too, and is not this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import read_only
from mosesplug.metrics.hypotheses import HypothesisRanges, run_in_threads
from mosesplug.metrics.ngrams import ReferenceNgrams, compile_ngrams, count_matches
from mosesplug.metrics.plain import HYPOTHESES, ORDER, Allowance, ReferenceLines
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.metrics.reference_metric import ReferenceMetric, divide
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.words import ReferenceWords, compile_words


@dataclass(frozen=True, kw_only=True)
class GleuReferences(PreparedReferences):
    """References compiled for GLEU, each as a separate text.

    Reference ``k`` of sentence ``s`` is text ``s * n_references + k``.

    Attributes:
        totals: int64 ``[n_sentences * n_references]``; n-grams of each text.
    """

    lines: ReferenceLines
    totals: NDArray[np.int64]

    @cached_property
    def words(self) -> ReferenceWords:
        """The vocabulary of each text."""
        texts = zip(*self.lines.references, strict=True)
        lines = [line for sentence in texts for line in sentence]
        return compile_words([lines], fold=self.lines.fold)

    @cached_property
    def ngrams(self) -> ReferenceNgrams:
        """The n-grams of each text with their clipping limits."""
        return compile_ngrams(self.words, 1, ORDER)


@dataclass(frozen=True)
class Gleu(ReferenceMetric[GleuReferences]):
    """Google's GLEU.

    Attributes:
        lowercase: fold ``A`` to ``Z`` to ``a`` to ``z`` (``case:false``); with a tokenizer, all
            letters are lower-cased.
        tokenizer: one of ``tokenizers.TOKENIZERS``.
    """

    lowercase: bool = False
    tokenizer: str = field(default="none", kw_only=True)

    name: ClassVar[str] = "GLEU"
    statistics_names: ClassVar[tuple[str, ...]] = ("match", "total")
    statistics_limits: ClassVar[tuple[tuple[str, str], ...]] = (("match", "total"),)

    def __post_init__(self) -> None:
        self._tokenization()  # raises for an unknown tokenizer

    def _tokenization(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase)

    def _settings(self) -> str:
        tokenization = self._tokenization()
        return f"{tokenization.signature()}|version:{tokenization.version()}"

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> GleuReferences:
        tokenization = self._tokenization()
        lines = ReferenceLines(
            tokenization.references(references), tokenization.fold, Allowance(HYPOTHESES)
        )
        lengths = lines.count_words().reshape(-1, 1)
        totals = np.maximum(lengths - np.arange(ORDER), 0).sum(axis=1)
        return GleuReferences(lines=lines, totals=totals, **known)

    def _count(
        self, prepared: GleuReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        tokenization = self._tokenization()
        hypotheses = tokenization.hypotheses(hypotheses)
        statistics = np.empty((len(hypotheses.sentence_ids), 2), dtype=np.int32)
        words, ngrams, n_references = prepared.words, prepared.ngrams, prepared.n_references

        def fill(rows: slice) -> None:
            own, best = hypotheses.part(rows), statistics[rows]
            counts = np.empty((len(own.sentence_ids), 2 * ORDER), dtype=np.int32)
            for number in range(n_references):
                texts = own.sentence_ids * n_references + number
                numbered = own._replace(sentence_ids=read_only(texts, np.int64))
                count_matches(words, ngrams, 1, ORDER, tokenization.fold, numbered, counts)
                totals = np.maximum(counts[:, 1::2].sum(axis=1), prepared.totals[texts])
                other = np.stack([counts[:, ::2].sum(axis=1), totals], axis=1)
                # Products of counts: quotients could differ by rounding only.
                gain = other[:, 0] * best[:, 1].astype(np.int64) - best[:, 0] * other[:, 1]
                better = (gain > 0) | (best[:, 1] == 0) if number else slice(None)
                best[better] = other[better]

        run_in_threads(fill, len(statistics), threads)
        return statistics

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        # As in NLTK: texts without any n-gram score 0, although they are equal.
        return divide(totals[..., 0], totals[..., 1], 0.0)
