"""Figures of a run, by matplotlib: each one function of the data, drawn as SVG or PNG.

Figures are drawn without a display and without matplotlib's global state; text stays text, so that
a page's reader can search and copy it. The same data give the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.report.data import ErrorSurface, ReportData
from mosesplug.report.lattice import envelope_figure, lattice_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "available", "png", "surface_png", "svg"]

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def score_curves(figure: Figure, data: ReportData) -> None:
    """Scores over iterations: decoded, reached in the lists, held out, oracle."""
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    for label, style, values in (
        ("oracle of all lists so far", "^:", [facts.oracle for facts in data.iterations]),
        ("reached in the lists", "s--", [facts.optimum for facts in data.iterations]),
        ("decoded", "o-", [facts.score for facts in data.iterations]),
        ("held out", "D-", [facts.held_out for facts in data.iterations]),
    ):
        known = [(n, value) for n, value in zip(numbers, values, strict=True) if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), style, label=label, markersize=4)
    axes.set_ylabel(data.metric)
    _over_iterations(axes, numbers)
    axes.legend()


def weights_over_iterations(figure: Figure, data: ReportData) -> None:
    """The dense weights that each iteration was decoded with, over their L1 norm."""
    if not data.names:
        raise UsageError("this run has no dense features, so there are no weights to draw")
    from matplotlib import colormaps

    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    colours = colormaps["tab20"]
    for column, name in enumerate(data.names):
        values = [facts.weights[column] for facts in data.iterations]
        axes.plot(numbers, values, "o-", label=name, markersize=3, color=colours(column % 20))
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set_ylabel("weight / L1 norm")
    _over_iterations(axes, numbers)
    if len(data.names) <= 30:
        # Given by name: of itself the legend leaves out those that begin with an underscore.
        lines = axes.lines[: len(data.names)]
        axes.legend(lines, data.names, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)


def list_growth(figure: Figure, data: ReportData) -> None:
    """Hypotheses of each iteration's lists, and how many of them were new."""
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    axes.bar(
        numbers, [f.hypotheses for f in data.iterations], color="#cbd5e1", label="in the lists"
    )
    axes.bar(numbers, [f.new_hypotheses for f in data.iterations], color="#2563eb", label="new")
    axes.set_ylabel("hypotheses")
    _over_iterations(axes, numbers)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def times(figure: Figure, data: ReportData) -> None:
    """Seconds of decoder and optimizer."""
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    decoding = np.array([facts.seconds_decoding for facts in data.iterations])
    optimising = np.array([facts.seconds_optimising for facts in data.iterations])
    axes.bar(numbers, decoding, color="#0f766e", label="decoding")
    axes.bar(numbers, optimising, bottom=decoding, color="#f59e0b", label="optimising")
    axes.set_ylabel("seconds")
    _over_iterations(axes, numbers)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def coverage(figure: Figure, data: ReportData) -> None:
    """The best choice among the first hypotheses of each list."""
    if data.coverage is None:
        raise UsageError("this run has no lists in its store, so there is no coverage to draw")
    axes = figure.subplots()
    axes.plot(data.coverage.ranks, data.coverage.scores, "o-", markersize=4, label="oracle")
    axes.axhline(data.coverage.first_best, linestyle="--", color="grey", label="first choice")
    axes.set_xscale("log")
    axes.set_xticks(data.coverage.ranks, [str(rank) for rank in data.coverage.ranks])
    axes.minorticks_off()
    axes.set_xlabel("hypotheses of each list")
    axes.set_ylabel(data.metric)
    axes.legend()


def surfaces(figure: Figure, data: ReportData) -> None:
    """The score as each weight changes, all others staying: one small plot a feature."""
    if not data.surfaces:
        raise UsageError(
            "there are no dense features or no lists in this store, so no surface to draw"
        )
    columns = 3
    rows = -(-len(data.surfaces) // columns)
    figure.set_size_inches(8.0, 1.7 * rows)
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, surface in zip(grid, data.surfaces, strict=False):
        axes.stairs(surface.scores, surface.ends, color="#2563eb", linewidth=0.9, baseline=None)
        axes.axvline(surface.weight, color="#dc2626", linewidth=0.8)
        axes.set_title(surface.name, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in grid[len(data.surfaces) :]:
        axes.remove()
    figure.supylabel(data.metric, fontsize=9)


def features(figure: Figure, data: ReportData) -> None:
    """What each feature contributes, weight times spread, and how it goes with the metric."""
    if not data.features:
        raise UsageError("there are no dense features or no lists in this store, so none to draw")
    figure.set_size_inches(8.0, 0.6 + 0.24 * len(data.features))
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(data.features))
    left.barh(places, [f.weight * f.spread for f in data.features], color="#2563eb")
    right.barh(places, np.nan_to_num([f.correlation for f in data.features]), color="#0f766e")
    left.set_yticks(places, [f.name for f in data.features], fontsize=7)
    left.invert_yaxis()
    left.set_xlabel("weight × spread in a sentence")
    right.set_xlabel(f"correlation with {data.sentence_metric} in a sentence")


Draw = Callable[["Figure", ReportData], None]

FIGURES: Mapping[str, Draw] = MappingProxyType(
    {
        "scores": score_curves,
        "weights": weights_over_iterations,
        "features": features,
        "surfaces": surfaces,
        "growth": list_growth,
        "coverage": coverage,
        "times": times,
        "lattice": lattice_figure,
        "envelope": envelope_figure,
    }
)
"""Every figure by its name."""


def available() -> bool:
    """Whether matplotlib is there."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def svg(name: str, data: ReportData) -> str:
    """A figure as an ``<svg>`` element, without what stands before one in a file.

    Raises:
        UsageError: matplotlib is missing, or this run has nothing of the kind.
    """
    text = _drawn(name, data, format="svg", metadata={"Date": None}).decode()
    return text[text.index("<svg") :]


def png(name: str, data: ReportData, dots_per_inch: int = 300) -> bytes:
    """A figure as a PNG file.

    Raises:
        UsageError: as ``svg``.
    """
    return _drawn(name, data, format="png", dpi=dots_per_inch)


def surface_png(surface: ErrorSurface, metric: str, dots_per_inch: int = 150) -> bytes:
    """One error surface as a PNG file; its name stands below.

    Raises:
        UsageError: matplotlib is missing.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.stairs(surface.scores, surface.ends, color="#2563eb", linewidth=1.0, baseline=None)
        axes.axvline(surface.weight, color="#dc2626", linewidth=0.8)
        axes.set_xlabel(surface.name)
        axes.set_ylabel(metric)

    return _saved(draw, "surface", format="png", dpi=dots_per_inch)


def _drawn(name: str, data: ReportData, **saving: Any) -> bytes:
    return _saved(lambda figure: FIGURES[name](figure, data), name, **saving)


def _saved(draw: Callable[[Figure], None], name: str, **saving: Any) -> bytes:
    if not available():
        raise UsageError("figures need matplotlib: install mosesplug[report]")
    import matplotlib
    from matplotlib.figure import Figure

    # What one figure defines must not be taken for another's on the same page.
    style: Any = {**_STYLE, "svg.hashsalt": f"mosesplug {name}"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.0, 3.4))
        draw(figure)
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # A browser has other fonts than matplotlib; of these, a picture has a box for a sign
            # that they lack, which its reader sees.
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            figure.savefig(buffer, **saving)
    return buffer.getvalue()


def _over_iterations(axes: Axes, numbers: list[int]) -> None:
    """Whole numbers below."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)
