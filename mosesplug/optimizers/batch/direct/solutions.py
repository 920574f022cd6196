"""What a direct search found, as a solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.problem import Problem, Solution, corpus_score, normalise

__all__ = ["choose_best", "make_solution"]


def choose_best(
    problem: Problem,
    initial: NDArray[np.float64],
    found: Sequence[NDArray[np.float64]],
    scores: Sequence[float],
) -> int:
    """The number of the highest score; of equals one of weights that are not all zero.

    Unless inactive weights count, all zero are no result at all, whatever they score.

    Args:
        problem: with the active features.
        initial: float64 ``[n_features]``.
        found: active weights, each float64 ``[n_active]``.
        scores: of each.
    """
    fixed_count = bool(initial[~problem.active_mask].any())

    def merit(number: int) -> tuple[bool, float, bool]:
        tunes = bool(found[number].any())
        return fixed_count or tunes, scores[number], tunes

    return max(range(len(scores)), key=merit)


def make_solution(
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
    weights = normalise(problem, weights)
    return Solution(weights, corpus_score(problem, weights), history)
