"""What is said of a result."""

from __future__ import annotations

from mosesplug.cli.learn.optimize_report import warnings
from mosesplug.cli.learn.optimize_ways import Learnt
from mosesplug.optimizers.problem import Solution
from tests.optimizers.problems import planted


def test_a_minimum_that_was_not_reached() -> None:
    problem, hidden = planted(1)

    def said(*history: dict[str, object]) -> list[str]:
        solution = Solution(hidden, 0.5, history)
        found = Learnt(solution, None, 0.5, None, (60, 0), (), None, None)
        return warnings(problem.tuning_set, found)

    assert said({"converged": True}, {"without_mistakes": False}, {}) == []
    (text,) = said({"converged": False, "gap": 0.25}, {"converged": True})
    assert "before the minimum once; the loss may be 0.25 above the least" in text


def test_weights_that_are_worse_than_the_start() -> None:
    problem, hidden = planted(1)
    lists = problem.tuning_set

    def found(score: float) -> Learnt:
        solution = Solution(hidden, score)
        return Learnt(solution, None, 0.5, None, (60, 0), (), None, None)

    assert warnings(lists, found(0.5)) == []
    (said,) = warnings(lists, found(0.4))
    assert "(0.400000)" in said
    assert "at the start (0.500000)" in said
