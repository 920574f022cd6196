"""Objectives of the model's distribution: softmax, risk, expected BLEU, linear BLEU."""

from __future__ import annotations

from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return ()
