"""Minimize hinge losses to a known duality gap.

Newton's method requires second derivatives, and the hinge has a corner. The corner of ``max(0, z)``
is rounded over a width ``h``, in turn narrower and narrower, each minimum being the next start:

    r(z) = 0 below 0,   z^2 / 2h up to h,   z - h/2 above

The slopes of ``r`` at a minimum are a point of the hinge loss's dual problem, whose value is a
lower bound: the difference, the *duality gap*, limits the distance from the least loss. (Coordinate
steps in the dual, as in Hsieh et al. 2008, need thousands of passes over examples as numerous and
as similar as PRO's.)

With many features most examples end at the corner, and rounded corners cost much unless they are
very narrow, which requires many Newton steps. So, where a slope can be kept for each example, the
next loss is ``max over a in 0..1 of a z - h/2 (a - slope)^2``, rounded about the last slopes
instead of 0: the method of multipliers (Rockafellar 1976), whose gap shrinks faster than ``h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.optimizers.batch.ranking.linear import (
    FeatureMoments,
    LossCurve,
    ScoreLoss,
    compute_moments,
    minimize_score_loss,
)
from mosesplug.optimizers.solvers.bounded import Box
from mosesplug.optimizers.solvers.quasi_newton import Minimum

_WIDEST = 2.0
"""At weights of 0 every ``z`` is 1, half-way between the corner and the straight side."""

_NARROWER = 0.2
_NARROWEST = 1e-9


class HingeLosses(NamedTuple):
    """A sum of hinge losses of scores, exact and rounded.

    Attributes:
        exact: ``scores -> sum of c max(0, 1 - d)``, with ``d`` linear in the scores.
        rounded_loss: ``width -> loss`` with ``r(1 - d)`` instead.
        pull: ``(width, scores) -> sum of c r'(1 - d)``.
        next_losses: ``(width, scores) -> losses`` rounded about the slopes there; None: the same.
    """

    exact: Callable[[Floats], float]
    rounded_loss: Callable[[float], ScoreLoss]
    pull: Callable[[float, Floats], float]
    next_losses: Callable[[float, Floats], HingeLosses] | None = None


def minimize_hinge(
    rows: Any,
    losses: HingeLosses,
    second: FeatureMoments,
    *,
    precision: float,
    offsets: Floats | float = 0.0,
    tolerance: float = 1e-3,
    max_iterations: int = 200,
    box: Box | None = None,
) -> Minimum:
    """Find the weights with the smallest hinge loss and prior.

    Args:
        rows: float64 ``[n, n_features]``, a NumPy or SciPy sparse array.
        losses: returns the losses of the scores ``rows @ weights + offsets``.
        second: ``compute_moments`` of the rows.
        precision: the precision of the prior.
        offsets: float64 ``[n]``, scores that are not fitted.
        tolerance: largest gap, as a share of the loss.
        max_iterations: maximum Newton steps; in a box, of each rounding's L-BFGS.
        box: limits of the weights; None if there are none.
    """
    width, fit, iterations = _WIDEST, Minimum(np.zeros(rows.shape[1]), np.inf, 0, False, -np.inf), 0
    while not fit.has_converged and width > _NARROWEST:
        if box is None and iterations >= max_iterations:
            break
        rounded = losses.rounded_loss(width)
        step = minimize_score_loss(
            rows,
            rounded,
            second,
            precision=precision,
            offsets=offsets,
            start=fit.weights,
            # More precision than the gap can show is useless.
            steepness=0.01 * tolerance,
            max_iterations=max_iterations - (iterations if box is None else 0),
            box=box,
        )
        iterations += step.iterations
        scores = np.asarray(rows @ step.weights + offsets)
        value = losses.exact(scores) + 0.5 * precision * float(step.weights @ step.weights)
        if precision > 0.0 and box is None:
            slopes = rounded(scores).derivatives
            pull = np.asarray(rows.T @ slopes)
            bound = losses.pull(width, scores) + float(np.sum(slopes * offsets))
            bound -= 0.5 / precision * float(pull @ pull)
        else:  # no such dual point is known, but the rounded loss is never larger
            bound = step.loss if step.has_converged else -np.inf
        bound = min(bound, value)
        is_close = value - bound <= tolerance * value
        fit = Minimum(step.weights, value, iterations, is_close, bound)
        if losses.next_losses is not None:
            losses = losses.next_losses(width, scores)
        width *= _NARROWER
    return fit


def fit_hinge(
    examples: Any,
    *,
    precision: float = 1.0,
    offsets: Floats | float = 0.0,
    counts: Floats | float = 1.0,
    tolerance: float = 1e-3,
    box: Box | None = None,
) -> Minimum:
    """Fit a support vector machine: ``sum c max(0, 1 - x . w - offset)`` and a prior.

    Args:
        examples: float64 ``[n_examples, n_features]``, a NumPy or SciPy sparse array (CSR); all of
            one class, such as differences of features. There is no bias.
        precision: the precision of the prior, ``1 / C``.
        offsets: float64 ``[n_examples]``, added to the margins.
        counts: float64 ``[n_examples]``, ``c``, the weight of each example, or of all.
        tolerance: largest duality gap, as a share of the loss.
        box: limits of the weights; None if there are none.
    """

    return minimize_hinge(
        examples,
        _about(np.zeros(examples.shape[0]), counts),
        compute_moments(examples),
        precision=precision,
        offsets=offsets,
        tolerance=tolerance,
        box=box,
    )


def _about(center: Floats, counts: Floats | float) -> HingeLosses:
    """Return ``sum c max(0, 1 - d)``, rounded about slopes, float64 ``[n_examples]``."""

    def slopes(width: float, scores: Floats) -> Floats:
        return np.clip((1.0 - scores) / width + center, 0.0, 1.0)

    def rounded(width: float) -> ScoreLoss:
        def loss(scores: Floats) -> LossCurve:
            own = slopes(width, scores)
            terms = own * (1.0 - scores) - 0.5 * width * (own - center) ** 2
            curved = counts * np.where((own > 0.0) & (own < 1.0), 1.0 / width, 0.0)
            return LossCurve(
                float(np.sum(counts * terms)), -(counts * own), lambda vector: curved * vector
            )

        return loss

    return HingeLosses(
        exact=lambda scores: float((counts * np.maximum(1.0 - scores, 0.0)).sum()),
        rounded_loss=rounded,
        pull=lambda width, scores: float((counts * slopes(width, scores)).sum()),
        next_losses=lambda width, scores: _about(slopes(width, scores), counts),
    )
