"""Oracles: the hypotheses of each list that would make the best translation.

Where a score belongs to a sentence, its best hypothesis is the oracle. A corpus metric does not
fall into sentences: what is best for one depends on the choices for all others, and is sought
greedily (Venugopal & Vogel 2005; Neubig & Watanabe 2016, section 4.2). Hypotheses that are equally
good are all oracles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.protocol import Metric
from mosesplug.tuning_set import TuningSet

__all__ = ["OracleSets", "corpus_oracles", "sentence_oracles"]

PASSES = 20
"""A greedy search that has not come to rest by then goes round among equals."""


@dataclass(frozen=True)
class OracleSets:
    """The oracles of some sentences.

    Attributes:
        rows: int64; those of sentence ``i`` are ``rows[offsets[i]:offsets[i + 1]]``, ascending.
        offsets: int64 ``[n_sentences + 1]``; a sentence has none if its list is empty.
        score: of the corpus metric, or the mean gain where gains belong to sentences.
        chosen: int64, the one of each sentence that has any behind the score; the first oracles
            where gains belong to sentences.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    score: float
    chosen: NDArray[np.int64]

    @property
    def first(self) -> NDArray[np.int64]:
        """The first oracle of each sentence that has any, int64."""
        return self.rows[self.offsets[:-1][np.diff(self.offsets) > 0]]


def sentence_oracles(offsets: NDArray[np.int64], gains: NDArray[np.float64]) -> OracleSets:
    """The hypotheses of largest gain in each sentence; ``score`` is the mean of these gains.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        gains: float64 ``[n_hyps]``, what each is worth by itself; larger is better.
    """
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
    *,
    background: NDArray[np.float64] | None = None,
    passes: int = PASSES,
) -> OracleSets:
    """The hypotheses that are best for the corpus score, by greedy search (survey, Figure 2).

    From a random choice, sentences are gone through in random order, and each takes the hypothesis
    with which the score of all choices is highest, until a whole pass changes nothing. No change
    of one sentence then improves the score. Of equals the one chosen before stays.

    Args:
        tuning_set: the lists of a batch, or of the whole set.
        metric: of summed statistics; larger is better. With that of few sentences, a batch in
            which nothing has a match of four words has oracles too.
        rng: of the first choice and of the orders.
        background: float64 ``[n_stats]``; statistics of other text that counts too.
        passes: no more than these.

    Returns:
        Every hypothesis that would score as the chosen one does, the choices for the other
        sentences being what they are; ``score`` includes the background.
    """
    offsets, stats = tuning_set.offsets, tuning_set.stats.astype(np.float64)
    filled = np.flatnonzero(np.diff(offsets) > 0)
    chosen = offsets[filled] + rng.integers(0, np.diff(offsets)[filled])
    totals = stats[chosen].sum(axis=0)
    if background is not None:
        totals += background
    for _ in range(passes):
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
    found = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return OracleSets(
        found,
        np.searchsorted(found, offsets).astype(np.int64),
        float(metric.score(totals)),
        chosen.astype(np.int64),
    )
