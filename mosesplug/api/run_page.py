"""The page of a run, to explore in a notebook or a browser."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

_HEIGHT = 900
"""Pixels of the frame in a notebook."""


@dataclass(frozen=True)
class RunPage:
    """The page of a run: a notebook shows it, a browser opens ``path``.

    Attributes:
        path: the HTML file.

    Example:
        >>> import mosesplug
        >>> mosesplug.open_run("mert-work").explore(output="page.html").path.name
        'page.html'
    """

    path: Path

    def _repr_html_(self) -> str:
        text = self.path.read_text(encoding="utf-8")
        return (
            f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts allow-same-origin" '
            f'title="Run" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )
