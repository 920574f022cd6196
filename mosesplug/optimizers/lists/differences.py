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
from mosesplug.optimizers.lists.rows import CompactArrays

__all__ = [
    "RowDifference",
    "add_difference",
    "difference",
    "difference_product",
    "squared_norm",
]


class RowDifference(NamedTuple):
    """A sparse vector.

    Attributes:
        places: int32 ``[n]``, ascending: columns of the rows.
        values: float64 ``[n]``, not 0.
    """

    places: NDArray[np.int32]
    values: NDArray[np.float64]


@kernel
def difference(features: CompactArrays, one: int, other: int) -> RowDifference:
    """Return row ``one`` minus row ``other``, over active features."""
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
def squared_norm(along: RowDifference) -> float:
    total = 0.0
    for value in along.values:
        total += value * value
    return total


@kernel
def difference_product(one: RowDifference, other: RowDifference) -> float:
    """Return the product of two differences over the same columns."""
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
def add_difference(weights: NDArray[np.float64], along: RowDifference, size: float) -> None:
    """Add ``size`` times a difference to ``weights``, float64 ``[n_columns]``."""
    for entry in range(len(along.places)):
        weights[along.places[entry]] += size * along.values[entry]
