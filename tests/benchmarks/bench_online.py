"""One AdaGrad and L1 epoch with very many sparse features: time, memory, and what it learns.

5,000 sentences, 200-best, 1,000,000 features of which a hypothesis has 100. Printed too: the peak
memory of the process (that of the tuning set included, so this file is best run alone), how well
the planted weights are found, and what a batch costs with fewer features.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mosesplug.optimizers.online.descent import AdagradOptions, adagrad_learner
from mosesplug.optimizers.online.epochs import BatchProgress, Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.learner import LearnerState
from tests.benchmarks.synthetic_sparse import Planted, plant, rank_correlation
from tests.optimizers.problems import Accuracy

OFTEN = 20


def epoch(
    planted: Planted,
    options: AdagradOptions,
    on_batch: Callable[[BatchProgress], None] = lambda done: None,
) -> np.ndarray:
    """The weights after one epoch from 0."""
    learner = adagrad_learner(options)
    plan = Plan(
        seed=1,
        batch=options.batch,
        metric=Accuracy(),
        active=np.ones(len(planted.weights), dtype=np.bool_),
    )
    state: LearnerState = learner.init(np.zeros(len(planted.weights)))
    source = StoredSource(planted.tuning_set)
    done = run_epoch(learner, state, source, plan, 1, on_batch=on_batch)
    return learner.weights(done.state)


@pytest.mark.parametrize("strength", [0.01, 0.1])
def test_epoch(benchmark: Any, large: Planted, strength: float) -> None:
    """With the paper's lambda of 0.1, and one that leaves rarer features their weights."""
    options = AdagradOptions(regularization=strength)
    weights = benchmark.pedantic(epoch, (large, options), rounds=1)
    often = large.seen >= OFTEN
    found = rank_correlation(weights[often], large.weights[often])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\nlambda {strength}: {np.count_nonzero(weights)} weights; rank correlation {found:.3f} "
        f"on {often.sum()} features of {OFTEN} sentences or more; peak {peak:.0f} MB"
    )
    assert strength > 0.01 or found > 0.9


@pytest.fixture(scope="module")
def large() -> Planted:
    """The full size; the kernels are compiled."""
    epoch(plant(40, 20, 1000, 10), AdagradOptions())
    return plant(5000, 200, 10**6, 100)


@pytest.mark.parametrize("n_features", [10**4, 10**5, 10**6])
def test_batches(benchmark: Any, n_features: int) -> None:
    """An epoch of 1,000 sentences; only the number of features differs."""
    planted = plant(1000, 200, n_features, 100)
    moments: list[float] = []

    def tick(done: BatchProgress) -> None:
        moments.append(time.perf_counter())

    benchmark.pedantic(epoch, (planted, AdagradOptions(), tick), rounds=5, warmup_rounds=1)
    median = 1000 * np.median(np.diff(moments))
    print(f"\n{n_features} features: {median:.2f} ms a batch")
