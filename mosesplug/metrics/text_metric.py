"""A base for metrics in plain Python: count a hypothesis, score sums of counts.

Metrics of large lists should be kernels over arrays, as those of this package. This base calls
Python once for each distinct hypothesis of a sentence, which is enough for most plug-ins.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.plain import split_hypotheses
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.metrics.reference_metric import ReferenceMetric


@dataclass(frozen=True, kw_only=True)
class TextReferences(PreparedReferences):
    """References as they are.

    Attributes:
        lines: ``lines[sentence][k]``.
    """

    lines: tuple[tuple[bytes, ...], ...]


class TextMetric(ReferenceMetric[TextReferences]):
    """A metric of a few integers per hypothesis, which plain Python counts.

    A subclass is a frozen dataclass whose fields are its settings, with texts as values. It defines
    the attributes below, ``count`` and ``score_totals``.

    Attributes:
        name: the value of ``--metric``.
        version: the version of the software that counts, as ``acme-1.0``. Another version never
            uses the counts of this one.
        statistics_names: the name of each statistic.
    """

    version: ClassVar[str]

    @abstractmethod
    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        """Return the statistics of one hypothesis, 32-bit integers.

        Args:
            references: may be empty if ``needs_references`` is False.
        """

    @abstractmethod
    def score_totals(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of summed statistics, ``[..., n_statistics]`` to ``[...]``."""

    def _settings(self) -> str:
        values: Any = self
        settings = "".join(f"{field.name}:{getattr(self, field.name)}|" for field in fields(values))
        return f"{settings}version:{self.version}"

    def _compile(self, references: Sequence[Sequence[bytes]], **known: Any) -> TextReferences:
        return TextReferences(lines=tuple(zip(*references, strict=True)), **known)

    def _count(
        self, prepared: TextReferences, hypotheses: HypothesisRanges, threads: int
    ) -> NDArray[np.int32]:
        known: dict[tuple[int, bytes], Sequence[int]] = {}
        lines = prepared.lines
        rows = np.empty((len(hypotheses.sentence_ids), self.n_statistics), dtype=np.int32)
        for row, key in enumerate(split_hypotheses(hypotheses)):
            if key not in known:
                known[key] = self.count(key[1], lines[key[0]] if lines else ())
            rows[row] = known[key]
        return rows

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.score_totals(totals), dtype=np.float64)
