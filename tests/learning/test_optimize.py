"""Test the warnings about a result."""

from __future__ import annotations

from mosesplug.learning.optimize import LearningResult, find_warnings
from mosesplug.optimizers.problem import Solution
from tests.optimizers.problems import planted


def test_a_minimum_that_was_not_reached() -> None:
    problem, hidden = planted(1)

    def said(*history: dict[str, object]) -> list[str]:
        solution = Solution(hidden, 0.5, history)
        found = LearningResult(solution, None, 0.5, None, (60, 0), (), None, None)
        return find_warnings(problem.tuning_set, found)

    assert said({"converged": True}, {"without_mistakes": False}, {}) == []
    (text,) = said({"converged": False, "gap": 0.25}, {"converged": True})
    assert "before the minimum once; the loss may be 0.25 above the minimum" in text


def test_weights_that_are_worse_than_the_start() -> None:
    problem, hidden = planted(1)
    lists = problem.tuning_set

    def found(score: float) -> LearningResult:
        solution = Solution(hidden, score)
        return LearningResult(solution, None, 0.5, None, (60, 0), (), None, None)

    assert find_warnings(lists, found(0.5)) == []
    (said,) = find_warnings(lists, found(0.4))
    assert "(0.400000)" in said
    assert "starting weights (0.500000)" in said
