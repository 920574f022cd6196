"""Fit the active weights of a problem in proportion to the inactive ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.lists.scaled import ScaledLists
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.bounded import Box, minimize_over_scale

Floats = NDArray[np.float64]
FitT = TypeVar("FitT", bound="WeightFit")


@dataclass(frozen=True)
class WeightFit:
    """The result of a fit.

    Attributes:
        weights: float64 ``[n_features]``.
        loss: value of the minimized function.
        iterations: the number of iterations of the solver.
        has_converged: False if the iterations were used up.
    """

    weights: Floats
    loss: float
    iterations: int
    has_converged: bool


@dataclass(frozen=True)
class MarginFit(WeightFit):
    """Weights of a convex problem, in their features' units.

    ``loss`` is the objective, regularizer included; ``iterations`` are the solver's rounds.

    Attributes:
        bound: value of the dual problem; no weights have a smaller objective.
        rounds: history of the solver's or its caller's rounds.
    """

    bound: float
    rounds: tuple[Mapping[str, Any], ...] = field(default=())

    @property
    def gap(self) -> float:
        """The largest possible distance from the minimum."""
        return self.loss - self.bound


FitFunction = Callable[..., WeightFit]
"""``(column, offsets)`` to the weights with the smallest loss; ``(column, offsets, box)`` if the
problem has bounds. A column is one more feature, whose weight comes last."""


def fit_in_proportion(fixed: Floats, length: float, fit: FitFunction) -> WeightFit:
    """Fit weights in proportion to inactive ones, which keep their values.

    Inactive weights have a scale of their own. So their score becomes one more feature, that of a
    vector of length 1, and the fitted weights are multiplied by what gives this vector its length
    back. If its weight is not positive, the inactive score is added to the model scores instead.

    Args:
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: the length of the vector of inactive weights.
        fit: from ``(column, offsets)``.
    """
    if not fixed.any():
        return fit(None, 0.0)
    found = fit(fixed / length, 0.0)
    if found.weights[-1] > 0.0:
        return replace(found, weights=found.weights[:-1] * (length / found.weights[-1]))
    return fit(None, fixed)


def fit_in_bounds(
    bounds: Bounds | None, fixed: Floats, length: float, fit: FitFunction
) -> WeightFit:
    """Fit weights inside bounds, in proportion to inactive ones.

    Only the proportions of weights decide, and their scale is part of the fit. If the limits are 0
    or infinite, it is fitted as without bounds. Otherwise limits and inactive score are multiplied
    by a scale, the one of the smallest loss, by which the weights are divided in the end.

    Args:
        bounds: the bounds of the fitted weights; None: none.
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: the length of the vector of inactive weights.
        fit: with a box if there are bounds.
    """
    if bounds is None:
        return fit_in_proportion(fixed, length, fit)
    low, high = bounds.box
    if bounds.is_cone():

        def conic(column: Floats | None, offsets: Floats | float) -> WeightFit:
            if column is None:
                return fit(None, offsets, (low, high))
            return fit(column, offsets, (np.append(low, 0.0), np.append(high, np.inf)))

        return fit_in_proportion(fixed, length, conic)

    def scaled(scale: float) -> WeightFit:
        return fit(None, scale * fixed, (scale * low, scale * high))

    scale, _ = minimize_over_scale(scaled, lambda each: each.loss)
    found = scaled(scale)
    return replace(found, weights=found.weights / scale)


def fit_active(
    problem: Problem,
    initial: Floats,
    rows_of: Callable[[Floats], Floats],
    fit: FitFunction,
) -> tuple[Floats, WeightFit]:
    """Return all weights, and the fit that the active ones come from.

    Inactive weights keep their values (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked.
        rows_of: from scores of hypotheses, float64 ``[n_hyps]``, to those of the fit's rows.
        fit: as for ``fit_in_proportion``.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    active = problem.active_mask
    fixed = np.where(active, 0.0, initial)
    scores = rows_of(problem.tuning_set.model_scores(fixed))
    bounds = None if problem.bounds is None else problem.bounds.take(active)
    found = fit_in_bounds(bounds, scores, float(np.linalg.norm(fixed)), fit)
    weights = initial.copy()
    weights[active] = found.weights
    if not weights.any():
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones"
        )
    return weights, found


def fit_scaled(
    problem: Problem, initial: Floats, lists: ScaledLists, fit: Callable[..., FitT]
) -> tuple[Floats, FitT]:
    """Return all weights, and the fit that the active ones come from.

    Inactive weights keep their values (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked.
        lists: the hypotheses with scaled features.
        fit: from lists, and a box if the problem has bounds, to weights in their units.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    latest: list[FitT] = []

    def unscaled(
        column: Floats | None, others: Floats | float, box: Box | None = None
    ) -> WeightFit:
        own = replace(lists, fixed_scores=np.zeros(len(lists.fixed_scores)) + others)
        if column is not None:
            own = lists.with_fixed_column(column)
        found = fit(own) if box is None else fit(own, (box[0] * own.units, box[1] * own.units))
        latest[:] = [found]
        return replace(found, weights=found.weights / own.units)

    length = float(np.linalg.norm(np.where(problem.active_mask, 0.0, initial)))
    bounds = None if problem.bounds is None else problem.bounds.take(lists.columns)
    found = fit_in_bounds(bounds, lists.fixed_scores, length, unscaled)
    weights = np.where(problem.active_mask, 0.0, initial)
    weights[lists.columns] = found.weights
    if not weights[lists.columns].any():
        early = "" if latest[0].has_converged else ", or the solver had too few steps"
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones, or "
            f"the regularization is too strong{early}"
        )
    return weights, latest[0]
