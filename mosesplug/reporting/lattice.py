"""Draw a small search graph: its edges with their words, and its envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.reporting.data import LatticeFacts, ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_envelope", "draw_lattice"]

_LONGEST = 60

_TIP = 0.95
"""Position of an arc's head, as a share of its length."""

_SHARES = (0.5, 0.35, 0.65)
"""Positions of the words on arcs that leave one node, different so that they do not overlap."""

_XY = tuple[float, float]

_COLORS = ("#2563eb", "#dc2626", "#0f766e", "#f59e0b", "#7c3aed", "#db2777", "#0891b2", "#65a30d")


def draw_lattice(figure: Figure, data: ReportData) -> None:
    """Draw nodes by their distance from the start, and an arc for each edge.

    The start is on the left.
    """
    facts = _require_lattice(data)
    if not facts.edges:
        raise UsageError(
            f"the search graph of sentence {facts.sentence} has edges with several tail nodes, "
            "which cannot be drawn: draw its envelope"
        )
    places = _place_nodes(facts)
    figure.set_size_inches(9.0, 1.4 + 0.75 * (1 + max(y for _, y in places.values())))
    axes = figure.subplots()
    axes.set_axis_off()
    seen: dict[tuple[int, int], int] = {}
    leaving: dict[int, int] = {}
    for start, end, words in facts.edges:
        parallel = seen[start, end] = seen.get((start, end), -1) + 1
        turn = leaving[start] = leaving.get(start, -1) + 1
        share = _SHARES[(turn + start) % len(_SHARES)]
        # An arc that passes other nodes goes around them.
        bend = 0.18 + 0.4 * parallel + (0.15 if places[end][0] - places[start][0] > 1 else 0.0)
        _draw_arc(axes, places[start], places[end], words, bend, share)
    x, y = zip(*places.values(), strict=True)
    axes.scatter(x, y, s=90, color="white", edgecolor="black", zorder=3)
    axes.scatter(*places[max(places)], s=30, color="black", zorder=4)
    axes.set_xlim(-0.3, max(x for x, _ in places.values()) + 0.3)
    axes.margins(y=0.25)
    axes.autoscale_view(scalex=False)
    axes.set_title(
        f"sentence {facts.sentence}: the best {len(facts.edges)} of {facts.whole} edges", fontsize=9
    )


def _draw_arc(axes: Axes, start: _XY, end: _XY, words: str, bend: float, share: float) -> None:
    """Draw an arrow that is bent upwards, with words at a share of its length."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]) + bend * (end[0] - start[0]))
    # The head ends at the circle of the node.
    turn, tip = _interpolate(start, middle, _TIP), _find_on_curve(start, middle, end, _TIP)
    curve = Path([start, turn, tip], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", color="#64748b", mutation_scale=9))
    axes.text(
        *_find_on_curve(start, middle, end, share),
        words,
        fontsize=7.5,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
    )


def _interpolate(one: _XY, other: _XY, share: float) -> _XY:
    return (one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1]))


def _find_on_curve(start: _XY, middle: _XY, end: _XY, share: float) -> _XY:
    """Return a point of the quadratic Bezier curve."""
    return _interpolate(_interpolate(start, middle, share), _interpolate(middle, end, share), share)


def _place_nodes(facts: LatticeFacts) -> dict[int, _XY]:
    """Place nodes: x by the longest path from the start, y near their predecessors."""
    depth: dict[int, int] = {0: 0}
    before: dict[int, list[int]] = {}
    for start, end, _ in facts.edges:
        depth[end] = max(depth.get(end, 0), depth.get(start, 0) + 1)
        before.setdefault(end, []).append(start)
    columns: dict[int, list[int]] = {}
    for node in sorted(depth):
        columns.setdefault(depth[node], []).append(node)
    tallest = max(map(len, columns.values()))
    places: dict[int, _XY] = {}
    for column, nodes in sorted(columns.items()):
        # In the order of their predecessors, so that fewer arrows cross.
        nodes.sort(key=lambda node: _mean([places[each][1] for each in before.get(node, [])]))
        for level, node in enumerate(nodes):
            places[node] = (float(column), level + 0.5 * (tallest - len(nodes)))
    return places


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def draw_envelope(figure: Figure, data: ReportData) -> None:
    """Draw the model scores on the envelope, and below it the sentence scores."""
    facts = _require_lattice(data)
    figure.set_size_inches(8.0, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    span = _find_span(facts)
    shown, labels = [], []
    for number, line in enumerate(facts.lines):
        if line.end < span[0] or line.start > span[1]:
            continue
        color = _COLORS[number % len(_COLORS)]
        scores = line.intercept + line.slope * (span - facts.weight)
        label = line.text if len(line.text) <= _LONGEST else line.text[: _LONGEST - 3] + "..."
        upper.plot(span, scores, color=color, linewidth=0.6, alpha=0.5)
        inside = np.clip([line.start, line.end], *span)
        shown += upper.plot(
            inside,
            line.intercept + line.slope * (inside - facts.weight),
            color=color,
            linewidth=2.2,
        )
        labels.append(label)
        if line.score is not None:
            lower.plot(inside, [line.score, line.score], color=color, linewidth=2.2)
    for axes in (upper, lower):
        axes.axvline(facts.weight, color="black", linewidth=0.7, linestyle=":")
    upper.set_ylabel("model score")
    lower.set_ylabel(data.sentence_metric)
    lower.set_xlabel(f"weight of {facts.feature} (dotted: the result)")
    # Explicit, since matplotlib leaves out labels that begin with an underscore.
    upper.legend(shown, labels, fontsize=6.5)
    title = f"sentence {facts.sentence}: the upper envelope along {facts.feature}"
    upper.set_title(title, fontsize=9)


def _find_span(facts: LatticeFacts) -> NDArray[np.float64]:
    """Return the weights between which the envelope is drawn, float64 ``[2]``.

    Translations with nearly the same value of the feature win far away from the result. Only
    thresholds around it are shown, or the nearest one if there are none.
    """
    thresholds = sorted(
        (line.end for line in facts.lines[:-1]), key=lambda end: abs(end - facts.weight)
    )
    reach = max(2.0 * abs(facts.weight), 0.2)
    shown = [each for each in thresholds if abs(each - facts.weight) <= reach] or thresholds[:1]
    low, high = min([*shown, facts.weight]), max([*shown, facts.weight])
    margin = 0.15 * (high - low) or 0.5
    return np.array([low - margin, high + margin])


def _require_lattice(data: ReportData) -> LatticeFacts:
    if data.lattice is None:
        raise UsageError("this run stored no search graph: tune with --forest to store them")
    return data.lattice
