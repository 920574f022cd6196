"""Tables of what the learners reach on recorded lists, as Markdown.

usage: python tests/benchmarks/compare_learners.py [RECORDINGS]
                                                   [--table learners|mixing|batch|ranking]
                                                   [--algorithms A,B] [--seeds N] [--epochs N]

All tables are of the stored regime: lists 1 to 7 of ``multi30k-de-en`` merged, BLEU of decoding
lists at the final weights, mean and standard deviation over seeds 1 to N. Learners start from the
weights that the first list was decoded with, as a tuning run would; they saw none of the lists.

``learners``: every registered algorithm with its defaults, as ``mosesplug bench-optimizers``
measures them; then the weights that Moses' own programs ended with on the same lists, from other
starts (recorded; MERT with one seed).
``mixing``: the pattern of Watanabe (2012), Table 2: shards whose weights are averaged, against a
line search between the old weights and the average; rank learning, and MIRA in the form of its
equation 13 (``rank-mira``), with the paper's settings. Learned from every eighth sentence, from the
first on; BLEU of all sentences with odd numbers, which are not learned from.
``batch``: the pattern of its Table 3, in the same way: mini-batches of 1, 4, 8 and 16 sentences.
``ranking``: forms of rank learning, from starting weights of L1 norm 1 as in a run. The sentences
with even numbers, and those with odd ones, are cut into four folds; each fold is decided with
weights learned from the other three of its half. One seed.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.learning import benchmark
from mosesplug.learning.lists.merging import load_lists
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import metric
from mosesplug.optimizers import (
    Algorithm,
    Optimizer,
    Problem,
    algorithm,
    algorithms,
    corpus_score,
)
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.sharding import Mixing, Sharding
from mosesplug.tuning.parallel.optimize import optimize_sharded

LISTS = 7
SHARDS = 8
UPDATES = ("rank-mira", "oro", "o-oro", "oro-softmax", "o-oro-softmax")
EVERY = 8
"""Of so many sentences, shards learn from one."""
BATCHES = (1, 4, 8, 16)
MIXINGS: tuple[Mixing, ...] = ("average", "line-search")

FOLDS = 4
FORMS = (
    "mira averaging=best",
    "mira averaging=all",
    "oro averaging=best line_search=false rate=0.2",
    "oro line_search=false margin=cost",
    "oro margin=one",
    "oro margin=cost",
    "oro margin=cost oracles=hope",
    "o-oro margin=cost",
    "o-oro margin=cost oracles=hope rate=0.01",
    "oro-softmax",
    "o-oro-softmax",
    "rank-mira",
)
"""Algorithms with settings, MIRA for comparison."""

Run = Callable[[int], float]
"""From a seed to the BLEU of the weights."""


@dataclass(frozen=True)
class Task:
    """The lists, where to start, and where Moses' programs ended.

    Attributes:
        problem: the merged lists.
        start: float64 ``[n_features]``.
        epochs: of online learners; None: their own.
        recorded: weights by program, each float64 ``[n_features]``, a seed each.
    """

    problem: Problem
    start: NDArray[np.float64]
    epochs: int | None
    recorded: Mapping[str, list[NDArray[np.float64]]]

    def options(self, tuner: Algorithm, **changed: object) -> Any:
        """The algorithm's defaults, but for some; ``--epochs`` for those that have epochs."""
        if self.epochs is not None and tuner.learner is not None:
            changed["epochs"] = self.epochs
        return make_options(tuner, changed)

    def in_shards(self, name: str, mixing: Mixing, **changed: object) -> Run:
        """Learn on shards, in the paper's variant; score other sentences."""
        tuner, changed = algorithm(name), {"variant": "paper", **changed}
        learned = self.some_sentences(0, EVERY)

        def run(seed: int) -> float:
            found = optimize_sharded(
                learned,
                tuner.bind(self.options(tuner, **changed)),
                Sharding(SHARDS, mixing),
                self.start,
                np.random.default_rng(seed),
                no_progress,
            )
            return corpus_score(self.some_sentences(1, 2), found.weights)

        return run

    def some_sentences(self, first: int, step: int) -> Problem:
        """The problem of every ``step``-th sentence from one on."""
        lists = self.problem.tuning_set
        chosen = lists.take_sentences(np.arange(first, lists.n_sentences, step))
        return replace(self.problem, tuning_set=chosen)


def load(recordings: Path, epochs: int | None) -> Task:
    """Lists 1 to 7, and the weights that list 1 was decoded with."""
    system = recordings / "multi30k-de-en"
    work = system / "mert-work"
    bleu = metric("BLEU")
    lists = [work / f"run{number}.best100.out.gz" for number in range(1, LISTS + 1)]
    made = load_lists(lists, system / "text" / "dev.en", bleu).tuning_set
    start = read_starting_weights(made.space, work / "run1.dense").weights
    best = re.search(r"Best point: (.*)=>", (system / "mert" / "seven.powell.n20.log").read_text())
    if best is None:
        raise SystemExit(f"no best point in the recorded log of mert in {system}")
    recorded = {
        "Moses' mert": [np.array(best[1].split(), dtype=np.float64)],
        "Moses' kbmira": [
            np.array(path.read_text().split()[1::2], dtype=np.float64)
            for path in sorted((system / "kbmira").glob("seven.seed*.weights"))
        ],
    }
    problem = Problem(made, bleu, threads=os.cpu_count() or 1)
    return Task(problem, start, epochs, recorded)


