"""The classifier against finite differences, a reference solver and hidden weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse

from mosesplug.optimizers.batch.ranking.logistic import fit_logistic, logistic_loss


def examples(
    seed: int, n_examples: int = 300, n_features: int = 8, density: float = 0.4
) -> tuple[csr_array, NDArray[np.float64], NDArray[np.float64]]:
    """Noisy examples with features of very different scale; also the hidden weights."""
    rng = np.random.default_rng(seed)
    made = csr_array(random_sparse(n_examples, n_features, density, random_state=rng))
    scales = 10.0 ** rng.uniform(-2, 2, n_features)
    hidden = rng.standard_normal(n_features) / scales * 3.0
    made = csr_array(made.multiply(scales[None, :]))
    chance = 1.0 / (1.0 + np.exp(-(made @ hidden)))
    return made, (rng.random(n_examples) < chance).astype(np.float64), hidden


def plain_loss(
    weights: NDArray[np.float64],
    dense: NDArray[np.float64],
    labels: NDArray[np.float64],
    precision: float,
    offsets: NDArray[np.float64] | float,
) -> float:
    """The negative log-posterior, from the probability of each label."""
    chance = 1.0 / (1.0 + np.exp(-(dense @ weights + offsets)))
    likelihood = labels * np.log(chance) + (1.0 - labels) * np.log1p(-chance)
    return float(0.5 * precision * (weights**2).sum() - likelihood.sum())


@pytest.mark.parametrize("precision", [0.0, 0.5, 10.0])
def test_loss_and_gradient(precision: float) -> None:
    made, labels, _ = examples(1)
    rng = np.random.default_rng(2)
    labels[:20] = rng.random(20)  # probabilities are labels too
    offsets = rng.standard_normal(len(labels))
    weights = 0.01 * rng.standard_normal(made.shape[1])
    loss, gradient = logistic_loss(weights, made, labels, precision, offsets)
    arguments = made.toarray(), labels, precision, offsets
    assert loss == pytest.approx(plain_loss(weights, *arguments), rel=1e-12)
    numeric = approx_fprime(weights, plain_loss, 1e-7, *arguments)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-3)


def test_far_margins_do_not_overflow() -> None:
    made = csr_array(np.array([[1e5], [-1e5]]))
    loss, gradient = logistic_loss(np.ones(1), made, np.array([1.0, 0.0]), 0.0)
    assert loss == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
    loss, gradient = logistic_loss(np.ones(1), made, np.array([0.0, 1.0]), 0.0)
    assert loss == 2e5
    np.testing.assert_array_equal(gradient, 2e5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("precision", [0.1, 1.0, 100.0])
def test_same_minimum_as_a_reference_solver(seed: int, precision: float) -> None:
    made, labels, _ = examples(seed)
    fit = fit_logistic(made, labels, precision=precision)
    dense = made.toarray()

    def gradient(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        chance = 1.0 / (1.0 + np.exp(-(dense @ weights)))
        return np.asarray(dense.T @ (chance - labels) + precision * weights)

    def hessian(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        chance = 1.0 / (1.0 + np.exp(-(dense @ weights)))
        curved = (dense.T * (chance * (1.0 - chance))) @ dense
        return np.asarray(curved + precision * np.eye(dense.shape[1]))

    reference = minimize(
        plain_loss,
        np.zeros(dense.shape[1]),
        (dense, labels, precision, 0.0),
        method="trust-exact",
        jac=lambda weights, *_: gradient(weights),
        hess=lambda weights, *_: hessian(weights),
        options={"gtol": 1e-10},
    )
    assert fit.has_converged
    np.testing.assert_allclose(fit.weights, reference.x, rtol=0.0, atol=1e-5)
    assert fit.loss == pytest.approx(reference.fun, rel=1e-10)


def test_many_sparse_features() -> None:
    made, labels, _ = examples(7, n_examples=2000, n_features=800, density=0.01)
    fit = fit_logistic(made, labels)
    _, gradient = logistic_loss(fit.weights, made, labels, 1.0)
    dense = made.toarray()
    chance = 1.0 / (1.0 + np.exp(-(dense @ fit.weights)))
    hessian = (dense.T * (chance * (1.0 - chance))) @ dense + np.eye(800)
    # So close to the minimum, a Newton step leads there.
    assert np.abs(np.linalg.solve(hessian, gradient)).max() < 1e-5
    assert fit.has_converged


def test_finds_hidden_weights() -> None:
    made, labels, hidden = examples(3, n_examples=100_000)
    fit = fit_logistic(made, labels, precision=1e-6)
    np.testing.assert_allclose(fit.weights, hidden, rtol=0.1, atol=0.05 * np.abs(hidden).max())


def test_offsets_are_scores_of_fixed_weights() -> None:
    made, labels, _ = examples(4)
    whole = fit_logistic(made, labels, precision=0.0)
    known = made[:, [0]] @ whole.weights[:1]
    rest = fit_logistic(made[:, 1:], labels, precision=0.0, offsets=known)
    np.testing.assert_allclose(rest.weights, whole.weights[1:], rtol=1e-4, atol=1e-5)


def test_a_feature_that_never_occurs_has_weight_zero() -> None:
    made = csr_array(np.array([[1.0, 0.0], [-2.0, 0.0], [0.5, 0.0]]))
    for precision in (0.0, 1.0):
        fit = fit_logistic(made, np.array([1.0, 1.0, 0.0]), precision=precision)
        assert fit.weights[1] == 0.0


def test_an_exhausted_iteration_limit_is_reported() -> None:
    made, labels, _ = examples(5)
    short = fit_logistic(made, labels, max_iterations=2)
    assert not short.has_converged
    assert short.iterations == 2
    assert fit_logistic(made, labels).loss < short.loss


def by_coordinates(
    dense: NDArray[np.float64],
    labels: NDArray[np.float64],
    precision: float,
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The minimum with L1, by steps of single coordinates with a bound of the curvature."""
    weights = np.zeros(dense.shape[1])
    curvature = 0.25 * (dense**2).sum(axis=0) + precision
    for _ in range(20_000):
        before = weights.copy()
        for column in range(len(weights)):
            chance = 1.0 / (1.0 + np.exp(-(dense @ weights)))
            slope = dense[:, column] @ (chance - labels) + precision * weights[column]
            moved = weights[column] - slope / curvature[column]
            shrunk = max(0.0, abs(moved) - penalties[column] / curvature[column])
            weights[column] = np.copysign(shrunk, moved)
        if np.abs(weights - before).max() <= 1e-13:
            break
    return weights


@pytest.mark.parametrize("precision", [0.0, 1.0])
def test_l1_is_the_minimum_of_coordinate_descent(precision: float) -> None:
    rng = np.random.default_rng(5)
    dense = rng.standard_normal((40, 8)) * rng.uniform(0.5, 2.0, 8)
    labels = (dense[:, :2].sum(axis=1) + rng.standard_normal(40) > 0.0).astype(np.float64)
    penalties = np.full(8, 4.0)
    penalties[1] = 0.0
    fit = fit_logistic(csr_array(dense), labels, precision=precision, penalties=penalties)
    wanted = by_coordinates(dense, labels, precision, penalties)
    assert fit.has_converged
    np.testing.assert_allclose(fit.weights, wanted, rtol=0.0, atol=1e-6)
    np.testing.assert_array_equal(fit.weights == 0.0, wanted == 0.0)
    assert 1 < np.count_nonzero(wanted) < 8
    limits = (np.full(8, -0.1), np.full(8, 0.1))
    boxed = fit_logistic(
        csr_array(dense), labels, precision=precision, penalties=penalties, box=limits
    )
    assert np.abs(boxed.weights).max() <= 0.1
    assert boxed.weights[0] == pytest.approx(0.1)
