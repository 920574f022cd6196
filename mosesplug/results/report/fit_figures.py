"""Figures of learned weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.figures import FIGURES
from mosesplug.results.report.palette import BLUE, RED

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
