"""Figures of a run, drawn by matplotlib as SVG or PNG.

Figures need no display and do not touch matplotlib's global state. Text of an SVG stays text, so
that readers can search and copy it. The same data give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mosesplug.errors import UsageError, suggest
from mosesplug.escapes import escape_controls
from mosesplug.metrics.error_rates import label_metric
from mosesplug.results.report.data import ErrorSurface, ReportData, list_monitors
from mosesplug.results.report.lattice import draw_envelope, draw_lattice
from mosesplug.results.report.palette import AMBER, BLUE, GRAY, RED, TEAL, follow_the_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from mosesplug.results.report.drawing import Drawing

Data = TypeVar("Data")
Rendered = TypeVar("Rendered", str, bytes)

_WIDTH = 4.8
"""Inches. On a screen of 390 pixels, the text of a figure of this width is still readable."""

_SMALL = (2.3, 1.6)
"""Inches of one error surface on a page that has many."""

_SMALL_MARGIN = 0.06
"""Share of its width on the right, for half of a number below the axis."""

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


_COLORED = 20
"""Number of features that have a color and a line of the legend: those with the largest weights.
There are as many colors."""

_LEGEND_COLUMNS = 3
"""Columns of that legend."""

_LABEL = 22
"""Largest number of letters of a feature in a figure: three such labels are as wide as the page."""


def _draw_scores(figure: Figure, data: ReportData) -> None:
    """Draw the scores of iterations, of monitors and of the oracle."""
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    lines: list[tuple[str, str, list[float | None]]] = [
        ("oracle of all lists so far", "^:", [facts.oracle for facts in data.iterations]),
        ("reached in the lists", "s--", [facts.optimum for facts in data.iterations]),
        ("decoded", "o-", [facts.score for facts in data.iterations]),
        ("held out", "D-", [facts.held_out for facts in data.iterations]),
        *(
            (name, ".-.", [facts.monitors.get(name) for facts in data.iterations])
            for name in list_monitors(data.iterations)
        ),
    ]
    for label, style, values in lines:
        known = [(n, value) for n, value in zip(numbers, values, strict=True) if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), style, label=label, markersize=4)
    axes.set_ylabel(label_score(data))
    _over_iterations(axes, numbers)
    _add_legend_above(axes)


def _draw_weights(figure: Figure, data: ReportData) -> None:
    """Draw the dense weights that decoded each iteration, divided by their L1 norm."""
    if not data.names:
        raise UsageError("this run has no dense features, so there are no weights to draw")
    from matplotlib import colormaps

    last = [abs(weight) for weight in data.iterations[-1].weights]
    heaviest = sorted(range(len(last)), key=lambda column: -last[column])
    colored = sorted(heaviest[:_COLORED])
    # The legend needs as much room as it has lines.
    figure.set_size_inches(_WIDTH, 3.0 + 0.16 * -(-len(colored) // _LEGEND_COLUMNS))
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]

    def draw(column: int, **style: Any) -> Line2D:
        values = [facts.weights[column] for facts in data.iterations]
        return axes.plot(numbers, values, **style)[0]

    colors = colormaps["tab20"]
    # The others first, so that they are behind.
    others = [
        draw(column, color=GRAY, linewidth=0.8, alpha=0.5)
        for column in range(len(last))
        if column not in colored
    ]
    lines = [
        draw(column, color=colors(place), marker="o", markersize=3)
        for place, column in enumerate(colored)
    ]
    names = [_clip(data.names[column]) for column in colored]
    if others:
        lines, names = [*lines, others[0]], [*names, f"{len(others)} more"]
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set_ylabel("weight / L1 norm")
    _over_iterations(axes, numbers)
    # Explicit, since matplotlib leaves out labels that begin with an underscore.
    axes.legend(
        lines,
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.18),
        ncols=_LEGEND_COLUMNS,
        fontsize=7,
    )


def _draw_growth(figure: Figure, data: ReportData) -> None:
    """Draw the numbers of all and of new hypotheses of each iteration."""
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    axes.bar(numbers, [f.hypotheses for f in data.iterations], color=GRAY, label="in the lists")
    axes.bar(numbers, [f.new_hypotheses for f in data.iterations], color=BLUE, label="new")
    axes.set_ylabel("hypotheses")
    _over_iterations(axes, numbers)
    _add_legend_above(axes)


def _draw_times(figure: Figure, data: ReportData) -> None:
    """Draw the seconds of decoder and optimizer."""
    if not has_times(data):
        raise UsageError("the times of this run are unknown: choose another figure")
    axes = figure.subplots()
    numbers = [facts.number for facts in data.iterations]
    decoding = np.array([facts.seconds_decoding for facts in data.iterations])
    optimizing = np.array([facts.seconds_optimizing for facts in data.iterations])
    axes.bar(numbers, decoding, color=TEAL, label="decoding")
    axes.bar(numbers, optimizing, bottom=decoding, color=AMBER, label="optimizing")
    axes.set_ylabel("seconds")
    _over_iterations(axes, numbers)
    _add_legend_above(axes)


def _draw_coverage(figure: Figure, data: ReportData) -> None:
    """Draw the oracle's score among the first hypotheses of each list."""
    if data.coverage is None:
        raise UsageError("this run has no lists in its store, so there is no coverage to draw")
    axes = figure.subplots()
    axes.plot(data.coverage.ranks, data.coverage.scores, "o-", markersize=4, label="oracle")
    axes.axhline(data.coverage.first_best, linestyle="--", color="gray", label="1-best")
    axes.set_xscale("log")
    axes.set_xticks(data.coverage.ranks, [str(rank) for rank in data.coverage.ranks])
    axes.minorticks_off()
    axes.set_xlabel("hypotheses of each list")
    axes.set_ylabel(label_score(data))
    _add_legend_above(axes)


