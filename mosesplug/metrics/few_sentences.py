"""A corpus metric for a handful of sentences, such as a mini-batch, down to one.

BLEU is 0 where any order has no match, and then all choices are alike to whoever looks for the
best. Haddow et al. (2011) and Watanabe (2012) take the BLEU of a batch as it is, down to batches of
one sentence, and do not say what becomes of these zeros. Watanabe's published program (cicada)
counts an order of n words without a match as having matched ``2 ** -n`` times; so does this. An
order without n-grams, which that program leaves out and so rewards output shorter than four words,
counts as one n-gram that was not matched. Scores without such orders are those of the metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.metrics.bleu import ORDER
from mosesplug.metrics.interpolated import Interpolated
from mosesplug.metrics.protocol import Metric

__all__ = ["FewSentences"]


@dataclass(frozen=True)
class FewSentences:
    """What scores the summed statistics of a few sentences.

    Attributes:
        metric: that of the corpus: BLEU, a mixture with it, or any other, which stays as it is.
    """

    metric: Metric

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Score of ``totals`` ``[..., n_statistics]``: float64 ``[...]``.

        No output at all still scores 0 in BLEU.
        """
        totals = np.ascontiguousarray(totals, dtype=np.float64)
        for first in _bleu_columns(self.metric):
            floored = _floored(totals.reshape(-1, totals.shape[-1]), first)
            totals = floored.reshape(totals.shape)
        return self.metric.score(totals)


def _bleu_columns(metric: Metric) -> list[int]:
    """The first statistic of BLEU, if it is there."""
    parts = metric.metrics if isinstance(metric, Interpolated) else (metric,)
    starts = np.cumsum([0, *(part.n_statistics for part in parts)]).tolist()
    return [start for start, part in zip(starts, parts, strict=False) if part.name == "BLEU"]


@kernel
def _floored(totals: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    """The rows with a share of a match where there is none; a copy, float64 ``[m, n]``.

    Args:
        totals: float64 ``[m, n]``.
        first: column of BLEU's first statistic.
    """
    floored = totals.copy()
    for row in range(len(floored)):
        least = 1.0
        for order in range(ORDER):
            least *= 0.5
            match, total = first + 2 * order, first + 2 * order + 1
            floored[row, match] = max(floored[row, match], least)
            if order > 0:  # the total of single words is the length, too
                floored[row, total] = max(floored[row, total], 1.0)
    return floored
