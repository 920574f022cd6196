"""Large margins and regression: hinge loss, cutting planes, RAMPION, least squares."""

from __future__ import annotations

from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return ()
