"""Sub-gradient steps of RAMPION, compiled.

Weights are kept as their distance from the initial ones, and that as a scale times a vector: what
the regulariser takes from all of them changes one number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import ActiveFeatures, add_difference, row_score

__all__ = ["take_ramp_steps"]

_TINY = 1e-100


@kernel
def take_ramp_steps(
    features: ActiveFeatures,
    offsets: NDArray[np.int64],
    base: NDArray[np.float64],
    fixed: NDArray[np.int64],
    order: NDArray[np.int64],
    step: float,
    shrinkage: float,
    moved: NDArray[np.float64],
) -> None:
    """One step for each sentence in ``order``: ``moved <- shrinkage moved + step (h(f) - h(e))``.

    Args:
        features: of the hypotheses.
        offsets: int64 ``[n_sentences + 1]``.
        base: float64 ``[n_hyps]``; ``e`` has the largest sum of this and ``moved . h``.
        fixed: int64 ``[n_sentences]``, the ``f``: rows.
        order: int64, sentences, any number of times.
        step: eta.
        shrinkage: what the regulariser leaves of the distance.
        moved: in and output, float64 ``[n_columns]``, the distance from the initial weights.
    """
    scale = 1.0
    for sentence in order:
        best, most = offsets[sentence], -np.inf
        for row in range(offsets[sentence], offsets[sentence + 1]):
            merit = base[row] + scale * row_score(features, row, moved)
            if merit > most:
                best, most = row, merit
        scale *= shrinkage
        if scale < _TINY:
            moved *= scale
            scale = 1.0
        if best != fixed[sentence]:
            add_difference(features, fixed[sentence], best, step / scale, moved)
    moved *= scale
