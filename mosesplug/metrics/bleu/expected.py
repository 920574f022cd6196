"""BLEU of expected statistics (xBLEU), a differentiable objective.

If a model gives each translation a probability, the statistics of BLEU have expectations, which
are summed over sentences like any statistics. BLEU of the sums is differentiable except for its
brevity penalty, which is replaced by a smooth one (Rosti et al. 2010, 2011; Neubig & Watanabe 2016,
equations 53 to 55 and appendix A).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.plain import ORDER

_STEEPNESS = 10_000.0
"""Slope of the brevity penalty at the reference length (survey, equation A.2)."""


def smooth_brevity(x: float) -> tuple[float, float]:
    """Return the smooth brevity penalty of ``x = 1 - r / c``, and its derivative.

    See the survey, equation A.2.
    """
    # 1 / (1 + exp(10000 x)), which must not overflow.
    brief = 1.0 / (1.0 + math.exp(min(_STEEPNESS * x, 700.0)))
    value = (math.exp(x) - 1.0) * brief + 1.0
    slope = math.exp(x) * brief - (math.exp(x) - 1.0) * _STEEPNESS * brief * (1.0 - brief)
    return value, slope


def expected_bleu(totals: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return xBLEU and its derivatives by the statistics.

    See the survey, equations 54 and A.3 to A.13.

    Args:
        totals: float64 ``[9]``; expected statistics of ``metrics.Bleu``, summed over sentences.

    Returns:
        The value, in 0 to 1, and the derivatives, float64 ``[9]``. Both are 0 if an order has no
        match or no n-gram.
    """
    matches, counts = totals[0:-1:2], totals[1:-1:2]
    if not ((matches > 0.0).all() and (counts > 0.0).all()):
        return 0.0, np.zeros(2 * ORDER + 1)
    precision = math.exp(np.log(matches / counts).sum() / ORDER)
    words, reference = float(counts[0]), float(totals[-1])
    penalty, slope = smooth_brevity(1.0 - reference / words)
    value = precision * penalty
    gradient = np.empty(2 * ORDER + 1)
    gradient[0:-1:2] = value / (ORDER * matches)
    gradient[1:-1:2] = -value / (ORDER * counts)
    gradient[1] += precision * slope * reference / words**2
    gradient[-1] = -precision * slope / words
    return value, gradient