def spread(scores: Sequence[float]) -> str:
    """``mean ± deviation``."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return f"{statistics.mean(scores):.4f} ± {deviation:.4f}"


def over_seeds(run: Run, seeds: int) -> str:
    """``mean ± deviation``, and the seconds of one run."""
    began = time.perf_counter()
    scores = [run(seed) for seed in range(1, seeds + 1)]
    return f"{spread(scores)} | {(time.perf_counter() - began) / seeds:.1f} s"


def learners(task: Task, names: Sequence[str], seeds: int) -> Iterator[str]:
    """A row an algorithm."""
    yield "| algorithm | BLEU | CPU s | active |\n|---|---|---|---|"
    lists = [benchmark.BenchmarkTask.split(task.problem, task.start)]
    for name in names:
        tuner = algorithm(name)
        measured = benchmark.measure_optimizer(lists, tuner.bind(task.options(tuner)), seeds)
        if isinstance(measured, benchmark.Refusal):
            yield f"| {name} | refused: {measured.refusal} | | |"
            continue
        seconds, active = measured.cpu_seconds.mean, measured.active.mean
        yield f"| {name} | {spread(measured.score.values)} | {seconds:.1f} | {active:.0f} |"
    for name, ends in task.recorded.items():
        scores = [corpus_score(task.problem, weights) for weights in ends]
        yield f"| {name}, {len(ends)} recorded | {spread(scores)} | | |"


def describe_scores(task: Task) -> str:
    """A line about the sentences that are scored."""
    score = corpus_score(task.some_sentences(1, 2), task.start)
    return f"learned from every {EVERY}th sentence; those with odd numbers start at {score:.4f}\n"


def mixing(task: Task, names: Sequence[str], seeds: int) -> Iterator[str]:
    """A row an algorithm and a way to mix."""
    yield describe_scores(task)
    yield f"| updates | mixing of {SHARDS} shards | BLEU | one run |\n|---|---|---|---|"
    for name in names:
        for way in MIXINGS:
            yield f"| {name} | {way} | {over_seeds(task.in_shards(name, way), seeds)} |"


def batch(task: Task, names: Sequence[str], seeds: int) -> Iterator[str]:
    """A row an algorithm and a size of mini-batches, with line search mixing as in the paper."""
    yield describe_scores(task)
    yield f"| updates | batch ({SHARDS} shards) | BLEU | one run |\n|---|---|---|---|"
    for name in names:
        for size in BATCHES:
            run = task.in_shards(name, "line-search", batch=size)
            yield f"| {name} | {size} | {over_seeds(run, seeds)} |"


def ranking(task: Task, names: Sequence[str], seeds: int) -> Iterator[str]:
    """A row a form: BLEU of the folds of both halves together, and CPU seconds of one learning."""
    start = task.start / np.abs(task.start).sum()
    halves = [task.some_sentences(first, 2) for first in (0, 1)]
    yield "| form | even sentences | odd sentences | CPU s |\n|---|---|---|---|"
    scores = [f"{corpus_score(half, start):.4f}" for half in halves]
    yield f"| the start | {' | '.join(scores)} | |"
    for form in FORMS:
        name, *settings = form.split()
        if name not in names:
            continue
        tuner = algorithm(name)
        optimizer = tuner.bind(make_options(tuner, dict(each.split("=") for each in settings)))
        began = time.process_time()
        scores = [f"{fold_score(half, optimizer, start):.4f}" for half in halves]
        seconds = (time.process_time() - began) / (2 * FOLDS)
        yield f"| `{form}` | {' | '.join(scores)} | {seconds:.1f} |"


def fold_score(problem: Problem, optimizer: Optimizer, start: NDArray[np.float64]) -> float:
    """The corpus score of all folds, each decided with weights learned from the others."""
    everything = np.arange(problem.tuning_set.n_sentences)
    folds = np.array_split(np.random.default_rng(0).permutation(everything), FOLDS)
    totals = np.zeros(problem.metric.n_statistics)
    for number, fold in enumerate(folds):
        learned, left_out = (
            replace(problem, tuning_set=problem.tuning_set.take_sentences(part))
            for part in (np.setdiff1d(everything, fold), np.sort(fold))
        )
        found = optimizer.optimize(learned, start, np.random.default_rng([1, number]))
        totals += left_out.candidates.first_best(found.weights)
    return float(problem.metric.score(totals))


TABLES = {"learners": learners, "mixing": mixing, "batch": batch, "ranking": ranking}


def main() -> None:
    """Print one table."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    recorded = Path(os.environ.get("MOSES_RECORDINGS", beside))
    parser.add_argument("recordings", nargs="?", type=Path, default=recorded)
    parser.add_argument("--table", choices=TABLES, default="learners")
    parser.add_argument("--algorithms", help="comma-separated; else those of the table")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="of the online learners; else their own")
    arguments = parser.parse_args()

    names = UPDATES if arguments.table in ("mixing", "batch") else tuple(algorithms())
    if arguments.algorithms:
        names = tuple(arguments.algorithms.split(","))
    task = load(arguments.recordings, arguments.epochs)
    print(f"{task.problem.tuning_set.n_hyps} hypotheses; seeds 1 to {arguments.seeds}; the start "
          f"scores {corpus_score(task.problem, task.start):.4f}\n")  # fmt: skip
    for row in TABLES[arguments.table](task, names, arguments.seeds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
