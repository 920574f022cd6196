"""Tuning problems small enough to know the answer to, which the checks of plug-ins share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.line_search.lists import LineSpace, line_space
from mosesplug.optimizers.problem import Problem
from mosesplug.testing.problems import (
    Accuracy,
    planted,
    planted_bleu,
    planted_for,
    tuning_set,
    with_bleu,
)

__all__ = [
    "Accuracy",
    "planted",
    "planted_bleu",
    "planted_for",
    "space_of",
    "tuning_set",
    "with_bleu",
]


def space_of(problem: Problem, weights: NDArray[np.float64]) -> LineSpace:
    """Return the lists of a problem for line search."""
    return line_space(problem.tuning_set, problem.metric, problem.active_mask, weights)
