"""Differences of the features of two hypotheses of one sentence, for use inside kernels.

Margins are defined on such differences, and learners move along them. Features that the hypotheses
share and weights that must not change are left out, so that a step along a difference leaves them
as they are to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.rows import CompactRows

__all__ = [
    "CompactArrays",
    "RowDifference",
    "add",
    "difference",
    "features_of",
    "filled",
    "product",
    "row_scores",
    "square",
]


class CompactArrays(NamedTuple):
    """Rows as kernels take them.

    Attributes:
        indptr: int64 ``[n_rows + 1]``.
        indices: int32 ``[nnz]``, columns, ascending in a row.
        data: float64 ``[nnz]``.
        active: bool ``[n_columns]``; columns whose weights may change.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    active: NDArray[np.bool_]


class RowDifference(NamedTuple):
    """A sparse vector.

    Attributes:
        places: int32 ``[n]``, ascending: columns of the rows.
        values: float64 ``[n]``, not 0.
    """

    places: NDArray[np.int32]
    values: NDArray[np.float64]


def features_of(rows: CompactRows, active: NDArray[np.bool_]) -> CompactArrays:
    """The rows, with the active ones among all features, bool ``[n_features]``."""
    return CompactArrays(rows.indptr, rows.indices, rows.data, active[rows.columns])


def filled(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The offsets of the sentences that have hypotheses, int64 ``[n_filled + 1]``."""
    kept = np.append(np.flatnonzero(np.diff(offsets) > 0), len(offsets) - 1)
    found: NDArray[np.int64] = offsets[kept]
    return found


@kernel
def row_scores(
    features: CompactArrays, weights: NDArray[np.float64], start: int, end: int
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
def difference(features: CompactArrays, one: int, other: int) -> RowDifference:
    """Row ``one`` less row ``other``, over active features."""
    left, left_end = features.indptr[one], features.indptr[one + 1]
    right, right_end = features.indptr[other], features.indptr[other + 1]
    room = left_end - left + right_end - right
    places, values, size = np.empty(room, dtype=np.int32), np.empty(room), 0
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
        if value != 0.0 and features.active[column]:
            places[size], values[size] = column, value
            size += 1
    return RowDifference(places[:size], values[:size])


@kernel
def square(along: RowDifference) -> float:
    """The squared norm."""
    total = 0.0
    for value in along.values:
        total += value * value
    return total


@kernel
def product(one: RowDifference, other: RowDifference) -> float:
    """The product of two differences over the same columns."""
    total, left, right = 0.0, 0, 0
    while left < len(one.places) and right < len(other.places):
        if one.places[left] == other.places[right]:
            total += one.values[left] * other.values[right]
            left += 1
            right += 1
        elif one.places[left] < other.places[right]:
            left += 1
        else:
            right += 1
    return total


@kernel
def add(weights: NDArray[np.float64], along: RowDifference, size: float) -> None:
    """Add ``size`` times a difference to ``weights``, float64 ``[n_columns]``, an output."""
    for entry in range(len(along.places)):
        weights[along.places[entry]] += size * along.values[entry]
