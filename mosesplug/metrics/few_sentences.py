"""A corpus metric for a few sentences, such as a mini-batch, or even one.

BLEU is 0 if an order has no match, so a search cannot distinguish such candidates.
Haddow et al. (2011) and Watanabe (2012) use the BLEU of a batch, down to batches of one sentence,
and do not say how they treat these zeros. Watanabe's published program (cicada) counts ``2 ** -n``
matches for an order of n words without a match, and so does this module. An order without n-grams
counts as one unmatched n-gram; cicada omits it, which rewards output shorter than four words.
Scores without such orders are those of the metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.protocol import Metric


@dataclass(frozen=True)
class FewSentences:
    """The score of the summed statistics of a few sentences.

    Attributes:
        metric: the corpus metric; only BLEU, alone or interpolated, is changed.
    """

    metric: Metric

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of ``totals`` ``[..., n_statistics]``: float64 ``[...]``.

        Empty output still scores 0 in BLEU.
        """
        totals = np.ascontiguousarray(totals, dtype=np.float64)
        floored = self.metric.floor_matches(totals.reshape(-1, totals.shape[-1]))
        return self.metric.score(floored.reshape(totals.shape))
