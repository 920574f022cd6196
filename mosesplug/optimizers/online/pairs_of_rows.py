"""Two hypotheses against each other, inside kernels: their difference without an array for it.

Rows are those of ``rows.Rows``: ``indptr``, ``indices`` and ``data``, columns ascending in a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.online.rows import Rows

__all__ = ["Features", "difference", "features_of", "move", "row_scores"]


class Features(NamedTuple):
    """Rows as kernels take them.

    Attributes:
        indptr: int64 ``[n_rows + 1]``.
        indices: int32 ``[nnz]``.
        data: float64 ``[nnz]``.
        active: bool ``[n_columns]``; columns whose weights may change.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    active: NDArray[np.bool_]


def features_of(rows: Rows, active: NDArray[np.bool_]) -> Features:
    """The rows, with the active ones among all features, bool ``[n_features]``."""
    return Features(rows.indptr, rows.indices, rows.data, active[rows.columns])


@kernel
def row_scores(
    features: Features, weights: NDArray[np.float64], start: int, end: int
) -> NDArray[np.float64]:
    """``w . h`` of the rows ``start:end``, float64 ``[end - start]``."""
    scores = np.empty(end - start)
    for row in range(start, end):
        total = 0.0
        for entry in range(features.indptr[row], features.indptr[row + 1]):
            total += weights[features.indices[entry]] * features.data[entry]
        scores[row - start] = total
    return scores


@kernel
def difference(
    features: Features,
    weights: NDArray[np.float64],
    scales: NDArray[np.float64],
    one: int,
    other: int,
) -> tuple[float, float]:
    """``w . x`` and ``sum of scale * x^2`` over active features, ``x`` being one row less another.

    Args:
        features: the rows.
        weights: float64 ``[n_columns]``.
        scales: float64 ``[n_columns]``, such as variances.
        one, other: numbers of rows.
    """
    product = square = 0.0
    left, left_end = features.indptr[one], features.indptr[one + 1]
    right, right_end = features.indptr[other], features.indptr[other + 1]
    while left < left_end or right < right_end:
        column_left = features.indices[left] if left < left_end else np.int32(2147483647)
        column_right = features.indices[right] if right < right_end else np.int32(2147483647)
        column = min(column_left, column_right)
        value = 0.0
        if column_left == column:
            value += features.data[left]
            left += 1
        if column_right == column:
            value -= features.data[right]
            right += 1
        product += weights[column] * value
        if features.active[column]:
            square += scales[column] * value * value
    return product, square


@kernel
def move(
    features: Features,
    weights: NDArray[np.float64],
    scales: NDArray[np.float64],
    one: int,
    other: int,
    size: float,
) -> None:
    """Add ``size * scale * x`` to the active ``weights``, an output; ``x`` as in ``difference``."""
    for entry in range(features.indptr[one], features.indptr[one + 1]):
        column = features.indices[entry]
        if features.active[column]:
            weights[column] += size * scales[column] * features.data[entry]
    for entry in range(features.indptr[other], features.indptr[other + 1]):
        column = features.indices[entry]
        if features.active[column]:
            weights[column] -= size * scales[column] * features.data[entry]
