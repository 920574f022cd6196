"""Binary logistic regression with a Gaussian prior and no bias, on sparse data.

The classifier of ``megam -nobias binary`` (Daumé III 2004, "Notes on CG and LM-BFGS optimization of
logistic regression"): the weights ``w`` with the smallest

    sum over examples of  c (log(1 + exp(m)) - y m),   m = x . w + offset,   plus  precision/2 |w|^2

where the label ``y`` is 1, 0, or a probability, and ``c`` the weight of the example. The loss is
convex; with a positive precision it has one minimum, which L-BFGS finds. MT features differ in
scale by orders of magnitude, which slows down L-BFGS: it works on weights in units of the curvature
at 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.solvers.bounded import Box, minimize
from mosesplug.optimizers.solvers.quasi_newton import Minimum

_MEMORY = 20
"""Steps that estimate the curvature."""

_STEEPNESS = 1e-7
"""The fit has converged when no component of the gradient, in units of the curvature, is larger
than this times the square root of the number of examples; rounding of the sums is smaller."""


def logistic_loss(
    weights: NDArray[np.float64],
    examples: Any,
    labels: NDArray[np.float64],
    precision: float,
    offsets: NDArray[np.float64] | float = 0.0,
    counts: NDArray[np.float64] | float = 1.0,
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss of ``fit_logistic`` and its gradient, float64 ``[n_features]``."""
    margins = examples @ weights + offsets
    # Neither exponential overflows: log(1 + exp(m)), and the logistic function of m.
    losses = np.maximum(margins, 0.0) + np.log1p(np.exp(-np.abs(margins))) - labels * margins
    loss = (counts * losses).sum()
    gradient = examples.T @ (counts * (0.5 + 0.5 * np.tanh(0.5 * margins) - labels))
    return (
        float(loss + 0.5 * precision * (weights @ weights)),
        np.asarray(gradient + precision * weights),
    )


def fit_logistic(
    examples: Any,
    labels: NDArray[np.float64],
    *,
    precision: float = 1.0,
    offsets: NDArray[np.float64] | float = 0.0,
    max_iterations: int = 1000,
    box: Box | None = None,
    penalties: NDArray[np.float64] | None = None,
    counts: NDArray[np.float64] | float = 1.0,
) -> Minimum:
    """Fit the weights.

    Args:
        examples: SciPy sparse array (CSR), float64 ``[n_examples, n_features]``.
        labels: float64 ``[n_examples]``, 0 to 1.
        precision: the precision of the prior, 1 over its variance; ``megam -lambda``, whose default
            is 1.
        offsets: float64 ``[n_examples]``, added to the margins.
        max_iterations: the maximum number of iterations of L-BFGS; ``megam -maxi``.
        box: limits of the weights; None if there are none.
        penalties: float64 ``[n_features]``, the factor of each ``|w|`` that is added to the loss;
            None: 0.
        counts: float64 ``[n_examples]``, the weight of each example, or of all.
    """
    n_examples, n_features = examples.shape
    squares = examples.multiply(examples)
    if not np.isscalar(counts):
        squares = squares.multiply(np.asarray(counts)[:, None]).tocsr()
    curvature = 0.25 * np.asarray(squares.sum(axis=0)) + precision
    unit = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))

    def scaled_loss(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        loss, gradient = logistic_loss(unit * scaled, examples, labels, precision, offsets, counts)
        return loss, unit * gradient

    fit = minimize(
        scaled_loss,
        np.zeros(n_features),
        box=None if box is None else (box[0] / unit, box[1] / unit),
        penalties=None if penalties is None else penalties * unit,
        memory=_MEMORY,
        max_iterations=max_iterations,
        steepness=_STEEPNESS * math.sqrt(max(1, n_examples)),
        decrease=0.0,
    )
    return replace(fit, weights=unit * fit.weights)
