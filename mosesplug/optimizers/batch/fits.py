"""Fit the active weights of a problem in proportion to the inactive ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.lists.scaled import ScaledLists
from mosesplug.optimizers.problem import Problem

__all__ = ["MarginFit", "WeightFit", "fit_active", "fit_in_proportion", "fit_scaled"]

Floats = NDArray[np.float64]
FitT = TypeVar("FitT", bound="WeightFit")


@dataclass(frozen=True)
class WeightFit:
    """The result of a fit.

    Attributes:
        weights: float64 ``[n_features]``.
        loss: value of the minimised function.
        iterations: of the solver.
        converged: False if the iterations were used up.
    """

    weights: Floats
    loss: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class MarginFit(WeightFit):
    """Weights of a convex problem, in their features' units.

    ``loss`` is the objective, regulariser included; ``iterations`` are the solver's rounds.

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


def fit_in_proportion(
    fixed: Floats, length: float, fit: Callable[[Floats | None, Floats | float], WeightFit]
) -> WeightFit:
    """Fit weights in proportion to inactive ones, which keep their values.

    Inactive weights have a scale of their own. So their score becomes one more feature, that of a
    vector of length 1, and the fitted weights are multiplied by what gives this vector its length
    back. If its weight is not positive, the inactive score is added to the model scores instead.

    Args:
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: of the vector of inactive weights.
        fit: ``(column, offsets)`` to the weights with the smallest loss. A column is one more
            feature, whose weight comes last.
    """
    if not fixed.any():
        return fit(None, 0.0)
    found = fit(fixed / length, 0.0)
    if found.weights[-1] > 0.0:
        return replace(found, weights=found.weights[:-1] * (length / found.weights[-1]))
    return fit(None, fixed)


def fit_active(
    problem: Problem,
    initial: Floats,
    rows_of: Callable[[Floats], Floats],
    fit: Callable[[Floats | None, Floats | float], WeightFit],
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
    found = fit_in_proportion(scores, float(np.linalg.norm(fixed)), fit)
    weights = initial.copy()
    weights[active] = found.weights
    if not weights.any():
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones"
        )
    return weights, found


def fit_scaled(
    problem: Problem, initial: Floats, lists: ScaledLists, fit: Callable[[ScaledLists], FitT]
) -> tuple[Floats, FitT]:
    """Return all weights, and the fit that the active ones come from.

    Inactive weights keep their values (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked.
        lists: the hypotheses with scaled features.
        fit: from lists to weights in their units.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    latest: list[FitT] = []

    def unscaled(column: Floats | None, others: Floats | float) -> WeightFit:
        own = replace(lists, fixed=np.zeros(len(lists.fixed)) + others)
        if column is not None:
            own = lists.with_fixed_column(column)
        found = fit(own)
        latest[:] = [found]
        return replace(found, weights=found.weights / own.units)

    length = float(np.linalg.norm(np.where(problem.active_mask, 0.0, initial)))
    found = fit_in_proportion(lists.fixed, length, unscaled)
    weights = np.where(problem.active_mask, 0.0, initial)
    weights[lists.columns] = found.weights
    if not weights[lists.columns].any():
        early = "" if latest[0].converged else ", or the solver had too few steps"
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones, or "
            f"the regularization is too strong{early}"
        )
    return weights, latest[0]
