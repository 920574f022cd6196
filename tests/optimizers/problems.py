"""Tuning problems small enough to know the answer to, which the checks of plug-ins share."""

from __future__ import annotations

from mosesplug.testing.problems import (
    Accuracy,
    planted,
    planted_bleu,
    planted_for,
    tuning_set,
    with_bleu,
)

__all__ = ["Accuracy", "planted", "planted_bleu", "planted_for", "tuning_set", "with_bleu"]
