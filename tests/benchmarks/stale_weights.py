"""What learning with stale weights costs: milliseconds a batch, serial and asynchronous.

usage: python tests/benchmarks/stale_weights.py [--sentences N] [--features N ...]

One epoch of AdaGrad on made up sparse lists (100 hypotheses a sentence, 100 active features each),
after one that compiles. Workers see copies of the state; a copy costs by the number of features,
whatever a batch touches, and to processes it is sent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.optimizers import algorithm
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.starting import copy_state
from mosesplug.settings.sharding import WorkerKind
from mosesplug.tuning.parallel.executors import open_executor
from mosesplug.tuning.parallel.list_files import write_lists
from mosesplug.tuning.parallel.optimize import StoredShard
from mosesplug.tuning.parallel.shards import Shard
from mosesplug.tuning.parallel.stale import StoredBatches, run_stale_epoch
from mosesplug.tuning_set import TuningSet
from tests.benchmarks.synthetic_sparse import plant
from tests.optimizers.problems import Accuracy


def figures(tuning_set: TuningSet, directory: str) -> Iterator[tuple[str, float]]:
    """``(what, milliseconds a batch)``."""
    n_features = len(tuning_set.space)
    optimizer = algorithm("adagrad").bind(algorithm("adagrad").options())
    learner, source = optimizer.learner(), StoredSource(tuning_set)
    plan = Plan(1, 20, Accuracy(), np.ones(n_features, dtype=np.bool_))
    write_lists(tuning_set, directory)
    for _ in range(2):
        state = learner.init(np.zeros(n_features))
        began = time.perf_counter()
        n_batches = run_epoch(learner, state, source, plan, 1).tally.batches
        serial = time.perf_counter() - began
    yield "serial", 1e3 * serial / n_batches
    began = time.perf_counter()
    copy_state(state)
    yield "one copy of the state", 1e3 * (time.perf_counter() - began)
    shards: dict[WorkerKind, Shard] = {
        "threads": StoredShard(source, source.sentences),
        "processes": StoredShard(directory, source.sentences),
    }
    for kind, shard in shards.items():
        with open_executor(kind, 2) as executor:
            for _ in range(2):
                state = learner.init(np.zeros(n_features))
                began = time.perf_counter()
                batches = StoredBatches(executor, optimizer, shard)
                run_stale_epoch(learner, state, batches, plan, 1, workers=2, order="fixed")
                seconds = time.perf_counter() - began
        yield f"two {kind}", 1e3 * seconds / n_batches


def main() -> None:
    """Print figures for each number of features."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--features", type=int, nargs="+", default=[10_000, 1_000_000])
    arguments = parser.parse_args()
    for n_features in arguments.features:
        made = plant(arguments.sentences, 100, n_features, 100).tuning_set
        with tempfile.TemporaryDirectory() as directory:
            for what, milliseconds in figures(made, directory):
                print(f"{n_features:9} features  {what:24} {milliseconds:8.1f} ms", flush=True)


if __name__ == "__main__":
    main()
