"""Weights that minimise a loss of all hypotheses' scores, beside weights that are not active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.fits import Fit, fit_in_proportion
from mosesplug.optimizers.batch.ranking.linear import (
    FeatureMoments,
    compute_moments,
    feature_rows,
    scale_list_sums,
)
from mosesplug.optimizers.problem import Problem

__all__ = ["ListFit", "fit_score_loss"]

Floats = NDArray[np.float64]

ListFit = Callable[[Any, FeatureMoments, Floats | float], Fit]
"""``(rows, moments within lists, offsets)`` to the best weights: see ``linear.minimise``."""


def fit_score_loss(problem: Problem, initial: Floats, fit: ListFit) -> tuple[Floats, Fit]:
    """All weights, and the fit that the active ones come from.

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked; those that are not active keep their values,
            and the others are found in proportion to them (``fit_in_proportion``).
        fit: minimises a loss that does not change if all scores of a list change by as much.

    Raises:
        OptimizerError: nothing was learnt.
    """
    active, tuning_set = problem.active_mask, problem.tuning_set
    offsets = tuning_set.offsets
    rows = feature_rows(tuning_set, active)
    fixed = np.where(active, 0.0, initial)
    scores = tuning_set.model_scores(fixed)
    filled = np.diff(offsets) > 0
    scores -= np.repeat(scores[offsets[:-1][filled]], np.diff(offsets)[filled])

    def with_column(column: Floats | None, others: Floats | float) -> Fit:
        own = rows if column is None else _beside(rows, column)
        return fit(own, compute_moments(own, scale_list_sums(offsets, own)), others)

    found = fit_in_proportion(scores, float(np.linalg.norm(fixed)), with_column)
    weights = initial.copy()
    weights[active] = found.weights
    if not weights.any():
        raise OptimizerError(
            "the features do not tell good hypotheses from bad ones: the weights are all zero"
        )
    return weights, found


def _beside(rows: Any, column: Floats) -> Any:
    """The rows with one more column, the last."""
    if isinstance(rows, np.ndarray):
        return np.column_stack([rows, column])
    from scipy.sparse import csr_array, hstack

    return hstack([rows, csr_array(column[:, None])], format="csr")
