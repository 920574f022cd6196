"""The row layout: hypotheses over the features that they have, in float64.

A learner adds hypotheses times coefficients to the weights. Here the hypotheses have columns for
their own features only, so that a batch costs what is in it, whatever the number of features.
Scores are summed in the order of the features, so that hypotheses with equal features tie exactly.

Margins are defined on differences of two hypotheses of a sentence, and learners move along them.
Features that the hypotheses share and weights that must not change are left out, so that a step
along a difference leaves them as they are to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Columns, ColumnValues, FeatureMask, Offsets, Scores
from mosesplug.kernels import kernel, read_only
from mosesplug.tuning_set import Batch, SparseRows

_ROUNDING = 1e-12
"""A sum has canceled out if it is a smaller share than this of its absolute terms."""


class FeatureRows(NamedTuple):
    """Features of hypotheses, as kernels take them.

    Attributes:
        dense: float64 ``[n_rows, n_dense]``.
        indptr: int64 ``[n_rows + 1]``; further features by row (CSR).
        indices: int32; their columns, after the dense ones, ascending in a row.
        data: float64.
    """

    dense: NDArray[np.float64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]


class MaskedRows(NamedTuple):
    """Rows, of which only some features differ.

    Attributes:
        rows: all features, which count in scores.
        active: bool ``[n_columns]``; columns whose weights may change.
    """

    rows: FeatureRows
    active: NDArray[np.bool_]


@dataclass(frozen=True)
class CompactRows:
    """Some hypotheses of a batch.

    Attributes:
        columns: all dense features, and the sparse ones of any of the hypotheses.
        rows: their features; column ``i`` is the feature ``columns[i]``.
    """

    columns: Columns
    rows: FeatureRows

    def scores(self, weights: ColumnValues) -> Scores:
        """Return the model scores ``w . h`` of all rows."""
        return row_scores(self.rows, weights, 0, len(self.rows.dense))

    def masked(self, active: FeatureMask) -> MaskedRows:
        """Return the rows for kernels that move along differences."""
        return MaskedRows(self.rows, active[self.columns])

    def combine(self, coefficients: Scores) -> ColumnValues:
        """Return the sum of the rows times their coefficients."""
        return _combine(self.rows, coefficients, len(self.columns))[0]

    def combine_exactly(self, coefficients: Scores) -> ColumnValues:
        """Return the same, with exactly 0 where terms cancel out.

        Sums that overflow are kept, so that they become an error.
        """
        return clear_canceled(*_combine(self.rows, coefficients, len(self.columns)))

    def count_sentences(self, chosen: NDArray[np.bool_], offsets: Offsets) -> ColumnValues:
        """Count the sentences that have each sparse feature in a chosen row.

        Args:
            chosen: bool ``[n_rows]``.
            offsets: the rows of each sentence.

        Returns:
            float64 ``[n_columns]``; 0 for dense features, which all rows have.
        """
        return _count_sentences(self.rows, chosen, read_only(offsets), len(self.columns))


def clear_canceled(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums, with 0 where terms canceled; ``sizes`` are sums of absolute terms."""
    canceled = (np.abs(sums) <= _ROUNDING * sizes) & (sizes < np.inf)
    return np.where(canceled, 0.0, sums)


def drop_empty_sentences(offsets: Offsets) -> Offsets:
    """Return the offsets of non-empty sentences, int64 ``[n_filled + 1]``."""
    kept = np.append(np.flatnonzero(np.diff(offsets) > 0), len(offsets) - 1)
    return np.asarray(offsets[kept])


def given_oracles(batch: Batch) -> Offsets:
    """Return the given oracles of non-empty sentences, int64; -1 where none is given."""
    filled = np.diff(batch.offsets) > 0
    if batch.oracles is None:
        return np.full(int(filled.sum()), -1, dtype=np.int64)
    return np.asarray(batch.oracles[filled], dtype=np.int64)


def filled_weights(batch: Batch) -> NDArray[np.float64]:
    """Return the weights of non-empty sentences, float64; 1 without weights."""
    filled = np.diff(batch.offsets) > 0
    if batch.sentence_weights is None:
        return np.ones(int(filled.sum()))
    return np.asarray(batch.sentence_weights[filled], dtype=np.float64)


def compact_rows(batch: Batch, rows: NDArray[np.int64] | None = None) -> CompactRows:
    """Return hypotheses of a batch over their own features.

    Args:
        batch: the hypotheses.
        rows: int64 ``[n_rows]``, selected ones; any number of times, in any order; None: all.
    """
    dense = (batch.dense if rows is None else batch.dense[rows]).astype(np.float64, order="C")
    rows = np.arange(batch.n_hyps) if rows is None else rows
    n_dense = dense.shape[1]
    sparse = SparseRows.empty(batch.n_hyps) if batch.sparse is None else batch.sparse
    used, indptr, indices, data, is_sorted = _compact(
        read_only(sparse.indptr),
        read_only(sparse.indices),
        read_only(sparse.data),
        read_only(rows),
        n_dense,
        batch.space.n_sparse,
    )
    if not is_sorted:
        order = np.lexsort((indices, np.repeat(np.arange(len(rows)), np.diff(indptr))))
        indices, data = indices[order], data[order]
    columns = np.concatenate([np.arange(n_dense), n_dense + used])
    return CompactRows(columns, FeatureRows(dense, indptr, indices, data))


