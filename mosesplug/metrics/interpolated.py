"""Weighted sums of metrics, such as Moses' ``--sctype BLEU,TER``.

Moses sets the weights by ``--scconfig weights:0.6+0.4``. Statistics of a hypothesis are those of
the first metric, then those of the second, and so on. The score of their sum is the weighted sum of
the metrics' scores; the weights are normalized to sum 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics.outside import combine_fingerprints, compute_statistics
from mosesplug.metrics.protocol import (
    Metric,
    PreparedReferences,
    Smoothing,
    has_doubles,
    needs_outside,
    needs_references,
    needs_texts,
)
from mosesplug.metrics.reference_metric import check_totals


@dataclass(frozen=True, kw_only=True)
class InterpolatedReferences(PreparedReferences):
    """References compiled for each of several metrics.

    Attributes:
        parts: what each metric prepared, in their order.
    """

    parts: tuple[PreparedReferences, ...]


def find_columns(metric: Metric, stored: Metric) -> NDArray[np.int64] | None:
    """Return where a metric's statistics are among those of another metric.

    Parts of weighted sums are found, whatever their weights.

    Returns:
        int64 ``[n_statistics]``; None if the other metric lacks some of them.
    """
    parts, places = list_parts(stored), np.arange(stored.n_statistics, dtype=np.int64)
    of_parts = [
        (part, places[columns]) for part, columns in zip(parts, slice_columns(parts), strict=True)
    ]
    columns = [
        next((columns for other, columns in of_parts if other == part), None)
        for part in list_parts(metric)
    ]
    known = [part for part in columns if part is not None]
    return np.concatenate(known) if len(known) == len(columns) else None


class _Counted(Protocol):
    @property
    def n_statistics(self) -> int: ...


def slice_columns(metrics: Sequence[_Counted]) -> list[slice]:
    """Return the columns of each metric's statistics, which stand side by side."""
    ends = itertools.accumulate((metric.n_statistics for metric in metrics), initial=0)
    return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


def list_parts(metric: Metric) -> tuple[Metric, ...]:
    """Return the metrics of a weighted sum, or a metric alone."""
    return metric.metrics if isinstance(metric, InterpolatedMetric) else (metric,)


