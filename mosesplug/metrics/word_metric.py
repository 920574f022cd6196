"""Base class of metrics that compare sequences of words.

It splits texts into words, numbers these and distributes work to threads. Subclasses define what is
counted and the score.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.hypotheses import HypothesisRanges, run_in_threads
from mosesplug.metrics.normalization import Normalization
from mosesplug.metrics.plain import HYPOTHESES, Allowance, ReferenceLines, split_words
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.metrics.reference_metric import ReferenceMetric
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords, compile_words, encode


@dataclass(frozen=True, kw_only=True)
class WordReferences(PreparedReferences):
    """References compiled for a metric that compares words.

    Attributes:
        words: the vocabulary of each sentence, and its references as word ids.
    """

    lines: ReferenceLines

    @cached_property
    def words(self) -> ReferenceWords:
        """The vocabulary of each sentence."""
        return compile_words(self.lines.references, fold=self.lines.fold)

    def compile_shared(self) -> None:
        """Compile what threads share, before they ask for it."""
        _ = self.words


@dataclass(frozen=True)
class WordMetric(ReferenceMetric[WordReferences]):
    """A corpus metric over sequences of words; see ``Metric`` for the protocol.

    Attributes:
        lowercase: fold ``A`` to ``Z`` to ``a`` to ``z`` (``case:false``); letters outside ASCII
            keep their case, and the signature has ``lc-ascii``. With a tokenizer, all letters are
            lower-cased.
        tokenizer: one of ``tokenizers.TOKENIZERS``.
        normalization: applied to hypotheses and references before they are tokenized.
    """

    lowercase: bool = False
    tokenizer: str = field(default="none", kw_only=True)
    normalization: Normalization = field(default=Normalization(), kw_only=True)

    _plain_allowance: ClassVar[float] = HYPOTHESES

    def __post_init__(self) -> None:
        self._splitting()  # raises for an unknown tokenizer

    @abstractmethod
    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        """Write the statistics of hypotheses to ``counts``, ``[n, n_statistics]``."""

    def _count_part(
        self,
        references: WordReferences,
        hypotheses: HypothesisRanges,
        counts: NDArray[np.int32],
    ) -> None:
        """Write the statistics of tokenized hypotheses to ``counts``."""
        fold = references.lines.fold
        encoded = encode(references.words, references.n_references, fold, hypotheses)
        self._fill(references, encoded, counts)

    def _count_few(
        self, references: WordReferences, hypotheses: HypothesisRanges
    ) -> NDArray[np.int32] | None:
        """Return the statistics without kernels; None if it needs or has them."""
        return None

    def _extra_settings(self) -> str:
        """Return further settings of the signature, each followed by ``|``."""
        return ""

    def _splitting(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase)

    def _settings(self) -> str:
        splitting = self._splitting()
        further = f"{self._extra_settings()}{self.normalization.signature()}"
        return f"{splitting.signature()}|{further}version:{splitting.version()}"

    def split(self, lines: Sequence[bytes]) -> list[list[str]]:
        """Return the words of each line as they are compared."""
        splitting = self._splitting()
        (texts,) = splitting.references([self.normalization.lines(lines)])
        words = (split_words(text, splitting.fold) for text in texts)
        return [[word.decode("utf-8", "replace") for word in line] for line in words]

    def _split_references(self, references: Sequence[Sequence[bytes]]) -> ReferenceLines:
        """Return the references normalized and tokenized."""
        splitting = self._splitting()
        texts = splitting.references(self.normalization.references(references))
        return ReferenceLines(texts, splitting.fold, Allowance(self._plain_allowance))

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> WordReferences:
        return WordReferences(lines=self._split_references(references), **known)

    def _count(
        self, prepared: WordReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        splitting = self._splitting()
        hypotheses = splitting.hypotheses(self.normalization.hypotheses(hypotheses))
        few = self._count_few(prepared, hypotheses)
        if few is not None:
            return few
        prepared.compile_shared()
        counts = np.empty((len(hypotheses.sentence_ids), self.n_statistics), dtype=np.int32)

        def count(rows: slice) -> None:
            self._count_part(prepared, hypotheses.part(rows), counts[rows])

        run_in_threads(count, len(counts), threads)
        return counts
