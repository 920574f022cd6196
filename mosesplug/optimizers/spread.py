"""The spread of model scores in a list: the reference's minus the lowest one.

Relative margins keep it small (Eidelman et al. 2013, section 3.1). Learners of margins report it,
so that runs can be compared with the paper's section 5, which has mean and deviation. The reference
is the hypothesis that a learner moves towards: the hope, or an oracle.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Choice, Offsets, Scores, SentenceValues


def find_spreads(offsets: Offsets, scores: Scores, references: Choice) -> SentenceValues:
    """Return the spread of each non-empty sentence.

    Args:
        offsets: sentences may be empty.
        scores: the model scores.
        references: hypotheses of each non-empty sentence; the one with the highest score counts.
    """
    starts = offsets[:-1][np.diff(offsets) > 0]
    if not len(starts):
        return np.zeros(0)
    reference_scores = np.full(len(scores), -np.inf)
    reference_scores[references] = scores[references]
    highest = np.maximum.reduceat(reference_scores, starts)
    return np.asarray(highest - np.minimum.reduceat(scores, starts))


def report_spreads(spreads: SentenceValues) -> dict[str, float]:
    """Return the means of spreads and squared spreads by name; 0 without any."""
    divisor = max(1, len(spreads))
    return {
        "spread": float(spreads.sum()) / divisor,
        "squared_spread": float(spreads @ spreads) / divisor,
    }
