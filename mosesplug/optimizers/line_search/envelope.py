"""Upper envelopes: the 1-best hypotheses of a sentence along a line of weights.

Along ``w + x d`` a hypothesis with features ``h`` scores ``intercept + slope x``, where ``intercept
= w . h`` and ``slope = d . h``. The highest line at each ``x`` is the 1-best there, so a sentence's
envelope is a row of hypotheses and the thresholds between them (Och 2003, section 3; Macherey et
al. 2008, section 3). The envelope of lines is the upper convex hull of the points ``(slope,
intercept)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets, Scores
from mosesplug.kernels import lean_kernel
from mosesplug.optimizers.line_search.hull import KNOWN, find_hull
from mosesplug.optimizers.line_search.marking import N_CHORDS, THRESHOLD

__all__ = ["HullMemory", "envelopes", "mark_envelopes"]


@dataclass(frozen=True)
class HullMemory:
    """Working memory of ``envelopes``, for sentences of up to ``n`` hypotheses.

    Attributes:
        points: float64 ``[3, at least n and 9]``.
        hull: int64 ``[at least n and 9]``.
        rows: int64 ``[at least n and 9]``.
        chords: float32 ``[2, 8]``.
        rounded: float32 ``[at least n]``.
        marks: uint8, a multiple of 8 and more than ``n + 7``.
        words: the same memory, uint64.
    """

    points: NDArray[np.float64]
    hull: NDArray[np.int64]
    rows: NDArray[np.int64]
    chords: NDArray[np.float32]
    rounded: NDArray[np.float32]
    marks: NDArray[np.uint8]
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64]) -> HullMemory:
        """Return memory for the sentences of ``offsets``, int64 ``[n_sentences + 1]``."""
        widest = int(np.diff(offsets).max(initial=0))
        size = max(widest, KNOWN)
        marks = np.zeros((widest + 15) // 8 * 8, dtype=np.uint8)
        return cls(
            np.empty((3, size)),
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.int64),
            np.empty((2, N_CHORDS), dtype=np.float32),
            np.empty(size, dtype=np.float32),
            marks,
            marks.view(np.uint64),
        )

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays, as the last arguments of ``envelopes``."""
        return tuple(vars(self).values())


@lean_kernel
def envelopes(
    offsets: Offsets,
    slopes: NDArray[Any],
    wanted: NDArray[np.int64],
    intercepts: Scores,
    stats: NDArray[Any],
    known: NDArray[np.int32],
    thresholds: NDArray[np.float64],
    changes: NDArray[Any],
    firsts: NDArray[np.int32],
    totals: NDArray[np.float64],
    sizes: NDArray[np.int64],
    points: NDArray[np.float64],
    hull: NDArray[np.int64],
    rows: NDArray[np.int64],
    chords: NDArray[np.float32],
    rounded: NDArray[np.float32],
    marks: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> None:
    """Find the thresholds of all sentences along directions, and what changes at each.

    Args:
        offsets: no sentence is empty.
        slopes: arranged (see ``arrangement.py``), float32 or float64 ``[n_hyps * n_directions]``.
        wanted: int64 ``[n_wanted]``, numbers of directions.
        stats: ``[n_hyps, n_stats]``.
        known: int32 ``[n_sentences, n_directions, 10]``, 0 at first: rows of each sentence's last
            hulls (see ``find_hull``); in and output. They change no other output.
        thresholds: output, float64 ``[n_wanted, room]``. They rise within a sentence and are
            not sorted across sentences.
        changes: output, ``[n_wanted, room, n_stats]``: statistics of the hypothesis that is
            highest after each threshold minus those of the one before.
        firsts: output, int32 ``[n_wanted, n_sentences]``: the 1-best at minus infinity.
        totals: output, float64 ``[n_wanted, n_stats]``: their summed statistics.
        sizes: output, int64 ``[n_wanted]``: number of thresholds; if it exceeds the room, the
            outputs are invalid.
        points: working memory, as the rest (see ``HullMemory``).
        hull: see ``HullMemory``.
        rows: see ``HullMemory``.
        chords: see ``HullMemory``.
        rounded: see ``HullMemory``.
        marks: see ``HullMemory``.
        words: see ``HullMemory``.
    """
    n_directions, room, n_stats = known.shape[1], thresholds.shape[1], stats.shape[1]
    sizes[:] = 0
    totals[:] = 0.0
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        heights = intercepts[start:end]
        for row in range(end - start):
            rounded[row] = heights[row]
        # Statistics of the known rows, which are probably needed, are fetched all at once.
        fetched = stats[start, 0]
        for line in range(len(wanted)):
            for i in range(known[sentence, wanted[line], 0]):
                fetched += stats[start + known[sentence, wanted[line], 1 + i], 0]
        points[0, 0] = fetched
        for line in range(len(wanted)):
            direction = wanted[line]
            place = start * n_directions + direction * (end - start)
            size = find_hull(
                slopes[place : place + end - start],
                heights,
                rounded,
                known[sentence, direction],
                points,
                hull,
                rows,
                chords,
                marks,
                words,
            )
            before = start + hull[0]
            firsts[line, sentence] = before
            for k in range(n_stats):
                totals[line, k] += stats[before, k]
            at = sizes[line]
            # Counted also without room, so that the caller knows how much is needed.
            sizes[line] += size - 1
            if sizes[line] > room:
                continue
            for i in range(1, size):
                after = start + hull[i]
                thresholds[line, at] = points[THRESHOLD, i]
                for k in range(n_stats):
                    changes[line, at, k] = stats[after, k] - stats[before, k]
                before = after
                at += 1


@lean_kernel
def mark_envelopes(
    offsets: Offsets,
    slopes: NDArray[Any],
    n_directions: int,
    intercepts: Scores,
    known: NDArray[np.int32],
    marked: NDArray[np.bool_],
    points: NDArray[np.float64],
    hull: NDArray[np.int64],
    rows: NDArray[np.int64],
    chords: NDArray[np.float32],
    rounded: NDArray[np.float32],
    marks: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> None:
    """Mark the hypotheses that are a 1-best somewhere along one of the directions.

    Args:
        offsets: no sentence is empty.
        slopes: as for ``envelopes``, of ``n_directions`` directions.
        n_directions: their number.
        intercepts: model scores where the lines start.
        known: as for ``envelopes``.
        marked: in and output, bool ``[n_hyps]``; marks that are set stay.
        points: working memory, as the rest (see ``HullMemory``).
        hull: see ``HullMemory``.
        rows: see ``HullMemory``.
        chords: see ``HullMemory``.
        rounded: see ``HullMemory``.
        marks: see ``HullMemory``.
        words: see ``HullMemory``.
    """
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        heights = intercepts[start:end]
        for row in range(end - start):
            rounded[row] = heights[row]
        for direction in range(n_directions):
            place = start * n_directions + direction * (end - start)
            size = find_hull(
                slopes[place : place + end - start],
                heights,
                rounded,
                known[sentence, direction],
                points,
                hull,
                rows,
                chords,
                marks,
                words,
            )
            for i in range(size):
                marked[start + hull[i]] = True
