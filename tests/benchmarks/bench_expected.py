"""Objectives of the model's distribution on seven merged lists: one value and gradient, whole fits.

Printed beside the wall times are CPU times, which a busy machine changes less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.weights.files import read_init_opt
from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, no_progress
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.optimizers.registry import algorithms
from tests.benchmarks.conftest import Workload

BLEU = metric("BLEU", "case:true")
ROUNDS = 20

FAMILY = {name: each for name, each in algorithms().items() if each.family == "expectation"}

Task = tuple[Problem, NDArray[np.float64]]


@pytest.fixture(scope="module")
def task(workload: Workload) -> Task:
    """All lists, and weights to start from."""
    made = load_lists(workload.lists, workload.references, BLEU).tuning_set
    start = np.full(len(made.space), 0.1)
    if workload.start is not None:
        start = np.asarray(read_init_opt(workload.start).start)
    return Problem(made, BLEU), start


def softmax(lists: WholeLists, stats: NDArray[np.float64]) -> Objective:
    """With the hypotheses of most matching words for oracles."""
    starts = lists.offsets[:-1][np.diff(lists.offsets) > 0]
    widths = np.diff(lists.offsets)[np.diff(lists.offsets) > 0]
    best = np.repeat(np.maximum.reduceat(stats[:, 0], starts), widths)
    return objectives.softmax(lists, stats[:, 0] == best)


def risk(lists: WholeLists, stats: NDArray[np.float64]) -> Objective:
    """Of words that do not match, with some entropy."""
    return objectives.risk(lists, stats[:, 1] - stats[:, 0], 0.1)


def xbleu(lists: WholeLists, stats: NDArray[np.float64]) -> Objective:
    """Of BLEU, without entropy."""
    return objectives.xbleu(lists)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("made", [softmax, risk, xbleu], ids=lambda each: each.__name__)
def test_value_and_gradient(
    benchmark: Any,
    task: Task,
    made: Callable[[WholeLists, NDArray[np.float64]], Objective],
    threads: int,
) -> None:
    problem, start = task
    tuning_set = problem.tuning_set
    objective = made(WholeLists(tuning_set, threads), tuning_set.stats.astype(np.float64))
    objective(start)  # compiles
    cpu = time.process_time()
    benchmark.pedantic(objective, (start,), rounds=ROUNDS)
    used = 1000 * (time.process_time() - cpu) / ROUNDS
    print(
        f"\n{tuning_set.n_hyps} hypotheses, {tuning_set.space.n_dense} features: {used:.1f} CPU ms"
    )


@pytest.mark.parametrize("name", FAMILY)
def test_fit(benchmark: Any, task: Task, name: str) -> None:
    """With defaults and one thread."""
    problem, start = task
    tuner = FAMILY[name]

    def run() -> Any:
        rng = np.random.default_rng(1)
        return tuner.optimize(replace(problem, threads=1), start, rng, tuner.options(), no_progress)

    cpu = time.process_time()
    solution = benchmark.pedantic(run, rounds=1)
    used = time.process_time() - cpu
    print(f"\nBLEU {solution.score:.6f}, {len(solution.history)} steps, {used:.2f} CPU s")
    assert solution.score > 0.0
