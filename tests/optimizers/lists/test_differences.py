"""Differences of hypotheses against dense vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.optimizers.lists.rows import (
    FeatureRows,
    MaskedRows,
    add_difference,
    compact_rows,
    difference,
    difference_product,
    drop_empty_sentences,
    row_scores,
    squared_norm,
)
from tests.optimizers.online.batches import full_rows, random_batch

N = 7


def features(rows: list[dict[int, int]], active: NDArray[np.bool_], n_dense: int) -> MaskedRows:
    """Rows from columns to values; columns below ``n_dense`` are dense."""
    dense = np.array([[row.get(column, 0.0) for column in range(n_dense)] for row in rows])
    sparse = [[column for column in sorted(row) if column >= n_dense] for row in rows]
    return MaskedRows(
        FeatureRows(
            dense.astype(np.float64),
            np.cumsum([0, *map(len, sparse)]),
            np.array([column for columns in sparse for column in columns], dtype=np.int32),
            np.array(
                [
                    row[column]
                    for row, columns in zip(rows, sparse, strict=True)
                    for column in columns
                ],
                dtype=np.float64,
            ),
        ),
        active,
    )


@given(
    rows=st.lists(
        st.dictionaries(st.integers(0, N - 1), st.integers(-2, 2)), min_size=4, max_size=4
    ),
    active=st.lists(st.booleans(), min_size=N, max_size=N).map(np.array),
    n_dense=st.integers(0, 3),
)
def test_against_dense_vectors(
    rows: list[dict[int, int]], active: NDArray[np.bool_], n_dense: int
) -> None:
    """Whole numbers: sums are exact in any order."""
    made = features(rows, active, n_dense)
    full = np.array([[row.get(column, 0) for column in range(N)] for row in rows], dtype=float)
    one, other = (full[0] - full[1]) * active, (full[2] - full[3]) * active
    along, beside = difference(made, 0, 1), difference(made, 2, 3)
    np.testing.assert_array_equal(along.places, np.flatnonzero(one))
    np.testing.assert_array_equal(along.values, one[along.places])
    assert squared_norm(along) == one @ one
    assert difference_product(along, beside) == difference_product(beside, along) == one @ other
    weights = np.arange(1.0, N + 1)
    np.testing.assert_array_equal(row_scores(made.rows, weights, 1, 4), full[1:] @ weights)
    add_difference(weights, along, 0.5)
    np.testing.assert_array_equal(weights, np.arange(1.0, N + 1) + 0.5 * one)


def test_shared_features_do_not_change_at_all() -> None:
    made = features([{0: 3, 1: 1}, {0: 3}], np.ones(2, dtype=np.bool_), 1)
    weights = np.array([0.1, 0.0])
    add_difference(weights, difference(made, 0, 1), 0.7)
    assert weights.tolist() == [0.1, 0.7]


def test_rows_of_a_batch() -> None:
    batch = random_batch(4, [3, 0, 5])
    active = np.arange(len(batch.space)) % 3 > 0
    made = compact_rows(batch, np.arange(batch.n_hyps)).masked(active)
    wanted = np.where(active, full_rows(batch)[1] - full_rows(batch)[6], 0.0)
    found = np.zeros(len(wanted))
    add_difference(found, difference(made, 1, 6), 1.0)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("offsets", "kept"),
    [([0], [0]), ([0, 0, 0], [0]), ([0, 2, 2, 5], [0, 2, 5]), ([0, 0, 3, 3], [0, 3])],
)
def test_sentences_without_hypotheses_are_ignored(offsets: list[int], kept: list[int]) -> None:
    assert drop_empty_sentences(np.array(offsets)).tolist() == kept
