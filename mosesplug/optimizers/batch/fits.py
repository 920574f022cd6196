"""Weights that a learner fits, alone or beside weights that are not its own to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "fit_in_proportion"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Where a fit ended.

    Attributes:
        weights: float64 ``[n_features]``.
        loss: the minimised function there.
        iterations: of the solver.
        converged: whether this is the minimum; if not, the iterations were used up.
    """

    weights: Floats
    loss: float
    iterations: int
    converged: bool


def fit_in_proportion(
    fixed: Floats, length: float, fit: Callable[[Floats | None, Floats | float], Fit]
) -> Fit:
    """Fit weights in proportion to others that keep their values.

    Inactive weights have a scale of their own, which is not the fit's. Their score is therefore
    one more feature, that of a vector of length 1, and the others are multiplied by what gives it
    back its length; unless its weight is not positive, when the inactive score is taken as it is.

    Args:
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: of the vector of inactive weights.
        fit: ``(column, offsets)`` to the weights with the smallest loss; where there is a column
            it is one more feature, and its weight comes last.
    """
    if not fixed.any():
        return fit(None, 0.0)
    found = fit(fixed / length, 0.0)
    if found.weights[-1] > 0.0:
        return replace(found, weights=found.weights[:-1] * (length / found.weights[-1]))
    return fit(None, fixed)
