"""The words that judge a gain."""

from __future__ import annotations

import pytest

from mosesplug.results.report.gains import tabulate_gain
from mosesplug.results.scores.gains import Gain, MetricGain


@pytest.mark.parametrize(
    ("is_error_rate", "is_objective", "end", "p", "words"),
    [
        (False, True, 0.6, 0.01, "better, optimized"),
        (False, True, 0.6, 0.05, "better, not significant, optimized"),
        (False, False, 0.4, 0.3, "worse, not significant"),
        (True, False, 0.4, 0.3, "better, not significant"),
        (True, False, 0.4, 0.049, "better"),
        (False, False, 0.5, 1.0, "same"),
        (False, False, 0.6, float("nan"), "better"),
    ],
)
def test_differences_that_may_be_chance_are_not_significant(
    is_error_rate: bool, is_objective: bool, end: float, p: float, words: str
) -> None:
    each = MetricGain("M", "M|", is_objective, is_error_rate, 0.5, end, (-0.1, 0.2), 0.01, p)
    row = tabulate_gain(Gain("folds", 20, (each,)))[-1]
    assert row.endswith(f"  {words}")
    assert "  -0.1000 to +0.2000  " in row
