"""The metric protocol: compute statistics once, and scores of their sums often.

A metric turns a hypothesis and its references into a short row of sufficient statistics. Rows of
a corpus are summed, and the score is a function of the sum alone. An optimizer therefore never
sees text: it sums rows and computes scores. References are compiled once, by ``prepare``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import StatisticsTable
from mosesplug.errors import DataError

Smoothing = Literal["lin-och", "moses", "nakov"]
"""Smoothing of the score of a single sentence; formulas: ``metrics.bleu.sentence``."""


@dataclass(frozen=True, kw_only=True)
class PreparedReferences:
    """References compiled for one metric; a metric adds its own tables in a subclass.

    Attributes:
        n_sentences: sentences, the same in every reference; 0 for a metric without references.
        n_references: references of each sentence; 0 for a metric without references, which scores
            any number of sentences.
        signature: the metric's settings, the number of references and the software's version.
            Statistics computed under different signatures must never be mixed.
        fingerprint: hexadecimal digest of every byte of the references. Statistics are valid for
            one signature and one fingerprint.
    """

    n_sentences: int
    n_references: int
    signature: str
    fingerprint: str


class Metric(Protocol):
    """A corpus metric: a function of summed statistics; larger scores are better.

    Algorithms check ``has_bleu_statistics``, ``can_search_graphs`` and ``has_smoothing`` before
    they use a metric, and readers of lists ``needs_texts`` and ``needs_outside``.
    ``UnsmoothedMetric`` implements these for metrics of texts without such capabilities.
    """

    @property
    def name(self) -> str:
        """The name in Moses' spelling, such as ``BLEU``."""

    @property
    def n_statistics(self) -> int:
        """Number of statistics of one hypothesis."""

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic, in column order."""

    def signature(self) -> str:
        """Return the name, settings and version.

        ``PreparedReferences.signature`` adds the number of references.
        """

    def prepare(self, references: Sequence[Sequence[bytes]]) -> PreparedReferences:
        """Compile ``references[k][line]``, tokens separated by blanks.

        Raises:
            DataError: there is no reference, there are more than the metric can use, or they
                differ in their number of lines.
        """

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
        """Return sufficient statistics of ``n`` hypotheses, int32 ``[n, n_statistics]``.

        Args:
            prepared: what this metric's own ``prepare`` returned.
            sentence_ids: int64 ``[n]``; the reference line of each hypothesis, from 0.
            buffer: uint8; the text of all hypotheses, never written.
            starts: int64 ``[n]``; first byte of each hypothesis in ``buffer``.
            ends: int64 ``[n]``; one past its last byte.
            threads: number of threads; the result does not depend on it.

        Raises:
            DataError: a sentence id has no reference.
            ValueError: ``prepared`` belongs to another metric or other settings, or a range is
                outside the buffer.
        """

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return scores of summed statistics, ``[..., n_statistics]`` to ``[...]``.

        Larger is better, and 1 is perfect. The score of an error rate is 1 minus the rate, as in
        Moses; it is below 0 if there are more errors than reference words.
        """

    @property
    def has_bleu_statistics(self) -> bool:
        """Whether statistics are BLEU's, so that expected n-gram counts give its score."""

    @property
    def can_search_graphs(self) -> bool:
        """Whether hope and fear of this metric can be found in search graphs."""

    @property
    def has_smoothing(self) -> bool:
        """Whether ``sentence_scores`` depends on the smoothing."""

    @property
    def needs_texts(self) -> bool:
        """Whether it compares texts with references."""

    @property
    def needs_outside(self) -> bool:
        """Whether it reads scores from outside; see ``outside.compute_statistics``."""

    @property
    def has_doubles(self) -> bool:
        """Whether statistics are float64, as scores of other programs are."""

    @property
    def sentence_metric(self) -> str:
        """The name of the metric that scores single sentences, such as ``BLEU+1``."""

    def sentence_scores(
        self, stats: StatisticsTable, smoothing: Smoothing = "lin-och"
    ) -> NDArray[np.float64]:
        """Return the score of each hypothesis as a corpus of one sentence.

        The score is smoothed if the metric supports this.

        Args:
            smoothing: the variant; ignored without ``has_smoothing``.

        Returns:
            float64 ``[n]``.
        """

    def floor_matches(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return totals of a few sentences with small numbers for zero match counts.

        See ``metrics.few_sentences``; totals of other statistics are returned as they are.

        Args:
            totals: float64 ``[m, n_statistics]``, never written.
        """


class UnsmoothedMetric(ABC):
    """Base of metrics that score a sentence as a corpus of one sentence."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in Moses' spelling."""

    @abstractmethod
    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of summed statistics; see ``Metric.score``."""

    @property
    def has_bleu_statistics(self) -> bool:
        """False: the score is not BLEU."""
        return False

    @property
    def has_smoothing(self) -> bool:
        """False: the score of a sentence is that of a corpus of one."""
        return False

    @property
    def can_search_graphs(self) -> bool:
        """Return False: the score is none of n-grams."""
        return False

    @property
    def needs_texts(self) -> bool:
        """True: it compares texts with references."""
        return True

    @property
    def needs_outside(self) -> bool:
        """False: it reads no scores from outside."""
        return False

    @property
    def has_doubles(self) -> bool:
        """False: statistics are counts."""
        return False

    @property
    def sentence_metric(self) -> str:
        """The metric's own name."""
        return self.name

    def sentence_scores(
        self, stats: NDArray[np.float64], smoothing: Smoothing = "lin-och"
    ) -> NDArray[np.float64]:
        """Return the score of each row of ``stats``; see ``Metric.sentence_scores``."""
        return np.asarray(self.score(stats), dtype=np.float64)

    def floor_matches(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``totals``; see ``Metric.floor_matches``."""
        return totals


def needs_texts(metric: Metric) -> bool:
    """Return whether a metric compares texts with references; True if it does not say."""
    return bool(getattr(metric, "needs_texts", True))


def needs_references(metric: Metric) -> bool:
    """Return whether a metric needs references; as ``needs_texts`` if it does not say."""
    return bool(getattr(metric, "needs_references", needs_texts(metric)))


def needs_outside(metric: Metric) -> bool:
    """Return whether a metric reads scores from outside; False if it does not say."""
    return bool(getattr(metric, "needs_outside", False))


def has_doubles(metric: Metric) -> bool:
    """Return whether the statistics of a metric are float64; False if it does not say."""
    return bool(getattr(metric, "has_doubles", False))


def find_limits(metric: Metric) -> tuple[tuple[str, str], ...]:
    """Return pairs of names of statistics whose first never exceeds the second."""
    return tuple(getattr(metric, "statistics_limits", ()))


def score_sentences(metric: Metric, stats: NDArray[np.number]) -> NDArray[np.float64]:
    """Return the score of each sentence as people see it, float64 ``[n]``.

    Larger is better. For BLEU it is BLEU+1 (Lin & Och 2004), since BLEU of one sentence is mostly
    0. Other metrics score the sentence as a corpus of one.

    Args:
        stats: ``[n, n_statistics]``, one row for each sentence or hypothesis.
    """
    counts = stats.astype(np.float64)
    if metric.has_bleu_statistics:
        return metric.sentence_scores(counts)
    return np.asarray(metric.score(counts), dtype=np.float64)


def check_references(references: Sequence[Sequence[bytes]]) -> int:
    """Check ``references[k][line]`` and return the number of sentences.

    Raises:
        DataError: there is no reference, or they differ in their number of lines.
    """
    if not references:
        raise DataError("there is no reference translation: give at least one reference file")
    n_sentences = len(references[0])
    for number, lines in enumerate(references):
        if len(lines) != n_sentences:
            raise DataError(
                f"reference {number} has {len(lines)} lines and reference 0 has {n_sentences}: "
                "every reference must translate the same sentences, one per line"
            )
    return n_sentences


def reference_fingerprint(references: Sequence[Sequence[bytes]]) -> str:
    """Return a hexadecimal digest (BLAKE2b, 128 bits) of ``references[k][line]``."""
    digest = hashlib.blake2b(digest_size=16)
    for lines in references:
        # Lengths precede the bytes, so different lines never give the same stream.
        lengths = np.fromiter(map(len, lines), dtype="<i8", count=len(lines))
        digest.update(len(lines).to_bytes(8, "little"))
        digest.update(lengths.tobytes())
        digest.update(b"".join(lines))
    return digest.hexdigest()
