"""Draw a small search graph: its edges with their words, and its envelope."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics.error_rates import label_metric
from mosesplug.results.report.data import LatticeFacts, ReportData
from mosesplug.results.report.palette import GRAY, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST = 60
"""Characters of a translation in the legend of its envelope."""

_FONT = 8.0
"""Points of the words on edges."""

_PHRASE = 18
"""Characters of a line of words; longer phrases have several lines."""

_NARROW, _WIDE = 0.66, 1.05
"""Width of a character as a share of the size of the font, and that of an East Asian one."""

_GAP = 0.18
"""Inches between boxes of words, and between a box and a node."""

_POINT = 1 / 72
"""Inches of a point."""

_XY = tuple[float, float]


@dataclass(frozen=True)
class _Box:
    """The words of an edge, and the room that they need.

    Attributes:
        width, height: in inches.
    """

    start: int
    end: int
    text: str
    width: float
    height: float

    @classmethod
    def of_edge(cls, start: int, end: int, words: str) -> _Box:
        lines = textwrap.wrap(words, _PHRASE, break_long_words=False) or [""]
        size = _FONT * _POINT
        width = max(map(_measure, lines)) * size + 0.12
        return cls(start, end, "\n".join(lines), width, 1.3 * len(lines) * size + 0.1)


def draw_lattice(figure: Figure, data: ReportData) -> None:
    """Draw nodes by their distance from the start at the top, edges as words.

    The words of edges that end at the same distance are beside each other, so that none covers
    another, however long the sentence is.
    """
    facts = _require_lattice(data)
    if not facts.edges:
        raise UsageError(
            f"the search graph of sentence {facts.sentence} has edges with several tail nodes, "
            "which cannot be drawn: draw its envelope"
        )
    boxes = [_Box.of_edge(*edge) for edge in facts.edges]
    nodes, places, height = _place(boxes)
    reach = 0.2 + max(
        *(abs(x) + 0.5 * box.width for box, (x, _) in zip(boxes, places, strict=True)),
        *(abs(x) for x, _ in nodes.values()),
    )
    figure.set_size_inches(2.0 * reach, height + 0.5)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-reach, reach)
    axes.set_ylim(height, 0.0)
    for box, place in zip(boxes, places, strict=True):
        _draw_edge(axes, box, place, nodes)
    x, y = zip(*nodes.values(), strict=True)
    axes.scatter(x, y, s=40, color="white", edgecolor="black", zorder=4)
    axes.scatter(*nodes[max(nodes)], s=12, color="black", zorder=5)
    axes.set_title(
        f"sentence {facts.sentence}: the best {len(facts.edges)} of {facts.whole} edges", fontsize=9
    )


def _draw_edge(axes: Axes, box: _Box, place: _XY, nodes: Mapping[int, _XY]) -> None:
    """Draw the words of an edge between a line from its tail and an arrow to its head."""
    x, y = place
    axes.plot([nodes[box.start][0], x], [nodes[box.start][1], y], color=GRAY, linewidth=0.9)
    axes.annotate(
        "",
        nodes[box.end],
        (x, y),
        arrowprops={"arrowstyle": "-|>", "color": GRAY, "shrinkA": 0, "shrinkB": 3.5},
    )
    axes.text(
        x,
        y,
        box.text,
        fontsize=_FONT,
        ha="center",
        va="center",
        zorder=3,
        bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": GRAY},
    )


def _place(boxes: Sequence[_Box]) -> tuple[dict[int, _XY], list[_XY], float]:
    """Return the places of nodes and of boxes, and the height of all, in inches.

    x counts from the middle, y from the top. Nodes with the same longest path from the start are
    in one row. The boxes of the edges that end there are in the row above.
    """
    depth = {box.start: 0 for box in boxes}
    for box in sorted(boxes, key=lambda box: box.start):
        depth[box.end] = max(depth.get(box.end, 0), depth[box.start] + 1)
    rows = sorted(set(depth.values()))
    nodes = _spread([node for node in sorted(depth) if depth[node] == 0], 0.12)
    places: dict[int, _XY] = {}
    y = 0.12
    for row in rows[1:]:
        # In the order of their tails, so that fewer lines cross.
        above = [number for number, box in enumerate(boxes) if depth[box.end] == row]
        above.sort(key=lambda number: (nodes[boxes[number].start][0], boxes[number].end))
        tallest = max(boxes[number].height for number in above)
        y += _GAP + 0.5 * tallest
        width = sum(boxes[number].width for number in above) + _GAP * (len(above) - 1)
        left = -0.5 * width
        for number in above:
            places[number] = (left + 0.5 * boxes[number].width, y)
            left += boxes[number].width + _GAP
        y += _GAP + 0.5 * tallest
        here = sorted({boxes[number].end for number in above})
        middles = {
            node: _mean([places[number][0] for number in above if boxes[number].end == node])
            for node in here
        }
        nodes |= _keep_apart(middles, y)
    return nodes, [places[number] for number in range(len(boxes))], y + 0.12


def _spread(nodes: Sequence[int], y: float) -> dict[int, _XY]:
    return {node: (_GAP * (place - 0.5 * (len(nodes) - 1)), y) for place, node in enumerate(nodes)}


def _keep_apart(middles: Mapping[int, float], y: float) -> dict[int, _XY]:
    """Return places at these x, or to the right of them where two nodes would touch."""
    placed: dict[int, _XY] = {}
    least = -math.inf
    for node in sorted(middles, key=middles.__getitem__):
        x = max(middles[node], least)
        placed[node] = (x, y)
        least = x + _GAP
    return placed


def _measure(text: str) -> float:
    """Return the width of a text, as a multiple of the size of its font."""
    return sum(_WIDE if east_asian_width(letter) in "WF" else _NARROW for letter in text)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def draw_envelope(figure: Figure, data: ReportData) -> None:
    """Draw the model scores on the envelope, and below it the sentence scores."""
    facts = _require_lattice(data)
    figure.set_size_inches(4.8, 3.8 + 0.15 * len(facts.lines))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    span = _find_span(facts)
    shown, labels = [], []
    for number, line in enumerate(facts.lines, start=1):
        if line.end < span[0] or line.start > span[1]:
            continue
        color = SERIES[number % len(SERIES)]
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
        labels.append(f"{number}: {label}")
        if line.score is not None:
            lower.plot(inside, [line.score, line.score], color=color, linewidth=2.2)
    for axes in (upper, lower):
        axes.axvline(facts.weight, color="black", linewidth=0.7, linestyle=":")
    upper.set_ylabel("model score")
    lower.set_ylabel(label_metric(data.sentence_metric, data.signature))
    lower.set_xlabel(f"weight of {facts.feature} (dotted: the result)")
    # Explicit, since matplotlib leaves out labels that begin with an underscore.
    lower.legend(shown, labels, fontsize=7.5, loc="upper left", bbox_to_anchor=(-0.1, -0.45))
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
    shown = [
        threshold for threshold in thresholds if abs(threshold - facts.weight) <= reach
    ] or thresholds[:1]
    low, high = min([*shown, facts.weight]), max([*shown, facts.weight])
    margin = 0.15 * (high - low) or 0.5
    return np.array([low - margin, high + margin])


def _require_lattice(data: ReportData) -> LatticeFacts:
    if data.lattice is None:
        raise UsageError("this run stored no search graph: tune with {--forest} to store them")
    return data.lattice
