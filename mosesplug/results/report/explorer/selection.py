"""Choose the hypotheses that a page holds if it has no room for all.

First come the 1-best hypotheses at the weights that the run visited, and the oracles; then those
that ``winners`` ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.protocol import Metric, score_sentences
from mosesplug.tuning_set import TuningSet, find_highest


def find_needed(
    merged: TuningSet, metric: Metric, vectors: Sequence[NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Return the hypotheses without which scores would change, bool ``[n_hyps]``.

    These are the 1-best at the weight vectors, the oracle of each sentence, and hope and fear at
    the last vector.
    """
    needed = np.zeros(merged.n_hyps, dtype=np.bool_)
    for vector in vectors:
        needed[merged.first_best(vector)] = True
    scores = score_sentences(metric, merged.stats)
    model = merged.model_scores(vectors[-1])
    for value in (scores, model + scores, model - scores):
        needed[_find_best(merged.offsets, value, model)] = True
    return needed


def _find_best(
    offsets: NDArray[np.int64], values: NDArray[np.float64], model: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the row of each sentence's highest value; model scores break ties."""
    highest = values[find_highest(offsets, values)]
    widths = np.diff(offsets)
    tied = values == np.repeat(highest, widths[widths > 0])
    return find_highest(offsets, np.where(tied, model, -np.inf))
