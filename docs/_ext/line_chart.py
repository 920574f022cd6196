"""Draw line charts with two logarithmic axes as inline SVG, in the colors and font of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 340.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 12.0, 24.0, 40.0
_COLORS = ("#2563eb", "#ea580c", "#0d9488", "#9333ea")

Points = Sequence[tuple[float, float]]


def render_chart(title: str, label: str, lines: Mapping[str, Points]) -> str:
    """Return a chart of lines of positive points, with ticks at the powers of ten.

    Args:
        title: what the y axis shows.
        label: what the x axis shows.
        lines: the points of each line, by its name.
    """
    points = [point for line in lines.values() for point in line]
    across = _Axis([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
    up = _Axis([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [_text(_LEFT, 14, title, "start")]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, label, "middle"))
    for value, at in across.ticks():
        parts.append(_grid(at, at, _TOP, _HEIGHT - _BOTTOM))
        parts.append(_text(at, _HEIGHT - _BOTTOM + 16, value, "middle"))
    for value, at in up.ticks():
        parts.append(_grid(_LEFT, _WIDTH - _RIGHT, at, at))
        parts.append(_text(_LEFT - 6, at + 4, value, "end"))
    for color, (name, line) in zip(_COLORS, lines.items(), strict=False):
        places = [(across.place(x), up.place(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for (x, y), (left, top) in zip(line, places, strict=True):
            tip = f"<title>{escape(name)}: {x:,g}, {y:,g}</title>"
            parts.append(
                f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.5" fill="{color}">{tip}</circle>'
            )
    size = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"'
    body = "\n".join(parts)
    return f'<svg {size} role="img" aria-label="{escape(title)}">\n{body}\n</svg>'


def render_legend(names: Sequence[str]) -> str:
    """Return a caption with the names of the lines in their colors."""
    entries = (
        f'<span style="color: {color}">&#9679;</span> {escape(name)}'
        for color, name in zip(_COLORS, names, strict=False)
    )
    return f"<figcaption>{' &nbsp; '.join(entries)} &nbsp; (both axes are logarithmic)</figcaption>"


class _Axis:
    """A logarithmic axis over whole powers of ten, from one place to another."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(math.ceil(math.log10(max(values))), self._low + 1)
        self._first, self._last = first, last

    def place(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)

    def ticks(self) -> list[tuple[str, float]]:
        values = [10.0**power for power in range(self._low, self._high + 1)]
        return [(f"{value:,g}", self.place(value)) for value in values]


def _grid(left: float, right: float, top: float, bottom: float) -> str:
    ends = f'x1="{left:.1f}" x2="{right:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"'
    return f'<line {ends} stroke="currentColor" opacity="0.15"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = f'text-anchor="{anchor}" font-size="12" fill="currentColor"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
