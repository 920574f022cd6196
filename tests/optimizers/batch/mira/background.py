"""BLEU with a background of earlier choices, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.bleu import bleu_score_row


def background_bleu(statistics: NDArray[Any], background: NDArray[Any]) -> NDArray[np.float64]:
    """Of each row ``[m, 9]``, times the reference length of row and background."""
    totals = statistics.astype(np.float64) + background
    return np.array([bleu_score_row(row) for row in totals]) * totals[:, 8]
