"""MERT on lists to rerank: 1,000 sentences of 200 hypotheses, 5 features, scores from outside.

Prints CPU seconds without loading and compiling, since a time on a busy machine means little.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from mosesplug.api.lists.statistics import StatisticsMetric
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import TuningSet

mert = algorithm("mert").optimize

N_SENTENCES, N_HYPS, N_FEATURES = 1000, 200, 5
START = np.full(N_FEATURES, 0.2)


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Return features that follow the scores, with noise; the kernels are compiled."""
    rng = np.random.default_rng(0)
    n_hyps = N_SENTENCES * N_HYPS
    quality = rng.standard_normal(n_hyps)
    shares, scales = rng.uniform(0.1, 0.6, N_FEATURES), np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    dense = (quality[:, None] * shares + rng.standard_normal((n_hyps, N_FEATURES))) * scales
    scores = 0.5 + 0.1 * quality + 0.1 * rng.standard_normal(n_hyps)
    lists = TuningSet(
        FeatureSpace.of_names([f"F{number}" for number in range(N_FEATURES)]),
        np.arange(N_SENTENCES),
        N_HYPS * np.arange(N_SENTENCES + 1),
        dense.astype(np.float32),
        None,
        np.column_stack([scores, np.ones(n_hyps)]),
        np.ones(n_hyps, dtype=np.int32),
    )
    made = Problem(lists, StatisticsMetric(lambda sums: sums[..., 0] / sums[..., 1]))
    few = Problem(lists.take_sentences(np.arange(2)), made.metric)
    mert(few, START, np.random.default_rng(0), MertOptions(restarts=0, polish=1))
    return made


@pytest.mark.parametrize(("restarts", "polish"), [(20, 0), (20, 8), (1000, 8)])
def test_restarts(benchmark: Any, problem: Problem, restarts: int, polish: int) -> None:
    """The time of a search with so many restarts."""
    options = MertOptions(restarts=restarts, polish=polish)

    def search() -> float:
        began = time.process_time()
        found = mert(problem, START, np.random.default_rng(1), options)
        seconds = time.process_time() - began
        benchmark.extra_info |= {"cpu_seconds": seconds, "score": found.score}
        print(f"{restarts} restarts, polish {polish}: {seconds:.2f} CPU s, {found.score:.6f}")
        return found.score

    assert benchmark.pedantic(search, rounds=1, iterations=1) > 0.6
