"""What shards learnt on their own, brought together: features by name, and a line search.

Features get columns by name: those that all shards knew before the epoch, then those that the
first shard met, those that only the second met, and so on.

A line search needs the lists of all shards, which stay where they are. Along one line a hypothesis
is two numbers: its model score where the line begins, and what it gains on the way; these and the
statistics travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.optimizers.online.learner import State
from mosesplug.optimizers.online.mixing import MixResult, line_search
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning.online.shard import LineScores, OnlineShard, ShardEpoch, line_scores
from mosesplug.tuning_set import TuningSet

__all__ = ["joined_space", "searched", "widened"]


def joined_space(before: FeatureSpace, epochs: Sequence[ShardEpoch]) -> FeatureSpace:
    """The features that all knew, and then those that the shards met, in their order."""
    met = dict.fromkeys(name for epoch in epochs for name in epoch.new)
    return FeatureSpace(before.groups, (*before.sparse, *met))


def widened(
    epoch: ShardEpoch, n_before: int, space: FeatureSpace, fills: Mapping[str, float]
) -> State:
    """A shard's state over the features of all.

    Args:
        epoch: of the shard.
        n_before: features that all knew.
        space: that of ``joined_space``.
        fills: values of the state's vectors at features that the shard never met.
    """
    new = space.sparse[n_before - space.n_dense :]
    places = {name: column for column, name in enumerate(new, start=n_before)}
    own = np.array([places[name] for name in epoch.new], dtype=np.int64)
    vectors = {}
    for name, vector in epoch.state.vectors.items():
        wide = np.full(len(space), fills[name])
        wide[:n_before] = vector[:n_before]
        wide[own] = vector[n_before:]
        vectors[name] = wide
    return replace(epoch.state, vectors=vectors)


def searched(
    executor: Executor,
    shards: Sequence[OnlineShard],
    space: FeatureSpace,
    metric: Metric,
    old: NDArray[np.float64],
    mean: NDArray[np.float64],
) -> MixResult:
    """The best point on the line from the old weights to the mean (Watanabe 2012, Algorithm 3).

    Weights that are all zero are no end of a line: the other end is the result then, and its score
    is not a number.

    Args:
        executor: where the shards' lists are looked at.
        shards: whose epoch is finished.
        space: of all features.
        metric: what is searched for.
        old: float64 ``[len(space)]``, before the epoch.
        mean: float64 ``[len(space)]``, after it.
    """
    if not old.any():
        return MixResult(mean, 1.0, np.nan)
    if not mean.any():
        return MixResult(old, 0.0, np.nan)
    direction = mean - old
    under_way = [
        executor.submit(line_scores, shard, space.sparse, old, direction) for shard in shards
    ]
    lists = _as_lists([future.result() for future in under_way])
    # In the space of the two scores the line goes from (1, 0) to (1, 1).
    found = line_search(Problem(lists, metric), np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    return replace(found, weights=mean if found.rho == 1.0 else old + found.rho * direction)


def _as_lists(found: Sequence[LineScores]) -> TuningSet:
    """The lists of all shards, each hypothesis with its two scores in the place of features."""
    sizes = np.concatenate([np.diff(scores.offsets) for scores in found])
    stats = np.concatenate([scores.stats for scores in found])
    return TuningSet(
        space=FeatureSpace((("old", 1), ("gain", 1))),
        sentence_ids=np.arange(len(sizes)),
        offsets=np.append(0, np.cumsum(sizes)).astype(np.int64),
        # Scores keep the digits that features in single precision would not need.
        dense=cast(Any, np.concatenate([scores.scores for scores in found])),
        sparse=None,
        stats=stats,
        lengths=np.ones(len(stats), dtype=np.int32),
    )
