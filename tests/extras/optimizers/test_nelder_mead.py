"""The downhill simplex as an optimizer of lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.extras.optimizers.nelder_mead import NelderMeadOptions
from mosesplug.optimizers.problem import corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.problems import planted

nelder_mead = algorithm("nelder-mead").optimize

ONE = NelderMeadOptions(restarts=0)


def test_further_starts_count_and_the_history_has_each() -> None:
    problem, hidden = planted(21)
    problem = replace(problem, starts=(hidden,))
    few = replace(ONE, evaluations=8)
    solution = nelder_mead(problem, -hidden, np.random.default_rng(1), few)
    assert solution.score == 1.0
    assert np.abs(solution.weights).sum() == pytest.approx(1.0)
    first, second = solution.history
    assert first["start_score"] == corpus_score(problem, -hidden)
    assert second["start_score"] == second["score"] == 1.0


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(22)
    active = np.array([True, True, False, True, False])
    problem = replace(problem, active=active)
    start = np.where(active, 0.01, hidden)
    solution = nelder_mead(problem, start, np.random.default_rng(1), ONE)
    np.testing.assert_array_equal(solution.weights[~active], hidden[~active])
    assert solution.score > corpus_score(problem, start) + 0.05
    assert solution.score == corpus_score(problem, solution.weights)


def test_armijo_steps_recover_hidden_weights_for_any_number_of_threads() -> None:
    problem, _ = planted(25, n_sentences=100)
    problem = replace(problem, minima=-np.ones(5), maxima=np.ones(5))
    armijo = replace(ONE, simplex_step="armijo", restarts=2)
    found, again = (
        nelder_mead(replace(problem, threads=threads), np.ones(5), np.random.default_rng(1), armijo)
        for threads in (1, 3)
    )
    assert found.score > 0.95
    assert found.weights.tobytes() == again.weights.tobytes()
    amoeba = nelder_mead(problem, np.ones(5), np.random.default_rng(1), replace(ONE, restarts=2))
    assert amoeba.weights.tobytes() != found.weights.tobytes()


def test_progress_counts_points() -> None:
    problem, _ = planted(23, n_sentences=20)
    told: list[tuple[int, int, str]] = []
    few = replace(ONE, restarts=1, evaluations=40)
    solution = nelder_mead(
        problem, np.ones(5), np.random.default_rng(1), few, lambda *said: told.append(said)
    )
    done = sum(step["evaluations"] for step in solution.history)
    assert told[-1] == (done, 80, "points")


def test_nothing_but_zero_is_rejected() -> None:
    problem, _ = planted(24, n_sentences=5)
    flat = np.zeros_like(problem.tuning_set.dense)
    problem = replace(problem, tuning_set=replace(problem.tuning_set, dense=flat))
    with pytest.raises(OptimizerError, match="all zero"):
        nelder_mead(problem, np.zeros(5), np.random.default_rng(1), ONE)