def _draw_surfaces(figure: Figure, data: ReportData) -> None:
    """Draw the score as a function of each weight, one small plot a feature."""
    if not data.surfaces:
        raise UsageError(
            "there are no dense features or no lists in this store, so no surface to draw"
        )
    columns = min(3, len(data.surfaces))
    rows = -(-len(data.surfaces) // columns)
    figure.set_size_inches(_SMALL[0] * columns, max(2.2, _SMALL[1] * rows))
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, surface in zip(grid, data.surfaces, strict=False):
        _draw_surface(axes, surface)
    for axes in grid[len(data.surfaces) :]:
        axes.remove()
    figure.supylabel(label_score(data), fontsize=9)


def _draw_surface(axes: Axes, surface: ErrorSurface) -> None:
    # Not axes.stairs, which takes ten times as long for thousands of steps.
    heights = np.append(surface.scores, surface.scores[-1])
    axes.plot(surface.ends, heights, drawstyle="steps-post", color=BLUE, linewidth=0.9)
    axes.axvline(surface.weight, color=RED, linewidth=0.8)
    axes.set_title(_clip(surface.name), fontsize=8)
    axes.tick_params(labelsize=8)


def _draw_features(figure: Figure, data: ReportData) -> None:
    """Draw weight times spread of each feature, and its correlation with the metric."""
    if not data.features:
        raise UsageError("there are no dense features or no lists in this store, so none to draw")
    figure.set_size_inches(_WIDTH, 0.8 + 0.22 * len(data.features))
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(data.features))
    left.barh(places, [f.weight * f.spread for f in data.features], color=BLUE)
    right.barh(places, np.nan_to_num([f.correlation for f in data.features]), color=TEAL)
    left.set_yticks(places, [_clip(f.name) for f in data.features], fontsize=7)
    left.invert_yaxis()
    left.set_xlabel("weight × spread", fontsize=8)
    right.set_xlabel(f"correlation with {label_sentence_score(data)}", fontsize=8)


FIGURES: Mapping[str, Callable[[Figure, ReportData], None]] = MappingProxyType(
    {
        "scores": _draw_scores,
        "weights": _draw_weights,
        "features": _draw_features,
        "surfaces": _draw_surfaces,
        "growth": _draw_growth,
        "coverage": _draw_coverage,
        "times": _draw_times,
        "lattice": draw_lattice,
        "envelope": draw_envelope,
    }
)
"""The figures by name."""

GRAPH_FIGURES = frozenset({"lattice", "envelope"})
"""Those of the search graph of one sentence."""


def label_score(data: ReportData) -> str:
    """Return the label of corpus scores; those of an error rate are 1 minus the rate."""
    return label_metric(data.metric, data.signature)


def label_sentence_score(data: ReportData) -> str:
    """Return the label of sentence scores."""
    return label_metric(data.sentence_metric, data.signature)


