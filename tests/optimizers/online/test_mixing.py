"""Mixing against brute force and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.mixing import average, line_search, select_features
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import Accuracy, planted, tuning_set

seeds = st.integers(0, 2**32 - 1)


def test_average_by_hand() -> None:
    a, b = np.array([1.0, 2.0, 0.0]), np.array([3.0, -2.0, 0.0])
    np.testing.assert_allclose(average([a, b]), [2.0, 0.0, 0.0])
    np.testing.assert_allclose(average([a, b], [1, 3]), [2.5, -1.0, 0.0])
    np.testing.assert_allclose(average([a, b], [0, 0]), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(a, [1.0, 2.0, 0.0])


@settings(max_examples=30)
@given(seed=seeds, shards=st.integers(1, 7))
def test_average_is_the_weighted_mean_and_exact_where_all_agree(seed: int, shards: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = list(rng.standard_normal((shards, 6)))
    counts = [int(count) for count in rng.integers(1, 50, shards)]
    np.testing.assert_allclose(
        average(vectors, counts), np.average(vectors, axis=0, weights=counts), atol=1e-14
    )
    np.testing.assert_array_equal(average([vectors[0]] * shards, counts), vectors[0])


def test_invalid_inputs_are_rejected() -> None:
    one = np.ones(2)
    with pytest.raises(OptimizerError, match="no shards"):
        average([])
    with pytest.raises(OptimizerError, match="no shards"):
        select_features([], 1, 1)
    for counts in ([1], [1, -1]):
        with pytest.raises(OptimizerError, match="counts of updates"):
            average([one, one], counts)


def test_selection_by_hand() -> None:
    vectors = [
        np.array([0.0, 0.1, 3.0, -1.0, 2.0, 0.0]),
        np.array([0.0, 0.1, 0.0, -2.0, -2.0, 0.0]),
    ]
    # Columns of the sparse features 2 to 5 measure 3, 5 ** 0.5, 8 ** 0.5 and 0.
    expected = [0.0, 0.1, 1.5, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(select_features(vectors, 1, 2), expected)
    np.testing.assert_allclose(select_features(vectors, 2, 2), expected)  # its mean is 0
    np.testing.assert_allclose(select_features(vectors, 3, 2), [0.0, 0.1, 1.5, -1.5, 0.0, 0.0])
    np.testing.assert_allclose(select_features(vectors, 9, 2), average(vectors))
    np.testing.assert_allclose(select_features(vectors, 0, 2), [0.0, 0.1, 0.0, 0.0, 0.0, 0.0])


def test_of_equal_columns_the_earlier_features_stay() -> None:
    same = np.ones(50)
    assert np.flatnonzero(select_features([same, same], 7, 3)).tolist() == list(range(10))


def score_at(problem: Problem, old: np.ndarray, mixed: np.ndarray, rho: float) -> float:
    return corpus_score(problem, (1.0 - rho) * old + rho * mixed)


@settings(max_examples=15)
@given(seed=seeds)
def test_line_search_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(0, 9, 12)] + [4]  # some sentences are empty
    n_hyps = sum(sizes)
    made = tuning_set(sizes, rng.standard_normal((n_hyps, 4)), rng.integers(0, 11, n_hyps))
    problem = Problem(made, Accuracy())
    old, mixed = rng.standard_normal((2, 4))
    found = line_search(problem, old, mixed)
    np.testing.assert_allclose(found.weights, old + found.rho * (mixed - old), atol=1e-12)
    assert found.score == corpus_score(problem, found.weights)
    for furthest in (1.0, 20.0):
        rhos = [*np.linspace(-furthest, furthest, 101), 0.0, 1.0]
        assert found.score >= max(score_at(problem, old, mixed, float(rho)) for rho in rhos)


def test_cautious_updates_are_lengthened() -> None:
    problem, hidden = planted(5)
    old = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    found = line_search(problem, old, old + 1e-4 * (hidden - old))
    assert found.score > corpus_score(problem, old + 1e-4 * (hidden - old))
    assert found.rho > 1e3


def test_line_search_counts_fixed_and_sparse_features() -> None:
    sparse = SparseRows(
        np.array([0, 1, 1, 2, 2], dtype=np.int64),
        np.array([0, 1], dtype=np.int32),
        np.array([1.0, 1.0], dtype=np.float32),
    )
    dense = np.array([[1.0], [1.5], [1.0], [1.25]])
    made = tuning_set([2, 2], dense, np.array([10, 0, 0, 10]), sparse, ("A_x", "B_y"))
    problem = Problem(made, Accuracy(), active=np.array([False, True, True]))
    # The first sentence is right from rho = 0.25 on, the second wrong from rho = 0.5 on.
    old, mixed = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 0.5])
    found = line_search(problem, old, mixed)
    assert found.score == 1.0
    assert found.rho == pytest.approx(0.375)
    np.testing.assert_allclose(found.weights, [1.0, 0.75, 0.1875])


def test_unchanged_weights_keep_every_bit() -> None:
    problem, hidden = planted(5)
    old = np.array([1.0, -1.0, 1.0, -1.0, 0.1])
    mixed = old + 1e-4 * (hidden - old)
    mixed[4] = old[4]
    found = line_search(problem, old, mixed)
    assert found.rho not in (0.0, 1.0)
    assert found.weights[4] == 0.1


def test_ties_go_to_the_mixed_weights() -> None:
    problem, hidden = planted(3)
    found = line_search(problem, hidden, hidden * 1.0001)
    assert found.rho == 1.0
    np.testing.assert_array_equal(found.weights, hidden * 1.0001)
    from_zero = line_search(problem, np.zeros(5), hidden)
    assert (from_zero.rho, from_zero.score) == (1.0, 1.0)
    unmoved = line_search(problem, hidden, hidden.copy())
    assert (unmoved.rho, unmoved.score) == (1.0, 1.0)


def test_zero_mixed_weights_are_not_the_result() -> None:
    """At weights of 0 the first hypothesis of each list is chosen, which says nothing of them."""
    made = tuning_set([2], np.array([[1.0], [0.5]]), np.array([10, 0]))
    found = line_search(Problem(made, Accuracy()), np.array([-1.0]), np.zeros(1))
    assert found.weights[0] > 0.0
    assert found.score == 1.0
    nothing = line_search(Problem(made, Accuracy()), np.zeros(1), np.zeros(1))
    assert (nothing.weights[0], nothing.rho) == (0.0, 1.0)


def test_learning_that_hurts_is_undone() -> None:
    problem, hidden = planted(4)
    found = line_search(problem, hidden, -hidden)
    assert found.score == 1.0
    assert found.rho < 0.5
