"""MERT on seven merged lists, from the weights of the last, with 20 restarts.

Its score, CPU seconds and peak memory are printed, since a figure of time without them means
little.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosesplug.learning.lists.merging import load_lists
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.registry import algorithm
from tests.benchmarks.conftest import Workload
from tests.optimizers.problems import space_of

mert = algorithm("mert").optimize

BLEU = metric("BLEU", "case:true")


@pytest.fixture(scope="module")
def problem(workload: Workload) -> tuple[Problem, np.ndarray]:
    """Merged lists and starting weights; the kernels are compiled."""
    lists = load_lists(workload.lists, workload.references, BLEU, threads=2)
    made = Problem(lists.tuning_set, BLEU, threads=2)
    size = len(lists.tuning_set.space)
    start = np.full(size, 1.0 / size)
    if workload.start is not None:
        start = read_starting_weights(lists.tuning_set.space, workload.start).weights
    mert(made, start, np.random.default_rng(0), MertOptions(restarts=0, polish=1))
    return made, start


def test_line_searches(benchmark: Any, problem: tuple[Problem, np.ndarray]) -> None:
    """One exact line search along every feature."""
    made, start = problem
    space = space_of(made, start)
    intercepts, axes = space.at(start), np.arange(len(start))

    def search() -> int:
        return sum(len(scores) for _, scores in space.along_axes(axes, intercepts))

    assert benchmark.pedantic(search, rounds=20, iterations=1, warmup_rounds=1) > 0


@pytest.mark.parametrize(
    "options", [MertOptions(), MertOptions(give_up=0.0, polish=0)], ids=["default", "as Moses"]
)
def test_mert(benchmark: Any, problem: tuple[Problem, np.ndarray], options: MertOptions) -> None:
    """The whole search."""
    made, start = problem
    cpu = time.process_time()
    solution = benchmark.pedantic(
        mert, (replace(made, threads=2), start, np.random.default_rng(1), options), rounds=1
    )
    print(f"\nBLEU {solution.score:.6f}, {time.process_time() - cpu:.2f} CPU s")
    assert solution.score > 0.0


def test_peak_memory(benchmark: Any, workload: Workload) -> None:
    """Of the whole command on seven lists."""
    words = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", "optimize"]
    words += [*map(str, workload.lists), "--refs", str(workload.references), "--restarts", "2"]
    done = benchmark.pedantic(
        subprocess.run, (words,), {"capture_output": True, "check": True}, rounds=1
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\n{peak:.0f} MB; {re.search(rb'score at the end.*', done.stderr)[0].decode()}")
    assert peak > 0
