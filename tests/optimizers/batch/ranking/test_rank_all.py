"""All-pairs ranking as a user runs it: hidden weights, weights that stay, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.ranking.whole_lists import RankAllOptions
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.ranking.test_pro import cosine, planted_sparse
from tests.optimizers.problems import Accuracy, planted, tuning_set

rank_all = algorithm("rank-all").optimize

PLAIN = RankAllOptions(pair_weights="equal", minimum_difference=0.0)


def run(
    problem: Problem, initial: NDArray[np.float64], options: RankAllOptions = PLAIN
) -> NDArray[np.float64]:
    return rank_all(problem, initial, np.random.default_rng(0), options).weights


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
@pytest.mark.parametrize("weights", ["difference", "equal"])
def test_direction_of_hidden_weights(loss: str, weights: str) -> None:
    problem, hidden = planted(21, n_sentences=100, n_hyps=10)
    options = RankAllOptions(pair_loss=loss, pair_weights=weights)  # type: ignore[arg-type]
    solution = rank_all(problem, np.ones(5), np.random.default_rng(0), options)
    assert cosine(solution.weights, hidden) > 0.99
    assert np.abs(solution.weights).sum() == pytest.approx(1.0)
    assert solution.score == corpus_score(problem, solution.weights)
    step = solution.history[0]
    assert step["pairs"] == 100 * 45
    assert step["converged"]
    assert ("gap" in step) == (loss == "hinge")


def test_least_squared_hinge() -> None:
    """Against SciPy on every pair; one inactive feature keeps weights from being normalized."""
    problem, _ = planted(22, n_sentences=12, n_hyps=6, noise=1.0)
    dense = np.column_stack([problem.tuning_set.dense, np.ones(72)])
    won = problem.tuning_set.stats[:, 0]
    held = Problem(tuning_set([6] * 12, dense, won), Accuracy(), active=np.arange(6) < 5)
    options = replace(PLAIN, prior_precision=0.7)
    found = rank_all(held, np.zeros(6), np.random.default_rng(0), options)
    rows = held.tuning_set.dense[:, :5].astype(np.float64)
    pairs = np.array(
        [
            (i, j)
            for start in range(0, 72, 6)
            for i in range(start, start + 6)
            for j in range(start, start + 6)
            if won[i] > won[j]
        ]
    )
    gaps = rows[pairs[:, 0]] - rows[pairs[:, 1]]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        missed = np.maximum(1.0 - gaps @ weights, 0.0)
        value = 0.35 * weights @ weights + missed @ missed / 15
        return float(value), 0.7 * weights - 2.0 * missed @ gaps / 15

    truth = minimize(loss, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert found.history[0]["loss"] == pytest.approx(truth.fun, rel=1e-8)
    np.testing.assert_allclose(found.weights[:5], truth.x, atol=1e-6)


def test_nothing_is_random_and_the_start_does_not_matter() -> None:
    problem, _ = planted(23, noise=0.5)
    first = rank_all(problem, np.ones(5), np.random.default_rng(0), RankAllOptions())
    other = rank_all(problem, -7.0 * np.ones(5), np.random.default_rng(9), RankAllOptions())
    np.testing.assert_array_equal(first.weights, other.weights)


def test_sparse_weights_are_tuned_and_count() -> None:
    problem, hidden = planted_sparse(24)
    start = np.append(np.ones(2), np.zeros(30))
    weights = run(problem, start)
    assert cosine(weights, hidden) > 0.97
    dense_only = replace(problem, active=np.arange(32) < 2)
    assert corpus_score(problem, weights) > corpus_score(problem, run(dense_only, start)) + 0.1


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(25, n_sentences=300)
    active = np.array([True, False, True, False, True])
    for scale in (0.01, 50.0):
        start = np.where(active, 9.0, scale * hidden)
        weights = run(replace(problem, active=active), start)
        np.testing.assert_array_equal(weights[~active], start[~active])
        assert cosine(weights, hidden) > 0.99


def test_inactive_weights_that_point_the_wrong_way() -> None:
    problem, hidden = planted(26)
    active = np.array([True, True, True, True, False])
    start = np.where(active, 0.0, -0.1 * hidden)
    for options in (PLAIN, RankAllOptions(pair_loss="hinge")):
        weights = run(replace(problem, active=active), start, options)
        assert weights[4] == start[4]
        assert corpus_score(problem, weights) > corpus_score(problem, np.where(active, 1.0, start))


def test_rejects_hypotheses_of_equal_scores() -> None:
    made = tuning_set([3, 3], np.arange(12.0).reshape(6, 2), np.full(6, 4))
    with pytest.raises(OptimizerError, match="minimum_difference"):
        run(Problem(made, Accuracy()), np.ones(2))
    same = tuning_set([3, 3], np.ones((6, 2)), np.arange(6))
    with pytest.raises(OptimizerError, match="separate good hypotheses from bad"):
        run(Problem(same, Accuracy()), np.ones(2))
