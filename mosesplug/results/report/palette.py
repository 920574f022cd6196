"""Colors of figures that are readable on white and on dark paper."""

from __future__ import annotations

BLUE, RED, TEAL, AMBER, GRAY = "#3b82f6", "#ef4444", "#0d9488", "#f59e0b", "#94a3b8"

SERIES = (BLUE, RED, TEAL, AMBER, "#8b5cf6", "#ec4899", "#0891b2", "#65a30d")

_INK, _PAPER = "#000000", "#ffffff"


def follow_the_page(svg: str) -> str:
    """Return a picture in the page's colors of text and paper."""
    return svg.replace(_INK, "currentColor").replace(_PAPER, "var(--paper)")
