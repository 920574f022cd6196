"""Pareto fronts: the hypotheses of a list that no other one is better than in every way.

One hypothesis *dominates* another if no metric scores it lower and some metric scores it higher;
the front is what nothing dominates (Duh et al. 2012). Hypotheses with equal scores of all metrics
are on the front together, or not at all; the survey's equation 79 says the same of those without an
equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = ["pareto_fronts"]


def pareto_fronts(offsets: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which hypotheses are on the front of their list, bool ``[n_hyps]``.

    For one or two metrics it takes ``O(n log n)`` a list, the time of sorting; for more,
    ``O(n f)`` with ``f`` the size of the front.

    Args:
        offsets: int64 ``[n_sentences + 1]``; hypotheses of sentence ``i`` are rows
            ``offsets[i]:offsets[i + 1]``.
        scores: float64 ``[n_hyps, n_metrics]``, of each hypothesis by itself; larger is better.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    # Best first, by the first metric, then the second, ...: none is dominated by one after it.
    keys = [-scores[:, metric] for metric in reversed(range(scores.shape[1]))]
    order = np.lexsort((*keys, owners))
    found = np.zeros(len(scores), dtype=np.bool_)
    _mark(np.array(offsets, dtype=np.int64), order, np.array(scores, order="C"), found)
    return found


@kernel
def _mark(
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    scores: NDArray[np.float64],
    found: NDArray[np.bool_],
) -> None:
    """Go through each list, best first, and keep what nothing kept dominates.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        order: int64 ``[n_hyps]``, rows of each list from the best on.
        scores: float64 ``[n_hyps, n_metrics]``.
        found: output, bool ``[n_hyps]``, False so far.
    """
    n_metrics = scores.shape[1]
    front = np.empty(len(order), dtype=np.int64)
    for sentence in range(len(offsets) - 1):
        size = 0
        for row in order[offsets[sentence] : offsets[sentence + 1]]:
            # With one or two metrics the last one kept has the best last score so far: it alone
            # can dominate. With more, any of them can.
            dominated = False
            for kept in range(max(0, size - 1) if n_metrics <= 2 else 0, size):
                other = front[kept]
                lower = higher = False
                for metric in range(n_metrics):
                    lower |= scores[other, metric] < scores[row, metric]
                    higher |= scores[other, metric] > scores[row, metric]
                if higher and not lower:
                    dominated = True
                    break
            if not dominated:
                found[row] = True
                front[size] = row
                size += 1
