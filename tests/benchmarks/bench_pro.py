"""PRO on one list: sampler, classifier, and the score of what they find."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem
from mosesplug.optimizers.batch.ranking.pro import ProOptions
from mosesplug.optimizers.registry import algorithm
from tests.benchmarks.conftest import Workload

pro = algorithm("pro").optimize

BLEU = metric("BLEU", "case:true")


@pytest.fixture(scope="module")
def problem(workload: Workload) -> Problem:
    """The first list; the kernels are compiled."""
    made = Problem(load_lists(workload.lists[:1], workload.references, BLEU).tuning_set, BLEU)
    pro(made, np.ones(len(made.tuning_set.space)), np.random.default_rng(0), ProOptions())
    return made


def test_pro(benchmark: Any, problem: Problem) -> None:
    """Sampling, fitting and scoring, nothing written."""
    start = np.ones(len(problem.tuning_set.space))
    cpu = time.process_time()
    solution = benchmark.pedantic(
        pro, (problem, start, np.random.default_rng(1), ProOptions()), rounds=3
    )
    print(f"\nBLEU {solution.score:.6f}, {(time.process_time() - cpu) / 3:.2f} CPU s")
    assert solution.score > 0.0
