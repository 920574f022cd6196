"""Relative margin against a general solver of its quadratic program, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from mosesplug.optimizers.online.learner import Learner, Step
from mosesplug.optimizers.online.margins import (
    RelativeMarginOptions,
    RmCpOptions,
    rm_cp_learner,
    rm_pa_learner,
)
from mosesplug.tuning_set import Batch
from tests.optimizers.online.oro.updates import make_step, matrix_of, random_batch
from tests.optimizers.problems import Accuracy, tuning_set

ALL = np.ones(6, dtype=np.bool_)
TINY = 1e-12
"""A slack that moves nothing; 0 stands for the default."""

PA = RelativeMarginOptions(cost="lin-och", slack=0.1, margin_bound=0.2, bound_slack=0.05)
CP = RmCpOptions(
    cost="lin-och",
    slack=0.1,
    margin_bound=0.2,
    bound_slack=0.05,
    solver_tolerance=1e-9,
    solver_iterations=2000,
)


def moved(
    learner: Learner, batch: Batch, weights: NDArray[np.float64], active: NDArray[np.bool_] = ALL
) -> NDArray[np.float64]:
    change = learner.change(learner.init(weights), batch, make_step(active))
    found = weights.copy()
    found[change.columns] += change.values
    return found


def test_slacks_of_the_paper_hold_while_decoding() -> None:
    """C and D are 0.01 (4.1), D 0.1 with sparse features; the defaults differ while decoding."""
    decoding = make_step(ALL)
    assert not decoding.uses_stored_lists
    batch, old = random_batch(3, [6]), np.zeros(6)
    assert batch.space.n_sparse
    paper = RelativeMarginOptions(variant="paper", cost="lin-och", margin_bound=0.2)
    given = replace(paper, variant="mosesplug", slack=0.01, bound_slack=0.1)
    found = moved(rm_pa_learner(paper), batch, old)
    np.testing.assert_array_equal(found, moved(rm_pa_learner(given), batch, old))
    plain = replace(paper, variant="mosesplug")
    assert (found != moved(rm_pa_learner(plain), batch, old)).any()


def objective_of(
    batch: Batch, old: NDArray[np.float64], weights: NDArray[np.float64], bounded: str
) -> float:
    """Equation 4 with its slacks at their least."""
    matrix, gains = matrix_of(batch), Accuracy().score(batch.stats)
    reference = int(np.argmax(matrix @ old + gains))
    leads = (matrix[reference] - matrix) @ weights
    margin = max(0.0, float((gains[reference] - gains - leads).max()))
    few = leads if bounded == "all" else leads[[np.argmin(gains)]]
    bound = max(0.0, float((np.abs(few) - 0.2).max()))
    return float(0.5 * np.sum((weights - old) ** 2)) + 0.1 * margin + 0.05 * bound


def solved(batch: Batch, old: NDArray[np.float64], bounded: str) -> float:
    """The least objective of equation 4, by sequential quadratic programming in w, xi and tau."""
    matrix, gains = matrix_of(batch), Accuracy().score(batch.stats)
    reference = int(np.argmax(matrix @ old + gains))
    lead, n = matrix[reference] - matrix, len(matrix)
    xi, tau = np.repeat([[1.0, 0.0]], n, axis=0), np.repeat([[0.0, 1.0]], n, axis=0)
    few = np.arange(n) if bounded == "all" else np.array([np.argmin(gains)])
    bounds = [np.hstack([sign * lead[few], tau[few]]) for sign in (-1, 1)]
    rows = np.concatenate([np.hstack([lead, xi]), *bounds, np.eye(8)[6:]])
    least = np.concatenate([gains[reference] - gains, np.full(2 * len(few), -0.2), np.zeros(2)])
    best = minimize(
        lambda v: 0.5 * np.sum((v[:6] - old) ** 2) + 0.1 * v[6] + 0.05 * v[7],
        np.append(old, [10.0, 10.0]),
        method="SLSQP",
        constraints=[LinearConstraint(rows, least, np.inf)],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # Status 8: rounding leaves no lower point on the line, which is the optimum to 1e-6.
    assert best.success or best.status == 8, best.message
    return float(best.fun)


@pytest.mark.parametrize("bounded", ["all", "worst"])
@pytest.mark.parametrize("seed", range(6))
def test_cutting_plane_solves_equation_4(seed: int, bounded: Literal["all", "worst"]) -> None:
    batch = random_batch(seed, (8,))
    old = 0.3 * np.random.default_rng(seed).standard_normal(6)
    found = moved(rm_cp_learner(replace(CP, bounded=bounded)), batch, old)
    least = solved(batch, old, bounded)
    assert objective_of(batch, old, found, bounded) == pytest.approx(least, abs=1e-6)
    assert objective_of(batch, old, found, bounded) < objective_of(batch, old, old, bounded)


def test_the_worst_by_error_is_the_only_bounded_hypothesis() -> None:
    # The third has the lowest score, the second the largest cost: its lead of 2 comes down to 1.5.
    dense = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, -2.0]])
    batch = tuning_set([3], dense, np.array([10, 0, 5]))
    where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
    options = RelativeMarginOptions(
        cost="lin-och", slack=TINY, margin_bound=1.5, bound_slack=9.0, bounded="worst"
    )
    change = rm_pa_learner(options).change(rm_pa_learner(options).init(np.ones(2)), batch, where)
    np.testing.assert_allclose(change.values, [-0.25])
    assert change.columns.tolist() == [0]


def test_passive_aggressive_by_hand() -> None:
    # Hope is the first: 0.3 + 1. The rival is the second: 0.5 - 0. The third is the worst.
    dense = np.array([[0.3, 0.0], [0.5, 0.0], [0.0, -2.0]])
    batch = tuning_set([3], dense, np.array([10, 0, 5]))
    where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
    options = RelativeMarginOptions(cost="lin-och", slack=0.5, margin_bound=1.5, bound_slack=0.1)
    learner = rm_pa_learner(options)
    weights = np.ones(2)
    change = learner.change(learner.init(weights), batch, where)
    # Margin: the lead is -0.2 and should be 1; x = (-0.2, 0), so the step of 30 is cut to 0.5.
    after = np.array([1.0 - 0.1, 1.0])
    # Bound: the lead over the worst is 0.27 + 2 at these weights, and should be at most 1.5.
    x = np.array([0.3, 2.0])
    size = min(0.1, (x @ after - 1.5) / (x @ x))
    assert size == 0.1
    np.testing.assert_allclose(weights + change.values, after - 0.1 * x, rtol=1e-6)
    assert change.report["violations"] == 2
    assert change.report["loss"] == pytest.approx(1.2)
    assert change.report["spread"] == pytest.approx(2.3)
    assert change.report["squared_spread"] == pytest.approx(2.3**2)


def test_a_step_goes_no_further_than_its_constraint() -> None:
    batch = tuning_set([2], np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([10, 0]))
    where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
    roomy = RelativeMarginOptions(cost="lin-och", slack=9.0, margin_bound=3.0, bound_slack=9.0)
    learner = rm_pa_learner(roomy)
    # From 0 the lead must become 1, the difference in worth: 2 w = 1.
    change = learner.change(learner.init(np.zeros(2)), batch, where)
    np.testing.assert_allclose(change.values, [0.5])
    # From 5 the lead of 10 must come down to 3: 2 w = 3.
    change = learner.change(learner.init(np.array([5.0, 0.0])), batch, where)
    np.testing.assert_allclose(change.values, [-3.5])


def test_lower_bound_pulls_up_a_reference_that_is_far_below() -> None:
    # Worth makes the second the reference, though it scores 0.9 less than the first.
    batch = tuning_set([2], np.array([[0.9, 0.0], [0.0, 0.0]]), np.array([0, 10]))
    where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
    learner = rm_pa_learner(
        RelativeMarginOptions(cost="lin-och", slack=TINY, margin_bound=0.45, bound_slack=9.0)
    )
    change = learner.change(learner.init(np.ones(2)), batch, where)
    np.testing.assert_allclose(change.values, [-0.5], rtol=1e-6)


@pytest.mark.parametrize("learner", [rm_pa_learner(PA), rm_cp_learner(CP)], ids=["pa", "cp"])
class TestBoth:
    def test_sentences_come_one_after_the_other(self, learner: Learner) -> None:
        batch, weights = random_batch(20), np.linspace(-0.3, 0.3, 6)
        together = moved(learner, batch, weights)
        alone = weights
        for sentence in range(batch.n_sentences):
            alone = moved(learner, batch.take_sentences(np.array([sentence])), alone)
        np.testing.assert_allclose(together, alone, atol=1e-12)

    def test_only_active_features_move(self, learner: Learner) -> None:
        batch, active = random_batch(21), np.array([True, False, True, True, False, True])
        weights = np.linspace(-0.3, 0.3, 6)
        found = moved(learner, batch, weights, active)
        np.testing.assert_array_equal(found[~active], weights[~active])
        assert (found != weights).any()

    def test_equal_hypotheses_cause_no_update(self, learner: Learner) -> None:
        batch = tuning_set([3], np.ones((3, 2)), np.array([5, 0, 9]))
        where = Step(1, 1, 1, Accuracy(), np.ones(2, np.bool_), np.random.default_rng(0))
        change = learner.change(learner.init(np.ones(2)), batch, where)
        assert not change.values.any()
        assert change.report["spread"] == 0.0

    def test_a_batch_without_hypotheses(self, learner: Learner) -> None:
        batch = random_batch(22, (0, 0))
        state = learner.update(learner.init(np.ones(6)), batch, make_step(ALL))
        np.testing.assert_array_equal(learner.weights(state), np.ones(6))
        assert state.updates == 1


@pytest.mark.parametrize(("stored", "slack"), [(True, 0.01), (False, 0.001)])
def test_default_slacks_depend_on_the_source_of_lists(stored: bool, slack: float) -> None:
    """Those of sparse features bound the scores ten times as much."""
    sparse, weights = random_batch(23, (6,)), np.full(6, 5.0)
    where = replace(make_step(ALL), uses_stored_lists=stored)
    options = RelativeMarginOptions(cost="lin-och", margin_bound=0.0)
    named = replace(options, slack=slack, bound_slack=10.0 * slack)
    first, second = (
        rm_pa_learner(each).change(rm_pa_learner(each).init(weights), sparse, where)
        for each in (options, named)
    )
    np.testing.assert_array_equal(first.values, second.values)
    dense = tuning_set([2], np.array([[1.0], [0.0]]), np.array([1, 0]))
    where = Step(
        1,
        1,
        1,
        Accuracy(),
        np.ones(1, np.bool_),
        np.random.default_rng(0),
        uses_stored_lists=stored,
    )
    learner = rm_pa_learner(replace(options, slack=TINY))
    change = learner.change(learner.init(np.ones(1)), dense, where)
    np.testing.assert_allclose(change.values, [-slack])
