"""The quadratic programs of all pairs of a batch (Watanabe 2012, equation 14).

With box bounds, many multipliers are positive, so the solver visits all pairs in turn. With simplex
bounds, few are. A cutting plane method then adds the most violated pair of each sentence and solves
for the added pairs, until no violation exceeds the shared slack (see ``dual.py``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import (
    OraclePairs,
    add_differences,
    difference_scores,
)
from mosesplug.optimizers.online.oro.dual import EXACT, solve_simplex
from mosesplug.optimizers.solvers.pair_descent import add_coefficients, descend_pairs, start_descent

__all__ = ["solve_pairs_in_box", "solve_pairs_in_simplex"]

_ROUNDS = 1000
"""Maximum number of times that pairs are added."""


def solve_pairs_in_box(
    pairs: OraclePairs,
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    bound: float,
    tolerance: float,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """Find multipliers ``0 <= tau <= bound`` of pairs with margins of 1, summed by hypothesis.

    Pairs that satisfy the margin by ``scores`` are ignored, and so are pairs with equal features.

    Args:
        pairs: the hypotheses.
        scores: float64 ``[n_hyps]``; all 0 to use every pair.
        weights: float64 ``[n_columns]``, 0 where a feature is not active.
        bound: largest value of each multiplier.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: maximum number of visits of each pair.
        rng: random generator for the order of visits.

    Returns:
        ``(coefficients, total)``: the coefficients, float64 ``[n_hyps]``, with which the hypotheses
        combine to ``sum tau phi``; and ``sum tau``.
    """
    coefficients = np.zeros(len(pairs.base))
    seed = np.uint64(rng.integers(1, 2**63))
    descent = start_descent(pairs, scores)
    descend_pairs(pairs, descent, 1.0, weights.copy(), bound, tolerance, sweeps, seed)
    return coefficients, float(add_coefficients(descent, coefficients))


def solve_pairs_in_simplex(
    pairs: OraclePairs, weights: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """Find the exact multipliers of all pairs with ``sum tau <= bound``, for margins of 1.

    Args:
        pairs: the hypotheses.
        weights: float64 ``[n_columns]``, 0 where a feature is not active.
        bound: largest sum.

    Returns:
        float64 ``[n_hyps]``: the coefficients with which the hypotheses combine to ``sum tau phi``.
    """
    better = worse = np.zeros(0, dtype=np.int64)
    gains = multipliers = np.zeros(0)
    gram = np.zeros((0, 0))
    moved = weights
    for _ in range(_ROUNDS):
        slack = max(0.0, float((gains - gram @ multipliers).max(initial=0.0)))
        limit = slack + EXACT * max(1.0, np.abs(gains).max(initial=1.0))
        violated = np.empty((2, len(pairs.offsets) - 1), dtype=np.int64)
        count = _most_violated(pairs, moved, limit, violated)
        if not count:
            break
        better = np.append(better, violated[0, :count])
        worse = np.append(worse, violated[1, :count])
        gram = _extend_gram(pairs, gram, better, worse, len(weights))
        gains = np.append(gains, 1.0 - _margins(pairs, better[-count:], worse[-count:], weights))
        start = np.append(multipliers, np.zeros(count))
        multipliers = solve_simplex(gram, gains, bound, start)
        moved = weights.copy()
        add_differences(pairs, better, worse, multipliers, moved)
    coefficients = np.zeros(len(pairs.base))
    np.add.at(coefficients, better, multipliers)
    np.subtract.at(coefficients, worse, multipliers)
    return coefficients


def _margins(
    pairs: OraclePairs,
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the margins of pairs including fixed features, float64 ``[n]``."""
    fixed = pairs.base[better] - pairs.base[worse]
    return np.asarray(fixed + difference_scores(pairs, better, worse, weights))


def _extend_gram(
    pairs: OraclePairs,
    gram: NDArray[np.float64],
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    n_columns: int,
) -> NDArray[np.float64]:
    """Return the products of the pairs' differences; ``gram`` has those of the first pairs."""
    known, size = len(gram), len(better)
    larger = np.empty((size, size))
    larger[:known, :known] = gram
    for row in range(known, size):
        difference = np.zeros(n_columns)
        add_differences(pairs, better[row : row + 1], worse[row : row + 1], np.ones(1), difference)
        larger[row] = larger[:, row] = difference_scores(pairs, better, worse, difference)
    return larger


@kernel
def _most_violated(
    pairs: OraclePairs, weights: NDArray[np.float64], limit: float, violated: NDArray[np.int64]
) -> int:
    """Write the pair with the largest loss of each sentence, if it exceeds ``limit``.

    Args:
        pairs: the hypotheses.
        weights: float64 ``[n_columns]``.
        limit: threshold of ``1 - margin``.
        violated: int64 ``[2, n_sentences]``, filled from the left: rows of oracles and of others.

    Returns:
        Number of pairs written.
    """
    dense, indptr, indices, data = pairs.features
    count = 0
    for sentence in range(len(pairs.offsets) - 1):
        start, end = pairs.offsets[sentence], pairs.offsets[sentence + 1]
        best = worst = -1
        highest, lowest = -np.inf, np.inf
        for row in range(start, end):
            score = pairs.base[row]
            for k in range(dense.shape[1]):
                score += weights[k] * dense[row, k]
            for entry in range(indptr[row], indptr[row + 1]):
                score += weights[indices[entry]] * data[entry]
            if pairs.is_oracle[row] and score < lowest:
                worst, lowest = row, score
            elif not pairs.is_oracle[row] and score > highest:
                best, highest = row, score
        if best >= 0 and worst >= 0 and 1.0 - (lowest - highest) > limit:
            violated[0, count], violated[1, count] = worst, best
            count += 1
    return count
