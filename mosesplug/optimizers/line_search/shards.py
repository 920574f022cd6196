"""Exact line search on shards: the results of the whole lists to the last bit.

Each shard finds the thresholds of its sentences and the changes of their statistics. Put together
in the order of the sentences, they are those of ``LineSpace.changes`` of the whole lists.
A point of the space is its weights, and each shard keeps the model scores of the last few.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats, SentenceValues, Weights
from mosesplug.candidates import Surface
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.lists import (
    LineChanges,
    LineSpace,
    add_statistics,
    line_space,
    score_line,
)
from mosesplug.optimizers.lists.shards import ListShard, ListShards, PreparedShards

POINTS = 4
"""Points whose scores a shard keeps; more climbs than this at once compute scores twice."""


def sharded_space(
    shards: ListShards, metric: Metric, active: FeatureMask, weights: Weights
) -> ShardedSpace:
    """Return the space of all shards; inactive features keep ``weights``."""
    prepared = shards.prepare(_make_shard, {"metric": metric, "active": active, "weights": weights})
    spreads, sentence_weights = zip(*prepared.map(_find_spreads), strict=True)
    of_all = None if sentence_weights[0] is None else np.concatenate(sentence_weights)
    spread = np.average(np.concatenate(spreads), axis=0, weights=of_all)
    return ShardedSpace(prepared, metric, spread)


@dataclass(frozen=True)
class ShardedSpace:
    """Hypotheses in shards; implements ``candidates.SearchSpace``.

    Attributes:
        shards: the shards.
        metric: scores the summed statistics.
        spread: float64 ``[n_active]``.
    """

    shards: PreparedShards
    metric: Metric
    spread: Floats

    def at(self, weights: Floats) -> Floats:
        """Return the weights."""
        return weights

    def decode(self, point: Floats) -> float:
        """Return the corpus score of the 1-best hypotheses; ties go to the first."""
        rows = np.concatenate(self.shards.map(_decode, repeat(point)))
        totals = np.empty(rows.shape[1])
        add_statistics(rows, np.arange(len(rows)), totals)
        return float(self.metric.score(totals))

    def along_axes(self, axes: NDArray[np.int64], point: Floats) -> Iterator[Surface]:
        """Yield the score along lines; see ``candidates.SearchSpace``."""
        return self._surfaces(self.shards.map(_search_axes, repeat(axes), repeat(point)))

    def along(self, directions: Floats, point: Floats) -> Iterator[Surface]:
        """Yield the score along lines; see ``candidates.SearchSpace``."""
        return self._surfaces(self.shards.map(_search, repeat(directions), repeat(point)))

    def _surfaces(self, shards: list[list[LineChanges]]) -> Iterator[Surface]:
        for parts in zip(*shards, strict=True):
            yield score_line([_restore_changes(part) for part in parts], self.metric)


@dataclass(frozen=True)
class _Shard:
    """The space of a shard, and the scores at the last points."""

    space: LineSpace
    scores: OrderedDict[bytes, Floats] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, weights: Floats) -> Floats:
        """Return the model scores, float64 ``[n_hyps]``."""
        key = weights.tobytes()
        with self.lock:
            if key in self.scores:
                self.scores.move_to_end(key)
                return self.scores[key]
        scores = self.space.at(weights)
        with self.lock:
            self.scores[key] = scores
            if len(self.scores) > POINTS:
                self.scores.popitem(last=False)
        return scores


def _make_shard(
    shard: ListShard, metric: Metric, active: NDArray[np.bool_], weights: Floats
) -> _Shard:
    return _Shard(line_space(shard.lists, metric, active, weights))


def _find_spreads(shard: _Shard) -> tuple[Floats, SentenceValues | None]:
    return shard.space.sentence_spreads(), shard.space.sentence_weights


def _decode(shard: _Shard, weights: Floats) -> NDArray[Any]:
    """Return rows of statistics whose sum is that of the 1-best hypotheses."""
    return _rows_to_add(shard.space.stats[shard.space.first_best(shard.at(weights))])


def _search_axes(shard: _Shard, axes: NDArray[np.int64], weights: Floats) -> list[LineChanges]:
    changes = shard.space.axis_changes(axes, shard.at(weights))
    return [_pack_changes(line, shard.space) for line in changes]


def _search(shard: _Shard, directions: Floats, weights: Floats) -> list[LineChanges]:
    lines, wanted = shard.space.lines(directions), np.arange(len(directions))
    changes = shard.space.changes(lines, wanted, shard.at(weights))
    return [_pack_changes(line, shard.space) for line in changes]


def _pack_changes(line: LineChanges, space: LineSpace) -> LineChanges:
    """Return a copy for sending, with integers in as few bytes as hold them."""
    thresholds, changes, firsts, first_rows = line
    nothing = first_rows[:0]
    if changes.dtype.kind == "i":
        lowest = min(int(changes.min(initial=-1)), -1 - int(changes.max(initial=0)))
        packed = changes.astype(np.min_scalar_type(lowest))
        return LineChanges(thresholds.copy(), packed, firsts.copy(), nothing)
    return LineChanges(thresholds.copy(), changes.copy(), space.stats[first_rows], nothing)


def _restore_changes(part: LineChanges) -> LineChanges:
    """Return the changes as ``LineSpace.changes`` has them."""
    dtype = np.promote_types(part.changes.dtype, np.int32)
    return part._replace(changes=part.changes.astype(dtype, copy=False))


def _rows_to_add(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of integers as one row, and other numbers' rows as they are.

    Sums of floating-point numbers depend on their order.
    """
    return rows.sum(axis=0, keepdims=True, dtype=np.float64) if rows.dtype.kind == "i" else rows
