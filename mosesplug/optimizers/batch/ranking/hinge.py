"""Hinge losses, which have a corner: minimised to a duality gap that is known.

Newton's method wants second derivatives. The corner of ``max(0, z)`` is made round over a width
``h``, and narrower and narrower in turn, each minimum being the start of the next:

    r(z) = 0 below 0,   z^2 / 2h up to h,   z - h/2 above

The slopes of ``r`` at a minimum are a point of the hinge loss's dual problem, whose value is a
bound from below: the difference, the *duality gap*, says how far from the least loss the weights
can be. (Coordinate steps in the dual, as Hsieh et al. 2008 take them, need thousands of passes
over examples as many and as alike as PRO's.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.fits import Fit
from mosesplug.optimizers.batch.ranking.linear import (
    Curve,
    Moments,
    ScoreLoss,
    minimise,
    moments,
)

__all__ = ["HingeFit", "HingeLosses", "fit_hinge", "minimise_hinge"]

Floats = NDArray[np.float64]

_WIDEST = 2.0
"""At weights of 0 every ``z`` is 1: as far from the corner as from the straight side."""

_NARROWER = 0.2
_NARROWEST = 1e-9


class HingeLosses(NamedTuple):
    """A sum of hinge losses of scores, as it is and with a round corner.

    Attributes:
        exact: ``scores -> sum of c max(0, 1 - d)``, the ``d`` being linear in the scores.
        rounded: ``width -> loss`` with ``r(1 - d)`` in its place.
        pulled: ``(width, scores) -> sum of c r'(1 - d)``.
    """

    exact: Callable[[Floats], float]
    rounded: Callable[[float], ScoreLoss]
    pulled: Callable[[float, Floats], float]


@dataclass(frozen=True)
class HingeFit(Fit):
    """Where a fit ended.

    Attributes:
        gap: the loss is at most this much above the least; infinite if nothing is known, which
            happens without a prior.
    """

    gap: float = np.inf


def minimise_hinge(
    rows: Any,
    losses: HingeLosses,
    second: Moments,
    *,
    precision: float,
    offsets: Floats | float = 0.0,
    tolerance: float = 1e-3,
    max_iterations: int = 200,
) -> HingeFit:
    """Find the weights with the smallest hinge loss and prior.

    Args:
        rows: float64 ``[n, n_features]``, an array or a SciPy sparse one.
        losses: of the scores ``rows @ weights + offsets``.
        second: ``moments`` of the rows.
        precision: of the prior.
        offsets: float64 ``[n]``, what is not to be fitted.
        tolerance: the largest gap, as a share of the loss.
        max_iterations: Newton steps at most.
    """
    width, fit, iterations = _WIDEST, HingeFit(np.zeros(rows.shape[1]), np.inf, 0, False), 0
    while not fit.converged and width > _NARROWEST and iterations < max_iterations:
        rounded = losses.rounded(width)
        found = minimise(
            rows,
            rounded,
            second,
            precision=precision,
            offsets=offsets,
            start=fit.weights,
            max_iterations=max_iterations - iterations,
        )
        iterations += found.iterations
        scores = np.asarray(rows @ found.weights + offsets)
        value = losses.exact(scores) + 0.5 * precision * float(found.weights @ found.weights)
        if precision > 0.0:
            slopes = rounded(scores).derivatives
            pull = np.asarray(rows.T @ slopes)
            bound = losses.pulled(width, scores) + float(np.sum(slopes * offsets))
            bound -= 0.5 / precision * float(pull @ pull)
        else:  # the dual problem has no such point, but the rounded loss is never larger
            bound = found.loss if found.converged else -np.inf
        gap = max(0.0, value - bound)
        fit = HingeFit(found.weights, value, iterations, gap <= tolerance * value, gap)
        width *= _NARROWER
    return fit


def fit_hinge(
    examples: Any,
    *,
    precision: float = 1.0,
    offsets: Floats | float = 0.0,
    tolerance: float = 1e-3,
) -> HingeFit:
    """A support vector machine without a bias: ``sum max(0, 1 - x . w - offset)`` and a prior.

    Args:
        examples: float64 ``[n_examples, n_features]``, an array or a SciPy sparse one (CSR); all
            of one class, such as features of the better hypotheses less those of the worse.
        precision: of the prior, ``1 / C``.
        offsets: float64 ``[n_examples]``, added to the margins: what is not to be fitted.
        tolerance: the largest duality gap, as a share of the loss.
    """

    def exact(scores: Floats) -> float:
        return float(np.maximum(1.0 - scores, 0.0).sum())

    def rounded(width: float) -> ScoreLoss:
        def loss(scores: Floats) -> Curve:
            missed = 1.0 - scores
            slopes = np.clip(missed / width, 0.0, 1.0)
            value = float(np.sum(slopes * (missed - 0.5 * width * slopes)))
            curved = np.where((slopes > 0.0) & (slopes < 1.0), 1.0 / width, 0.0)
            return Curve(value, -slopes, lambda vector: curved * vector)

        return loss

    def pulled(width: float, scores: Floats) -> float:
        return float(np.clip((1.0 - scores) / width, 0.0, 1.0).sum())

    return minimise_hinge(
        examples,
        HingeLosses(exact, rounded, pulled),
        moments(examples),
        precision=precision,
        offsets=offsets,
        tolerance=tolerance,
    )