@kernel
def _compact(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    rows: NDArray[np.int64],
    n_dense: int,
    n_sparse: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], bool]:
    """Return the sparse features of some rows, and the rows over these features.

    A table of all features takes a fraction of the time in which the entries would be sorted.

    Returns:
        int64, the features, ascending; three arrays of ``FeatureRows``, in the order of the
        entries; and whether columns ascend within each row.
    """
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    for place in range(len(rows)):
        starts[place + 1] = starts[place] + indptr[rows[place] + 1] - indptr[rows[place]]
    columns = np.zeros(n_sparse, dtype=np.int32)
    for row in rows:
        for entry in range(indptr[row], indptr[row + 1]):
            columns[indices[entry]] = 1
    n_used = 0
    for feature in range(n_sparse):
        n_used += columns[feature]
    used, n_used = np.empty(n_used, dtype=np.int64), 0
    for feature in range(n_sparse):
        if columns[feature]:
            used[n_used], columns[feature] = feature, n_dense + n_used
            n_used += 1
    places, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
    end, is_sorted = 0, True
    for row in rows:
        last = np.int32(-1)
        for entry in range(indptr[row], indptr[row + 1]):
            column = columns[indices[entry]]
            places[end], values[end] = column, data[entry]
            is_sorted &= column > last
            last = column
            end += 1
    return used, starts, places, values, is_sorted


@kernel
def row_score(features: FeatureRows, row: int, weights: NDArray[np.float64]) -> float:
    """Return ``weights . h`` of one row."""
    dense, indptr, indices, data = features
    total = 0.0
    for column in range(dense.shape[1]):
        total += weights[column] * dense[row, column]
    for entry in range(indptr[row], indptr[row + 1]):
        total += weights[indices[entry]] * data[entry]
    return total


@kernel
def row_scores(
    features: FeatureRows, weights: NDArray[np.float64], start: int, end: int
) -> NDArray[np.float64]:
    """Return ``weights . h`` of the rows ``start:end``."""
    scores = np.empty(end - start)
    for row in range(start, end):
        scores[row - start] = row_score(features, row, weights)
    return scores


@kernel
def _combine(
    features: FeatureRows, coefficients: NDArray[np.float64], n_columns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums of rows times coefficients, and the sums of their absolute terms."""
    dense, indptr, indices, data = features
    sums, sizes = np.zeros(n_columns), np.zeros(n_columns)
    for row in range(len(coefficients)):
        share = coefficients[row]
        # Most hypotheses of a pairwise loss have no coefficient.
        if share != 0.0:
            for column in range(dense.shape[1]):
                term = share * dense[row, column]
                sums[column] += term
                sizes[column] += abs(term)
            for entry in range(indptr[row], indptr[row + 1]):
                term = share * data[entry]
                sums[indices[entry]] += term
                sizes[indices[entry]] += abs(term)
    return sums, sizes


@kernel
def _count_sentences(
    features: FeatureRows, chosen: NDArray[np.bool_], offsets: NDArray[np.int64], n_columns: int
) -> NDArray[np.float64]:
    """Count sentences by column; a column of several rows of a sentence counts once."""
    _dense, indptr, indices, _data = features
    counts, last = np.zeros(n_columns), np.full(n_columns, -1, dtype=np.int64)
    for sentence in range(len(offsets) - 1):
        for row in range(offsets[sentence], offsets[sentence + 1]):
            if chosen[row]:
                for entry in range(indptr[row], indptr[row + 1]):
                    column = indices[entry]
                    if last[column] != sentence:
                        counts[column] += 1.0
                        last[column] = sentence
    return counts


class RowDifference(NamedTuple):
    """A sparse vector.

    Attributes:
        places: int32 ``[n]``, ascending: columns of the rows.
        values: float64 ``[n]``, not 0.
    """

    places: NDArray[np.int32]
    values: NDArray[np.float64]


@kernel
def difference(features: MaskedRows, one: int, other: int) -> RowDifference:
    """Return row ``one`` minus row ``other``, over active features."""
    dense, indptr, indices, data = features.rows
    left, left_end = indptr[one], indptr[one + 1]
    right, right_end = indptr[other], indptr[other + 1]
    room = dense.shape[1] + left_end - left + right_end - right
    places, values, size = np.empty(room, dtype=np.int32), np.empty(room), 0
    for column in range(dense.shape[1]):
        value = dense[one, column] - dense[other, column]
        if value != 0.0 and features.active[column]:
            places[size], values[size] = column, value
            size += 1
    while left < left_end or right < right_end:
        column_left = indices[left] if left < left_end else np.int32(2147483647)
        column_right = indices[right] if right < right_end else np.int32(2147483647)
        lower = min(column_left, column_right)
        value = 0.0
        if column_left == lower:
            value += data[left]
            left += 1
        if column_right == lower:
            value -= data[right]
            right += 1
        if value != 0.0 and features.active[lower]:
            places[size], values[size] = lower, value
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
