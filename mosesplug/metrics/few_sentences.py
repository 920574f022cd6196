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
        """Return score of ``totals`` ``[..., n_statistics]``: float64 ``[...]``.

        No output at all still scores 0 in BLEU.
        """
        totals = np.ascontiguousarray(totals, dtype=np.float64)
        floored = self.metric.floor_matches(totals.reshape(-1, totals.shape[-1]))
        return self.metric.score(floored.reshape(totals.shape))
