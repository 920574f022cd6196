"""The margin loss of all pairs against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.batch.margin.pairs import PairsLoss, solve_pairs
from mosesplug.optimizers.lists.scaled import scale_lists
from mosesplug.optimizers.oracles import sentence_oracles
from mosesplug.optimizers.problem import Problem
from tests.optimizers.lists.test_scaled import matrix
from tests.optimizers.online.batches import random_batch
from tests.optimizers.problems import Accuracy

SIZES = [4, 5, 3]


def loss_of(seed: int, regularization: float, least: float) -> PairsLoss:
    """Sentences of which some have two oracles, and one hypothesis that is like an oracle."""
    made = random_batch(seed, SIZES)
    made.dense.flags.writeable = True
    rng = np.random.default_rng(seed)
    gains = rng.integers(0, 3, 12) / 4.0
    lists = scale_lists(Problem(made, Accuracy(), np.ones(9, np.bool_)), np.ones(9), "deviation")
    oracles = sentence_oracles(lists.offsets, gains)
    own = oracles.rows[0]
    other = next(row for row in range(4) if row not in oracles.rows)
    lists.features.dense[other] = lists.features.dense[own]
    lists.features.data[slice(*lists.features.indptr[own : own + 2])] = 0.0
    lists.features.data[slice(*lists.features.indptr[other : other + 2])] = 0.0
    demanded_gains = gains if least == 0.0 else np.zeros(12)
    return PairsLoss(lists, oracles, demanded_gains, least, regularization)


def examples(loss: PairsLoss) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences and demands of all pairs, one by one."""
    rows, steps, demands = matrix(loss.lists), [], []
    for sentence in range(loss.lists.n_sentences):
        own = range(*loss.lists.offsets[sentence : sentence + 2])
        oracles = loss.oracles.rows[slice(*loss.oracles.offsets[sentence : sentence + 2])]
        for oracle in oracles:
            for other in own:
                if other not in oracles:
                    steps.append(rows[oracle] - rows[other])
                    demands.append(loss.least + loss.gains[oracle] - loss.gains[other])
    return np.array(steps), np.array(demands)


@pytest.mark.parametrize(("least", "regularization"), [(0.0, 0.1), (1.0, 0.02), (1.0, 1.0)])
@pytest.mark.parametrize("seed", [1, 2])
def test_least_objective(seed: int, least: float, regularization: float) -> None:
    loss = loss_of(seed, regularization, least)
    steps, demands = examples(loss)
    n, size = steps.shape
    wanted = minimize(
        lambda x: 0.5 * regularization * x[:size] @ x[:size] + x[size:].mean(),
        np.append(np.zeros(size), np.full(n, 3.0)),
        jac=lambda x: np.append(regularization * x[:size], np.full(n, 1.0 / n)),
        bounds=[(None, None)] * size + [(0.0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda x: steps @ x[:size] + x[size:] - demands,
            "jac": lambda x: np.hstack([steps, np.eye(n)]),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    fit = solve_pairs(loss, np.random.default_rng(3), tolerance=1e-9, sweeps=100_000)
    assert fit.has_converged
    assert fit.loss == pytest.approx(wanted.fun, abs=1e-6)
    hinge = np.maximum(demands - steps @ fit.weights, 0.0).mean()
    assert fit.loss == pytest.approx(0.5 * regularization * fit.weights @ fit.weights + hinge)
    np.testing.assert_allclose(fit.weights, wanted.x[:size], atol=1e-3)
    bounds = np.array([step["bound"] for step in fit.rounds])
    assert (np.diff(bounds) >= 0.0).all()
    assert (bounds <= wanted.fun + 1e-8).all()


def test_sweeps_that_are_used_up() -> None:
    loss = loss_of(1, 0.001, 1.0)
    assert not solve_pairs(loss, np.random.default_rng(3), tolerance=1e-12, sweeps=1).has_converged
