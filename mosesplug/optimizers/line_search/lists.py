"""Exact line search on n-best lists (Och 2003, section 3).

Moving the weights along a line changes a sentence's 1-best hypothesis at a few thresholds only
(``envelope``). The sorted thresholds of all sentences cut the line into intervals on which every
1-best, and so the corpus score, is constant; the statistics of neighboring intervals differ by the
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

from mosesplug.arrays import FeatureMask, Offsets, Scores, SentenceValues, Weights
from mosesplug.candidates import Surface
from mosesplug.kernels import finite_kernel, lean_kernel, read_only
from mosesplug.large_arrays import allocate
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.envelope import HullMemory, envelopes, mark_envelopes
from mosesplug.optimizers.line_search.hull import KNOWN
from mosesplug.optimizers.lists.arrangement import (
    arrange,
    model_scores,
    project_slopes,
)
from mosesplug.optimizers.lists.rows import drop_empty_sentences, filled_weights
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True)
class Lines:
    """Slopes of all hypotheses along some directions.

    Attributes:
        slopes: float32 or float64 ``[n_hyps * n_directions]``, in the order of ``arrangement``.
        n_directions: number of directions.
    """

    slopes: NDArray[Any]
    n_directions: int

    def known_rows(self, n_sentences: int) -> NDArray[np.int32]:
        """Return zeros: before any search, no rows of hulls are known (see ``envelopes``)."""
        return np.zeros((n_sentences, self.n_directions, 1 + KNOWN), dtype=np.int32)


@dataclass(frozen=True)
class LineSpace:
    """The tuning set for line search: active features arranged, the others summed up.

    Attributes:
        offsets: without empty sentences.
        axes: the lines along each active feature, float32.
        base: the inactive features' share of the model score.
        stats: int32 or float64 ``[n_hyps, n_stats]``, the metric's sufficient statistics, times
            the weights of sentences.
        metric: scores the summed statistics.
        sentence_weights: of each sentence, part of ``stats``; None: 1 each.
    """

    offsets: Offsets
    axes: Lines
    base: Scores
    stats: NDArray[Any]
    metric: Metric
    sentence_weights: SentenceValues | None = None
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Mean over sentences of each feature's greatest value minus its least."""
        spreads = self.sentence_spreads()
        return np.asarray(np.average(spreads, axis=0, weights=self.sentence_weights))

    def sentence_spreads(self) -> NDArray[np.float64]:
        """Return the same of each sentence, float64 ``[n_sentences, n_axes]``."""
        n_axes = self.axes.n_directions
        starts, sizes = self.offsets[:-1, None], np.diff(self.offsets)[:, None]
        firsts = (starts * n_axes + np.arange(n_axes) * sizes).ravel()
        least, greatest = (
            extreme.reduceat(self.axes.slopes, firsts).reshape(-1, n_axes).astype(np.float64)
            for extreme in (np.minimum, np.maximum)
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
        return float(np.average(highest - least, weights=self.sentence_weights))

    def at(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return model scores at ``weights``, ``[n_active]``; sums start with the base."""
        scores = allocate((len(self.base),), np.float64)
        model_scores(self.offsets, self.axes.slopes, self.base, weights, scores)
        return scores

    def lines(self, directions: NDArray[np.float64]) -> Lines:
        """Return the lines along ``directions``, float64 ``[n_directions, n_active]``."""
        slopes = allocate((len(self.base) * len(directions),), np.float64)
        project_slopes(self.offsets, self.axes.slopes, directions, slopes)
        return Lines(slopes, len(directions))

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

    def along_axes(self, axes: NDArray[np.int64], point: NDArray[np.float64]) -> Iterator[Surface]:
        """Yield the score along some axes; see ``candidates.SearchSpace``."""
        for changes in self.axis_changes(axes, point):
            yield score_line([changes], self.metric)

    def along(
        self, directions: NDArray[np.float64], point: NDArray[np.float64]
    ) -> Iterator[Surface]:
        """Yield the score along directions; see ``candidates.SearchSpace``."""
        return self.along_lines(self.lines(directions), point)

    def along_lines(self, lines: Lines, point: NDArray[np.float64]) -> Iterator[Surface]:
        """Yield the score along all lines."""
        for changes in self.changes(lines, np.arange(lines.n_directions), point):
            yield score_line([changes], self.metric)

    def mark_winners(
        self, lines: Lines, point: NDArray[np.float64], marked: NDArray[np.bool_]
    ) -> None:
        """Mark the hypotheses that are a 1-best somewhere along one of the lines.

        Args:
            lines: the directions; ``axes`` for those of the active features.
            point: model scores where the lines start.
            marked: in and output, bool ``[n_hyps]``; marks that are set stay.
        """
        known = lines.known_rows(len(self.offsets) - 1)
        memory = HullMemory.of(self.offsets)
        mark_envelopes(
            self.offsets, lines.slopes, lines.n_directions, point, known, marked, *memory.arrays
        )

    def axis_changes(
        self, axes: NDArray[np.int64], point: NDArray[np.float64]
    ) -> Iterator[LineChanges]:
        """Yield the changes along some axes, faster each time: see ``find_hull``."""
        if not hasattr(self._own, "known_rows"):
            self._own.known_rows = self.axes.known_rows(len(self.offsets) - 1)
        return self.changes(self.axes, axes, point, self._own.known_rows)

    def changes(
        self,
        lines: Lines,
        wanted: NDArray[np.int64],
        point: Scores,
        known: NDArray[np.int32] | None = None,
    ) -> Iterator[LineChanges]:
        """Yield the changes along each wanted line, all in one pass over the hypotheses.

        Args:
            lines: the directions.
            wanted: int64, numbers of lines.
            point: model scores where the lines start.
            known: rows of the last hulls along these lines, from ``Lines.known_rows`` at first; in
                and output. It makes searches fast and changes no result. None: they are not known.

        Yields:
            Views of this thread's memory, which are valid until the next one.
        """
        scratch: LineScratch | None = getattr(self._own, "scratch", None)
        if scratch is None or len(scratch.thresholds) < len(wanted):
            scratch = self._own.scratch = LineScratch.of(self, len(wanted))
        if known is None:
            known = lines.known_rows(len(self.offsets) - 1)
        sizes = np.empty(len(wanted), dtype=np.int64)
        while True:
            envelopes(
                self.offsets,
                lines.slopes,
                wanted,
                point,
                self.stats,
                known,
                scratch.thresholds,
                scratch.changes,
                scratch.firsts,
                scratch.totals[: len(wanted)],
                sizes,
                *scratch.hulls.arrays,
            )
            if (most := int(sizes.max(initial=0))) <= scratch.thresholds.shape[1]:
                break
            # With a margin: the lines after this one may have more.
            scratch.make_room(most + most // 4)
        for line, size in enumerate(sizes.tolist()):
            yield LineChanges(
                scratch.thresholds[line, :size],
                scratch.changes[line, :size],
                scratch.totals[line][None],
                scratch.firsts[line],
            )


@dataclass
class LineScratch:
    """Memory that the line searches of one thread share; it grows as needed.

    Attributes:
        thresholds: float64 ``[n_directions, room]``.
        changes: ``[n_directions, room, n_stats]``.
        firsts: int32 ``[n_directions, n_sentences]``.
        totals: float64 ``[n_directions, n_stats]``.
        hulls: memory of ``envelopes``.
    """

    thresholds: NDArray[np.float64]
    changes: NDArray[Any]
    firsts: NDArray[np.int32]
    totals: NDArray[np.float64]
    hulls: HullMemory

    @classmethod
    def of(cls, space: LineSpace, n_directions: int) -> LineScratch:
        """Return room for eight thresholds a sentence along each direction."""
        room, n_stats = 8 * len(space.offsets), space.stats.shape[1]
        return cls(
            np.empty((n_directions, room)),
            np.empty((n_directions, room, n_stats), dtype=space.stats.dtype),
            np.empty((n_directions, len(space.offsets) - 1), dtype=np.int32),
            np.empty((n_directions, n_stats)),
            HullMemory.of(space.offsets),
        )

    def make_room(self, room: int) -> None:
        """Make room for so many thresholds along each direction; the contents are lost."""
        n_directions, _, n_stats = self.changes.shape
        self.thresholds = np.empty((n_directions, room))
        self.changes = np.empty((n_directions, room, n_stats), dtype=self.changes.dtype)


def line_space(
    tuning_set: TuningSet, metric: Metric, active: FeatureMask, weights: Weights
) -> LineSpace:
    """Return lists for line search; inactive features keep ``weights``."""
    n_dense = tuning_set.space.n_dense
    columns = tuning_set.dense
    if not active[:n_dense].all():
        columns = np.compress(active[:n_dense], columns, axis=1)
    if active[n_dense:].any():
        columns = np.concatenate([columns, _sparse_columns(tuning_set, active[n_dense:])], axis=1)
    # What no search changes is summed once.
    base = tuning_set.model_scores(np.where(active, 0.0, weights))
    offsets, stats = drop_empty_lists(tuning_set)
    slopes = allocate((columns.size,), np.float32)
    arrange(offsets, read_only(columns), slopes)
    sentence_weights = None
    if tuning_set.sentence_weights is not None:
        sentence_weights = filled_weights(tuning_set)
    axes = Lines(slopes, columns.shape[1])
    return LineSpace(offsets, axes, base, stats, metric, sentence_weights)


def drop_empty_lists(tuning_set: TuningSet) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return offsets without empty sentences, int64, and statistics for line search."""
    offsets = drop_empty_sentences(tuning_set.offsets)
    # Differences of float statistics are summed by the thousand: float32 would show.
    stats = tuning_set.weighted_stats
    dtype = np.promote_types(stats.dtype, np.int32)
    # Always read-only, so that kernels are compiled only once.
    return offsets, read_only(stats, dtype)


def _sparse_columns(tuning_set: TuningSet, active: NDArray[np.bool_]) -> NDArray[np.float32]:
    columns = np.zeros((tuning_set.n_hyps, int(active.sum())), dtype=np.float32)
    if tuning_set.sparse is not None:
        sparse = tuning_set.sparse
        row = np.repeat(np.arange(tuning_set.n_hyps), np.diff(sparse.indptr))
        wanted = active[sparse.indices]
        place = np.cumsum(active) - 1
        np.add.at(columns, (row[wanted], place[sparse.indices[wanted]]), sparse.data[wanted])
    return columns


@finite_kernel
def index_of_highest(heights: NDArray[np.float64]) -> int:
    """Return the first index of the greatest value, of float64 ``[n]``."""
    highest = -np.inf
    for row in range(len(heights)):
        highest = max(highest, heights[row])
    for row in range(len(heights)):
        if heights[row] == highest:
            return row
    return 0


@lean_kernel
def _find_first_best(
    offsets: NDArray[np.int64], scores: NDArray[np.float64], best: NDArray[np.int64]
) -> None:
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        best[sentence] = start + index_of_highest(scores[start:end])


@lean_kernel
def add_statistics(
    stats: NDArray[Any], rows: NDArray[np.int64], totals: NDArray[np.float64]
) -> None:
    """Write the sum of rows of statistics to ``totals``, added one after the other."""
    totals[:] = 0.0
    for row in rows:
        for k in range(stats.shape[1]):
            totals[k] += stats[row, k]


@lean_kernel
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
    """Thresholds of some sentences along a line, and changes of statistics there.

    Attributes:
        thresholds: float64 ``[m]``; they rise within a sentence only.
        changes: ``[m, n_stats]``, of the statistics at each threshold.
        firsts: ``[n, n_stats]``, rows whose sum are the statistics at minus infinity.
        first_rows: int32 ``[n_sentences]``, the 1-best hypotheses there.
    """

    thresholds: NDArray[np.float64]
    changes: NDArray[Any]
    firsts: NDArray[Any]
    first_rows: NDArray[np.int32]


def score_line(parts: Sequence[LineChanges], metric: Metric) -> Surface:
    """Return the score along a line from one or more groups of sentences in order."""
    first = parts[0]
    thresholds, changes, rows, _ = first
    if len(parts) > 1:
        thresholds = np.concatenate([part.thresholds for part in parts])
        changes = np.concatenate([part.changes for part in parts], dtype=first.changes.dtype)
        rows = np.concatenate([part.firsts for part in parts])
    totals = rows[0]
    if len(rows) > 1:
        totals = np.empty(rows.shape[1])
        # One after the other, as `envelopes` adds them, so that shards change no bit.
        add_statistics(rows, np.arange(len(rows)), totals)
    # Of equal thresholds any order will do: the intervals between them are too narrow to choose.
    order = np.argsort(thresholds)
    surface = np.empty((len(order) + 1, len(totals)))
    _accumulate(order, changes, totals, surface)
    return thresholds[order], np.asarray(metric.score(surface))
