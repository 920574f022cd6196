"""Direct search on the metric itself: simplex, particle swarm, gradients of xBLEU."""

from __future__ import annotations

from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return ()
