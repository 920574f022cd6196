"""Wall time of the steps of a run; no result depends on it."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the clock was made."""
        return time.monotonic() - self._start
