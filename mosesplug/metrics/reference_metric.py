"""Base of metrics that compare texts with references.

It signs, checks and distributes what is the same for all of them. A subclass says its settings, how
references are compiled, what is counted, and the score of sums of counts.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Scores
from mosesplug.metrics.hypotheses import HypothesisRanges, check_hypotheses
from mosesplug.metrics.protocol import (
    PreparedReferences,
    UnsmoothedMetric,
    check_references,
    reference_fingerprint,
)

Prepared = TypeVar("Prepared", bound=PreparedReferences)


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


def divide(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    otherwise: NDArray[Any] | float,
) -> NDArray[np.float64]:
    """Return quotients, and ``otherwise`` where the denominator is not above 0."""
    quotients = np.array(np.broadcast_to(otherwise, numerators.shape), dtype=np.float64)
    np.divide(numerators, denominators, out=quotients, where=denominators > 0)
    return quotients


def divide_errors(errors: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return error rates: errors divided by words of the references.

    Where there are no words, as for a sentence of silence, the rate is the number of errors: 0 for
    an empty hypothesis, and 1 for each inserted word. jiwer 4 computes the same. (Moses calls all
    hypotheses of an empty reference perfect.)
    """
    return divide(errors, lengths, errors)


class ReferenceMetric(UnsmoothedMetric, Generic[Prepared]):
    """A corpus metric of texts and references; see ``Metric`` for the protocol.

    Attributes:
        name: the name in Moses' spelling.
        statistics_names: the name of each statistic.
        statistics_limits: pairs of names; the first statistic never exceeds the second.
        needs_references: False if a hypothesis alone can be counted.
    """

    name: ClassVar[str]
    statistics_names: ClassVar[tuple[str, ...]]
    statistics_limits: ClassVar[tuple[tuple[str, str], ...]] = ()
    needs_references: ClassVar[bool] = True

    @abstractmethod
    def _settings(self) -> str:
        """Return settings and version, in sacrebleu's spelling."""

    @abstractmethod
    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> Prepared:
        """Return the tables of checked references; ``known`` are the fields of the base."""

    @abstractmethod
    def _count(
        self, prepared: Prepared, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        """Return the statistics of checked hypotheses, ``[n, n_statistics]``."""

    @abstractmethod
    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of summed statistics, ``[..., n_statistics]`` to ``[...]``."""

    def _choose_references(
        self, prepared: Prepared, compare: Callable[[int], NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        """Return statistics with each hypothesis' best reference, the first in a tie.

        Args:
            compare: returns the statistics of all hypotheses against one reference of each
                sentence, by its number.
        """
        best = compare(0)
        for number in range(1, prepared.n_references):
            other = compare(number)
            better = self.score(other) > self.score(best)
            best[better] = other[better]
        return best

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""
        return len(self.statistics_names)

    def signature(self) -> str:
        """Return name, settings and version, in sacrebleu's spelling."""
        return f"{self.name}|{self._settings()}"

    def _sign(self, n_references: int) -> str:
        return f"{self.name}|nrefs:{n_references}|{self._settings()}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> Prepared:
        """Compile ``references[k][line]``; see ``Metric.prepare``."""
        is_compared = bool(references) or self.needs_references
        return self._compile(
            references,
            n_sentences=check_references(references) if is_compared else 0,
            n_references=len(references),
            signature=self._sign(len(references)),
            fingerprint=reference_fingerprint(references),
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
        """Return the statistics of ``n`` hypotheses; see ``Metric.statistics``."""
        # The signature begins with the name, so that equal ones have tables of one type.
        if prepared.signature != self._sign(prepared.n_references):
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        # Without references, any sentence can be counted.
        n_sentences = prepared.n_sentences if prepared.n_references else sys.maxsize
        hypotheses = check_hypotheses(sentence_ids, buffer, starts, ends, n_sentences=n_sentences)
        return self._count(cast(Prepared, prepared), hypotheses, threads)

    def score(self, totals: NDArray[Any]) -> Scores:
        """Return the score of summed statistics of any number type; see ``Metric.score``."""
        return self._score(check_totals(self.name, self.n_statistics, totals))
