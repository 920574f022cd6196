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

from mosesplug.metrics.hypotheses import check_hypotheses
from mosesplug.metrics.protocol import (
    PreparedReferences,
    UnsmoothedMetric,
    check_references,
    reference_fingerprint,
)
from mosesplug.metrics.word_metric import check_totals


@dataclass(frozen=True, kw_only=True)
class TextReferences(PreparedReferences):
    """References as they are.

    Attributes:
        lines: ``lines[sentence][k]``.
    """

    lines: tuple[tuple[bytes, ...], ...]


class TextMetric(UnsmoothedMetric):
    """A metric of a few integers per hypothesis, which plain Python counts.

    A subclass is a frozen dataclass whose fields are its settings, with texts as values. It defines
    the attributes below, ``count`` and ``score_totals``.

    Attributes:
        name: the value of ``--metric``.
        version: the version of the software that counts, as ``acme-1.0``. Another version never
            uses the counts of this one.
        statistics_names: the name of each statistic.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    statistics_names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        """Return the statistics of one hypothesis, 32-bit integers."""

    @abstractmethod
    def score_totals(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of summed statistics, ``[..., n_statistics]`` to ``[...]``."""

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""
        return len(self.statistics_names)

    def signature(self) -> str:
        """Return name, settings and version."""
        return f"{self.name}|{self._settings()}"

    def _settings(self) -> str:
        values: Any = self
        settings = "".join(f"{each.name}:{getattr(self, each.name)}|" for each in fields(values))
        return f"{settings}version:{self.version}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> TextReferences:
        """Keep ``references[k][line]``; see ``Metric.prepare``."""
        return TextReferences(
            n_sentences=check_references(references),
            n_references=len(references),
            signature=f"{self.name}|nrefs:{len(references)}|{self._settings()}",
            fingerprint=reference_fingerprint(references),
            lines=tuple(zip(*references, strict=True)),
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
        if not isinstance(prepared, TextReferences) or prepared.signature != expected:
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        checked = check_hypotheses(
            sentence_ids, buffer, starts, ends, n_sentences=prepared.n_sentences
        )
        text = checked.buffer.tobytes()
        known: dict[tuple[int, bytes], Sequence[int]] = {}
        rows = np.empty((len(checked.sentence_ids), self.n_statistics), dtype=np.int32)
        places = zip(
            checked.sentence_ids.tolist(),
            checked.starts.tolist(),
            checked.ends.tolist(),
            strict=True,
        )
        for row, (sentence, start, end) in enumerate(places):
            key = (sentence, text[start:end])
            if key not in known:
                known[key] = self.count(key[1], prepared.lines[sentence])
            rows[row] = known[key]
        return rows

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return scores of ``totals`` of any number type; see ``Metric.score``."""
        totals = check_totals(self.name, self.n_statistics, totals)
        return np.asarray(self.score_totals(totals), dtype=np.float64)
