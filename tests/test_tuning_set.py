"""The arrays of a tuning set against loops in plain Python."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import mosesplug.tuning_set
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet


def made(
    rng: np.random.Generator, sizes: list[int], n_dense: int = 3, n_sparse: int = 4
) -> TuningSet:
    """Hypotheses with small whole feature values, so that sums are exact and ties abound."""
    n_hyps = sum(sizes)
    widths = rng.integers(0, 3, n_hyps) if n_sparse else np.zeros(n_hyps, dtype=np.int64)
    entries = [np.sort(rng.choice(n_sparse, width, replace=False)) for width in widths if width]
    sparse = SparseRows(
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        np.concatenate([np.zeros(0), *entries]).astype(np.int32),
        rng.integers(-2, 3, int(widths.sum())).astype(np.float32),
    )
    return read_only(
        TuningSet(
            space=FeatureSpace(
                (("F", n_dense),) if n_dense else (), tuple(f"S_{k}" for k in range(n_sparse))
            ),
            sentence_ids=np.arange(len(sizes), dtype=np.int64) * 10,
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            dense=rng.integers(-2, 3, (n_hyps, n_dense)).astype(np.float32),
            sparse=sparse if n_sparse else None,
            stats=rng.integers(0, 9, (n_hyps, 2)).astype(np.int32),
            lengths=rng.integers(0, 9, n_hyps).astype(np.int32),
        )
    )


def read_only(each: Any) -> Any:
    """The same, its arrays locked against writing."""
    for field in fields(each):
        value = getattr(each, field.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif isinstance(value, SparseRows):
            read_only(value)
    return each


def sparse_values(each: TuningSet, row: int) -> list[tuple[int, float]]:
    """Sparse features of a hypothesis."""
    if each.sparse is None:
        return []
    entries = range(int(each.sparse.indptr[row]), int(each.sparse.indptr[row + 1]))
    return [(int(each.sparse.indices[k]), float(each.sparse.data[k])) for k in entries]


def score(each: TuningSet, row: int, weights: list[float]) -> float:
    """``w . h``, one feature after the other."""
    n_dense = each.space.n_dense
    dense = sum(w * h for w, h in zip(weights, each.dense[row].tolist(), strict=False))
    return dense + sum(
        weights[n_dense + index] * value for index, value in sparse_values(each, row)
    )


def hypothesis(each: TuningSet, row: int) -> tuple[Any, ...]:
    """All that is known of one hypothesis."""
    return (
        each.dense[row].tolist(),
        sparse_values(each, row),
        each.stats[row].tolist(),
        int(each.lengths[row]),
    )


def weights_of(rng: np.random.Generator, each: TuningSet) -> NDArray[np.float64]:
    return rng.integers(-2, 3, len(each.space)) / 4


CASES = {
    "sizes": st.lists(st.integers(0, 6), max_size=6),
    "seed": st.integers(0, 2**32 - 1),
    "n_dense": st.integers(0, 3),
    "n_sparse": st.sampled_from([0, 4]),
}


@given(**CASES)
def test_scores_are_dot_products(sizes: list[int], seed: int, n_dense: int, n_sparse: int) -> None:
    rng = np.random.default_rng(seed)
    each = made(rng, sizes, n_dense, n_sparse)
    weights = weights_of(rng, each)
    scores = each.model_scores(weights)
    assert scores.dtype == np.float64
    assert scores.tolist() == [score(each, row, weights.tolist()) for row in range(sum(sizes))]


@given(**CASES)
def test_first_best_is_the_first_of_the_highest(
    sizes: list[int], seed: int, n_dense: int, n_sparse: int
) -> None:
    rng = np.random.default_rng(seed)
    each = made(rng, sizes, n_dense, n_sparse)
    weights = weights_of(rng, each)
    expected, start = [], 0
    for size in sizes:
        rows = range(start, start + size)
        if size:
            expected.append(max(rows, key=lambda row: (score(each, row, weights.tolist()), -row)))
        start += size
    chosen = each.first_best(weights)
    assert chosen.dtype == np.int64
    assert chosen.tolist() == expected


def test_ties_go_to_the_first_and_empty_sentences_have_none() -> None:
    each = made(np.random.default_rng(0), [0, 3, 0, 0, 2, 0])
    assert each.first_best(np.zeros(7)).tolist() == [0, 3]
    assert (each.n_sentences, each.n_hyps) == (6, 5)


def test_nothing_to_choose_from() -> None:
    for sizes in ([], [0], [0, 0]):
        each = made(np.random.default_rng(0), sizes)
        assert each.first_best(np.ones(7)).tolist() == []
        assert each.model_scores(np.ones(7)).tolist() == []


def test_equal_features_tie_exactly_at_any_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosesplug.tuning_set, "_CHUNK", 7)
    rng = np.random.default_rng(1)
    features = rng.standard_normal(13).astype(np.float32)
    each = TuningSet(
        FeatureSpace((("F", 13),)),
        np.zeros(1, dtype=np.int64),
        np.array([0, 101], dtype=np.int64),
        np.tile(features, (101, 1)),
        None,
        np.zeros((101, 1), dtype=np.int32),
        np.zeros(101, dtype=np.int32),
    )
    for _ in range(20):
        weights = rng.standard_normal(13)
        assert len(np.unique(each.model_scores(weights))) == 1
        assert each.first_best(weights).tolist() == [0]


@pytest.mark.parametrize("chunk", [1, 2, 3, 16, 17, 1000])
def test_scores_do_not_depend_on_the_block_size(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    each = made(rng, [5, 0, 12])
    weights = rng.standard_normal(7)
    expected = each.model_scores(weights)
    monkeypatch.setattr(mosesplug.tuning_set, "_CHUNK", chunk)
    np.testing.assert_array_equal(each.model_scores(weights), expected)


def test_scores_of_many_sparse_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    each = made(rng, [5, 0, 12])
    weights = rng.standard_normal(7)
    expected = each.model_scores(weights)
    monkeypatch.setattr(mosesplug.tuning_set, "_COMPILED", 1)
    np.testing.assert_array_equal(each.model_scores(weights), expected)


@given(**CASES, positions=st.lists(st.integers(0, 5), max_size=8))
def test_sentences_are_taken_in_the_requested_order(
    sizes: list[int], seed: int, n_dense: int, n_sparse: int, positions: list[int]
) -> None:
    each = made(np.random.default_rng(seed), sizes, n_dense, n_sparse)
    positions = [position for position in positions if position < len(sizes)]
    taken = each.take_sentences(np.array(positions, dtype=np.int64))
    rows = [
        row
        for position in positions
        for row in range(int(each.offsets[position]), int(each.offsets[position + 1]))
    ]
    assert taken.space is each.space
    assert taken.sentence_ids.tolist() == [10 * position for position in positions]
    assert taken.offsets.tolist() == [0, *np.cumsum([sizes[p] for p in positions]).tolist()]
    assert taken.n_hyps == len(rows)
    assert [hypothesis(taken, row) for row in range(taken.n_hyps)] == [
        hypothesis(each, row) for row in rows
    ]
    for field in fields(taken):
        before, after = getattr(each, field.name), getattr(taken, field.name)
        if isinstance(before, np.ndarray):
            assert after.dtype == before.dtype
            assert not np.shares_memory(before, after)


@given(seed=st.integers(0, 2**32 - 1), rows=st.lists(st.integers(0, 8), max_size=12))
def test_sparse_rows_are_taken_in_the_requested_order(seed: int, rows: list[int]) -> None:
    each = made(np.random.default_rng(seed), [9])
    assert each.sparse is not None
    taken = each.sparse.take(np.array(rows, dtype=np.int64))
    assert (taken.indptr.dtype, taken.indices.dtype) == (np.int64, np.int32)
    found = [
        list(
            zip(
                taken.indices[begin:end].tolist(),
                taken.data[begin:end].tolist(),
                strict=True,
            )
        )
        for begin, end in zip(taken.indptr[:-1], taken.indptr[1:], strict=True)
    ]
    assert found == [sparse_values(each, row) for row in rows]


def test_given_oracles_move_with_their_sentences() -> None:
    whole = made(np.random.default_rng(0), [2, 0, 3, 1])
    assert whole.view_sentences(0, 2).oracles is None
    marked = replace(whole, oracles=np.array([1, -1, 4, 5]))
    assert marked.view_sentences(1, 4).oracles == pytest.approx([-1, 2, 3])
    taken = marked.take_sentences(np.array([3, 1, 0]))
    assert taken.oracles == pytest.approx([0, -1, 2])
    assert marked.dense[1].tolist() == taken.dense[2].tolist()


def test_some_hypotheses_are_taken_in_order() -> None:
    whole = made(np.random.default_rng(0), [2, 0, 3, 1])
    taken = whole.take_hypotheses(np.array([1, 2, 4]))
    assert taken.offsets.tolist() == [0, 1, 1, 3, 3]
    assert taken.sentence_ids.tolist() == whole.sentence_ids.tolist()
    assert [hypothesis(taken, row) for row in range(3)] == [
        hypothesis(whole, row) for row in (1, 2, 4)
    ]
    with pytest.raises(ValueError, match="oracles"):
        replace(whole, oracles=np.array([1, -1, 4, 5])).take_hypotheses(np.array([1]))
