"""BLEU with a background of earlier choices, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.bleu import bleu_score_row


def background_bleu(statistics: NDArray[Any], background: NDArray[Any]) -> NDArray[np.float64]:
    """Return the gain of hypotheses for kbmira (Chiang et al. 2008): float64 ``[m]``.

    It is BLEU of a row plus the background, times the reference length of this sum.

    Args:
        statistics: ``[m, 9]``, of the hypotheses of a sentence.
        background: ``[9]``, decayed sum of the statistics of earlier choices.
    """
    totals = statistics.astype(np.float64) + background
    return np.array([bleu_score_row(row) for row in totals]) * totals[:, 8]
