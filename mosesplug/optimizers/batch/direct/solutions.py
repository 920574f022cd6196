"""What a direct search found, as a solution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.problem import Problem, Solution, corpus_score, normalised

__all__ = ["solution_of"]


def solution_of(
    problem: Problem,
    initial: NDArray[np.float64],
    found: NDArray[np.float64],
    history: tuple[Mapping[str, object], ...],
) -> Solution:
    """The initial weights with the active ones replaced, normalised, and scored by decoding.

    Args:
        problem: the hypotheses.
        initial: float64 ``[n_features]``.
        found: float64 ``[n_active]``, the best that was found.
        history: of the search.

    Raises:
        OptimizerError: all weights are zero.
    """
    weights = initial.copy()
    weights[problem.active_mask] = found
    if not weights.any():
        raise OptimizerError(
            "the search found nothing better than weights that are all zero; start from other "
            "weights, or with more restarts"
        )
    weights = normalised(problem, weights)
    return Solution(weights, corpus_score(problem, weights), history)
