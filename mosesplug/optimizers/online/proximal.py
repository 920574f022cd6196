"""Forward-backward splitting: regularisation that costs nothing until a feature is looked at.

Duchi & Singer (2009): after a gradient step, the regulariser is applied exactly, by

    argmin_v  |v - w|^2 / 2 + rate * strength * r(v)

with ``r`` the L1 norm (each weight goes towards 0 by ``rate * strength`` and stops there) or half
the squared L2 norm (each is divided by ``1 + rate * strength``). Between two gradients a feature
goes through many such steps and nothing else. Steps of one feature commute and add up: as
distances for L1, as logarithms for L2. So a step is a *dose*, doses are summed, and the sum is
applied when the feature is touched again or its weight is asked for, without any approximation
(Green et al. 2013, section 3.2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Norm", "dose", "shrunk"]

Norm = Literal["l1", "l2"]


def dose(rates: NDArray[np.float64], strength: float, norm: Norm) -> NDArray[np.float64]:
    """Return what one step of regularisation adds to the dose, float64 of the shape of ``rates``.

    Args:
        rates: learning rates of the step, by feature or of all.
        strength: lambda, at least 0.
        norm: the regulariser.
    """
    if norm == "l1":
        return rates * strength
    return np.log1p(rates * strength)


def shrunk(
    weights: NDArray[np.float64], doses: NDArray[np.float64], norm: Norm
) -> NDArray[np.float64]:
    """Return weights after a sum of doses, float64 ``[n]``; Green et al. (2013), eq. 15, for L1.

    Args:
        weights: float64 ``[n]``.
        doses: float64 ``[n]``, at least 0.
        norm: the regulariser.
    """
    if norm == "l1":
        return np.copysign(np.maximum(np.abs(weights) - doses, 0.0), weights)
    return weights * np.exp(-doses)
