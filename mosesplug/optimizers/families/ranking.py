"""Ranking of pairs beyond PRO: all pairs, cross-entropy, Pareto-optimal ranking."""

from __future__ import annotations

from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return ()
