"""Optimizers: from hypotheses with their statistics to weights."""

from mosesplug.optimizers.problem import Problem, Progress, Solution, corpus_score, silent
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms

__all__ = [
    "Algorithm",
    "Problem",
    "Progress",
    "Solution",
    "algorithm",
    "algorithms",
    "corpus_score",
    "silent",
]
