"""Solvers of the structural hinge loss against SciPy, each other and their own bounds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.batch.margin.planes import solve_n_slack, solve_one_slack
from mosesplug.optimizers.batch.margin.worst import WorstLoss, solve_dual
from mosesplug.optimizers.lists.scaled import scale_lists
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from tests.optimizers.lists.test_scaled import matrix
from tests.optimizers.online.batches import random_batch
from tests.optimizers.problems import Accuracy

SIZES = [4, 5, 3, 6]


def loss_of(seed: int, regularization: float) -> WorstLoss:
    """Random references and demands; a reference demands nothing."""
    rng = np.random.default_rng(seed)
    made = random_batch(seed, SIZES)
    lists = scale_lists(Problem(made, Accuracy(), np.ones(9, np.bool_)), np.ones(9), "deviation")
    references = lists.offsets[:-1] + rng.integers(0, SIZES)
    demands = rng.normal(0.3, 0.5, len(lists.fixed_scores))
    demands[references] = 0.0
    return WorstLoss(lists, references, demands, regularization)


def least(loss: WorstLoss) -> tuple[float, NDArray[np.float64]]:
    """The least objective, and its weights: the problem with slacks, by SLSQP."""
    rows = matrix(loss.lists)
    steps = rows[loss.references][loss.lists.owners] - rows
    owners, size, n = loss.lists.owners, rows.shape[1], loss.lists.n_sentences
    slacks = np.eye(n)[owners]
    found = minimize(
        lambda x: 0.5 * loss.regularization * x[:size] @ x[:size] + x[size:].mean(),
        np.append(np.zeros(size), np.full(n, 5.0)),
        jac=lambda x: np.append(loss.regularization * x[:size], np.full(n, 1.0 / n)),
        constraints={
            "type": "ineq",
            "fun": lambda x: steps @ x[:size] + x[size:][owners] - loss.demands,
            "jac": lambda x: np.hstack([steps, slacks]),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return float(found.fun), found.x[:size]


def solved(name: str, loss: WorstLoss) -> Minimum:
    rng = np.random.default_rng(1)
    if name == "dual":
        return solve_dual(loss, rng, tolerance=1e-9, sweeps=20000)[0]
    if name == "n":
        return solve_n_slack(loss, rng, epsilon=1e-9, rounds=200, sweeps=5000)[0]
    return solve_one_slack(loss, epsilon=1e-8, rounds=500)[0]


@pytest.mark.parametrize("regularization", [0.03, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_all_reach_the_least_objective(seed: int, regularization: float) -> None:
    loss = loss_of(seed, regularization)
    wanted, weights = least(loss)
    for name in ("dual", "n", "one"):
        fit = solved(name, loss)
        assert fit.has_converged, name
        assert fit.loss == pytest.approx(wanted, abs=1e-6), name
        assert fit.loss == pytest.approx(loss.objective(fit.weights, loss.violations(fit.weights)))
        assert 0.0 <= fit.gap + 1e-12 < 1e-6, name
        np.testing.assert_allclose(fit.weights, weights, atol=1e-3)


def test_the_objective_matches_its_formula() -> None:
    loss, weights = loss_of(4, 0.1), np.random.default_rng(5).standard_normal(9)
    scores = matrix(loss.lists) @ weights
    losses = []
    for sentence, reference in enumerate(loss.references):
        rows = range(*loss.lists.offsets[sentence : sentence + 2])
        losses.append(max(loss.demands[e] - (scores[reference] - scores[e]) for e in rows))
    wanted = 0.05 * float(weights @ weights) + float(np.mean(losses))
    assert loss.objective(weights, loss.violations(weights)) == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["dual", "n", "one"])
def test_the_bound_never_falls_nor_passes_the_least_objective(name: str) -> None:
    loss = loss_of(6, 0.05)
    wanted, _ = least(loss)
    rounds = solved(name, loss).rounds
    bounds = np.array([step["bound"] for step in rounds])
    assert len(bounds) > 1
    assert (np.diff(bounds) >= -1e-12).all()
    assert (bounds <= wanted + 1e-8).all()
    assert all(step["objective"] >= wanted - 1e-8 for step in rounds)


def test_a_solution_is_a_start_for_other_references() -> None:
    before, after = loss_of(7, 0.1), loss_of(7, 0.1)
    after.references[:] = after.lists.offsets[:-1]
    after.demands[after.references] = 0.0
    rng, (wanted, _) = np.random.default_rng(2), least(after)
    _, multipliers = solve_dual(before, rng, tolerance=1e-6, sweeps=1000)
    given = multipliers.copy()
    fit, _ = solve_dual(after, rng, tolerance=1e-9, sweeps=20000, multipliers=multipliers)
    assert fit.loss == pytest.approx(wanted, abs=1e-6)
    fit, _ = solve_n_slack(
        after, rng, epsilon=1e-9, rounds=200, sweeps=5000, multipliers=multipliers
    )
    assert fit.loss == pytest.approx(wanted, abs=1e-6)
    np.testing.assert_array_equal(multipliers, given)
    _, planes = solve_one_slack(before, epsilon=1e-6, rounds=100)
    fit, _ = solve_one_slack(after, epsilon=1e-8, rounds=500, planes=planes)
    assert fit.loss == pytest.approx(wanted, abs=1e-6)


def test_missing_convergence_is_reported() -> None:
    loss, rng = loss_of(8, 0.01), np.random.default_rng(3)
    assert not solve_dual(loss, rng, tolerance=1e-9, sweeps=1)[0].has_converged
    assert not solve_n_slack(loss, rng, epsilon=1e-9, rounds=2, sweeps=1)[0].has_converged
    assert not solve_one_slack(loss, epsilon=1e-9, rounds=2)[0].has_converged
