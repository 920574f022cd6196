"""Comparing algorithms: what is measured, and on which sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.learning.benchmark import (
    BenchmarkTask,
    Refusal,
    SeedValues,
    bind_settings,
    measure_optimizer,
    score_tasks,
)
from mosesplug.optimizers import Algorithm, Problem, Progress, Solution, algorithm, corpus_score
from mosesplug.options import Opt
from tests.optimizers.problems import planted


@dataclass(frozen=True)
class Options:
    step: Annotated[float, Opt("", minimum=0.0)] = 0.5


def drawn(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: Options,
    progress: Progress,
) -> Solution:
    """Random weights, of which the first is 0."""
    weights = initial + options.step * rng.standard_normal(len(initial))
    weights[0] = 0.0
    return Solution(weights, -1.0)


def refuses(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: Options,
    progress: Progress,
) -> Solution:
    raise OptimizerError("not these lists")


DRAWN = Algorithm("drawn", "", "", "", Options, drawn)


def task(held_out: NDArray[np.int64] | None = None) -> BenchmarkTask:
    problem, _ = planted(41, n_sentences=20)
    return BenchmarkTask.split(problem, np.full(5, 0.2), held_out)


def test_scores_are_those_of_decoding_with_the_weights_of_each_seed() -> None:
    given = task()
    told: list[tuple[int, int, str]] = []
    outcome = measure_optimizer([given], DRAWN.bind(Options()), 3, lambda *said: told.append(said))
    expected = []
    for seed in (1, 2, 3):
        weights = np.full(5, 0.2) + 0.5 * np.random.default_rng(seed).standard_normal(5)
        weights[0] = 0.0
        expected.append(corpus_score(given.problem, weights))
    assert outcome.score.values == tuple(expected)
    assert outcome.active.values == (4, 4, 4)
    assert outcome.held_out is None
    assert len(outcome.cpu_seconds.values) == 3
    assert [said[0] for said in told] == [0, 1, 2, 3]
    assert outcome.score.mean == pytest.approx(np.mean(expected))
    assert outcome.score.deviation == pytest.approx(np.std(expected, ddof=1))
    assert SeedValues.of([0.5]).deviation is None


def test_held_out_sentences_are_scored_and_not_learned_from() -> None:
    left_out = np.array([3, 7, 19])
    given = task(left_out)
    whole, _ = planted(41, n_sentences=20)
    assert given.n_held_out == 3
    assert given.problem.tuning_set.sentence_ids.tolist() == [
        each for each in range(20) if each not in left_out
    ]
    outcome = measure_optimizer([given], DRAWN.bind(Options(step=0.0)), 1)
    weights = np.array([0.0, 0.2, 0.2, 0.2, 0.2])
    held_out = replace(whole, tuning_set=whole.tuning_set.take_sentences(left_out))
    assert outcome.held_out == SeedValues.of([corpus_score(held_out, weights)])
    assert score_tasks([given])[1] == corpus_score(held_out, given.start)


def test_a_rejected_task_is_reported() -> None:
    outcome = measure_optimizer([task()], replace(DRAWN, optimize=refuses).bind(Options()), 2)
    assert outcome == Refusal("drawn", "not these lists")


def test_settings_go_to_the_algorithms_that_have_them() -> None:
    tuners = [DRAWN, algorithm("pro"), algorithm("adagrad")]
    drawn, pro, adagrad = bind_settings(tuners, {"epochs": "2", "minimum-count": "7"})
    assert drawn.options == Options()
    assert pro.options == algorithm("pro").options()
    assert adagrad.options == replace(algorithm("adagrad").options(), epochs=2, minimum_count=7)
    with pytest.raises(UsageError, match="drawn, pro, adagrad has an option 'polish'"):
        bind_settings(tuners, {"polish": "1"})
    with pytest.raises(UsageError, match="step"):
        bind_settings(tuners, {"step": "-1"})


def test_decodings_are_learned_from_in_turn_as_in_a_run() -> None:
    """By hand: weights and the learner's state go from one decoding to the next."""
    whole, _ = planted(41, n_sentences=20, noise=1.0)
    early = replace(whole, tuning_set=whole.tuning_set.take_sentences(np.arange(12)))
    left_out = np.array([3, 15])
    given = BenchmarkTask.split(whole, np.full(5, 0.2), left_out, [early])
    assert given.earlier[0].tuning_set.n_sentences == 11
    optimizer = algorithm("adagrad").bind(algorithm("adagrad").options(epochs=2, batch=4))
    first = optimizer.optimize(
        replace(given.earlier[0], grows=True), given.start, np.random.default_rng([1, 1])
    )
    second = optimizer.optimize(
        replace(given.problem, states=first.states), first.weights, np.random.default_rng([1, 2])
    )
    assert second.states[0].updates > first.states[0].updates
    np.testing.assert_array_equal(given.learn(optimizer, 1), second.weights)


def test_folds_have_one_score_together() -> None:
    problem, _ = planted(41, n_sentences=20)
    parts = [np.arange(0, 20, 2), np.arange(1, 20, 2)]
    tasks = [BenchmarkTask.split(problem, np.full(5, 0.2), part) for part in parts]
    outcome = measure_optimizer(tasks, DRAWN.bind(Options()), 1)
    weights = np.full(5, 0.2) + 0.5 * np.random.default_rng(1).standard_normal(5)
    weights[0] = 0.0
    # The same weights for both folds: the score is that of all sentences.
    assert outcome.held_out.values == (pytest.approx(corpus_score(problem, weights)),)
    learned = [corpus_score(task.problem, weights) for task in tasks]
    assert outcome.score.values == (pytest.approx(np.mean(learned)),)
