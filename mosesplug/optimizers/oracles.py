"""Oracles: the hypotheses of each list with the best metric.

If each hypothesis has a score of its own, the best ones of each sentence are the oracles. A corpus
metric does not decompose into sentences: the best hypothesis of one depends on the choices for all
others, and is searched for greedily (Venugopal & Vogel 2005; Neubig & Watanabe 2016, section 4.2).
Equally good hypotheses are all oracles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets, Scores
from mosesplug.kernels import inlined_kernel, lean_kernel, read_only
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.protocol import Metric
from mosesplug.tuning_set import TuningSet

__all__ = ["OracleSets", "corpus_oracles", "sentence_oracles"]

_PASSES = 20
"""A greedy search that has not converged by then cycles among ties."""

_COMPILED = 1 << 14
"""Number of hypotheses from which equal statistics are scored once, which takes a kernel."""


@dataclass(frozen=True)
class OracleSets:
    """The oracles of some sentences.

    Attributes:
        rows: int64; those of sentence ``i`` are ``rows[offsets[i]:offsets[i + 1]]``, ascending.
        offsets: empty sentences have no oracles.
        score: the score of the corpus metric, or the mean gain of sentence oracles.
        oracle_rows: int64, the hypothesis of each non-empty sentence that gives the score.
    """

    rows: NDArray[np.int64]
    offsets: Offsets
    score: float
    oracle_rows: NDArray[np.int64]

    @property
    def first(self) -> NDArray[np.int64]:
        """The first oracle of each non-empty sentence, int64."""
        return self.rows[self.offsets[:-1][np.diff(self.offsets) > 0]]


def sentence_oracles(offsets: Offsets, gains: Scores) -> OracleSets:
    """Return the hypotheses of largest gain of each sentence, and the mean gain."""
    widths = np.diff(offsets)
    starts = offsets[:-1][widths > 0]
    if not len(starts):
        none = np.zeros(0, np.int64)
        return OracleSets(none, np.zeros(len(offsets), np.int64), 0.0, none)
    best = np.maximum.reduceat(gains, starts)
    rows = np.flatnonzero(gains == np.repeat(best, widths[widths > 0]))
    bounds = np.searchsorted(rows, offsets).astype(np.int64)
    return OracleSets(rows, bounds, float(best.mean()), rows[bounds[:-1][widths > 0]])


def corpus_oracles(
    tuning_set: TuningSet,
    metric: Metric | FewSentences,
    rng: np.random.Generator,
) -> OracleSets:
    """Return the hypotheses that a greedy search finds best (survey, Figure 2).

    The search starts from a random choice and visits sentences in random order. Each takes the
    hypothesis with the highest corpus score, given the choices for the others, until a whole pass
    changes nothing. Then no change of one sentence improves the score. In a tie the earlier choice
    stays. Statistics count by the weights of sentences.

    Args:
        tuning_set: the lists of a batch or of the whole set.
        metric: a function of summed statistics; larger is better. ``FewSentences`` gives oracles to
            a batch without a match of four words, too.
        rng: the random generator of the first choice and of the orders.

    Returns:
        Every hypothesis that scores as the chosen one does, given the choices for the other
        sentences.
    """
    offsets, stats = tuning_set.offsets, tuning_set.weighted_stats.astype(np.float64)
    filled = np.flatnonzero(np.diff(offsets) > 0)
    chosen = (offsets[filled] + rng.integers(0, np.diff(offsets)[filled])).astype(np.int64)
    totals = stats[chosen].sum(axis=0)
    rows, place_of = _find_distinct(offsets, stats)
    bounds, distinct = np.searchsorted(rows, offsets), stats[rows]
    is_oracle = np.zeros(len(rows), dtype=np.bool_)
    for number in range(_PASSES + 1):
        # After the last pass, choices stay: only the oracles are missing.
        may_change, changed = number < _PASSES, False
        order = rng.permutation(len(filled)).tolist() if may_change else range(len(filled))
        for sentence in order:
            start, end = bounds[filled[sentence]], bounds[filled[sentence] + 1]
            others = totals - stats[chosen[sentence]]
            scores = metric.score(others + distinct[start:end])
            best = int(np.argmax(scores))
            score = scores[place_of[chosen[sentence]] - start]
            if may_change and scores[best] > score:
                chosen[sentence], score = rows[start + best], scores[best]
                totals = others + distinct[start + best]
                changed = True
            is_oracle[start:end] = scores >= score
        if not changed:
            break
    oracles = np.flatnonzero(is_oracle[place_of])
    return OracleSets(
        oracles,
        np.searchsorted(oracles, offsets).astype(np.int64),
        float(metric.score(totals)),
        chosen,
    )


def _find_distinct(
    offsets: Offsets, stats: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to score: the first of those of a sentence that are equal.

    Few rows are all returned: they do not repay the kernel.

    Returns:
        int64, the rows, ascending; int64 ``[n_rows]``, for each row the place of its equal there.
    """
    first = np.arange(len(stats))
    if len(stats) >= _COMPILED:
        table = np.empty(4 * int(np.diff(offsets).max()), dtype=np.int64)
        _find_first_equal(read_only(offsets, np.int64), read_only(stats), table, first)
    is_first = first == np.arange(len(stats))
    return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[first]


@lean_kernel
def _find_first_equal(
    offsets: Offsets,
    stats: NDArray[np.float64],
    table: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    """Write for each row the first equal one of its sentence.

    Args:
        table: four times as long as the longest list; a hash table of rows, an output.
        first: int64 ``[n_rows]``, the output.
    """
    n_columns = stats.shape[1]
    for sentence in range(len(offsets) - 1):
        n_slots = 1
        while n_slots < 2 * (offsets[sentence + 1] - offsets[sentence]):
            n_slots *= 2
        table[:n_slots] = -1
        for row in range(offsets[sentence], offsets[sentence + 1]):
            code = np.int64(0)
            for column in range(n_columns):
                # Unequal rows may share a code: fractions are cut off.
                code = (code ^ np.int64(stats[row, column])) * 0x2545F4914F6CDD1D
                code ^= code >> 29
            slot = code & (n_slots - 1)
            while table[slot] >= 0 and not _are_equal(stats, table[slot], row):
                slot = (slot + 1) & (n_slots - 1)
            if table[slot] < 0:
                table[slot] = row
            first[row] = table[slot]


@inlined_kernel
def _are_equal(stats: NDArray[np.float64], row: int, other: int) -> bool:
    for column in range(stats.shape[1]):  # noqa: SIM110 - kernels have no generators
        if stats[row, column] != stats[other, column]:
            return False
    return True
