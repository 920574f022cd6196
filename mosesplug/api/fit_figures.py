"""Draw learned weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.inspection.list_statistics import measure_features
from mosesplug.inspection.lists import compute_error_surfaces
from mosesplug.inspection.texts import mark_invalid_utf8
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.reporting.data import ReportData
from mosesplug.reporting.fit_figures import FitData, check_fit_figure, draw_fit_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_fit"]

_SHOWN = 40
"""Largest number of weights to draw."""

_QUANTITIES = ("score", "loss", "objective")
"""What the steps of an algorithm report, the most useful first."""


def plot_fit(result: OptimizeResult, figure: str) -> Figure:
    """Return a figure of learned weights.

    Args:
        result: the weights and what they were learned from.
        figure: a name in ``reporting.fit_figures.FIT_FIGURES``.

    Raises:
        UsageError: there is no such figure, matplotlib is missing, or there are no data for it.
    """
    check_fit_figure(figure)
    problem, space = result.data.problem, result.data.space
    if figure in ("surfaces", "features") and (problem.source or problem.search):
        raise UsageError(f"these weights were learned from search graphs, which have no {figure}")
    learned = _divide_by_norm(result.learning.solution.weights, space)
    start = _divide_by_norm(result.data.start.weights, space)
    shown = _find_shown(space, learned)
    names = _name_columns(space)
    steps, quantity = _find_steps(result)
    metric = problem.metric
    report = ReportData(
        store="",
        metric=metric.name,
        sentence_metric=metric.sentence_metric,
        signature=result.data.signature,
        facts={},
        iterations=(),
        names=names[: space.n_dense],
    )
    if figure == "surfaces":
        surfaces = compute_error_surfaces(problem.tuning_set, metric, learned, report.names)
        report = replace(report, surfaces=surfaces)
    elif figure == "features":
        facts = measure_features([problem.tuning_set], metric, learned, report.names)
        report = replace(report, features=facts)
    return draw_fit_figure(
        figure,
        FitData(
            names=tuple(names[column] for column in shown),
            start=tuple(start[shown].tolist()),
            learned=tuple(learned[shown].tolist()),
            steps=steps,
            quantity=metric.name if quantity == "score" else quantity,
            report=report,
        ),
    )


def _divide_by_norm(weights: NDArray[np.float64], space: FeatureSpace) -> NDArray[np.float64]:
    """Return weights divided by the L1 norm of the dense ones, if there are any."""
    norm = float(np.abs(weights[: space.n_dense] if space.n_dense else weights).sum())
    return weights / norm if norm > 0.0 else weights


def _find_shown(space: FeatureSpace, weights: NDArray[np.float64]) -> list[int]:
    """Return the dense columns and the largest sparse ones, as many as fit."""
    n_dense = min(space.n_dense, _SHOWN)
    sparse = space.n_dense + np.argsort(-np.abs(weights[space.n_dense :]), kind="stable")
    active = [column for column in sparse[: _SHOWN - n_dense].tolist() if weights[column] != 0.0]
    return [*range(n_dense), *active]


def _name_columns(space: FeatureSpace) -> tuple[str, ...]:
    """Return a name for each column: ``LM`` for a single value, ``TM_0`` for several."""
    names = [
        name if width == 1 else f"{name}_{place}"
        for name, width in space.groups
        for place in range(width)
    ]
    return tuple(map(mark_invalid_utf8, (*names, *space.sparse)))


def _find_steps(result: OptimizeResult) -> tuple[tuple[float, ...], str]:
    """Return what the algorithm recorded at each step, and its name."""
    history = result.learning.solution.history
    for quantity in _QUANTITIES:
        values = [step[quantity] for step in history if quantity in step]
        if values:
            return tuple(map(float, values)), quantity
    return (), ""
