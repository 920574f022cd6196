"""A figure of matplotlib that shows itself in notebooks.

Import this module only if matplotlib is installed.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_SCREEN_DPI = 144


class Drawing(Figure):
    """A figure outside of pyplot: no window, no global state, nothing to close."""

    def render_svg(self) -> str:
        """Return an SVG document without a date."""
        buffer = io.StringIO()
        with _hide_missing_glyphs():
            # Without savefig, which draws everything twice: first for the layout.
            FigureCanvasSVG(self).print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
        return buffer.getvalue()

    def render_png(self, dots_per_inch: int) -> bytes:
        """Return the bytes of a PNG file."""
        buffer = io.BytesIO()
        with _hide_missing_glyphs():
            self.savefig(buffer, format="png", dpi=dots_per_inch)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.render_png(_SCREEN_DPI)


@contextmanager
def _hide_missing_glyphs() -> Iterator[None]:
    """Hide warnings: a browser has other fonts than matplotlib, and a PNG shows a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield
