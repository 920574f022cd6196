"""Have commands score some hypotheses of merged lists, after the lists are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.learning.watched import WatchedMetric, join_metrics, split_statistics
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True, eq=False)
class DeferredScoring:
    """The texts of merged lists, and the metrics with commands that score them.

    Attributes:
        objective: the metric that is optimized.
        watched: metrics that are reported.
        references: the references, compiled by the joined metric of objective and watched metrics.
        texts: the text of each hypothesis, in the order of the rows.
    """

    objective: Metric
    watched: tuple[Metric, ...]
    references: PreparedReferences
    texts: Sequence[bytes]
    threads: int

    def score(self, lists: TuningSet, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the joined statistics of some rows of the lists, ``[len(rows), width]``.

        Raises:
            DataError: a command failed, or its answer cannot be used.
        """
        owners = np.repeat(lists.sentence_ids, np.diff(lists.offsets))[rows]
        texts = [self.texts[row] for row in rows.tolist()]
        joined = join_metrics(self.objective, self.watched)
        hypotheses = HypothesisRanges.of_lines(texts, owners)
        return joined.statistics(self.references, *hypotheses, threads=self.threads)

    def split(
        self, lists: TuningSet, statistics: NDArray[Any]
    ) -> tuple[TuningSet, tuple[WatchedMetric, ...]]:
        """Return lists with joined statistics; see ``split_statistics``."""
        return split_statistics(replace(lists, stats=statistics), self.objective, self.watched)
