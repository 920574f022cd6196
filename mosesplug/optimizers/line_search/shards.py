"""Exact line search on shards: the results of the whole lists to the last bit.

Each shard finds the thresholds of its sentences and the changes of their statistics. Put together
in the order of the sentences, they are those that ``find_line_changes`` finds in the whole lists.
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

from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.lists import (
    LineChanges,
    LineSpace,
    ListSearcher,
    add_statistics,
    find_line_changes,
    line_space,
    score_line,
)
from mosesplug.optimizers.line_search.space import LineSearcher, SearchSpace, Surface
from mosesplug.optimizers.lists.shards import ListShard, PreparedShards
from mosesplug.optimizers.problem import Problem

__all__ = ["ShardedSpace", "search_space"]

Vector = NDArray[np.float64]

POINTS = 4
"""Points whose scores a shard keeps; more climbs than this at once compute scores twice."""


def search_space(problem: Problem, weights: Vector) -> SearchSpace:
    """Return the space of the problem; inactive features keep ``weights``."""
    if problem.source is not None:
        return problem.source.space(problem.active_mask, weights)
    if problem.shards is None:
        return line_space(problem, weights)
    settings = {"metric": problem.metric, "active": problem.active_mask, "weights": weights}
    prepared = problem.shards.prepare(_make_shard, settings)
    spreads = np.concatenate(prepared.map(_find_spreads))
    return ShardedSpace(prepared, problem.metric, spreads.mean(axis=0))


@dataclass(frozen=True)
class ShardedSpace:
    """Hypotheses in shards; implements ``SearchSpace`` and ``LineSearcher``.

    Attributes:
        shards: the shards.
        metric: scores the summed statistics.
        spread: float64 ``[n_active]``.
    """

    shards: PreparedShards
    metric: Metric
    spread: Vector

    def at(self, weights: Vector) -> Vector:
        """Return the weights."""
        return weights

    def decode(self, point: Vector) -> float:
        """Return the corpus score of the 1-best hypotheses; ties go to the first."""
        rows = np.concatenate(self.shards.map(_decode, repeat(point)))
        totals = np.empty(rows.shape[1])
        add_statistics(rows, np.arange(len(rows)), totals)
        return float(self.metric.score(totals))

    def searcher(self, n_directions: int) -> LineSearcher:
        """Return itself: the memory is in the shards."""
        return self

    def along_axes(self, axes: NDArray[np.int64], point: Vector) -> Iterator[Surface]:
        """See ``LineSearcher``."""
        return self._surfaces(self.shards.map(_search_axes, repeat(axes), repeat(point)))

    def along(self, directions: Vector, point: Vector) -> Iterator[Surface]:
        """See ``LineSearcher``."""
        return self._surfaces(self.shards.map(_search, repeat(directions), repeat(point)))

    def _surfaces(self, shards: list[list[LineChanges]]) -> Iterator[Surface]:
        for parts in zip(*shards, strict=True):
            yield score_line([_restore_changes(part) for part in parts], self.metric)


@dataclass(frozen=True)
class _Shard:
    """The space of a shard, and the scores at the last points."""

    space: LineSpace
    scores: OrderedDict[bytes, Vector] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, weights: Vector) -> Vector:
        """Return the model scores, float64 ``[n_hyps]``."""
        key = weights.tobytes()
        with self.lock:
            if key in self.scores:
                self.scores.move_to_end(key)
                return self.scores[key]
        found = self.space.at(weights)
        with self.lock:
            self.scores[key] = found
            if len(self.scores) > POINTS:
                self.scores.popitem(last=False)
        return found


def _make_shard(
    shard: ListShard, metric: Metric, active: NDArray[np.bool_], weights: Vector
) -> _Shard:
    return _Shard(line_space(Problem(shard.lists, metric, active), weights))


def _find_spreads(shard: _Shard) -> Vector:
    return shard.space.sentence_spreads()


def _decode(shard: _Shard, weights: Vector) -> NDArray[Any]:
    """Return rows of statistics whose sum is that of the 1-best hypotheses."""
    return _rows_to_add(shard.space.stats[shard.space.first_best(shard.at(weights))])


def _search_axes(shard: _Shard, axes: NDArray[np.int64], weights: Vector) -> list[LineChanges]:
    searcher, scores = shard.space.searcher(len(axes)), shard.at(weights)
    found = find_line_changes(
        shard.space, shard.space.axes, axes, scores, searcher.scratch, searcher.hull_rows
    )
    return _pack(shard, searcher, found)


def _search(shard: _Shard, directions: Vector, weights: Vector) -> list[LineChanges]:
    searcher, scores = shard.space.searcher(len(directions)), shard.at(weights)
    lines, wanted = shard.space.lines(directions), np.arange(len(directions))
    found = find_line_changes(shard.space, lines, wanted, scores, searcher.scratch)
    return _pack(shard, searcher, found)


def _pack(shard: _Shard, searcher: ListSearcher, found: Iterator[LineChanges]) -> list[LineChanges]:
    firsts = searcher.scratch.firsts
    return [_pack_changes(each, firsts[line], shard) for line, each in enumerate(found)]


def _pack_changes(found: LineChanges, firsts: NDArray[np.int32], shard: _Shard) -> LineChanges:
    """Return a copy for sending, with integers in as few bytes as hold them."""
    changes = found.changes
    if changes.dtype.kind == "i":
        lowest = min(int(changes.min(initial=-1)), -1 - int(changes.max(initial=0)))
        packed = changes.astype(np.min_scalar_type(lowest))
        return LineChanges(found.thresholds.copy(), packed, found.firsts.copy())
    return LineChanges(found.thresholds.copy(), changes.copy(), shard.space.stats[firsts])


def _restore_changes(part: LineChanges) -> LineChanges:
    """Return the changes as ``find_line_changes`` has them."""
    dtype = np.promote_types(part.changes.dtype, np.int32)
    return part._replace(changes=part.changes.astype(dtype, copy=False))


def _rows_to_add(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of integers as one row, and other numbers' rows as they are.

    Sums of floating-point numbers depend on their order.
    """
    return rows.sum(axis=0, keepdims=True, dtype=np.float64) if rows.dtype.kind == "i" else rows
