"""Starts and results of searches and fits of the active weights.

A search sees the active weights only, float64 ``[n_active]``. A fit finds them in proportion to the
inactive ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mosesplug.arrays import Floats, Weights
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.lists.scaled import ScaledLists
from mosesplug.optimizers.problem import Problem, Solution, normalize, score_solution
from mosesplug.optimizers.solvers.bounded import Box, minimize_over_scale
from mosesplug.optimizers.solvers.quasi_newton import Minimum


def starting_points(
    problem: Problem, initial: Weights, rng: np.random.Generator, restarts: int
) -> tuple[list[Weights], list[Weights]]:
    """Return active weights to start from: initial and historic bests; random ones.

    Args:
        problem: with the further starts, and the box of random ones.
        initial: normalized.
        rng: the generator of random numbers.
        restarts: number of random ones.
    """
    active = problem.active_mask
    minima, maxima = (bound[active] for bound in problem.box)
    historic = (_place_start(problem, np.asarray(start, np.float64)) for start in problem.starts)
    own = [initial[active], *(start[active] for start in historic)]
    return own, list(rng.uniform(minima, maxima, (restarts, len(minima))))


def _place_start(problem: Problem, start: Weights) -> Weights:
    start = normalize(problem, start)
    return start if problem.bounds is None else problem.bounds.project(start)


def choose_best(
    problem: Problem, initial: Weights, ends: Sequence[Weights], scores: Sequence[float]
) -> int:
    """Return the index of the highest score, in a tie of weights that are not all 0.

    If the inactive weights are all 0, active weights of 0 are no result, whatever they score.

    Args:
        problem: with the active features.
        ends: active weights, each float64 ``[n_active]``.
        scores: the score of each.
    """
    fixed_count = bool(initial[~problem.active_mask].any())

    def rank(number: int) -> tuple[bool, float, bool]:
        tunes = bool(ends[number].any())
        return fixed_count or tunes, scores[number], tunes

    return max(range(len(scores)), key=rank)


def insert_active(problem: Problem, initial: Weights, own: Weights) -> Weights:
    """Return the initial weights with the active ones, ``[n_active]``, replaced.

    Raises:
        OptimizerError: all weights are zero.
    """
    weights = initial.copy()
    weights[problem.active_mask] = own
    if not weights.any():
        raise OptimizerError(
            "the search found nothing better than weights that are all zero; start from other "
            "weights, or with more restarts"
        )
    return weights


def make_solution(
    problem: Problem,
    initial: Weights,
    own: Weights,
    history: tuple[Mapping[str, object], ...],
) -> Solution:
    """Return the weights of ``insert_active``, normalized, and scored by decoding."""
    return score_solution(problem, insert_active(problem, initial, own), history)


FitFunction = Callable[..., Minimum]
"""``(column, offsets)`` to the weights with the smallest loss; ``(column, offsets, box)`` if the
problem has bounds. A column is one more feature, whose weight comes last."""


def fit_in_proportion(fixed: Floats, length: float, fit: FitFunction) -> Minimum:
    """Fit weights in proportion to inactive ones, which keep their values.

    Inactive weights have a scale of their own. So their score becomes one more feature, that of a
    vector of length 1, and the fitted weights are rescaled until this vector has its former length.
    If its weight is not positive, the inactive score is added to the model scores instead.

    Args:
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: the length of the vector of inactive weights.
        fit: from ``(column, offsets)``.
    """
    if not fixed.any():
        return fit(None, 0.0)
    result = fit(fixed / length, 0.0)
    if result.weights[-1] > 0.0:
        return replace(result, weights=result.weights[:-1] * (length / result.weights[-1]))
    return fit(None, fixed)


def fit_in_bounds(bounds: Bounds | None, fixed: Floats, length: float, fit: FitFunction) -> Minimum:
    """Fit weights inside bounds, in proportion to inactive ones.

    Only the proportions of weights decide, and their scale is part of the fit. If the limits are 0
    or infinite, it is fitted as without bounds. Otherwise limits and inactive score are multiplied
    by a scale, the one of the smallest loss, by which the weights are divided in the end.

    Args:
        bounds: the bounds of the fitted weights; None if there are none.
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: the length of the vector of inactive weights.
        fit: with a box if there are bounds.
    """
    if bounds is None:
        return fit_in_proportion(fixed, length, fit)
    low, high = bounds.box
    if bounds.is_cone():

        def conic(column: Floats | None, offsets: Floats | float) -> Minimum:
            if column is None:
                return fit(None, offsets, (low, high))
            return fit(column, offsets, (np.append(low, 0.0), np.append(high, np.inf)))

        return fit_in_proportion(fixed, length, conic)

    def scaled(scale: float) -> Minimum:
        return fit(None, scale * fixed, (scale * low, scale * high))

    scale, _ = minimize_over_scale(scaled, lambda result: result.loss)
    scaled_fit = scaled(scale)
    return replace(scaled_fit, weights=scaled_fit.weights / scale)


def fit_active(
    problem: Problem,
    initial: Weights,
    rows_of: Callable[[Floats], Floats],
    fit: FitFunction,
) -> tuple[Floats, Minimum]:
    """Return all weights, and the fit that the active ones come from.

    Inactive weights keep their values (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        rows_of: from scores of hypotheses, float64 ``[n_hyps]``, to those of the fit's rows.
        fit: as for ``fit_in_proportion``.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    active = problem.active_mask
    fixed = np.where(active, 0.0, initial)
    scores = rows_of(problem.tuning_set.model_scores(fixed))
    bounds = None if problem.bounds is None else problem.bounds.take(active)
    result = fit_in_bounds(bounds, scores, float(np.linalg.norm(fixed)), fit)
    weights = initial.copy()
    weights[active] = result.weights
    if not weights.any():
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones, or "
            "the regularization is too strong"
        )
    return weights, result


def fit_scaled(
    problem: Problem, initial: Weights, lists: ScaledLists, fit: Callable[..., Minimum]
) -> tuple[Floats, Minimum]:
    """Return all weights, and the fit that the active ones come from.

    Inactive weights keep their values (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        lists: the hypotheses with scaled features.
        fit: from lists, and a box if the problem has bounds, to weights in their units.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    latest: list[Minimum] = []

    def unscaled(column: Floats | None, others: Floats | float, box: Box | None = None) -> Minimum:
        own = replace(lists, fixed_scores=np.zeros(len(lists.fixed_scores)) + others)
        if column is not None:
            own = lists.with_fixed_column(column)
        result = fit(own) if box is None else fit(own, (box[0] * own.units, box[1] * own.units))
        latest[:] = [result]
        return replace(result, weights=result.weights / own.units)

    length = float(np.linalg.norm(np.where(problem.active_mask, 0.0, initial)))
    bounds = None if problem.bounds is None else problem.bounds.take(lists.columns)
    result = fit_in_bounds(bounds, lists.fixed_scores, length, unscaled)
    weights = np.where(problem.active_mask, 0.0, initial)
    weights[lists.columns] = result.weights
    if not weights[lists.columns].any():
        early = "" if latest[0].has_converged else ", or the solver had too few steps"
        raise OptimizerError(
            "all weights are zero: the features do not separate good hypotheses from bad ones, or "
            f"the regularization is too strong{early}"
        )
    return weights, latest[0]
