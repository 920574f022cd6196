"""All pairs of an oracle and another hypothesis of its sentence (Watanabe 2012).

The pairs are a product, far more numerous than the hypotheses. So their differences ``phi =
h(oracle) - h(other)`` are never stored: pairs are visited by their rows, and sums over pairs are
computed as coefficients of hypotheses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets, Scores
from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.rows import FeatureRows


class OraclePairs(NamedTuple):
    """The hypotheses of a batch, and their oracles.

    Attributes:
        offsets: hypotheses of each sentence.
        oracles: int64; rows of the oracles, sentence by sentence.
        is_oracle: bool ``[n_hyps]``.
        base: the inactive features' share of the model score.
    """

    offsets: Offsets
    oracles: NDArray[np.int64]
    oracle_offsets: Offsets
    is_oracle: NDArray[np.bool_]
    base: Scores
    features: FeatureRows


@kernel
def count_violations(
    pairs: OraclePairs, scores: Scores, least: float, row_weights: Scores, coefficients: Scores
) -> tuple[int, float, float]:
    """Count the pairs with a margin below ``least`` (1 in equation 9), by hypothesis.

    Args:
        scores: by the model.
        row_weights: weight of each hypothesis' sentence in sums.
        coefficients: output; combining the hypotheses with them gives ``sum
            phi`` over the violated pairs.

    Returns:
        Number of violated pairs, weighted number of all pairs, and weighted sum of the hinge losses
        ``max(0, least - margin)``.
    """
    coefficients[:] = 0.0
    count = 0
    total = loss = 0.0
    for sentence in range(len(pairs.offsets) - 1):
        start, end = pairs.offsets[sentence], pairs.offsets[sentence + 1]
        for place in range(pairs.oracle_offsets[sentence], pairs.oracle_offsets[sentence + 1]):
            oracle = pairs.oracles[place]
            for other in range(start, end):
                if pairs.is_oracle[other]:
                    continue
                total += row_weights[oracle]
                missing = least - (scores[oracle] - scores[other])
                if missing > 0.0:
                    count += 1
                    loss += row_weights[oracle] * missing
                    coefficients[oracle] += 1.0
                    coefficients[other] -= 1.0
    return count, total, loss


@kernel
def difference_score(rows: FeatureRows, a: int, b: int, weights: NDArray[np.float64]) -> float:
    """Return ``weights . (h_a - h_b)`` on active features.

    Each visit of a pair calls it. Four running sums, since each waits for its last addition.
    """
    dense, indptr, indices, data = rows
    n_dense = dense.shape[1]
    first = second = third = fourth = 0.0
    whole = n_dense - n_dense % 4
    for k in range(0, whole, 4):
        first += weights[k] * (dense[a, k] - dense[b, k])
        second += weights[k + 1] * (dense[a, k + 1] - dense[b, k + 1])
        third += weights[k + 2] * (dense[a, k + 2] - dense[b, k + 2])
        fourth += weights[k + 3] * (dense[a, k + 3] - dense[b, k + 3])
    for k in range(whole, n_dense):
        first += weights[k] * (dense[a, k] - dense[b, k])
    if len(data):
        for entry in range(indptr[a], indptr[a + 1]):
            second += weights[indices[entry]] * data[entry]
        for entry in range(indptr[b], indptr[b + 1]):
            third -= weights[indices[entry]] * data[entry]
    return (first + second) + (third + fourth)


@kernel
def add_difference(
    rows: FeatureRows, a: int, b: int, size: float, weights: NDArray[np.float64]
) -> None:
    """Add ``size * (h_a - h_b)`` on active features to ``weights``, in place."""
    dense, indptr, indices, data = rows
    for k in range(dense.shape[1]):
        weights[k] += size * (dense[a, k] - dense[b, k])
    if len(data):
        for entry in range(indptr[a], indptr[a + 1]):
            weights[indices[entry]] += size * data[entry]
        for entry in range(indptr[b], indptr[b + 1]):
            weights[indices[entry]] -= size * data[entry]


@kernel
def difference_scores(
    pairs: OraclePairs,
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ``weights . phi`` of some pairs, float64 ``[n]``."""
    scores = np.empty(len(better))
    for i in range(len(better)):
        scores[i] = difference_score(pairs.features, better[i], worse[i], weights)
    return scores


@kernel
def add_differences(
    pairs: OraclePairs,
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    multipliers: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Add ``sum multipliers phi`` of some pairs to ``weights``, in place."""
    for i in range(len(better)):
        add_difference(pairs.features, better[i], worse[i], multipliers[i], weights)


@kernel
def find_violated_pairs(
    pairs: OraclePairs, scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return pairs that miss the margin and differ in an active feature, as rows.

    Returns:
        The oracles and the others, int64, and the squared norms of their differences, float64.
    """
    n_pairs = 0
    for sentence in range(len(pairs.offsets) - 1):
        n_oracles = pairs.oracle_offsets[sentence + 1] - pairs.oracle_offsets[sentence]
        width = pairs.offsets[sentence + 1] - pairs.offsets[sentence]
        n_pairs += n_oracles * (width - n_oracles)
    better = np.empty(n_pairs, dtype=np.int64)
    worse = np.empty(n_pairs, dtype=np.int64)
    squares = np.empty(n_pairs)
    count = 0
    used = pairs.features.indices
    scratch = np.zeros(used.max() + 1 if len(used) else 0)
    for sentence in range(len(pairs.offsets) - 1):
        for place in range(pairs.oracle_offsets[sentence], pairs.oracle_offsets[sentence + 1]):
            a = pairs.oracles[place]
            for b in range(pairs.offsets[sentence], pairs.offsets[sentence + 1]):
                if pairs.is_oracle[b] or scores[a] - scores[b] >= 1.0:
                    continue
                length = difference_square(pairs.features, a, b, scratch)
                if length > 0.0:
                    better[count], worse[count], squares[count] = a, b, length
                    count += 1
    return better[:count], worse[:count], squares[:count]


@kernel
def difference_square(rows: FeatureRows, a: int, b: int, scratch: NDArray[np.float64]) -> float:
    """Return ``|h_a - h_b|^2`` on active features; ``scratch`` is 0 before and after."""
    dense, indptr, indices, data = rows
    total = 0.0
    for k in range(dense.shape[1]):
        total += (dense[a, k] - dense[b, k]) ** 2
    for entry in range(indptr[a], indptr[a + 1]):
        scratch[indices[entry]] += data[entry]
    for entry in range(indptr[b], indptr[b + 1]):
        scratch[indices[entry]] -= data[entry]
    for row in (a, b):
        for entry in range(indptr[row], indptr[row + 1]):
            total += scratch[indices[entry]] ** 2
            scratch[indices[entry]] = 0.0
    return total