def has_times(data: ReportData) -> bool:
    """Return whether times are known, unlike those of imported lists."""
    return any(f.seconds_decoding or f.seconds_optimizing for f in data.iterations)


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def check_figure(name: str, figures: Collection[str] = FIGURES) -> None:
    """Check that a figure exists and can be drawn.

    Raises:
        UsageError: there is no such figure, or matplotlib is missing.
    """
    if name not in figures:
        raise UsageError(
            f"there is no figure {name!r}: there are {', '.join(figures)}{suggest(name, figures)}"
        )
    require_matplotlib()


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        UsageError: it is not.
    """
    if not has_matplotlib():
        raise UsageError("figures need matplotlib: pip install 'mosesplug[report]'")


def draw_figure(
    name: str, data: Data, figures: Mapping[str, Callable[[Figure, Data], None]] | None = None
) -> Drawing:
    """Return a figure of matplotlib, which notebooks show as a picture.

    Args:
        name: a name in ``figures``.
        data: what to draw.
        figures: how each is drawn; None for ``FIGURES``.

    Raises:
        UsageError: there is no such figure, matplotlib is missing, or there are no data for it.
    """
    known: Mapping[str, Callable[[Figure, Any], None]] = FIGURES if figures is None else figures
    check_figure(name, known)
    return _draw_with_style(lambda figure: known[name](figure, data))


def render_svg(name: str, data: ReportData) -> str:
    """Return a figure as an ``<svg>`` element in the colors of its page.

    Raises:
        UsageError: matplotlib is missing, or the run has no data for this figure.
    """
    return _save_svg(lambda figure: FIGURES[name](figure, data), name, name)


def render_surface_svgs(data: ReportData) -> list[str]:
    """Return each error surface as a small ``<svg>`` element, with common ranges.

    Raises:
        UsageError: matplotlib is missing.
    """
    scores = [score for surface in data.surfaces for score in surface.scores.tolist()]
    margin = 0.05 * (max(scores) - min(scores)) or 0.01
    place: tuple[float, float, float, float] | None = None

    def draw(figure: Figure, surface: ErrorSurface) -> None:
        nonlocal place
        figure.set_size_inches(*_SMALL)
        axes = figure.subplots()
        _draw_surface(axes, surface)
        axes.set_ylim(min(scores) - margin, max(scores) + margin)
        # With common ranges, the layout of one figure fits all; it takes longer than drawing.
        if place is None:
            figure.draw_without_rendering()
            left, bottom, _, height = axes.get_position().bounds
            place = left, bottom, 1.0 - left - _SMALL_MARGIN, height
        figure.set_layout_engine("none")
        axes.set_position(place)

    return [
        _save_svg(
            partial(draw, surface=surface), f"surface {number}", f"error surface of {surface.name}"
        )
        for number, surface in enumerate(data.surfaces)
    ]


def _save_svg(draw: Callable[[Figure], None], name: str, label: str) -> str:
    """Return a figure that screen readers name instead of reading its ticks."""
    text = _save(draw, name, lambda drawing: drawing.render_svg())
    start = f'<svg role="img" aria-label="{escape(escape_controls(label))}"'
    return follow_the_page(text[text.index("<svg") :].replace("<svg", start, 1))


def render_png(name: str, data: ReportData, dots_per_inch: int) -> bytes:
    """Return a figure as a PNG file.

    Raises:
        UsageError: as for ``render_svg``.
    """
    return _save(
        lambda figure: FIGURES[name](figure, data),
        name,
        lambda drawing: drawing.render_png(dots_per_inch),
    )


def render_surface_png(surface: ErrorSurface, metric: str) -> bytes:
    """Return one error surface as a PNG file.

    Raises:
        UsageError: matplotlib is missing.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _draw_surface(axes, surface)
        axes.set_title("")
        axes.set_xlabel(surface.name)
        axes.set_ylabel(metric)

    return _save(draw, "surface", lambda drawing: drawing.render_png(150))


def _save(
    draw: Callable[[Figure], None], name: str, render: Callable[[Drawing], Rendered]
) -> Rendered:
    require_matplotlib()
    import matplotlib

    # Identifiers of the figures on one page must differ.
    style: Any = {**_STYLE, "svg.hashsalt": f"mosesplug {name}"}
    with matplotlib.rc_context(style):
        return render(_draw_with_style(draw))


def _draw_with_style(draw: Callable[[Figure], None]) -> Drawing:
    """Return a matplotlib figure that ``draw`` has drawn on, in the report's style."""
    import matplotlib

    from mosesplug.results.report.drawing import Drawing

    style: Any = _STYLE
    with matplotlib.rc_context(style):
        figure = Drawing(figsize=(_WIDTH, 3.0))
        draw(figure)
    return figure


def _clip(name: str) -> str:
    """Shorten a long name to ``_LABEL`` letters; more leave no room for the figure."""
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 10]}…{name[-9:]}"


def _add_legend_above(axes: Axes) -> None:
    """Add a legend where it hides nothing."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8)


def _over_iterations(axes: Axes, numbers: list[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlim(numbers[0] - 0.5, numbers[-1] + 0.5)
