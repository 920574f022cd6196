"""The quadratic programs against a general solver, and against what optimality demands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.lists.oracle_pairs import OraclePairs, count_violations
from mosesplug.optimizers.lists.rows import FeatureRows
from mosesplug.optimizers.online.oro.dual import (
    renormalize,
    shuffle,
    solve_box,
    solve_pairs_in_box,
    solve_pairs_in_simplex,
    solve_simplex,
)

SWEEPS = 100_000


def by_slsqp(phi: NDArray[Any], gains: NDArray[Any], bound: float, summed: bool) -> NDArray[Any]:
    """The multipliers, by sequential least squares; ``phi`` is ``[n, n_features]``."""
    if not len(gains):
        return np.zeros(0)
    gram = phi @ phi.T
    constraints = [
        {
            "type": "ineq",
            "fun": lambda tau: bound - tau.sum(),
            "jac": lambda tau: -np.ones(len(tau)),
        }
    ]
    solved = minimize(
        lambda tau: 0.5 * tau @ gram @ tau - gains @ tau,
        np.zeros(len(gains)),
        jac=lambda tau: gram @ tau - gains,
        bounds=[(0.0, None if summed else bound)] * len(gains),
        constraints=constraints if summed else [],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return np.asarray(solved.x)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bound", [0.02, 0.3, 5.0])
def test_few_constraints_against_a_general_solver(seed: int, bound: float) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    phi = rng.standard_normal((size, 10))  # more features than constraints: one solution
    gains = rng.uniform(-1.0, 2.0, size)
    gram = phi @ phi.T
    box = solve_box(gram, gains, bound, 1e-12, SWEEPS, rng)
    np.testing.assert_allclose(box, by_slsqp(phi, gains, bound, summed=False), atol=1e-6)
    simplex = solve_simplex(gram, gains, bound)
    np.testing.assert_allclose(simplex, by_slsqp(phi, gains, bound, summed=True), atol=1e-6)
    assert simplex.min() >= 0.0
    assert simplex.sum() <= bound * (1.0 + 1e-12)


def test_one_constraint_by_hand() -> None:
    rng = np.random.default_rng(0)
    gram, gains = np.array([[4.0]]), np.array([2.0])
    for bound, expected in ((0.2, 0.2), (3.0, 0.5)):
        assert solve_box(gram, gains, bound, 0.0, 10, rng) == [expected]
        assert solve_simplex(gram, gains, bound) == [pytest.approx(expected)]
    assert not solve_simplex(gram, -gains, 1.0).any()


def test_constraints_without_features_get_nothing_or_everything() -> None:
    # Where no step gains a thing, the box leaves the multiplier at 0; a shared slack is another
    # matter, since a multiplier there keeps the others small.
    gram, gains = np.diag([0.0, 1.0]), np.array([5.0, 1.0])
    box = solve_box(gram, gains, 0.5, 0.0, 10, np.random.default_rng(0))
    np.testing.assert_allclose(box, [0.0, 0.5])
    np.testing.assert_allclose(solve_simplex(gram, gains, 0.5), [0.5, 0.0])


def test_renormalized_only_shrinks() -> None:
    multipliers = np.array([1.0, 3.0])
    renormalize(multipliers, 4.0, 5.0)
    np.testing.assert_array_equal(multipliers, [1.0, 3.0])
    renormalize(multipliers, 4.0, 1.0)
    np.testing.assert_array_equal(multipliers, [0.25, 0.75])


def test_shuffle_permutes_uniformly() -> None:
    seed = np.uint64(88172645463325252)
    places = np.zeros((4, 4))
    for _ in range(4000):
        order = np.arange(5)
        seed = np.uint64(shuffle(order, 4, seed))
        assert sorted(order) == [0, 1, 2, 3, 4]
        assert order[4] == 4
        places[order[:4], np.arange(4)] += 1
    assert np.abs(places / 4000 - 0.25).max() < 0.04


def random_pairs(
    rng: np.random.Generator, n_dense: int = 5, n_sparse: int = 0
) -> tuple[OraclePairs, NDArray[Any]]:
    """Sentences of some hypotheses, the last without oracles or with oracles only, and features."""
    sizes = [int(size) for size in rng.integers(1, 6, 3)]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n_hyps = int(offsets[-1])
    is_oracle = rng.random(n_hyps) < 0.3
    is_oracle[0] = True
    oracles = np.flatnonzero(is_oracle)
    matrix = rng.standard_normal((n_hyps, n_dense + n_sparse))
    matrix[:, n_dense:] *= rng.random((n_hyps, n_sparse)) < 0.4
    rows, columns = np.nonzero(matrix[:, n_dense:])
    features = FeatureRows(
        np.ascontiguousarray(matrix[:, :n_dense]),
        np.searchsorted(rows, np.arange(n_hyps + 1)),
        (columns + n_dense).astype(np.int32),
        matrix[rows, columns + n_dense],
    )
    base = rng.standard_normal(n_hyps)
    counts = np.searchsorted(oracles, offsets)
    return OraclePairs(offsets, oracles, counts, is_oracle, base, features), matrix


def listed(pairs: OraclePairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs, one by one."""
    found = [
        (a, b)
        for sentence in range(len(pairs.offsets) - 1)
        for a in range(*pairs.offsets[sentence : sentence + 2])
        for b in range(*pairs.offsets[sentence : sentence + 2])
        if pairs.is_oracle[a] and not pairs.is_oracle[b]
    ]
    pairs_of = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs_of[:, 0], pairs_of[:, 1]


