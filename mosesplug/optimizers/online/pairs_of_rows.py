"""Two hypotheses against each other, inside kernels: their difference without an array for it.

Rows are those of ``rows.Rows``: ``indptr``, ``indices`` and ``data``, columns ascending in a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.online.rows import Rows

__all__ = ["Features", "features_of", "move", "row_scores", "square_of_difference"]


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
def square_of_difference(features: Features, one: int, other: int) -> float:
    """The squared norm of row ``one`` less row ``other``, over active features."""
    square = 0.0
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
        if features.active[column]:
            square += value * value
    return square


@kernel
def move(
    features: Features, weights: NDArray[np.float64], one: int, other: int, size: float
) -> None:
    """Add ``size`` times the difference, row ``one`` less ``other``, to active ``weights``.

    Args:
        features: the rows.
        weights: output, float64 ``[n_columns]``.
        one, other: numbers of rows.
        size: of the step.
    """
    for entry in range(features.indptr[one], features.indptr[one + 1]):
        column = features.indices[entry]
        if features.active[column]:
            weights[column] += size * features.data[entry]
    for entry in range(features.indptr[other], features.indptr[other + 1]):
        column = features.indices[entry]
        if features.active[column]:
            weights[column] -= size * features.data[entry]
