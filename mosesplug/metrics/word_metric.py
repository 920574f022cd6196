"""Base class of metrics that compare sequences of words.

It compiles references, checks hypotheses, numbers words and distributes work to threads. Subclasses
define what is counted, the score, and the settings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.encoding import EncodedHypotheses, encode
from mosesplug.metrics.hypotheses import HypothesisRanges, check_hypotheses, run_in_threads
from mosesplug.metrics.normalization import Normalization
from mosesplug.metrics.plain import HYPOTHESES, Allowance, ReferenceLines, split_words
from mosesplug.metrics.protocol import (
    PreparedReferences,
    UnsmoothedMetric,
    check_references,
    reference_fingerprint,
)
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.words import ReferenceWords, compile_words


class Splitting(Protocol):
    """Splits text into words: ``tokenizers.Tokenization``, or one word per character."""

    @property
    def fold(self) -> bool:
        """Whether kernels fold ``A`` to ``Z`` to ``a`` to ``z``."""

    def signature(self) -> str:
        """Return its settings in sacrebleu's spelling."""

    def version(self) -> str:
        """Return the versions of the software that computes the statistics."""

    def references(self, references: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes]]:
        """Return ``references[k][line]`` with their words separated by blanks."""

    def hypotheses(self, hypotheses: HypothesisRanges) -> HypothesisRanges:
        """Return hypotheses with their words separated by blanks."""


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


def check_totals(name: str, n_statistics: int, totals: NDArray[Any]) -> NDArray[np.float64]:
    """Convert summed statistics ``[..., n_statistics]`` to float64.

    Raises:
        ValueError: the number of statistics is wrong.
    """
    totals = np.asarray(totals, dtype=np.float64)
    if totals.shape[-1:] != (n_statistics,):
        raise ValueError(
            f"{name} has {n_statistics} statistics, not an array of shape {totals.shape}"
        )
    return totals


def divide_errors(errors: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return error rates: errors divided by words of the references.

    Where there are no words, as for a sentence of silence, the rate is the number of errors: 0 for
    an empty hypothesis, and 1 for each inserted word. jiwer 4 computes the same. (Moses calls all
    hypotheses of an empty reference perfect.)

    Args:
        errors, lengths: float64 ``[...]``, both from 0.
    """
    rates = np.array(errors, dtype=np.float64)
    np.divide(errors, lengths, out=rates, where=lengths > 0)
    return rates


@dataclass(frozen=True)
class WordMetric(UnsmoothedMetric):
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

    name: ClassVar[str]
    n_statistics: ClassVar[int]
    statistics_names: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self._splitting()  # raises for an unknown tokenizer

    @abstractmethod
    def _count(
        self, references: WordReferences, hypotheses: EncodedHypotheses
    ) -> NDArray[np.int32]:
        """Return the statistics of hypotheses, int32 ``[n, n_statistics]``."""

    _plain_allowance: ClassVar[float] = HYPOTHESES

    def _count_few(
        self, references: WordReferences, hypotheses: HypothesisRanges
    ) -> NDArray[np.int32] | None:
        """Return what ``_count`` returns, without kernels; None if it needs or has them."""
        return None

    @abstractmethod
    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of summed statistics; see ``Metric.score``."""

    def _extra_settings(self) -> str:
        """Return further settings of the signature, each followed by ``|``."""
        return ""

    def _splitting(self) -> Splitting:
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
        return [[word.decode("utf-8", "replace") for word in each] for each in words]

    def signature(self) -> str:
        """Return name, settings and version in sacrebleu's format."""
        return f"{self.name}|{self._settings()}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> WordReferences:
        """Compile ``references[k][line]``; see ``Metric.prepare``."""
        n_sentences = check_references(references)
        splitting = self._splitting()
        texts = splitting.references(self.normalization.references(references))
        return WordReferences(
            n_sentences=n_sentences,
            n_references=len(references),
            signature=f"{self.name}|nrefs:{len(references)}|{self._settings()}",
            fingerprint=reference_fingerprint(references),
            lines=ReferenceLines(texts, splitting.fold, Allowance(self._plain_allowance)),
        )

    def statistics(
        self,
        prepared: PreparedReferences,
        sentence_ids: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
    ) -> NDArray[np.int32]:
        """Return the statistics of ``n`` hypotheses, int32; see ``Metric.statistics``."""
        expected = f"{self.name}|nrefs:{prepared.n_references}|{self._settings()}"
        if not isinstance(prepared, WordReferences) or prepared.signature != expected:
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        splitting = self._splitting()
        checked = check_hypotheses(
            sentence_ids, buffer, starts, ends, n_sentences=prepared.n_sentences
        )
        hypotheses = splitting.hypotheses(self.normalization.hypotheses(checked))
        few = self._count_few(prepared, hypotheses)
        if few is not None:
            return few
        parts: dict[int, NDArray[np.int32]] = {}

        def count(rows: slice) -> None:
            encoded = encode(
                prepared.words, prepared.n_references, splitting.fold, hypotheses.part(rows)
            )
            parts[rows.start] = self._count(prepared, encoded)

        run_in_threads(count, len(hypotheses.sentence_ids), threads)
        return np.concatenate([parts[start] for start in sorted(parts)])
