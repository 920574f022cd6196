"""Scatter plots as inline SVG, without matplotlib.

They follow the page's width, colors and font. Better values are to the right and up: axes of error
rates are reversed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 440.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 12.0, 44.0
_TICKS = 5
_LETTER, _LINE, _GAP = 6.5, 12.0, 3.0
"""Mean width of a letter, height of a line, and distance of labels to marks, in pixels."""

SCATTER_STYLE = """
.scatter { width: 100%; max-width: 30rem; } .scatter text { font-size: 12px; }
.scatter .grid { stroke: currentColor; opacity: .15; } .scatter .front { fill: none;
  stroke: #ea580c; stroke-width: 1.5; } .scatter .line { fill: none; stroke: currentColor; }
.scatter .between { fill: #64748b; }
.scatter .changed { fill: #94a3b8; opacity: .7; } .scatter .start { fill: #ef4444; }
.scatter .learned { fill: #3b82f6; } .scatter .optimal { stroke: #ea580c; stroke-width: 1.5; }
.legend .start, .legend .learned, .legend .between, .legend .changed, .legend .front {
  font-weight: bold; } .legend .start { color: #ef4444; } .legend .learned { color: #3b82f6; }
.legend .between { color: #64748b; } .legend .changed { color: #94a3b8; }
.legend .front { color: #ea580c; } .legend span { display: inline-block; margin-right: 1rem; }
"""
"""CSS of the plots of a page."""


@dataclass(frozen=True)
class Axis:
    """An axis: its label, and whether it is reversed because less is better."""

    label: str
    is_turned: bool = False


@dataclass(frozen=True)
class Mark:
    """A point of a plot.

    Attributes:
        kind: its CSS class.
        size: radius in pixels.
        is_optimal: whether it lies on the front, which is drawn as a line.
        label: is written next to it, unless there is no room.
    """

    x: float
    y: float
    kind: str
    title: str
    size: float = 3.0
    is_optimal: bool = False
    label: str = ""


def render_scatter(
    marks: Sequence[Mark], x: Axis, y: Axis, lines: Sequence[Sequence[Mark]] = ()
) -> str:
    """Return a plot as an ``<svg>`` element; later marks cover earlier ones.

    Args:
        lines: marks that a line connects, in their order; it has the class of the first one.
    """
    across = _Scale.of_values([mark.x for mark in marks], _LEFT, _WIDTH - _RIGHT, x.is_turned)
    up = _Scale.of_values([mark.y for mark in marks], _HEIGHT - _BOTTOM, _TOP, y.is_turned)
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for value in across.ticks:
        at = across.place(value)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(_text(at, bottom + 16, across.format(value), "middle"))
    for value in up.ticks:
        at = up.place(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_LEFT - 6, at + 4, up.format(value), "end"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 8, _label(x), "middle"))
    middle = (_TOP + bottom) / 2
    turned = f'transform="rotate(-90 14 {middle:.0f})"'
    parts.append(_text(14, middle, _label(y), "middle", turned))
    front = sorted((across.place(m.x), up.place(m.y)) for m in marks if m.is_optimal)
    if len(front) > 1:
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in front)
        parts.append(f'<polyline class="front" points="{path}"/>')
    for line in lines:
        path = " ".join(f"{across.place(m.x):.1f},{up.place(m.y):.1f}" for m in line)
        parts.append(f'<polyline class="line {line[0].kind}" points="{path}"/>')
    for mark in marks:
        optimal = " optimal" if mark.is_optimal else ""
        parts.append(
            f'<circle class="{mark.kind}{optimal}" cx="{across.place(mark.x):.1f}" '
            f'cy="{up.place(mark.y):.1f}" r="{mark.size:g}"><title>{escape(mark.title)}</title>'
            "</circle>"
        )
    parts += _draw_labels(marks, across, up)
    size = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"'
    return f'<svg class="scatter" {size} role="img">\n' + "\n".join(parts) + "\n</svg>\n"


def _draw_labels(marks: Sequence[Mark], across: _Scale, up: _Scale) -> Iterator[str]:
    """Yield the labels that have room, those of marks on the front first."""
    places = [(across.place(mark.x), up.place(mark.y), mark) for mark in marks]
    taken = [(x - m.size, y - m.size, x + m.size, y + m.size) for x, y, m in places]
    for x, y, mark in sorted(places, key=lambda place: not place[2].is_optimal):
        if not mark.label:
            continue
        width, gap = _LETTER * len(mark.label), mark.size + _GAP
        beside = [(left, y - _LINE / 2) for left in (x + gap, x - gap - width)]
        starts = (x - width / 2, x - mark.size, x + mark.size - width)
        around = [(left, top) for top in (y - gap - _LINE, y + gap) for left in starts]
        for left, top in (*beside, *around):
            box = (left, top, left + width, top + _LINE)
            if _is_inside(box) and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                yield _text(left, top + _LINE - _GAP, mark.label, "start")
                break


_Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def _is_inside(box: _Box) -> bool:
    left, top, right, bottom = box
    return left >= _LEFT and top >= 0.0 and right <= _WIDTH and bottom <= _HEIGHT - _BOTTOM


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _label(axis: Axis) -> str:
    return f"{axis.label} (less is better)" if axis.is_turned else axis.label


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


@dataclass(frozen=True)
class _Scale:
    """A linear map from values to pixels, and round values within it."""

    low: float
    high: float
    first: float
    last: float
    ticks: tuple[float, ...]
    digits: int

    @classmethod
    def of_values(
        cls, values: Sequence[float], first: float, last: float, is_turned: bool
    ) -> _Scale:
        low, high = min(values), max(values)
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        low, high = low - margin, high + margin
        rough = (high - low) / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(digit * power for digit in (1.0, 2.0, 5.0, 10.0) if digit * power >= rough)
        ticks = tuple(
            number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)
        )
        digits = max(0, -math.floor(math.log10(step)))
        if is_turned:
            first, last = last, first
        return cls(low, high, first, last, ticks, digits)

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def format(self, value: float) -> str:
        return f"{value:.{self.digits}f}"
