"""Hypotheses of a batch over the features that they have.

A learner adds hypotheses times coefficients to the weights. Here the hypotheses have columns for
their own features only, so that a batch costs what is in it, whatever the number of features.

Margins are defined on differences of two hypotheses of a sentence, and learners move along them.
Features that the hypotheses share and weights that must not change are left out, so that a step
along a difference leaves them as they are to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.tuning_set import Batch, SparseRows

_ROUNDING = 1e-12
"""A sum has canceled out if it is a smaller share than this of its absolute terms."""


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


@dataclass(frozen=True)
class CompactRows:
    """Feature values of some hypotheses, compressed by row (CSR).

    Attributes:
        columns: int64 ``[n_columns]``, ascending: all dense features, and the sparse ones of any of
            the hypotheses.
        indptr: int64 ``[n_rows + 1]``; row ``i`` is ``indptr[i]:indptr[i + 1]`` of the others.
        indices: int32 ``[nnz]``, positions in ``columns``.
        data: float64 ``[nnz]``.
    """

    columns: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the model scores ``w . h`` of all rows, float64 ``[n_rows]``.

        ``weights`` is ``[n_columns]``. Products are summed in the order of the features, so that
        equal rows tie exactly.
        """
        everything = np.ones(len(self.columns), dtype=np.bool_)
        arrays = CompactArrays(self.indptr, self.indices, self.data, everything)
        return row_scores(arrays, weights, 0, len(self.indptr) - 1)

    def arrays(self, active: NDArray[np.bool_]) -> CompactArrays:
        """Return the arrays for kernels; ``active`` is bool ``[n_features]``."""
        return CompactArrays(self.indptr, self.indices, self.data, active[self.columns])

    def combine(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the rows times their coefficients, float64 ``[n_columns]``."""
        return _combine(self.indptr, self.indices, self.data, coefficients, len(self.columns))

    def combine_exactly(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same, with exactly 0 where terms cancel out.

        Sums that overflow are kept, so that they become an error.
        """
        sizes = replace(self, data=np.abs(self.data)).combine(np.abs(coefficients))
        return clear_canceled(self.combine(coefficients), sizes)


def clear_canceled(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums, with 0 where terms canceled; ``sizes`` are sums of absolute terms."""
    canceled = (np.abs(sums) <= _ROUNDING * sizes) & (sizes < np.inf)
    return np.where(canceled, 0.0, sums)


def drop_empty_sentences(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of non-empty sentences, int64 ``[n_filled + 1]``."""
    kept = np.append(np.flatnonzero(np.diff(offsets) > 0), len(offsets) - 1)
    found: NDArray[np.int64] = offsets[kept]
    return found


def given_oracles(batch: Batch) -> NDArray[np.int64]:
    """Return the given oracles of non-empty sentences, int64; -1 where none is given."""
    filled = np.diff(batch.offsets) > 0
    if batch.oracles is None:
        return np.full(int(filled.sum()), -1, dtype=np.int64)
    return np.asarray(batch.oracles[filled], dtype=np.int64)


def compact_rows(batch: Batch, rows: NDArray[np.int64]) -> CompactRows:
    """Return hypotheses of a batch over their own features.

    Args:
        rows: int64 ``[n_rows]``, selected ones; any number of times, in any order.
    """
    n_rows, n_dense = len(rows), batch.dense.shape[1]
    dense = batch.dense[rows].astype(np.float64)
    if batch.sparse is None:
        indices = np.tile(np.arange(n_dense, dtype=np.int32), n_rows)
        indptr = n_dense * np.arange(n_rows + 1)
        return CompactRows(np.arange(n_dense), indptr, indices, dense.reshape(-1))
    sparse = batch.sparse.take(rows)
    used, places = np.unique(sparse.indices, return_inverse=True)
    order = _by_row_and_column(sparse, places)
    widths = n_dense + np.diff(sparse.indptr)
    indptr = np.append(0, np.cumsum(widths))
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1])
    is_dense = np.zeros(indptr[-1], dtype=np.bool_)
    is_dense[(indptr[:-1, None] + np.arange(n_dense)).reshape(-1)] = True
    indices[is_dense] = np.tile(np.arange(n_dense, dtype=np.int32), n_rows)
    data[is_dense] = dense.reshape(-1)
    indices[~is_dense] = n_dense + places[order]
    data[~is_dense] = sparse.data[order]
    columns = np.concatenate([np.arange(n_dense), n_dense + used.astype(np.int64)])
    return CompactRows(columns, indptr, indices, data)


def _by_row_and_column(sparse: SparseRows, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of the entries in which columns ascend within each row."""
    ascending = np.diff(places) > 0
    starts = sparse.indptr[1:-1]
    ascending[starts[(starts > 0) & (starts < len(places))] - 1] = True
    if ascending.all():
        return np.arange(len(places))
    owners = np.repeat(np.arange(len(sparse.indptr) - 1), np.diff(sparse.indptr))
    return np.lexsort((places, owners))


@kernel
def row_scores(
    features: CompactArrays, weights: NDArray[np.float64], start: int, end: int
) -> NDArray[np.float64]:
    """Return ``w . h`` of the rows ``start:end``, float64 ``[end - start]``."""
    scores = np.empty(end - start)
    for row in range(start, end):
        total = 0.0
        for entry in range(features.indptr[row], features.indptr[row + 1]):
            total += weights[features.indices[entry]] * features.data[entry]
        scores[row - start] = total
    return scores


@kernel
def _combine(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    n_columns: int,
) -> NDArray[np.float64]:
    sums = np.zeros(n_columns)
    for row in range(len(coefficients)):
        share = coefficients[row]
        if share != 0.0:
            for entry in range(indptr[row], indptr[row + 1]):
                sums[indices[entry]] += share * data[entry]
    return sums


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
