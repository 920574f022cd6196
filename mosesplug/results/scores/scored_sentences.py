"""Sentences of n-best lists with several metrics, and what weights choose of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.learning.optimize import OptimizeResult
from mosesplug.learning.watched import WatchedMetric
from mosesplug.optimizers import Problem


@dataclass(frozen=True, eq=False)
class ScoredSentences:
    """Some sentences of lists.

    Attributes:
        positions: int64, the positions of the sentences in the lists; all have hypotheses.
        metrics: the objective, then the metrics that are only reported, with their statistics.
        rescore: returns a problem with features divided for a length exponent.
    """

    problem: Problem
    positions: NDArray[np.int64]
    metrics: tuple[WatchedMetric, ...]
    rescore: Callable[[Problem, float | None], Problem]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, positions: NDArray[np.int64]) -> ScoredSentences:
        """Return other sentences of the same lists."""
        return replace(self, positions=positions)

    def divide(self, exponent: float | None) -> ScoredSentences:
        """Return the same sentences with features divided for a length exponent."""
        return replace(self, problem=self.rescore(self.problem, exponent))

    def choose(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row of the 1-best of each sentence, int64 ``[n_sentences]``."""
        lists = self.problem.tuning_set
        filled = np.flatnonzero(np.diff(lists.offsets))
        return lists.first_best(weights)[np.searchsorted(filled, self.positions)]


def has_lists(result: OptimizeResult) -> bool:
    """Return whether weights were learned from n-best lists, not from search graphs."""
    return "lists" in result.data.problem.candidates.answers


def find_learned(result: OptimizeResult) -> ScoredSentences:
    """Return the sentences that weights were learned from."""
    data = result.data
    objective = WatchedMetric(data.problem.metric, data.problem.tuning_set.stats)
    metrics = (objective, *data.watched_metrics)
    return ScoredSentences(data.problem, result.learning.learned_sentences, metrics, data.rescore)


def find_held_out(result: OptimizeResult) -> ScoredSentences | None:
    """Return the held-out sentences, or None without any.

    They are a share of the lists, or other lists.
    """
    learned = result.learning
    if len(learned.held_out_sentences):
        return find_learned(result).take(learned.held_out_sentences)
    if result.held_out is None:
        return None
    problem = result.held_out.problem
    positions = np.flatnonzero(np.diff(problem.tuning_set.offsets)).astype(np.int64)
    metrics = (
        WatchedMetric(problem.metric, problem.tuning_set.stats),
        *result.held_out.watched_metrics,
    )
    return ScoredSentences(problem, positions, metrics, result.data.rescore)
