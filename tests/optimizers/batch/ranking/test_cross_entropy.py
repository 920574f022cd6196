"""Cross-entropy ranking: the metric's distribution by hand, the loss against its formula."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.ranking.whole_lists import (
    CrossEntropyOptions,
    cross_entropy_loss,
    discounted_shares,
    exponential_shares,
    metric_distributions,
)
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.ranking.test_pro import cosine, planted_sparse
from tests.optimizers.problems import Accuracy, planted, tuning_set

cross_entropy = algorithm("cross-entropy").optimize

Floats = NDArray[np.float64]

OFFSETS = np.array([0, 4, 4, 9, 10])


def test_discounted_distribution_by_hand() -> None:
    gains = np.array([0.2, 0.4, 0.4, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7])
    found = metric_distributions(OFFSETS, gains, discounted_shares(2.0), best=3)
    # Ranks 3, 1, 1, 4: the last has no share.
    raw = np.array([0.04 / np.log(4), 0.16 / np.log(2), 0.16 / np.log(2), 0.0])
    np.testing.assert_allclose(found[:4], raw / raw.sum())
    np.testing.assert_array_equal(found[4:], [0, 0, 0, 0, 0, 1])
    large = metric_distributions(OFFSETS, gains, discounted_shares(2000.0))
    np.testing.assert_allclose(large[:4], [0, 0.5, 0.5, 0])


def test_exponential_distribution_by_hand() -> None:
    gains = np.array([0.2, 0.4, 0.4, -5.0, *[0.3] * 5, 900.0])
    found = metric_distributions(OFFSETS, gains, exponential_shares(3.0))
    raw = np.exp(3.0 * gains[:4])
    np.testing.assert_allclose(found[:4], raw / raw.sum())
    np.testing.assert_allclose(found[4:], [0.2] * 5 + [1.0])


def formula(scores: Floats, goals: Floats) -> float:
    total = 0.0
    for start, end in itertools.pairwise(OFFSETS.tolist()):
        if goals[start:end].any():
            total -= goals[start:end] @ log_softmax(scores[start:end])
    return total


def test_loss_and_derivatives() -> None:
    rng = np.random.default_rng(1)
    gains = rng.random(10)
    gains[4:9] = 0.0
    goals = metric_distributions(OFFSETS, gains, discounted_shares(1.0))
    scores = 5.0 * rng.standard_normal(10)
    loss = cross_entropy_loss(OFFSETS, goals)
    curve, vector, step = loss(scores), rng.standard_normal(10), 1e-6
    assert curve.value == pytest.approx(formula(scores, goals))
    numeric = [
        (formula(scores + step * unit, goals) - formula(scores - step * unit, goals)) / (2 * step)
        for unit in np.eye(10)
    ]
    np.testing.assert_allclose(curve.derivatives, numeric, atol=1e-8)
    ahead, behind = loss(scores + step * vector), loss(scores - step * vector)
    np.testing.assert_allclose(
        curve.product(vector), (ahead.derivatives - behind.derivatives) / (2 * step), atol=1e-8
    )
    assert np.isfinite(loss(1e6 * scores).value)


def test_least_loss() -> None:
    """Against SciPy; one inactive feature keeps weights from being normalized."""
    problem, _ = planted(2, n_sentences=15, n_hyps=6, noise=1.0)
    dense = np.column_stack([problem.tuning_set.dense, np.ones(90)])
    made = tuning_set([6] * 15, dense, problem.tuning_set.stats[:, 0])
    held = Problem(made, Accuracy(), active=np.arange(6) < 5)
    options = CrossEntropyOptions(best_hypotheses=3, prior_precision=0.3)
    found = cross_entropy(held, np.zeros(6), np.random.default_rng(0), options)
    gains = made.stats[:, 0] / 10
    goals = metric_distributions(made.offsets, gains, discounted_shares(1.0), best=3)
    rows = made.dense[:, :5].astype(np.float64)

    def loss(weights: Floats) -> float:
        shares = log_softmax((rows @ weights).reshape(15, 6), axis=1).ravel()
        return float(0.15 * weights @ weights - goals @ shares)

    truth = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    assert found.history[0]["loss"] == pytest.approx(truth.fun, rel=1e-6)
    np.testing.assert_allclose(found.weights[:5], truth.x, atol=1e-4)


@pytest.mark.parametrize("distribution", ["discounted", "exponential"])
def test_hidden_weights(distribution: str) -> None:
    problem, hidden = planted_sparse(3)
    options = CrossEntropyOptions(distribution=distribution)  # type: ignore[arg-type]
    start = np.append(np.ones(2), np.zeros(30))
    found = cross_entropy(problem, start, np.random.default_rng(0), options)
    assert cosine(found.weights, hidden) > 0.97
    assert found.score == corpus_score(problem, found.weights)


def test_inactive_weights_stay() -> None:
    problem, hidden = planted(4, n_sentences=200)
    active = np.array([True, False, True, False, True])
    start = np.where(active, 9.0, 30.0 * hidden)
    held = replace(problem, active=active)
    found = cross_entropy(held, start, np.random.default_rng(0), CrossEntropyOptions())
    np.testing.assert_array_equal(found.weights[~active], start[~active])
    assert cosine(found.weights, hidden) > 0.99


def test_hypotheses_without_gain_are_rejected() -> None:
    made = tuning_set([3, 3], np.arange(12.0).reshape(6, 2), np.zeros(6))
    with pytest.raises(OptimizerError, match="no hypothesis has a accuracy above 0"):
        cross_entropy(
            Problem(made, Accuracy()), np.ones(2), np.random.default_rng(0), CrossEntropyOptions()
        )
