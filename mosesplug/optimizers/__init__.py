"""Optimizers: from hypotheses with their statistics to weights."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mosesplug.optimizers.problem import Problem, Progress, Solution, corpus_score, no_progress

if TYPE_CHECKING:
    from mosesplug.optimizers.registry import Algorithm, Optimizer, algorithm, algorithms

__all__ = [
    "Algorithm",
    "Optimizer",
    "Problem",
    "Progress",
    "Solution",
    "algorithm",
    "algorithms",
    "corpus_score",
    "no_progress",
]


def __getattr__(name: str) -> Any:
    # The registry brings every optimizer; a program that needs one of them must start fast.
    if name not in ("Algorithm", "Optimizer", "algorithm", "algorithms"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.registry"), name)