@pytest.mark.parametrize("seed", range(15))
def test_violated_pairs_are_counted_by_hypothesis(seed: int) -> None:
    pairs, matrix = random_pairs(np.random.default_rng(seed))
    scores = matrix.sum(axis=1)
    better, worse = listed(pairs)
    losses = np.maximum(0.0, 1.0 - (scores[better] - scores[worse]))
    coefficients = np.full(len(scores), np.nan)
    row_weights = np.repeat(
        np.random.default_rng(seed).integers(1, 4, len(pairs.offsets) - 1), np.diff(pairs.offsets)
    ).astype(np.float64)
    count, total, loss = count_violations(pairs, scores, 1.0, row_weights, coefficients)
    assert (count, total) == (np.count_nonzero(losses), row_weights[better].sum())
    assert loss == pytest.approx(losses @ row_weights[better])
    expected = (matrix[better] - matrix[worse])[losses > 0.0].sum(axis=0)
    np.testing.assert_allclose(coefficients @ matrix, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("bound", [0.02, 0.3, 5.0])
def test_pairs_against_a_general_solver(seed: int, bound: float) -> None:
    """The multipliers need not be unique; the step that they make is, and so is their sum."""
    rng = np.random.default_rng(seed)
    pairs, matrix = random_pairs(rng, n_dense=5, n_sparse=4)
    weights = rng.standard_normal(9)
    better, worse = listed(pairs)
    phi = matrix[better] - matrix[worse]
    gains = 1.0 - phi @ weights - (pairs.base[better] - pairs.base[worse])
    for scores in (np.zeros(len(matrix)), pairs.base + matrix @ weights):
        chosen = scores[better] - scores[worse] < 1.0
        expected = by_slsqp(phi[chosen], gains[chosen], bound, summed=False)
        bounds = np.full(len(matrix), bound)
        coefficients, total = solve_pairs_in_box(pairs, scores, weights, bounds, 1e-11, SWEEPS, rng)
        np.testing.assert_allclose(coefficients @ matrix, expected @ phi[chosen], atol=2e-6)
        assert total == pytest.approx(expected.sum(), abs=2e-6)
    expected = by_slsqp(phi, gains, bound, summed=True)
    step = solve_pairs_in_simplex(pairs, weights, bound) @ matrix
    np.testing.assert_allclose(step, expected @ phi, atol=1e-6)


def test_the_exact_solution_of_many_pairs_leaves_nothing_to_gain() -> None:
    """Primal and dual objectives meet: ``1/2 |step|^2 + bound * slack`` is the maximum."""
    rng = np.random.default_rng(5)
    n_hyps, bound = 600, 0.2
    offsets = np.arange(0, n_hyps + 1, 100)
    is_oracle = np.zeros(n_hyps, dtype=np.bool_)
    oracles = np.concatenate([start + np.arange(4) for start in offsets[:-1]])
    is_oracle[oracles] = True
    dense = rng.standard_normal((n_hyps, 6)) * np.array([8.0, 4.0, 1.0, 1.0, 0.1, 3.0])
    none = np.zeros(n_hyps + 1, dtype=np.int64)
    features = FeatureRows(dense, none, np.zeros(0, dtype=np.int32), np.zeros(0))
    pairs = OraclePairs(
        offsets, oracles, np.arange(0, 25, 4), is_oracle, np.zeros(n_hyps), features
    )
    weights = rng.standard_normal(6)
    better, worse = listed(pairs)
    phi = dense[better] - dense[worse]
    coefficients = solve_pairs_in_simplex(pairs, weights, bound)
    step = coefficients @ dense
    slack = max(0.0, (1.0 - phi @ (weights + step)).max())
    primal = 0.5 * step @ step + bound * slack
    mass = coefficients[oracles].sum()
    assert mass <= bound * (1.0 + 1e-12)
    dual = mass - coefficients @ (dense @ weights) - 0.5 * step @ step
    assert primal == pytest.approx(dual, abs=1e-7)


def test_pairs_without_a_difference_do_not_count() -> None:
    dense = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 2.0]])
    none = np.zeros(4, dtype=np.int64)
    pairs = OraclePairs(
        np.array([0, 3]),
        np.array([0]),
        np.array([0, 1]),
        np.array([True, False, False]),
        np.zeros(3),
        FeatureRows(dense, none, np.zeros(0, dtype=np.int32), np.zeros(0)),
    )
    rng = np.random.default_rng(0)
    bounds = np.full(3, 0.2)
    found, total = solve_pairs_in_box(pairs, np.zeros(3), np.zeros(2), bounds, 0.0, 10, rng)
    np.testing.assert_allclose(found, [0.2, 0.0, -0.2])
    assert total == pytest.approx(0.2)


def test_same_seed_same_multipliers() -> None:
    pairs, matrix = random_pairs(np.random.default_rng(3))
    zero, bounds = np.zeros(len(matrix)), np.full(len(matrix), 0.2)
    found = [
        solve_pairs_in_box(pairs, zero, np.zeros(5), bounds, 1e-3, 5, np.random.default_rng(seed))
        for seed in (1, 1)
    ]
    assert found[0][0].tobytes() == found[1][0].tobytes()
