"""The spread of model scores, by hand, and in the reports of learners of margins."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.optimizers import algorithm
from mosesplug.optimizers.spread import find_spreads, report_spreads
from tests.optimizers.problems import planted_bleu

SPREAD = {"spread", "squared_spread"}


def test_the_highest_reference_above_the_lowest_hypothesis() -> None:
    """The first sentence has two references, the second none of its own hypotheses, being empty."""
    scores = np.array([2.0, -1.0, 0.0, 3.25, 0.5])
    spreads = find_spreads(np.array([0, 3, 3, 5]), scores, np.array([1, 2, 3]))
    assert spreads.tolist() == [1.0, 2.75]
    assert report_spreads(spreads) == {"spread": 1.875, "squared_spread": (1.0 + 2.75**2) / 2}
    assert find_spreads(np.array([0, 0]), np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == []
    assert report_spreads(np.zeros(0)) == {"spread": 0.0, "squared_spread": 0.0}


@pytest.mark.parametrize(
    "name", ["margin", "cutting-plane", "rampion", "kbmira", "oro", "o-oro", "rank-mira"]
)
def test_batch_and_rank_learners_report_it(name: str) -> None:
    problem, _ = planted_bleu(5, n_sentences=6)
    row, start = algorithm(name), np.full(len(problem.tuning_set.space), 0.1)
    solution = row.optimize(problem, start, np.random.default_rng(1), row.options())
    for step in solution.history:
        mean, squares = step["spread"], step["squared_spread"]
        assert 0.0 < mean**2 <= squares + 1e-12
