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
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.protocol import Metric
from mosesplug.tuning_set import TuningSet

__all__ = ["OracleSets", "corpus_oracles", "sentence_oracles"]

_PASSES = 20
"""A greedy search that has not converged by then cycles among ties."""


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
    chosen = offsets[filled] + rng.integers(0, np.diff(offsets)[filled])
    totals = stats[chosen].sum(axis=0)
    for _ in range(_PASSES):
        changed = False
        for place in rng.permutation(len(filled)).tolist():
            start, end = offsets[filled[place]], offsets[filled[place] + 1]
            others = totals - stats[chosen[place]]
            scores = metric.score(others + stats[start:end])
            best = int(np.argmax(scores))
            if scores[best] > scores[chosen[place] - start]:
                chosen[place] = start + best
                totals = others + stats[chosen[place]]
                changed = True
        if not changed:
            break
    rows = []
    for place, sentence in enumerate(filled.tolist()):
        start, end = offsets[sentence], offsets[sentence + 1]
        scores = metric.score(totals - stats[chosen[place]] + stats[start:end])
        rows.append(start + np.flatnonzero(scores >= scores[chosen[place] - start]))
    oracles = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return OracleSets(
        oracles,
        np.searchsorted(oracles, offsets).astype(np.int64),
        float(metric.score(totals)),
        chosen.astype(np.int64),
    )
