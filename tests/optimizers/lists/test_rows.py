"""Hypotheses over their own features, against dense matrices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.lists.rows import compact_rows
from mosesplug.tuning_set import SparseRows, TuningSet

N_SPARSE = 6


@st.composite
def batches(draw: st.DrawFn) -> TuningSet:
    """A few hypotheses with two dense features and any of six sparse ones, in any order."""
    n_hyps = draw(st.integers(1, 5))
    values = st.integers(-3, 3).map(float)
    owned = [draw(st.lists(st.integers(0, N_SPARSE - 1), unique=True)) for _ in range(n_hyps)]
    n_values = sum(map(len, owned))
    sparse = SparseRows(
        np.cumsum([0, *map(len, owned)]),
        np.array([column for row in owned for column in row], dtype=np.int32),
        np.array([draw(values) for _ in range(n_values)], dtype=np.float32),
    )
    dense = np.array([[draw(values) for _ in range(2)] for _ in range(n_hyps)], dtype=np.float32)
    return TuningSet(
        space=FeatureSpace((("A", 2),), tuple(f"S{k}" for k in range(N_SPARSE))),
        sentence_ids=np.zeros(1, dtype=np.int64),
        offsets=np.array([0, n_hyps]),
        dense=dense,
        sparse=sparse if draw(st.booleans()) or n_values else None,
        stats=np.zeros((n_hyps, 2), dtype=np.int32),
        lengths=np.zeros(n_hyps, dtype=np.int32),
    )


def matrix(batch: TuningSet) -> np.ndarray:
    full = np.zeros((batch.n_hyps, 2 + N_SPARSE))
    full[:, :2] = batch.dense
    if batch.sparse is not None:
        owner = np.repeat(np.arange(batch.n_hyps), np.diff(batch.sparse.indptr))
        full[owner, 2 + batch.sparse.indices] = batch.sparse.data
    return full


@given(batch=batches(), data=st.data())
def test_against_a_matrix(batch: TuningSet, data: st.DataObject) -> None:
    chosen = np.array(
        data.draw(st.lists(st.integers(0, batch.n_hyps - 1), max_size=6)), dtype=np.int64
    )
    rows = compact_rows(batch, chosen)
    full = matrix(batch)[chosen]
    assert (np.diff(rows.columns) > 0).all()
    assert set(np.flatnonzero(full.any(axis=0))) | {0, 1} <= set(rows.columns.tolist())
    for start, end in pairwise(rows.rows.indptr):
        assert (np.diff(rows.rows.indices[start:end]) > 0).all()
    weights = np.arange(1.0, 3.0 + N_SPARSE)
    assert rows.scores(weights[rows.columns]) == pytest.approx(full @ weights)
    coefficients = np.arange(len(chosen), dtype=np.float64) - 2.0
    combined = np.zeros(len(weights))
    combined[rows.columns] = rows.combine(coefficients)
    assert combined == pytest.approx(coefficients @ full)
    some = np.array([row % 2 == 0 for row in range(len(chosen))], dtype=np.bool_)
    offsets = np.array([0, 0, len(chosen) // 2, len(chosen)])
    counts = np.zeros(len(weights))
    counts[rows.columns] = rows.count_sentences(some, offsets)
    if batch.sparse is not None:  # also stored zeros
        full = matrix(
            replace(batch, sparse=replace(batch.sparse, data=np.abs(batch.sparse.data) + 1))
        )
        full = full[chosen]
    sentences = [full[a:b][some[a:b], 2:] for a, b in pairwise(offsets)]
    wanted = np.sum([s.any(axis=0) for s in sentences], axis=0)
    assert counts.tolist() == [0, 0, *wanted]


def test_equal_rows_tie_exactly() -> None:
    rng = np.random.default_rng(0)
    dense = np.repeat(rng.normal(size=(1, 14)).astype(np.float32), 3, axis=0)
    batch = TuningSet(
        space=FeatureSpace((("A", 14),)),
        sentence_ids=np.zeros(1, dtype=np.int64),
        offsets=np.array([0, 3]),
        dense=dense,
        sparse=None,
        stats=np.zeros((3, 2), dtype=np.int32),
        lengths=np.zeros(3, dtype=np.int32),
    )
    weights = rng.normal(size=14)
    scores = compact_rows(batch, np.arange(3)).scores(weights)
    assert (scores == scores[0]).all()
    assert scores == pytest.approx(batch.model_scores(weights))


def test_sums_that_cancel_out_are_0_and_sums_that_overflow_are_not() -> None:
    dense = np.array([[0.1, 1e37, 1.0], [0.1, -1e37, 3.0], [0.1, 1e37, 2.0]], dtype=np.float32)
    batch = TuningSet(
        space=FeatureSpace((("A", 3),)),
        sentence_ids=np.zeros(1, dtype=np.int64),
        offsets=np.array([0, 3]),
        dense=dense,
        sparse=None,
        stats=np.zeros((3, 2), dtype=np.int32),
        lengths=np.zeros(3, dtype=np.int32),
    )
    rows = compact_rows(batch, np.arange(3))
    small = rows.combine_exactly(np.array([0.1, 0.2, -0.3]))
    assert rows.combine(np.array([0.1, 0.2, -0.3]))[0] != 0.0
    assert small.tolist() == pytest.approx([0.0, -0.4 * float(np.float32(1e37)), 0.1])
    assert small[0] == 0.0
    large = rows.combine_exactly(np.array([1e300, -1e300, 0.0]))
    assert (large[0], large[1], large[2]) == (0.0, np.inf, -2e300)
