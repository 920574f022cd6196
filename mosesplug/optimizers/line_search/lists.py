"""Exact line search on n-best lists (Och 2003, section 3).

Moving the weights along a line changes a sentence's 1-best hypothesis at a few thresholds only
(``envelope``). The sorted thresholds of all sentences cut the line into intervals on which every
1-best, and so the corpus score, is constant; the statistics of neighbouring intervals differ by the
change at the threshold between them. One pass over the thresholds scores the whole line.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.large_arrays import allocate
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.envelope import envelopes, find_changes
from mosesplug.optimizers.line_search.hull import KNOWN, index_of_highest
from mosesplug.optimizers.line_search.space import Surface
from mosesplug.optimizers.lists.arrangement import (
    arrange,
    find_extremes,
    model_scores,
    project_slopes,
)
from mosesplug.optimizers.lists.rows import drop_empty_sentences
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import TuningSet

__all__ = [
    "LineChanges",
    "LineScratch",
    "LineSpace",
    "Lines",
    "ListSearcher",
    "add_statistics",
    "drop_empty_lists",
    "error_surfaces",
    "find_line_changes",
    "line_space",
    "score_line",
]


@dataclass(frozen=True)
class Lines:
    """Slopes of all hypotheses along some directions.

    Attributes:
        slopes: float32 (features) or float64 ``[n_hyps * n_directions]``, in the order of
            ``arrangement``.
        extremes: int32 ``[n_sentences, n_directions, 2]``, rows of the least and the greatest
            slope, counted from the sentence's first.
    """

    slopes: NDArray[Any]
    extremes: NDArray[np.int32]

    @classmethod
    def of(cls, offsets: NDArray[np.int64], slopes: NDArray[Any]) -> Lines:
        """Return lines of arranged slopes; ``offsets`` is int64 ``[n_sentences + 1]``."""
        n_directions = len(slopes) // int(offsets[-1])
        extremes = np.empty((len(offsets) - 1, n_directions, 2), dtype=np.int32)
        find_extremes(offsets, slopes, extremes)
        return cls(slopes, extremes)

    def known_rows(self) -> NDArray[np.int32]:
        """Return rows of hulls that are known before any search (see ``envelopes``)."""
        known = np.zeros((*self.extremes.shape[:2], 1 + KNOWN), dtype=np.int32)
        known[:, :, 0] = 2
        known[:, :, 1:3] = self.extremes
        return known


@dataclass(frozen=True)
class LineSpace:
    """The tuning set for line search: active features arranged, the others summed up.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``, without empty sentences.
        axes: the lines along each active feature.
        base: float64 ``[n_hyps]``, the inactive features' share of the model score.
        stats: int32 or float64 ``[n_hyps, n_stats]``, the metric's sufficient statistics.
        metric: scores the summed statistics.
    """

    offsets: NDArray[np.int64]
    axes: Lines
    base: NDArray[np.float64]
    stats: NDArray[Any]
    metric: Metric
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Mean over sentences of each feature's greatest value minus its least."""
        return np.asarray(self.sentence_spreads().mean(axis=0))

    def sentence_spreads(self) -> NDArray[np.float64]:
        """Return the same of each sentence, float64 ``[n_sentences, n_axes]``."""
        n_axes = self.axes.extremes.shape[1]
        starts, sizes = self.offsets[:-1, None], np.diff(self.offsets)[:, None]
        firsts = starts * n_axes + np.arange(n_axes) * sizes
        least, greatest = (
            self.axes.slopes[firsts + self.axes.extremes[:, :, end]] for end in (0, 1)
        )
        return np.asarray(np.subtract(greatest, least, dtype=np.float64))

    @property
    def fixed_spread(self) -> float:
        """The same of ``base``; 0 if the scale of the active weights decides nothing."""
        starts = self.offsets[:-1]
        highest, least = (
            np.maximum.reduceat(self.base, starts),
            np.minimum.reduceat(self.base, starts),
        )
        return float((highest - least).mean())

    def at(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return model scores at ``weights``, ``[n_active]``; sums start with the base."""
        scores = allocate((len(self.base),), np.float64)
        model_scores(self.offsets, self.axes.slopes, self.base, weights, scores)
        return scores

    def lines(self, directions: NDArray[np.float64]) -> Lines:
        """Return the lines along ``directions``, float64 ``[n_directions, n_active]``."""
        slopes = allocate((len(self.base) * len(directions),), np.float64)
        project_slopes(self.offsets, self.axes.slopes, directions, slopes)
        return Lines.of(self.offsets, slopes)

    def decode(self, point: NDArray[np.float64]) -> float:
        """Return the corpus score of the 1-best hypotheses; ties go to the first."""
        totals = np.empty(self.stats.shape[1])
        add_statistics(self.stats, self.first_best(point), totals)
        return float(self.metric.score(totals))

    def first_best(self, point: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the 1-best hypothesis of each sentence, int64; ties go to the first."""
        best = np.empty(len(self.offsets) - 1, dtype=np.int64)
        _find_first_best(self.offsets, point, best)
        return best

    def searcher(self, n_directions: int) -> ListSearcher:
        """Return this thread's searcher of lines, with memory for so many directions."""
        searcher: ListSearcher | None = getattr(self._own, "searcher", None)
        if searcher is None or len(searcher.scratch.thresholds) < n_directions:
            scratch = LineScratch.of(self, n_directions)
            known = self.axes.known_rows() if searcher is None else searcher.known
            searcher = self._own.searcher = ListSearcher(self, scratch, known)
        return searcher


@dataclass
class LineScratch:
    """Memory that the line searches of one thread share; it grows as needed.

    Attributes:
        thresholds: float64 ``[n_directions, room]``.
        winners: int32 ``[n_directions, room, 2]``.
        firsts: int32 ``[n_directions, n_sentences]``.
        changes: ``[room, n_stats]``.
    """

    thresholds: NDArray[np.float64]
    winners: NDArray[np.int32]
    firsts: NDArray[np.int32]
    changes: NDArray[Any]

    @classmethod
    def of(cls, space: LineSpace, n_directions: int) -> LineScratch:
        """Return room for eight thresholds a sentence along each direction."""
        room, n_sentences = 8 * len(space.offsets), len(space.offsets) - 1
        return cls(
            np.empty((n_directions, room)),
            np.empty((n_directions, room, 2), dtype=np.int32),
            np.empty((n_directions, n_sentences), dtype=np.int32),
            np.empty((room, space.stats.shape[1]), dtype=space.stats.dtype),
        )

    def make_room(self, room: int) -> None:
        """Make room for so many thresholds along each direction; the contents are lost."""
        n_directions, n_stats = len(self.thresholds), self.changes.shape[1]
        self.thresholds = np.empty((n_directions, room))
        self.winners = np.empty((n_directions, room, 2), dtype=np.int32)
        self.changes = np.empty((room, n_stats), dtype=self.changes.dtype)


@dataclass(frozen=True)
class ListSearcher:
    """Searches lines of one space.

    Attributes:
        space: the hypotheses.
        scratch: its memory.
        known: int32 ``[n_sentences, n_axes, 10]``, rows of the last hulls along the axes.
    """

    space: LineSpace
    scratch: LineScratch
    known: NDArray[np.int32]

    def along_axes(self, axes: NDArray[np.int64], point: NDArray[np.float64]) -> Iterator[Surface]:
        """See ``LineSearcher``."""
        return error_surfaces(self.space, self.space.axes, axes, point, self.scratch, self.known)

    def along(
        self, directions: NDArray[np.float64], point: NDArray[np.float64]
    ) -> Iterator[Surface]:
        """See ``LineSearcher``."""
        lines, wanted = self.space.lines(directions), np.arange(len(directions))
        return error_surfaces(self.space, lines, wanted, point, self.scratch)


def line_space(problem: Problem, weights: NDArray[np.float64]) -> LineSpace:
    """Return the problem's lists for line search; inactive features keep ``weights``."""
    tuning_set, active = problem.tuning_set, problem.active_mask
    n_dense = tuning_set.space.n_dense
    columns = tuning_set.dense
    if not active[:n_dense].all():
        columns = columns[:, active[:n_dense]]
    if active[n_dense:].any():
        columns = np.concatenate([columns, _sparse_columns(problem, active[n_dense:])], axis=1)
    base = tuning_set.model_scores(np.where(active, 0.0, weights))
    offsets, stats = drop_empty_lists(tuning_set)
    # Features stay in single precision: kernels convert them sentence by sentence.
    slopes = allocate((columns.size,), columns.dtype)
    arrange(offsets, columns, slopes)
    return LineSpace(offsets, Lines.of(offsets, slopes), base, stats, problem.metric)


def drop_empty_lists(tuning_set: TuningSet) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return offsets without empty sentences, int64, and statistics for line search."""
    offsets = drop_empty_sentences(tuning_set.offsets)
    # Differences of float statistics are summed by the thousand: float32 would show.
    dtype = np.promote_types(tuning_set.stats.dtype, np.int32)
    return offsets, np.ascontiguousarray(tuning_set.stats, dtype=dtype)


def _sparse_columns(problem: Problem, active: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return active sparse features as dense columns, float32 ``[n_hyps, ...]``."""
    tuning_set = problem.tuning_set
    columns = np.zeros((tuning_set.n_hyps, int(active.sum())), dtype=np.float32)
    if tuning_set.sparse is not None:
        sparse = tuning_set.sparse
        row = np.repeat(np.arange(tuning_set.n_hyps), np.diff(sparse.indptr))
        wanted = active[sparse.indices]
        place = np.cumsum(active) - 1
        np.add.at(columns, (row[wanted], place[sparse.indices[wanted]]), sparse.data[wanted])
    return columns


@kernel
def _find_first_best(
    offsets: NDArray[np.int64], scores: NDArray[np.float64], best: NDArray[np.int64]
) -> None:
    """Write the row of each sentence's 1-best hypothesis to ``best``."""
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        best[sentence] = start + index_of_highest(scores[start:end])


@kernel
def add_statistics(
    stats: NDArray[Any], rows: NDArray[np.int64], totals: NDArray[np.float64]
) -> None:
    """Write the sum of rows of statistics to ``totals``, added one after the other."""
    totals[:] = 0.0
    for row in rows:
        for k in range(stats.shape[1]):
            totals[k] += stats[row, k]


@kernel
def _accumulate(
    order: NDArray[np.int64],
    changes: NDArray[Any],
    totals: NDArray[np.float64],
    surface: NDArray[np.float64],
) -> None:
    """Write ``totals`` plus running sums of ``changes[order]`` to ``surface``.

    ``surface`` is an output, float64 ``[len(order) + 1, n_stats]``.
    """
    n_stats = len(totals)
    for k in range(n_stats):
        surface[0, k] = totals[k]
    for i in range(len(order)):
        change = order[i]
        for k in range(n_stats):
            surface[i + 1, k] = surface[i, k] + changes[change, k]


class LineChanges(NamedTuple):
    """What a line search finds in some sentences along one line.

    Attributes:
        thresholds: float64 ``[m]``; they rise within a sentence only.
        changes: ``[m, n_stats]``, of the statistics at each threshold.
        firsts: ``[n, n_stats]``, rows whose sum are the statistics at minus infinity.
    """

    thresholds: NDArray[np.float64]
    changes: NDArray[Any]
    firsts: NDArray[Any]


def error_surfaces(
    space: LineSpace,
    lines: Lines,
    wanted: NDArray[np.int64],
    intercepts: NDArray[np.float64],
    scratch: LineScratch,
    known: NDArray[np.int32] | None = None,
) -> Iterator[Surface]:
    """Yield the score along each wanted line, all in one pass over the hypotheses.

    The arguments are those of ``find_line_changes``.

    Yields:
        ``(thresholds, scores)`` of each.
    """
    for found in find_line_changes(space, lines, wanted, intercepts, scratch, known):
        yield score_line([found], space.metric)


def find_line_changes(
    space: LineSpace,
    lines: Lines,
    wanted: NDArray[np.int64],
    intercepts: NDArray[np.float64],
    scratch: LineScratch,
    known: NDArray[np.int32] | None = None,
) -> Iterator[LineChanges]:
    """Yield the changes along each wanted line, all in one pass over the hypotheses.

    Args:
        space: the hypotheses.
        lines: the directions.
        wanted: int64, numbers of lines.
        intercepts: float64 ``[n_hyps]``, ``origin . h``.
        scratch: working memory for at least as many directions.
        known: rows of the last hulls along these lines, from ``Lines.known_rows`` at first; in
            and output. It makes searches fast and changes no result. None: they are not known.

    Yields:
        Views of the scratch, which are valid until the next one.
    """
    known = lines.known_rows() if known is None else known
    totals = np.empty(space.stats.shape[1])
    found = np.empty(len(wanted), dtype=np.int64)
    while True:
        envelopes(
            space.offsets,
            lines.slopes,
            wanted,
            intercepts,
            known,
            scratch.thresholds,
            scratch.winners,
            scratch.firsts,
            found,
        )
        if (most := int(found.max(initial=0))) <= scratch.thresholds.shape[1]:
            break
        scratch.make_room(most + most // 4)
    for line, size in enumerate(found.tolist()):
        find_changes(
            space.stats, scratch.firsts, scratch.winners, line, size, totals, scratch.changes
        )
        yield LineChanges(scratch.thresholds[line, :size], scratch.changes[:size], totals[None])


def score_line(parts: Sequence[LineChanges], metric: Metric) -> Surface:
    """Return the score along a line, of one or more groups of sentences in their order."""
    first = parts[0]
    thresholds, changes, rows = first
    if len(parts) > 1:
        thresholds = np.concatenate([part.thresholds for part in parts])
        changes = np.concatenate([part.changes for part in parts], dtype=first.changes.dtype)
        rows = np.concatenate([part.firsts for part in parts])
    totals = rows[0]
    if len(rows) > 1:
        totals = np.empty(rows.shape[1])
        add_statistics(rows, np.arange(len(rows)), totals)
    order = np.argsort(thresholds)
    surface = np.empty((len(order) + 1, len(totals)))
    _accumulate(order, changes, totals, surface)
    return thresholds[order], np.asarray(metric.score(surface))
