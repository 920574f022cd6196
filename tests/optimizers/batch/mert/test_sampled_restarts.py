"""Test the search of many sentences: restarts on a sample of them, and a polish close by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import SearchSpace
from mosesplug.optimizers.batch.mert.climb import (
    NEAR,
    RADII,
    Climb,
    ClimbSettings,
    climb_from_perturbation,
)
from mosesplug.optimizers.batch.mert.mert import MANY_SENTENCES, POLISH_GAINS, SAMPLED
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.problem import Problem, Solution, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.problems import Accuracy, planted, tuning_set

mert = algorithm("mert").optimize


def _search(problem: Problem, restarts: int, **settings: Any) -> Solution:
    options = MertOptions(restarts=restarts, polish=0, **settings)
    return mert(problem, np.ones(5), np.random.default_rng(1), options)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return planted(10, n_sentences=MANY_SENTENCES, noise=1.0)[0]


def test_a_quarter_of_the_restarts_goes_on_with_all_sentences(problem: Problem) -> None:
    solution = _search(problem, 47)
    # The given start, and a quarter of 20, of 20 and of 7, rounded up.
    assert len(solution.history) == 1 + 5 + 5 + 2
    assert solution.score == corpus_score(problem, solution.weights)
    assert solution.score == max(each["score"] for each in solution.history)


def test_more_restarts_begin_with_those_of_fewer(problem: Problem) -> None:
    few, many = _search(problem, 20), _search(problem, 40)
    assert few.history == many.history[: len(few.history)]
    assert many.score >= few.score


def test_restarts_of_fewer_sentences_use_all(problem: Problem) -> None:
    fewer = replace(
        problem, tuning_set=problem.tuning_set.take_sentences(np.arange(MANY_SENTENCES - 1))
    )
    assert len(_search(fewer, 8).history) == 9
    assert len(_search(problem, 8, give_up=0.0).history) == 9
    assert len(_search(problem, 8, method="random-direction").history) == 9


def test_samples_do_not_depend_on_threads(problem: Problem) -> None:
    one, four = (_search(replace(problem, threads=threads), 24) for threads in (1, 4))
    assert one.weights.tobytes() == four.weights.tobytes()
    assert one.history == four.history


def test_a_sample_without_hypotheses_is_not_used() -> None:
    sizes = [0 if number % SAMPLED == 0 else 2 for number in range(MANY_SENTENCES)]
    rng = np.random.default_rng(0)
    made = tuning_set(sizes, rng.standard_normal((sum(sizes), 5)), rng.integers(0, 9, sum(sizes)))
    assert len(_search(Problem(made, Accuracy()), 8).history) == 9


def test_progress_counts_each_restart_once(problem: Problem) -> None:
    told: list[tuple[int, int, str]] = []
    options = MertOptions(restarts=47, polish=2)
    mert(problem, np.ones(5), np.random.default_rng(1), options, lambda *said: told.append(said))
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= total for done, total, _ in told)
    assert told[-1][0] == told[-1][1] >= 48 + 2


@pytest.mark.parametrize(
    ("n_sentences", "give_up", "expected"),
    [
        (MANY_SENTENCES, 5.0, (NEAR, POLISH_GAINS)),
        (MANY_SENTENCES, 1.0, (NEAR, 1.0)),
        (MANY_SENTENCES, 0.0, (NEAR, 0.0)),
        (MANY_SENTENCES - 1, 5.0, (RADII, 5.0)),
    ],
)
def test_many_sentences_are_polished_close_by(
    problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
    n_sentences: int,
    give_up: float,
    expected: tuple[tuple[float, float], float],
) -> None:
    used = set()

    def climb(
        space: SearchSpace,
        start: NDArray[np.float64],
        rng: np.random.Generator,
        settings: ClimbSettings,
    ) -> Climb:
        used.add((settings.radii, settings.give_up))
        return climb_from_perturbation(space, start, rng, settings)

    monkeypatch.setattr("mosesplug.optimizers.batch.mert.mert.climb_from_perturbation", climb)
    sentences = problem.tuning_set.take_sentences(np.arange(n_sentences))
    options = MertOptions(restarts=2, polish=2, give_up=give_up)
    made = replace(problem, tuning_set=sentences)
    mert(made, np.ones(5), np.random.default_rng(1), options)
    assert used == {expected}