@dataclass(frozen=True)
class InterpolatedMetric:
    """A weighted sum of metrics.

    Attributes:
        metrics: at least two, all different.
        weights: one positive weight per metric; equal weights if none are given. They need not
            add up to 1. Moses rejects a weight of 0; a negative one would reward worse output.

    Raises:
        UsageError: there are too few metrics, a metric is repeated, or a weight is invalid.
    """

    metrics: tuple[Metric, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        if len(names) < 2:
            raise UsageError("an interpolated metric needs at least two metrics, as in BLEU,TER")
        if len(set(names)) < len(names):
            raise UsageError(f"{self.name} names a metric twice: give it one weight instead")
        if not self.weights:
            object.__setattr__(self, "weights", (1.0 / len(names),) * len(names))
        if len(self.weights) != len(names):
            raise UsageError(
                f"{self.name} has {len(names)} metrics and {len(self.weights)} weights: "
                "give one weight for each"
            )
        for name, weight in zip(names, self.weights, strict=True):
            if not 0 < weight < math.inf:
                raise UsageError(f"the weight of {name} must be a number above 0, not {weight:g}")

    @property
    def name(self) -> str:
        """The metrics' names, as ``BLEU,TER``."""
        return ",".join(metric.name for metric in self.metrics)

    @property
    def n_statistics(self) -> int:
        """Number of statistics of all metrics."""
        return sum(metric.n_statistics for metric in self.metrics)

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Names of all statistics with the metric's name, as in ``TER.rate_x100``."""
        return tuple(
            f"{metric.name}.{name}" for metric in self.metrics for name in metric.statistics_names
        )

    def signature(self) -> str:
        """Return names, then weights, then the signature of each metric."""
        return self.sign([metric.signature() for metric in self.metrics])

    def sign(self, parts: Sequence[str]) -> str:
        """Return the signature of a sum of metrics with these signatures."""
        # Weights do not change the statistics, but they change the scores.
        weights = "+".join(f"{weight:.12g}" for weight in self.weights)
        return "|".join([self.name, f"weights:{weights}", *parts])

    def prepare(self, references: Sequence[Sequence[bytes]]) -> InterpolatedReferences:
        """Compile ``references[k][line]`` for every metric; see ``Metric.prepare``."""
        parts = tuple(metric.prepare(references) for metric in self.metrics)
        first = next((part for part in parts if part.n_references), parts[0])
        fingerprint, fingerprints = first.fingerprint, [part.fingerprint for part in parts]
        if self.has_doubles or len(set(fingerprints)) > 1:
            fingerprint = combine_fingerprints(fingerprints)
        return InterpolatedReferences(
            n_sentences=first.n_sentences,
            n_references=first.n_references,
            signature=self.sign([part.signature for part in parts]),
            fingerprint=fingerprint,
            parts=parts,
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
        outside: NDArray[np.float64] | None = None,
    ) -> NDArray[Any]:
        """Return statistics of hypotheses; see ``metrics.outside.compute_statistics``."""
        fits = isinstance(prepared, InterpolatedReferences) and prepared.signature == (
            self.sign([part.signature for part in prepared.parts])
        )
        if not isinstance(prepared, InterpolatedReferences) or not fits:
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        return np.concatenate(
            [
                compute_statistics(
                    metric, part, sentence_ids, buffer, starts, ends, outside, threads=threads
                )
                for metric, part in zip(self.metrics, prepared.parts, strict=True)
            ],
            axis=1,
        )

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weighted sum of scores: ``[..., n_statistics]`` to float64 ``[...]``."""
        totals = check_totals(self.name, self.n_statistics, totals)
        return self._weigh(totals, lambda metric, own: metric.score(own))

    def _weigh(
        self, stats: NDArray[np.float64], score: Callable[[Metric, NDArray[np.float64]], Any]
    ) -> NDArray[np.float64]:
        """Return the weighted sum of what each metric scores for its own statistics."""
        scores, whole = np.zeros(stats.shape[:-1]), math.fsum(self.weights)
        parts = zip(self.metrics, self.weights, slice_columns(self.metrics), strict=True)
        for metric, weight, columns in parts:
            scores += weight / whole * score(metric, stats[..., columns])
        return scores

    @property
    def has_bleu_statistics(self) -> bool:
        """False: the rows hold the statistics of several metrics."""
        return False

    @property
    def can_search_graphs(self) -> bool:
        """False: search graphs support only one metric."""
        return False

    @property
    def has_smoothing(self) -> bool:
        """Whether at least one of the metrics has smoothing."""
        return any(metric.has_smoothing for metric in self.metrics)

    @property
    def needs_texts(self) -> bool:
        """Whether at least one of the metrics needs the texts of hypotheses."""
        return any(needs_texts(metric) for metric in self.metrics)

    @property
    def needs_references(self) -> bool:
        """Whether at least one of the metrics needs references."""
        return any(needs_references(metric) for metric in self.metrics)

    @property
    def needs_outside(self) -> bool:
        """Whether at least one of the metrics reads scores from outside."""
        return any(needs_outside(metric) for metric in self.metrics)

    @property
    def has_doubles(self) -> bool:
        """Whether statistics are float64: those of at least one metric are."""
        return any(has_doubles(metric) for metric in self.metrics)

    @property
    def sentence_metric(self) -> str:
        """The metrics' names."""
        return self.name

    def sentence_scores(
        self, stats: NDArray[np.float64], smoothing: Smoothing = "lin-och"
    ) -> NDArray[np.float64]:
        """Return the weighted sum of the sentence scores; see ``Metric.sentence_scores``."""
        return self._weigh(stats, lambda metric, own: metric.sentence_scores(own, smoothing))

    def floor_matches(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply ``Metric.floor_matches`` of each metric to its columns."""
        return np.concatenate(
            [
                metric.floor_matches(np.ascontiguousarray(totals[:, columns]))
                for metric, columns in zip(self.metrics, slice_columns(self.metrics), strict=True)
            ],
            axis=1,
        )
