"""Starts and results of searches of the active weights.

A search sees the active weights only, float64 ``[n_active]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.problem import Problem, Solution, normalize, score_solution

Vector = NDArray[np.float64]


def starting_points(
    problem: Problem, initial: Vector, rng: np.random.Generator, restarts: int
) -> tuple[list[Vector], list[Vector]]:
    """Return active weights to start from: initial and historic bests; random ones.

    Args:
        problem: with the further starts, and the box of random ones.
        initial: float64 ``[n_features]``, normalized.
        rng: the generator of random numbers.
        restarts: number of random ones.
    """
    active = problem.active_mask
    minima, maxima = (bound[active] for bound in problem.box)
    historic = (_place_start(problem, np.asarray(start, np.float64)) for start in problem.starts)
    given = [initial[active], *(start[active] for start in historic)]
    return given, list(rng.uniform(minima, maxima, (restarts, len(minima))))


def _place_start(problem: Problem, start: Vector) -> Vector:
    """Return a further start, normalized and inside the bounds."""
    start = normalize(problem, start)
    return start if problem.bounds is None else problem.bounds.project(start)


def choose_best(
    problem: Problem, initial: Vector, found: Sequence[Vector], scores: Sequence[float]
) -> int:
    """Return the index of the highest score, in a tie of weights that are not all 0.

    If the inactive weights are all 0, active weights of 0 are no result, whatever they score.

    Args:
        problem: with the active features.
        initial: float64 ``[n_features]``.
        found: active weights, each float64 ``[n_active]``.
        scores: the score of each.
    """
    fixed_count = bool(initial[~problem.active_mask].any())

    def rank(number: int) -> tuple[bool, float, bool]:
        tunes = bool(found[number].any())
        return fixed_count or tunes, scores[number], tunes

    return max(range(len(scores)), key=rank)


def insert_active(problem: Problem, initial: Vector, found: Vector) -> Vector:
    """Return the initial weights with the active ones, ``[n_active]``, replaced.

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
    return weights


def make_solution(
    problem: Problem,
    initial: Vector,
    found: Vector,
    history: tuple[Mapping[str, object], ...],
) -> Solution:
    """Return the weights of ``insert_active``, normalized, and scored by decoding."""
    return score_solution(problem, insert_active(problem, initial, found), history)
