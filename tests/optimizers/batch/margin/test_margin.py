"""Large margins as an optimizer: references, rounds, and what users may ask for."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.margin.margin import CuttingPlaneOptions, MarginOptions, ramp_loss
from mosesplug.optimizers.lists.scaled import scale_lists
from mosesplug.optimizers.problem import Problem, Solution
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.lists.test_scaled import matrix
from tests.optimizers.online.batches import random_batch
from tests.optimizers.problems import Accuracy, planted, tuning_set

cutting_plane = algorithm("cutting-plane").optimize
large_margin = algorithm("margin").optimize

START = np.full(5, 0.2)
EXACT = MarginOptions(solver_tolerance=1e-7, sweeps=5000)


def learn(problem: Problem, options: MarginOptions, seed: int = 1) -> Solution:
    start = np.ones(len(problem.tuning_set.space))
    return large_margin(problem, start, np.random.default_rng(seed), options)


def noisy(seed: int = 21) -> Problem:
    return planted(seed, n_sentences=40, n_hyps=10, noise=1.0)[0]


def test_no_round_raises_the_ramp_loss() -> None:
    history = learn(noisy(), EXACT).history
    assert len(history) > 2
    ramps = [step["ramp"] for step in history]
    assert all(step["converged"] for step in history)
    assert all(after <= before + 1e-6 for before, after in itertools.pairwise(ramps))
    assert ramps[-1] < ramps[0]


def test_both_solvers_do_the_same() -> None:
    problem, start = noisy(), np.ones(5)
    found = learn(problem, EXACT)
    for slack in ("one", "n"):
        options = CuttingPlaneOptions(slack_variables=slack, epsilon=1e-7)  # type: ignore[arg-type]
        other = cutting_plane(problem, start, np.random.default_rng(5), options)
        assert other.history[0]["objective"] == pytest.approx(found.history[0]["objective"])
        assert other.history[-1]["ramp"] == pytest.approx(found.history[-1]["ramp"], abs=1e-4)


def test_ramp_loss_matches_its_formula() -> None:
    made = random_batch(2, [3, 4])
    lists = scale_lists(Problem(made, Accuracy(), np.ones(9, np.bool_)), np.ones(9), "none")
    rng = np.random.default_rng(3)
    weights, gains = rng.standard_normal(len(lists.columns)), rng.random(7)
    scores = matrix(lists) @ weights
    losses = [
        max(scores[own] - gains[own]) - max(scores[own] + gains[own])
        for own in (slice(0, 3), slice(3, 7))
    ]
    wanted = 0.1 * weights @ weights + np.mean(losses)
    assert ramp_loss(lists, weights, gains, 0.2) == pytest.approx(wanted)


def test_two_hypotheses_by_hand() -> None:
    """``max(0, 0.6 - 2 w) + lambda/2 w^2``: the corner, or ``2 / lambda`` before it."""
    made = tuning_set([2], np.array([[3.0], [1.0]]), np.array([8, 2]))
    for regularization, weight in ((0.1, 0.3), (10.0, 0.2)):
        options = replace(EXACT, oracles="best", scaling="none", regularization=regularization)
        step = learn(Problem(made, Accuracy()), options).history[0]
        wanted = max(0.0, 0.6 - 2.0 * weight) + 0.5 * regularization * weight**2
        assert step["objective"] == pytest.approx(wanted, rel=1e-6)
        assert step["spread"] == pytest.approx(2.0 * weight)


@pytest.mark.parametrize("violations", ["worst", "all"])
@pytest.mark.parametrize("margin", ["cost", "one"])
@pytest.mark.parametrize("oracles", ["hope", "best"])
def test_every_choice_finds_planted_weights(violations: str, margin: str, oracles: str) -> None:
    problem, _ = planted(22, n_sentences=60)
    options = MarginOptions(
        violations=violations,  # type: ignore[arg-type]
        margin=margin,  # type: ignore[arg-type]
        oracles=oracles,  # type: ignore[arg-type]
        rounds=3,
    )
    solution = learn(problem, options)
    assert solution.score > 0.95
    assert np.abs(solution.weights).sum() == pytest.approx(1.0)
    assert len(solution.history) <= (1 if oracles == "best" else 3)
    json.dumps(solution.history)


def test_the_unit_of_a_feature_does_not_count() -> None:
    problem = noisy()
    units = np.array([1.0, 64.0, 1.0 / 32.0, 1.0, 8.0])
    made = replace(problem.tuning_set, dense=(problem.tuning_set.dense * units).astype(np.float32))
    found = learn(problem, MarginOptions()).weights
    other = learn(replace(problem, tuning_set=made), MarginOptions()).weights * units
    np.testing.assert_allclose(other / np.abs(other).sum(), found, rtol=1e-6)


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(23, n_sentences=80)
    active = np.array([True, True, False, True, True])
    fixed = replace(problem, active=active)
    for scale in (1.0, 50.0):
        start = np.where(active, 0.1, scale * hidden)
        solution = large_margin(fixed, start, np.random.default_rng(1), MarginOptions())
        assert solution.weights[2] == start[2]
        assert solution.score > 0.95
        np.testing.assert_allclose(solution.weights, scale * hidden, rtol=0.4, atol=0.1 * scale)


def test_sparse_features_are_learned() -> None:
    made = random_batch(4, [8] * 30)
    rows = np.zeros((made.n_hyps, 6))
    assert made.sparse is not None
    owners = np.repeat(np.arange(made.n_hyps), np.diff(made.sparse.indptr))
    rows[owners, made.sparse.indices] = made.sparse.data
    quality = rows @ np.array([1.0, -1.0, 0.5, -0.5, 2.0, 0.0])
    won = np.round(5.0 + quality).clip(0, 10).astype(np.int32)
    stats = np.stack([won, np.full(len(won), 10)], axis=1).astype(np.int32)
    problem = Problem(replace(made, stats=stats), Accuracy())
    weights = learn(problem, MarginOptions()).weights[3:]
    np.testing.assert_array_equal(np.sign(weights[:5]), [1, -1, 1, -1, 1])


def test_nothing_to_learn_is_an_error() -> None:
    alike = tuning_set([3], np.ones((3, 2)), np.array([1, 5, 9]))
    with pytest.raises(OptimizerError, match="all weights are zero"):
        learn(Problem(alike, Accuracy()), MarginOptions())
    worthless = tuning_set([3], np.arange(6.0).reshape(3, 2), np.array([5, 5, 5]))
    for violations in ("worst", "all"):
        options = MarginOptions(violations=violations)  # type: ignore[arg-type]
        with pytest.raises(OptimizerError, match="all weights are zero"):
            learn(Problem(worthless, Accuracy()), options)
