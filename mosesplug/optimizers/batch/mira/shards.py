"""Batch MIRA on shards: iterative parameter mixing (McDonald et al. 2010, Fig. 3).

An update depends on all earlier ones, so an epoch cannot be computed in parallel with the same
result. Instead each shard visits its own sentences, from the same weights and with a background of
its own, and after each epoch all shards continue with the mean of their weights. One shard learns
as without shards, to the last bit. The averaged weights are the mean of the initial weights and
those after each update, of all shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.batch.mira.kbmira import (
    KbmiraOptions,
    ListMiraLearner,
    MiraProgress,
    make_settings,
    score_single,
    single_weights,
    start_state,
)
from mosesplug.optimizers.batch.mira.step import MiraSettings
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.lists.shards import ListShard
from mosesplug.optimizers.problem import Problem, activate_sparse, check_weights, list_shards

__all__ = ["ShardedMiraLearner", "ShardedVisits"]


class ShardedVisits(NamedTuple):
    """The losses of visited sentences.

    Attributes:
        loss: float32 ``[n]``, those of each shard in its order.
    """

    loss: NDArray[np.float32]


class ShardedMiraLearner:
    """Weights that learn from the lists of all shards; a ``BatchMiraLearner``.

    Attributes:
        settings: the settings of the algorithm.
        n_shards: number of shards.
        n_sentences: number of sentences that have a hypothesis.
    """

    settings: MiraSettings
    n_shards: int
    n_sentences: int

    def __init__(
        self, problem: Problem, initial: NDArray[np.float64], options: KbmiraOptions
    ) -> None:
        """Start from the initial weights.

        Arguments and errors are those of ``ListMiraLearner``.
        """
        problem = activate_sparse(problem)
        initial = check_weights(problem, initial)
        weights = single_weights(problem, initial)
        shards = list_shards(problem)
        self.settings = make_settings(options, problem.active_mask, problem.bounds)
        self._metric = problem.metric
        self._prepared = shards.prepare(
            _make_learner,
            {
                "metric": problem.metric,
                "active": problem.active_mask,
                "bounds": problem.bounds,
                "initial": initial,
                "options": options,
            },
        )
        before = np.append(0, np.cumsum(np.diff(shards.offsets) > 0))
        self._firsts = before[shards.bounds]
        self.n_sentences, self.n_shards = int(before[-1]), len(shards.bounds) - 1
        state = start_state(weights, problem.metric.n_statistics)
        self._progress: Sequence[MiraProgress] = [MiraProgress(state)] * self.n_shards

    @property
    def updates(self) -> int:
        """Number of updates of all shards since the start."""
        return sum(int(each.state.updates[0]) for each in self._progress)

    def visit(self, order: NDArray[np.int64]) -> ShardedVisits:
        """Let each shard learn from its sentences in the given order, int64 ``[n]``."""
        ends = zip(self._firsts[:-1].tolist(), self._firsts[1:].tolist(), strict=True)
        orders = [order[(order >= first) & (order < last)] - first for first, last in ends]
        results = self._prepared.map(_visit_shard, self._progress, orders)
        self._progress = [progress for progress, _ in results]
        if self.n_shards > 1:
            self._mix()
        return ShardedVisits(np.concatenate([loss for _, loss in results]))

    def average(self) -> NDArray[np.float32]:
        """Return the averaged weights, float32 ``[n_features]``, in Moses' scale.

        They are the sum of the initial weights of each shard and those after each of ``n`` updates,
        divided by ``n``.
        """
        if self.updates == 0:
            return self._progress[0].state.weights.copy()
        totals = self._progress[0].state.totals
        for each in self._progress[1:]:
            totals = totals + each.state.totals
        return np.asarray(totals / np.float32(self.updates))

    def score(self, weights: NDArray[np.float32]) -> float:
        """Return the metric of the 1-best at ``weights``, float32 ``[n_features]``."""
        totals, *others = self._prepared.map(_add_first_best, repeat(weights))
        for each in others:
            totals = totals + each
        return score_single(self._metric, totals)

    def _mix(self) -> None:
        """Let all shards continue with the mean of their weights."""
        weights = [each.state.weights for each in self._progress]
        mean = np.mean(weights, axis=0, dtype=np.float64).astype(np.float32)
        mean = np.clip(mean, self.settings.low, self.settings.high)  # rounding
        mean = np.where(self.settings.active, mean, weights[0])
        self._progress = [
            MiraProgress(each.state._replace(weights=mean), each.background_length)
            for each in self._progress
        ]


def _make_learner(
    shard: ListShard,
    metric: Metric,
    active: NDArray[np.bool_],
    bounds: Bounds | None,
    initial: NDArray[np.float64],
    options: KbmiraOptions,
) -> ListMiraLearner:
    problem = Problem(shard.lists, metric, active, bounds=bounds)
    return ListMiraLearner(problem, initial, options)


def _visit_shard(
    learner: ListMiraLearner, progress: MiraProgress, order: NDArray[np.int64]
) -> tuple[MiraProgress, NDArray[np.float32]]:
    """Return the progress after an epoch, and the losses."""
    own = learner.resume(progress)
    loss = own.visit(order).loss
    own.average()  # every total catches up, before the weights are mixed
    return own.progress, loss


def _add_first_best(learner: ListMiraLearner, weights: NDArray[np.float32]) -> NDArray[np.float64]:
    return learner.statistics(weights)
