"""The dual of the worst violation of each sentence, by exchanges of two multipliers.

    min  1/2 |w|^2 + C sum over sentences of max over e of (demand_e - w . (h(o) - h(e)))

with ``o`` the sentence's reference, whose own demand is 0. In the dual problem each hypothesis has
a multiplier ``a_e >= 0``, those of a sentence add up to ``C``, and ``w = sum a_e (h(o) - h(e))``.
Of a sentence, the multiplier with the steepest slope takes from the flattest that has something
(sequential minimal optimisation, Platt 1999; sentence by sentence, Keerthi et al. 2008).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import (
    ActiveFeatures,
    add_difference,
    difference_score,
    difference_square,
)

__all__ = ["exchange_multipliers"]


@kernel
def exchange_multipliers(
    features: ActiveFeatures,
    members: NDArray[np.int64],
    offsets: NDArray[np.int64],
    references: NDArray[np.int64],
    demands: NDArray[np.float64],
    order: NDArray[np.int64],
    exchanges: int,
    tolerance: float,
    multipliers: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """Visit sentences once; the largest difference of slopes in any that was visited, before.

    Args:
        features: of the hypotheses.
        members: int64 ``[n]``, rows; others' multipliers stay 0, and all that are not 0 are here.
        offsets: int64 ``[n_sentences + 1]``; members of sentence ``i`` are
            ``members[offsets[i]:offsets[i + 1]]``.
        references: int64 ``[n_sentences]``, rows.
        demands: float64 ``[n_hyps]``, 0 of references.
        order: int64, sentences.
        exchanges: of a visit, at most.
        tolerance: no exchange where slopes differ by no more.
        multipliers: in and output, float64 ``[n_hyps]``.
        weights: in and output, float64 ``[n_columns]``.
    """
    scratch, largest = np.zeros(len(weights)), 0.0
    for sentence in order:
        for turn in range(exchanges):
            taker = giver = -1
            top, bottom = -np.inf, np.inf
            for row in members[offsets[sentence] : offsets[sentence + 1]]:
                slope = demands[row] + difference_score(
                    features, row, references[sentence], weights
                )
                if slope > top:
                    taker, top = row, slope
                if multipliers[row] > 0.0 and slope < bottom:
                    giver, bottom = row, slope
            if taker < 0 or giver < 0:
                break
            if turn == 0:
                largest = max(largest, top - bottom)
            if top - bottom <= tolerance:
                break
            curvature = difference_square(features, taker, giver, scratch)
            moved = multipliers[giver]
            if curvature * moved > top - bottom:
                moved = (top - bottom) / curvature
            multipliers[taker] += moved
            multipliers[giver] -= moved
            add_difference(features, giver, taker, moved, weights)
    return largest
