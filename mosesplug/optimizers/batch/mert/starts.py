"""Where the searches of a batch optimizer start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.problem import Problem, normalise

__all__ = ["starting_points"]

Vector = NDArray[np.float64]


def starting_points(
    problem: Problem, initial: Vector, rng: np.random.Generator, restarts: int
) -> tuple[list[Vector], list[Vector]]:
    """Active weights to start from: the initial ones and the historic bests; random ones.

    Args:
        problem: with the further starts, and the box of random ones.
        initial: float64 ``[n_features]``, normalised.
        rng: of the random ones.
        restarts: how many of those.
    """
    active = problem.active_mask
    minima, maxima = (bound[active] for bound in problem.box)
    historic = (normalise(problem, np.asarray(start, np.float64)) for start in problem.starts)
    given = [initial[active], *(start[active] for start in historic)]
    return given, [rng.uniform(minima, maxima) for _ in range(restarts)]
