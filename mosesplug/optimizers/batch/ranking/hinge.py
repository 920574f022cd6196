"""Hinge losses, which have a corner: minimised to a duality gap that is known.

Newton's method wants second derivatives. The corner of ``max(0, z)`` is made round over a width
``h``, and narrower and narrower in turn, each minimum being the start of the next:

    r(z) = 0 below 0,   z^2 / 2h up to h,   z - h/2 above

The slopes of ``r`` at a minimum are a point of the hinge loss's dual problem, whose value is a
bound from below: the difference, the *duality gap*, says how far from the least loss the weights
can be. (Coordinate steps in the dual, as Hsieh et al. 2008 take them, need thousands of passes
over examples as many and as alike as PRO's.)

With many features most examples end at the corner, and round corners cost much unless they are
very narrow, where Newton's steps are many. So, where a slope can be kept for each example, the next
loss is ``max over a in 0..1 of a z - h/2 (a - slope)^2``, which is round about the last slopes and
not about 0: the method of multipliers (Rockafellar 1976), whose gap shrinks by more than ``h``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.fits import Fit
from mosesplug.optimizers.batch.ranking.linear import (
    FeatureMoments,
    LossCurve,
    ScoreLoss,
    compute_moments,
    minimise_score_loss,
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
        following: ``(width, scores) -> losses`` that are round about the slopes there; None: these
            again.
    """

    exact: Callable[[Floats], float]
    rounded: Callable[[float], ScoreLoss]
    pulled: Callable[[float, Floats], float]
    following: Callable[[float, Floats], HingeLosses] | None = None


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
    second: FeatureMoments,
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
        second: ``compute_moments`` of the rows.
        precision: of the prior.
        offsets: float64 ``[n]``, what is not to be fitted.
        tolerance: the largest gap, as a share of the loss.
        max_iterations: Newton steps at most.
    """
    width, fit, iterations = _WIDEST, HingeFit(np.zeros(rows.shape[1]), np.inf, 0, False), 0
    while not fit.converged and width > _NARROWEST and iterations < max_iterations:
        rounded = losses.rounded(width)
        found = minimise_score_loss(
            rows,
            rounded,
            second,
            precision=precision,
            offsets=offsets,
            start=fit.weights,
            # What the gap cannot tell need not be found.
            steepness=0.01 * tolerance,
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
        if losses.following is not None:
            losses = losses.following(width, scores)
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

    return minimise_hinge(
        examples,
        _about(np.zeros(examples.shape[0])),
        compute_moments(examples),
        precision=precision,
        offsets=offsets,
        tolerance=tolerance,
    )


def _about(centre: Floats) -> HingeLosses:
    """``sum max(0, 1 - d)`` of examples, round about slopes, float64 ``[n_examples]``."""

    def slopes(width: float, scores: Floats) -> Floats:
        return np.clip((1.0 - scores) / width + centre, 0.0, 1.0)

    def rounded(width: float) -> ScoreLoss:
        def loss(scores: Floats) -> LossCurve:
            own = slopes(width, scores)
            value = float(np.sum(own * (1.0 - scores) - 0.5 * width * (own - centre) ** 2))
            curved = np.where((own > 0.0) & (own < 1.0), 1.0 / width, 0.0)
            return LossCurve(value, -own, lambda vector: curved * vector)

        return loss

    return HingeLosses(
        exact=lambda scores: float(np.maximum(1.0 - scores, 0.0).sum()),
        rounded=rounded,
        pulled=lambda width, scores: float(slopes(width, scores).sum()),
        following=lambda width, scores: _about(slopes(width, scores)),
    )
