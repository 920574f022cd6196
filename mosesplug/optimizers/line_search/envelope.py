"""Upper envelopes: the 1-best hypotheses of a sentence along a line of weights.

Along ``w + x d`` a hypothesis with features ``h`` scores ``intercept + slope x``, where ``intercept
= w . h`` and ``slope = d . h``. The highest line at each ``x`` is the 1-best there, so a sentence's
envelope is a row of hypotheses and the thresholds between them (Och 2003, section 3; Macherey et
al. 2008, section 3). The envelope of lines is the upper convex hull of the points ``(slope,
intercept)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.line_search.hull import KNOWN, N_INTS, find_hull
from mosesplug.optimizers.lists.arrangement import longest_sentence

__all__ = ["envelopes", "find_changes"]


@kernel
def envelopes(
    offsets: NDArray[np.int64],
    slopes: NDArray[Any],
    wanted: NDArray[np.int64],
    intercepts: NDArray[np.float64],
    known: NDArray[np.int32],
    thresholds: NDArray[np.float64],
    winners: NDArray[np.int32],
    firsts: NDArray[np.int32],
    found: NDArray[np.int64],
) -> None:
    """Find the thresholds of all sentences along directions, and who wins on either side.

    Args:
        offsets: int64 ``[n_sentences + 1]``; no sentence is empty.
        slopes: arranged (see ``arrangement.py``), float32 or float64 ``[n_hyps * n_directions]``.
        wanted: int64 ``[n_wanted]``, numbers of directions.
        intercepts: float64 ``[n_hyps]``.
        known: int32 ``[n_sentences, n_directions, 10]``, rows of each sentence's last hulls (see
            ``find_hull``), counted from its first; in and output. They change no other output.
        thresholds: output, float64 ``[n_wanted, room]``. They rise within a sentence and are
            not sorted across sentences.
        winners: output, int32 ``[n_wanted, room, 2]``: the hypotheses that are highest before and
            after each threshold.
        firsts: output, int32 ``[n_wanted, n_sentences]``: those at minus infinity.
        found: output, int64 ``[n_wanted]``: number of thresholds; if it exceeds the room, the
            outputs are invalid.
    """
    widest = longest_sentence(offsets)
    memory = max(widest, KNOWN) + 1
    ints, points = np.empty((N_INTS, memory), dtype=np.int64), np.empty((4, memory))
    high = np.zeros((widest + 15) // 8 * 8, dtype=np.uint8)
    words = high.view(np.uint64)
    hull, local = np.empty(memory, dtype=np.int64), np.empty(memory)
    gradients = np.empty(widest)
    n_directions, room = known.shape[1], thresholds.shape[1]
    found[:] = 0
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        heights = intercepts[start:end]
        for line in range(len(wanted)):
            direction = wanted[line]
            place = start * n_directions + direction * (end - start)
            for row in range(end - start):
                gradients[row] = slopes[place + row]
            own = gradients[: end - start]
            where = (sentence, direction)
            size = find_hull(own, heights, known, where, ints, points, high, words, hull, local)
            firsts[line, sentence] = start + hull[0]
            at = found[line]
            found[line] += size - 1
            if found[line] > room:
                continue
            for i in range(1, size):
                thresholds[line, at] = local[i]
                winners[line, at, 0] = start + hull[i - 1]
                winners[line, at, 1] = start + hull[i]
                at += 1


@kernel
def find_changes(
    stats: NDArray[Any],
    firsts: NDArray[np.int32],
    winners: NDArray[np.int32],
    line: int,
    n_thresholds: int,
    totals: NDArray[np.float64],
    changes: NDArray[Any],
) -> None:
    """Find how the corpus statistics change at the thresholds of a line.

    Apart from ``envelopes``, so that the processor fetches many statistics at once.

    Args:
        stats: ``[n_hyps, n_stats]``.
        firsts: from ``envelopes``.
        winners: from ``envelopes``.
        line: which line.
        n_thresholds: number of its thresholds.
        totals: output, float64 ``[n_stats]``: the statistics at minus infinity.
        changes: output, ``[at least n_thresholds, n_stats]``.
    """
    n_stats = stats.shape[1]
    totals[:] = 0.0
    for sentence in range(firsts.shape[1]):
        first = firsts[line, sentence]
        for k in range(n_stats):
            totals[k] += stats[first, k]
    for i in range(n_thresholds):
        before, after = winners[line, i, 0], winners[line, i, 1]
        for k in range(n_stats):
            changes[i, k] = stats[after, k] - stats[before, k]
