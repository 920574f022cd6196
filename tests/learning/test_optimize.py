"""Test learning as a script calls it, the choice among runs, and the warnings about a result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.learning.inputs import LearningData
from mosesplug.learning.optimize import OptimizeResult, bind_optimizer, find_warnings, optimize
from mosesplug.learning.runs import LearningResult, learn_weights
from mosesplug.learning.weights import StartingWeights, format_weights
from mosesplug.optimizers import Problem, Progress, Solution, corpus_score
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.settings.learning import LearningSettings
from tests.optimizers.problems import planted

POINTS = ([1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0])
"""What seeds 0, 1 and 2 find."""


ALL, NONE = np.arange(60), np.zeros(0, dtype=np.int64)
"""Positions of the sentences learned from, and held out."""


def learn_from(settings: LearningSettings) -> OptimizeResult:
    return optimize(settings, bind_optimizer(settings))


def data() -> LearningData:
    problem, _ = planted(5, n_sentences=12)

    def restrict(problem: Problem, positions: NDArray[np.int64]) -> Problem:
        part = problem.tuning_set.take_sentences(positions)
        return Problem(part, problem.metric)

    start = StartingWeights(np.full(5, 0.2))
    return LearningData(problem, start, "12 sentences", "accuracy", np.arange(12), restrict)


def learn(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
    """Return one of the points, by the generator's seed."""
    drawn = rng.random()
    same = [drawn == np.random.default_rng(seed).random() for seed in range(3)]
    weights = np.array(POINTS[same.index(True)])
    return Solution(weights, corpus_score(problem, weights))


def test_median_run_and_average_of_runs() -> None:
    result = learn_weights(data(), learn, 0, runs=3)
    scores = [run.solution.score for run in result.runs]
    assert result.solution.score == sorted(scores)[1]
    assert result.chosen_run is result.runs[scores.index(sorted(scores)[1])]
    mean = learn_weights(data(), learn, 0, runs=3, select="average")
    assert mean.chosen_run is None
    assert mean.solution.weights.tolist() == np.mean(POINTS, axis=0).tolist()
    assert mean.solution.score == corpus_score(data().problem, mean.solution.weights)


def test_held_out_share_is_scored_and_not_learned_from() -> None:
    result = learn_weights(data(), learn, 0, runs=3, select="best-heldout", held_out_share=0.25)
    assert result.sentences == (9, 3)
    assert result.held_out == max(run.held_out or 0.0 for run in result.runs)
    assert result.start_held_out is not None


def test_one_run_has_the_seed_itself() -> None:
    result = learn_weights(data(), learn, 2)
    assert [run.seed for run in result.runs] == [2]
    assert result.solution.weights.tolist() == POINTS[2]
    assert (result.held_out, result.validation, result.sentences) == (None, None, (12, 0))


def test_a_script_learns_weights_with_one_call(tmp_path: Path) -> None:
    (tmp_path / "refs").write_text("a b c d\ne f g h\n")
    (tmp_path / "lists").write_text(
        "0 ||| a b c d ||| A= 0 B= 1 ||| 1\n0 ||| a x c y ||| A= 2 B= 0 ||| 0\n"
        "1 ||| e f g h ||| A= 0 B= 1 ||| 1\n1 ||| x f g y ||| A= 2 B= 0 ||| 0\n"
    )
    settings = LearningSettings(
        nbest=(tmp_path / "lists",),
        references=tmp_path / "refs",
        options={"restarts": 1, "polish": 0},
        threads=1,
    )
    result = learn_from(settings)
    assert result.data.space.names == ("A_0", "B_0")
    assert result.learning.solution.score == 1.0
    assert result.learning.solution.weights[1] > result.learning.solution.weights[0]
    assert result.warnings == []
    dense, sparse = format_weights(result.data.space, result.learning.solution.weights)
    assert dense.startswith(b"A= ")
    assert sparse == b""


def test_unknown_features_are_rejected() -> None:
    with pytest.raises(UsageError, match="there is no feature G0; known: F0, F1"):
        data().select_features(FeatureSelection(("G0",)))


def test_a_minimum_that_was_not_reached() -> None:
    problem, hidden = planted(1)

    def said(*history: dict[str, object]) -> list[str]:
        solution = Solution(hidden, 0.5, history)
        found = LearningResult(solution, None, 0.5, None, (60, 0), ALL, NONE, (), None, None)
        return find_warnings(problem.tuning_set, problem.metric, found)

    assert said({"converged": True}, {"without_mistakes": False}, {}) == []
    (text,) = said({"converged": False, "gap": 0.25}, {"converged": True})
    assert "before the minimum once; the loss may be 0.25 above the minimum" in text


def test_weights_that_are_the_start() -> None:
    def stay(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
        weights = np.full(5, 0.4)
        return Solution(weights, corpus_score(problem, weights))

    result = learn_weights(data(), stay, 0)
    assert result.is_start
    problem = data().problem
    lists, metric = problem.tuning_set, problem.metric
    (said,) = find_warnings(lists, metric, result)
    assert "the learned weights are the starting weights: the algorithm found none that" in said
    assert "Use more sentences or longer lists" in said
    (said,) = find_warnings(lists, metric, result, ["the references are empty"])
    assert said.endswith("See the warnings about the data first")
    assert "more sentences" not in said
    alike = replace(lists, stats=np.zeros_like(lists.stats))
    (said,) = find_warnings(alike, metric, result)
    assert f"{metric.name} scores all hypotheses of each sentence alike. See whether" in said
    assert not learn_weights(data(), learn, 0).is_start


def test_weights_that_are_worse_than_the_start() -> None:
    problem, hidden = planted(1)
    lists = problem.tuning_set

    def found(score: float) -> LearningResult:
        solution = Solution(hidden, score)
        return LearningResult(solution, None, 0.5, None, (60, 0), ALL, NONE, (), None, None)

    assert find_warnings(lists, problem.metric, found(0.5)) == []
    (said,) = find_warnings(lists, problem.metric, found(0.4))
    assert "(0.400000)" in said
    assert "starting weights (0.500000)" in said
