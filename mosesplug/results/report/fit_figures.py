"""Figures of learned weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.figures import FIGURES, check_figure, draw_figure
from mosesplug.results.report.palette import BLUE, RED
from mosesplug.results.views.list_statistics import measure_features
from mosesplug.results.views.lists import compute_error_surfaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FitData:
    """The data of the figures of learned weights.

    Attributes:
        start, learned_weights: their weights, divided by the L1 norm of the dense ones.
        steps: a value for each step of the algorithm.
        quantity: what these values are, such as ``loss``.
        report: metric, names, features and surfaces of the lists.
    """

    names: tuple[str, ...]
    start: tuple[float, ...]
    learned_weights: tuple[float, ...]
    steps: tuple[float, ...]
    quantity: str
    report: ReportData


def _draw_weights(figure: Figure, data: FitData) -> None:
    """Draw the weights before and after learning."""
    figure.set_size_inches(4.8, 1.2 + 0.22 * len(data.names))
    axes = figure.subplots()
    places = np.arange(len(data.names))
    axes.barh(places, data.learned_weights, height=0.75, color=BLUE, label="learned")
    axes.scatter(data.start, places, marker="|", s=90, color=RED, label="start", zorder=3)
    axes.axvline(0.0, color="black", linewidth=0.6)
    axes.set_yticks(places, data.names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("weight / L1 norm")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_history(figure: Figure, data: FitData) -> None:
    """Draw the algorithm's score, loss or objective after each step."""
    from matplotlib.ticker import MaxNLocator

    if not data.steps:
        raise UsageError("the algorithm recorded no steps, so there is no history to draw")
    axes = figure.subplots()
    axes.plot(range(1, len(data.steps) + 1), data.steps, "o-", markersize=3, linewidth=1.0)
    axes.set_xlabel("step")
    axes.set_ylabel(data.quantity)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_lists(name: str) -> Callable[[Figure, FitData], None]:
    return lambda figure, data: FIGURES[name](figure, data.report)


FIT_FIGURES: Mapping[str, Callable[[Figure, FitData], None]] = MappingProxyType(
    {
        "weights": _draw_weights,
        "history": _draw_history,
        "surfaces": _draw_lists("surfaces"),
        "features": _draw_lists("features"),
    }
)
"""The figures by name."""


_SHOWN = 40
"""Largest number of weights to draw."""


_QUANTITIES = ("score", "loss", "objective")
"""Values that an algorithm may report for each step; a figure draws the first one present."""


def plot_fit(result: OptimizeResult, figure: str) -> Figure:
    """Return a figure of learned weights.

    Args:
        result: the weights and what they were learned from.
        figure: a name in ``report.fit_figures.FIT_FIGURES``.

    Raises:
        UsageError: there is no such figure, matplotlib is missing, or there are no data for it.
    """
    check_figure(figure, FIT_FIGURES)
    problem, space = result.data.problem, result.data.space
    if figure in ("surfaces", "features") and "lists" not in problem.candidates.answers:
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
    return draw_figure(
        figure,
        FitData(
            names=tuple(names[column] for column in shown),
            start=tuple(start[shown].tolist()),
            learned_weights=tuple(learned[shown].tolist()),
            steps=steps,
            quantity=metric.name if quantity == "score" else quantity,
            report=report,
        ),
        FIT_FIGURES,
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
    return tuple(map(mark_invalid_utf8, space.labels))


def _find_steps(result: OptimizeResult) -> tuple[tuple[float, ...], str]:
    """Return what the algorithm recorded at each step, and its name."""
    history = result.learning.solution.history
    for quantity in _QUANTITIES:
        values = [step[quantity] for step in history if quantity in step]
        if values:
            return tuple(map(float, values)), quantity
    return (), ""
