"""AROW against its equations by hand, and against a solver of the problem that they solve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.online.arow import ArowOptions, arow_learner
from mosesplug.optimizers.online.learner import Change, LearnerState, Step, grow_state
from mosesplug.tuning_set import Batch
from tests.optimizers.online.oro.updates import make_step, matrix_of, random_batch
from tests.optimizers.problems import Accuracy, tuning_set

CLOSED = ArowOptions(update="closed-form", cost="lin-och", variance_weight=0.3)
LINEAR = ArowOptions(update="linearized", cost="lin-och", variance_weight=0.3, slack=0.2)
ALL = np.ones(6, dtype=np.bool_)


def state_of(weights: NDArray[np.float64], variances: NDArray[np.float64]) -> LearnerState:
    return LearnerState({"weights": weights.copy(), "variances": variances.copy()})


def hope_and_fear(
    batch: Batch, sentence: int, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Their difference, and how much worse fear is."""
    rows = slice(batch.offsets[sentence], batch.offsets[sentence + 1])
    matrix = matrix_of(batch)[rows]
    gains = Accuracy().score(batch.stats[rows])
    scores = matrix @ weights
    hope, fear = int(np.argmax(scores + gains)), int(np.argmax(scores - gains))
    return matrix[hope] - matrix[fear], float(gains[hope] - gains[fear])


def test_one_sentence_by_hand() -> None:
    batch = tuning_set([2], np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([10, 0]))
    learner = arow_learner(replace(CLOSED, variance_weight=0.5))  # r = 1
    where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
    state = state_of(np.zeros(2), np.array([1.0, 0.5]))
    state = learner.update(state, batch, where)
    # x = (1, -2), x S x = 1 + 2 = 3, b = 1/4, loss = 1.
    np.testing.assert_allclose(state.vectors["weights"], [0.25, -0.25])
    np.testing.assert_allclose(state.vectors["variances"], [1 - 1 / 4, 0.5 - 1 / 4])
    assert state.updates == 1


@pytest.mark.parametrize("seed", range(4))
def test_closed_form_minimizes_its_objective(seed: int) -> None:
    batch = random_batch(seed, (6,))
    rng = np.random.default_rng(seed)
    old, variances = 0.1 * rng.standard_normal(6), rng.uniform(0.1, 1.0, 6)
    x, cost = hope_and_fear(batch, 0, old)
    change = arow_learner(CLOSED).change(state_of(old, variances), batch, make_step(ALL))

    def objective(weights: NDArray[np.float64]) -> float:
        stay = 0.5 * np.sum((weights - old) ** 2 / variances)
        return float(stay + CLOSED.variance_weight * max(0.0, float(cost - weights @ x)) ** 2)

    best = minimize(objective, old, method="BFGS", tol=1e-12)
    found = old.copy()
    found[change.columns] += change.values
    assert objective(found) <= best.fun + 1e-9
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    full = np.diag(variances) - np.outer(variances * x, variances * x) / (
        x @ (variances * x) + 1 / (2 * CLOSED.variance_weight)
    )
    shrunk = variances.copy()
    shrunk[change.columns] *= change.more["shrink"]
    np.testing.assert_allclose(shrunk, np.diag(full))


def test_closed_form_takes_one_sentence_after_the_other() -> None:
    batch = random_batch(7)
    learner = arow_learner(CLOSED)
    weights, variances = np.linspace(-0.1, 0.1, 6), np.linspace(0.2, 1, 6)
    together = learner.update(state_of(weights, variances), batch, make_step(ALL))
    alone = state_of(weights, variances)
    for sentence in range(batch.n_sentences):
        one = batch.take_sentences(np.array([sentence]))
        alone = learner.update(alone, one, make_step(ALL))
    for name in ("weights", "variances"):
        np.testing.assert_allclose(together.vectors[name], alone.vectors[name], rtol=1e-12)


def test_linearized_is_one_step_from_the_old_weights() -> None:
    batch = random_batch(8)
    weights, variances = np.linspace(-0.1, 0.1, 6), np.linspace(0.2, 1, 6)
    state = arow_learner(LINEAR).update(state_of(weights, variances), batch, make_step(ALL))
    pull, squares = np.zeros(6), np.zeros(6)
    for sentence in (0, 2, 3, 4):  # sentence 1 has no hypotheses
        x, cost = hope_and_fear(batch, sentence, weights)
        if cost - weights @ x > 0.0:
            pull += x
            squares += x * x
    np.testing.assert_allclose(state.vectors["weights"], weights + 0.2 / 4 * variances * pull)
    precisions = 1 / variances + 0.3 / 4 * squares
    np.testing.assert_allclose(state.vectors["variances"], 1 / precisions)


@pytest.mark.parametrize("options", [CLOSED, LINEAR])
def test_only_active_features_move(options: ArowOptions) -> None:
    batch, active = random_batch(9), np.array([True, False, True, True, False, True])
    weights = np.linspace(-0.1, 0.1, 6)
    state = state_of(weights, np.ones(6))
    change = arow_learner(options).change(state, batch, make_step(active))
    assert active[change.columns].all()
    assert len(change.columns)
    np.testing.assert_array_equal(state.vectors["weights"], weights)  # only read


def test_unseen_features_have_variance_one() -> None:
    learner = arow_learner(ArowOptions())
    state = grow_state(learner.init(np.zeros(3)), 5, learner.fills)
    np.testing.assert_array_equal(state.vectors["variances"], np.ones(5))
    batch = random_batch(10)
    state = learner.update(learner.init(np.zeros(8)), batch, make_step(np.ones(8, np.bool_)))
    np.testing.assert_array_equal(state.vectors["variances"][6:], [1.0, 1.0])


def test_stale_changes_leave_variances_above_zero() -> None:
    learner, batch = arow_learner(replace(CLOSED, variance_weight=100.0)), random_batch(11)
    state = learner.init(np.zeros(6))
    change = learner.change(state, batch, make_step(ALL))
    for _ in range(5):
        state = learner.apply(state, change, make_step(ALL))
    assert (state.vectors["variances"] > 0.0).all()
    assert (state.vectors["variances"] <= 1.0).all()


def test_invalid_settings_are_rejected() -> None:
    for weight in (0.0, np.inf):
        with pytest.raises(UsageError, match="variance_weight"):
            arow_learner(ArowOptions(variance_weight=weight))
    learner = arow_learner(ArowOptions())
    large = Change(np.array([0]), np.array([1.7e308]), {"shrink": np.ones(1)})
    with pytest.raises(OptimizerError, match="overflow"):
        learner.apply(learner.init(np.array([1.7e308])), large, make_step(ALL))
