"""Estimate the time that a run may still take."""

from __future__ import annotations

import math
import time

_LEAST_LEFT = 5.0
"""Seconds from which the time that is left is shown."""


class RunClock:
    """Measures iterations, to tell how long the others take."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._iteration = self._finished = 0
        self._began = self.phase = time.monotonic()
        self._seconds: list[float] = []

    def begin(self, iteration: int) -> None:
        """Take the beginning of a phase."""
        self.phase = time.monotonic()
        if iteration != self._iteration:
            self._iteration, self._began = iteration, self.phase

    def finish(self, iteration: int) -> str:
        """Take the end of an iteration; return how long the others take at most."""
        if iteration == self._finished:
            return ""
        now = time.monotonic()
        self._finished = iteration
        self._seconds.append(now - self._began)
        self._began = now
        left = (self._most - iteration) * sum(self._seconds) / len(self._seconds)
        return f"; at most {format_duration(left)} left" if self._most > iteration else ""


def format_left(seconds: float, done: int, total: int) -> str:
    """Return the time that the rest takes; empty if it is unknown or short."""
    left = seconds * (total - done) / done if done else 0.0
    return f", {format_duration(left)} left" if left >= _LEAST_LEFT else ""


def format_duration(seconds: float) -> str:
    """Return a duration in one unit, rounded up."""
    for size, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h")):
        count = math.ceil(seconds / size)
        if count < 100 or unit == "h":
            break
    return f"{count} {unit}"
