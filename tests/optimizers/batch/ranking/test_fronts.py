"""Pareto fronts, against every comparison made."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mosesplug.optimizers.batch.ranking.fronts import pareto_fronts

OFFSETS = np.array([0, 1, 1, 9, 40, 60])


@pytest.mark.parametrize("n_metrics", [1, 2, 3, 4])
def test_against_every_comparison(n_metrics: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        # Few values, so that there are ties and equal hypotheses.
        scores = rng.integers(0, (4, 6, 60)[seed % 3], (60, n_metrics)) / 7
        expected = np.ones(60, dtype=np.bool_)
        for start, end in itertools.pairwise(OFFSETS.tolist()):
            for row, other in itertools.permutations(range(start, end), 2):
                if (scores[other] >= scores[row]).all() and (scores[other] > scores[row]).any():
                    expected[row] = False
        np.testing.assert_array_equal(pareto_fronts(OFFSETS, scores), expected)


def test_empty() -> None:
    assert len(pareto_fronts(np.array([0, 0]), np.zeros((0, 2)))) == 0
