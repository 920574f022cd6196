"""Forward-backward splitting: apply regularisation only when a feature is used.

Duchi & Singer (2009): after a gradient step, the regulariser is applied exactly, by

    argmin_v  |v - w|^2 / 2 + rate * strength * r(v)

with ``r`` the L1 norm (each weight moves towards 0 by ``rate * strength``, at most to 0) or half
the squared L2 norm (each weight is divided by ``1 + rate * strength``). Between two gradients, a
feature only has such steps, and they add up: as distances for L1, as logarithms for L2. The size
of a step is called its *dose*. Learners sum the doses and apply the sum when the feature is updated
or its weight is read, without approximation (Green et al. 2013, section 3.2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Norm", "regularization_dose", "shrink"]

Norm = Literal["l1", "l2"]


def regularization_dose(
    rates: NDArray[np.float64], strength: float, norm: Norm
) -> NDArray[np.float64]:
    """Return the dose of one step of regularisation, float64 of the shape of ``rates``.

    Args:
        rates: learning rates of the step: one per feature, or one for all.
        strength: lambda, at least 0.
        norm: the regulariser.
    """
    if norm == "l1":
        return rates * strength
    return np.log1p(rates * strength)


def shrink(
    weights: NDArray[np.float64], doses: NDArray[np.float64], norm: Norm
) -> NDArray[np.float64]:
    """Return weights after a sum of doses, float64 ``[n]`` (for L1: Green et al. 2013, eq. 15).

    Args:
        weights: float64 ``[n]``.
        doses: float64 ``[n]``, at least 0.
        norm: the regulariser.
    """
    if norm == "l1":
        return np.copysign(np.maximum(np.abs(weights) - doses, 0.0), weights)
    return weights * np.exp(-doses)
