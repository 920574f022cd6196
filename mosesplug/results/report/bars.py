"""Bar charts as inline SVG, without matplotlib.

They follow the page's width, colors and font.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_BAR = 15
"""Height of a bar with the gap below it, in pixels."""

_GAP = 9
"""Pixels between groups."""

_LEFT = 24.0
"""Percent of the width where bars begin; labels are left of it."""

_WIDTH = 60.0
"""Percent of the width that the longest bar takes; its number follows."""

N_COLORS = 8
"""Number of colors; their classes are c0, c1 and so on."""

_LIGHT = ("2563eb", "ea580c", "0f766e", "9333ea", "ca8a04", "db2777", "64748b", "65a30d")
_DARK = ("60a5fa", "fb923c", "2dd4bf", "c084fc", "facc15", "f472b6", "94a3b8", "a3e635")


def _list_colors(colors: Sequence[str]) -> str:
    return " ".join(
        f".c{place} {{ fill: #{color}; background: #{color}; color: #{color}; }}"
        for place, color in enumerate(colors)
    )


BAR_STYLE = f"""
.bars text {{ font-size: 12px; fill: currentColor; }} .bars .v {{ opacity: .75; }}
.legend span {{ display: inline-block; margin-right: 1rem; overflow-wrap: anywhere; }}
.legend i {{ display: inline-block; width: .75rem; height: .75rem; margin-right: .35rem; }}
{_list_colors(_LIGHT)}
@media (prefers-color-scheme: dark) {{ {_list_colors(_DARK)} }}
@media print {{ i {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }} }}
"""
"""CSS of the charts of a page."""


@dataclass(frozen=True)
class BarGroup:
    """Bars with one label, one for each system."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]


def render_bars(groups: Sequence[BarGroup], title: str) -> str:
    """Return a chart of horizontal bars from 0; negative ones go to the left."""
    known = [value for group in groups for value in group.values if not math.isnan(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    scale = _WIDTH / (high - low) if high > low else 0.0
    zero = _LEFT - low * scale
    parts = []
    top = 0
    for group in groups:
        middle = top + _BAR * len(group.values) / 2
        parts.append(
            f'<text x="{_LEFT - 1.5:g}%" y="{middle:g}" dy=".32em" text-anchor="end">'
            f"{escape(group.label)}</text>"
        )
        for place, (value, text) in enumerate(zip(group.values, group.texts, strict=True)):
            length = 0.0 if math.isnan(value) else value * scale
            start = zero + min(length, 0.0)
            parts.append(
                f'<rect class="c{place % N_COLORS}" x="{start:.2f}%" y="{top + 1}" '
                f'width="{abs(length):.2f}%" height="{_BAR - 3}"></rect>'
                f'<text class="v" x="{max(start + abs(length), zero) + 0.7:.2f}%" '
                f'y="{top + _BAR / 2:g}" dy=".32em">{escape(text)}</text>'
            )
            top += _BAR
        top += _GAP
    body = "\n".join(parts)
    return (
        f'<figure><svg class="bars" role="img" aria-label="{escape(title)}" width="100%" '
        f'height="{top}">\n{body}\n</svg></figure>\n'
    )


def render_legend(names: Sequence[str]) -> str:
    """Return the colors of the bars with their names."""
    entries = "".join(
        f'<span><i class="c{place % N_COLORS}"></i>{escape(name)}</span>'
        for place, name in enumerate(names)
    )
    return f'<p class="legend">{entries}</p>\n'
