"""A figure of matplotlib that shows itself in notebooks.

Import this module only if matplotlib is installed.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

from matplotlib.figure import Figure

_SCREEN_DPI = 144


class Drawing(Figure):
    """A figure outside of pyplot: no window, no global state, nothing to close."""

    def render(self, **saving: Any) -> bytes:
        """Return the bytes of a picture; keywords are those of ``Figure.savefig``."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # A browser has other fonts than matplotlib; a PNG shows a box for a missing glyph.
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            self.savefig(buffer, **saving)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.render(format="png", dpi=_SCREEN_DPI)
