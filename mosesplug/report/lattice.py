"""A small search graph as a picture: its edges with their words, and its envelope below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.report.data import LatticeFacts, ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["envelope_figure", "lattice_figure"]

_LONGEST = 60
_COLOURS = ("#2563eb", "#dc2626", "#0f766e", "#f59e0b", "#7c3aed", "#db2777", "#0891b2", "#65a30d")


def lattice_figure(figure: Figure, data: ReportData) -> None:
    """Nodes from left to right by their distance from the start, an arc for each edge."""
    facts = _lattice(data)
    if not facts.edges:
        raise UsageError(
            f"the search graph of sentence {facts.sentence} joins several nodes by one edge: such "
            "a graph is not drawn; its envelope is"
        )
    places = _places(facts)
    figure.set_size_inches(9.0, 1.4 + 0.75 * (1 + max(y for _, y in places.values())))
    axes = figure.subplots()
    axes.set_axis_off()
    seen: dict[tuple[int, int], int] = {}
    for start, end, words in facts.edges:
        parallel = seen[start, end] = seen.get((start, end), -1) + 1
        _arc(axes, places[start], places[end], words, 0.18 + 0.4 * parallel)
    x, y = zip(*places.values(), strict=True)
    axes.scatter(x, y, s=90, color="white", edgecolor="black", zorder=3)
    axes.scatter(*places[max(places)], s=30, color="black", zorder=4)
    axes.set_xlim(-0.3, max(x for x, _ in places.values()) + 0.3)
    axes.margins(y=0.25)
    axes.autoscale_view(scalex=False)
    axes.set_title(
        f"sentence {facts.sentence}: the best {len(facts.edges)} of {facts.whole} edges", fontsize=9
    )


def _arc(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], words: str, bend: float
) -> None:
    """An arrow that is bent upwards, with words at its highest point."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]) + bend * (end[0] - start[0]))
    curve = Path([start, middle, end], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    axes.add_patch(
        FancyArrowPatch(
            path=curve, arrowstyle="-|>", color="#64748b", mutation_scale=9, shrinkA=6, shrinkB=6
        )
    )
    # A quarter from either end and half from the middle: the curve's own middle.
    place = (middle[0], 0.25 * (start[1] + end[1]) + 0.5 * middle[1])
    axes.text(
        *place,
        words,
        fontsize=7.5,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
    )


def _places(facts: LatticeFacts) -> dict[int, tuple[float, float]]:
    """Node to place: right by the longest way from the start, nodes of one distance spread up."""
    depth: dict[int, int] = {0: 0}
    for start, end, _ in facts.edges:
        depth[end] = max(depth.get(end, 0), depth.get(start, 0) + 1)
    by_depth: dict[int, list[int]] = {}
    for node in sorted(depth):
        by_depth.setdefault(depth[node], []).append(node)
    tallest = max(map(len, by_depth.values()))
    return {
        node: (float(column), level + 0.5 * (tallest - len(nodes)))
        for column, nodes in sorted(by_depth.items())
        for level, node in enumerate(nodes)
    }


def envelope_figure(figure: Figure, data: ReportData) -> None:
    """Model score of the translations that win, and below it the metric of the one that does."""
    facts = _lattice(data)
    figure.set_size_inches(8.0, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    cuts = [line.end for line in facts.lines[:-1]]
    low, high = min([*cuts, facts.weight]), max([*cuts, facts.weight])
    margin = 0.15 * (high - low) or 0.5
    span = np.array([low - margin, high + margin])
    for number, line in enumerate(facts.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        scores = line.intercept + line.slope * (span - facts.weight)
        label = line.text if len(line.text) <= _LONGEST else line.text[: _LONGEST - 3] + "..."
        upper.plot(span, scores, color=colour, linewidth=0.6, alpha=0.5)
        inside = np.clip([line.start, line.end], *span)
        upper.plot(
            inside,
            line.intercept + line.slope * (inside - facts.weight),
            color=colour,
            linewidth=2.2,
            label=label,
        )
        if line.score is not None:
            lower.plot(inside, [line.score, line.score], color=colour, linewidth=2.2)
    for axes in (upper, lower):
        axes.axvline(facts.weight, color="black", linewidth=0.7, linestyle=":")
    upper.set_ylabel("model score")
    lower.set_ylabel(f"{data.metric} of the sentence")
    lower.set_xlabel(f"weight of {facts.feature} (dotted: the result)")
    upper.legend(fontsize=6.5)
    title = f"sentence {facts.sentence}: the upper envelope along {facts.feature}"
    upper.set_title(title, fontsize=9)


def _lattice(data: ReportData) -> LatticeFacts:
    if data.lattice is None:
        raise UsageError(
            "no search graph is stored in this run: tune with --forest, and there are graphs"
        )
    return data.lattice
