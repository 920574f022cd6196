"""MERT against the best weights of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.exact import best_score_of_all, decode
from tests.optimizers.problems import planted

mert = algorithm("mert").optimize


@pytest.mark.parametrize(("n_features", "n_hyps"), [(2, 8), (3, 8), (4, 3)])
def test_the_default_finds_the_optimum_of_small_problems(n_features: int, n_hyps: int) -> None:
    """No weights do better than the exact optimum, and MERT does no worse."""
    for seed in range(3):
        problem, _ = planted(seed, n_sentences=5, n_hyps=n_hyps, n_features=n_features, noise=1.0)
        optimum = best_score_of_all(problem)
        rng = np.random.default_rng(seed)
        anywhere = rng.standard_normal((1000, n_features))
        assert decode(problem, anywhere).max() <= optimum + 1e-12
        problem = replace(problem, minima=-np.ones(n_features), maxima=np.ones(n_features))
        found = mert(problem, np.ones(n_features), rng, MertOptions())
        assert found.score == pytest.approx(optimum, abs=1e-12)
