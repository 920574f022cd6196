"""Compare algorithms on the same data: scores over seeds, CPU time, number of active weights.

All algorithms get the same hypotheses, starting weights and seeds. The score on the sentences
learned from favours algorithms that optimise this very score; the score on held-out sentences does
not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import MosesplugError
from mosesplug.learning.cross_validation import split_sentences
from mosesplug.learning.inputs import LearningData
from mosesplug.optimizers import Algorithm, Optimizer, Problem, Progress, corpus_score
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.algorithm_options import make_options, unknown_option

__all__ = [
    "BenchmarkResult",
    "BenchmarkTask",
    "bind_settings",
    "make_task",
    "measure_optimizer",
]

_WARM_UP_SENTENCES = 3
"""Size of a first, unmeasured run, which loads and compiles what an algorithm needs."""


@dataclass(frozen=True)
class BenchmarkTask:
    """What all algorithms learn from and are scored on.

    Attributes:
        problem: the hypotheses to learn from.
        start: float64 ``[n_features]``, the starting weights.
        held_out: the hypotheses of held-out sentences, or None.
    """

    problem: Problem
    start: NDArray[np.float64]
    held_out: Problem | None = None

    @classmethod
    def split(
        cls,
        problem: Problem,
        start: NDArray[np.float64],
        held_out: NDArray[np.int64] | None = None,
    ) -> BenchmarkTask:
        """Return a task with the sentences at some positions held out.

        Arrays are copied, so that all have one memory layout: each layout compiles kernels of its
        own, whose compilation would be measured.
        """
        lists = problem.tuning_set
        everything = np.arange(lists.n_sentences)
        if held_out is None:
            return cls(_take(problem, everything), start)
        rest = np.setdiff1d(everything, held_out)
        return cls(_take(problem, rest), start, _take(problem, held_out))

    @property
    def n_held_out(self) -> int:
        """Number of held-out sentences."""
        return 0 if self.held_out is None else self.held_out.tuning_set.n_sentences

    @property
    def start_scores(self) -> tuple[float, float | None]:
        """``scores`` of the starting weights."""
        return self.scores(self.start)

    def scores(self, weights: NDArray[np.float64]) -> tuple[float, float | None]:
        """Return the scores on the sentences to learn from and on the held-out ones."""
        held_out = None if self.held_out is None else corpus_score(self.held_out, weights)
        return corpus_score(self.problem, weights), held_out


@dataclass(frozen=True)
class BenchmarkResult:
    """The measurements of one algorithm, one value for each seed.

    Attributes:
        algorithm: its name.
        scores: on the sentences learned from.
        held_out: on the held-out sentences; empty without any.
        cpu_seconds: of all threads, without loading and compiling.
        active: number of weights that are not 0.
        refusal: the error of an algorithm that rejects the data or the options, or None.
    """

    algorithm: str
    scores: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    cpu_seconds: tuple[float, ...] = ()
    active: tuple[int, ...] = ()
    refusal: str | None = None

    def as_record(self) -> dict[str, Any]:
        """Return the values with means and standard deviations (n - 1; None for one seed)."""
        if self.refusal is not None:
            return {"algorithm": self.algorithm, "refusal": self.refusal}
        record: dict[str, Any] = {"algorithm": self.algorithm}
        for name, values in (
            ("score", self.scores),
            ("held_out", self.held_out),
            ("cpu_seconds", self.cpu_seconds),
            ("active", self.active),
        ):
            if values:
                record[name] = {
                    "mean": fmean(values),
                    "deviation": stdev(values) if len(values) > 1 else None,
                    "values": list(values),
                }
        return record


def make_task(data: LearningData, held_out_share: float, seed: int) -> BenchmarkTask:
    """Return the task of some data.

    Args:
        data: n-best lists with starting weights.
        held_out_share: share of the sentences to hold out; 0 for none.
        seed: seed of the choice of held-out sentences.

    Raises:
        UsageError: no sentence would be left to learn from.
    """
    away = split_sentences(data.sentences, held_out_share, seed)[1] if held_out_share else None
    return BenchmarkTask.split(data.problem, data.start.weights, away)


def bind_settings(
    algorithms: Sequence[Algorithm], settings: Mapping[str, object]
) -> list[Optimizer]:
    """Return each algorithm with its defaults, changed by the settings that it has.

    Args:
        algorithms: from the registry.
        settings: option name (``-`` counts as ``_``) to value.

    Raises:
        UsageError: an option that none of them has, or an invalid value.
    """
    known = {each.name: {field.name for field in fields(each.options)} for each in algorithms}
    for name in settings:
        if not any(name.replace("-", "_") in names for names in known.values()):
            raise unknown_option(name, algorithms)
    return [
        each.bind(
            make_options(
                each,
                {
                    name: value
                    for name, value in settings.items()
                    if name.replace("-", "_") in known[each.name]
                },
            )
        )
        for each in algorithms
    ]


def measure_optimizer(
    task: BenchmarkTask, optimizer: Optimizer, seeds: int, progress: Progress = no_progress
) -> BenchmarkResult:
    """Run an optimizer with seeds 1 to ``seeds``.

    Args:
        task: what to learn from and to score on.
        optimizer: the algorithm with its settings.
        seeds: number of runs.
        progress: called with the number of runs done.
    """
    scores, held_out, seconds, active = [], [], [], []
    try:
        _warm_up(task, optimizer)
        for seed in range(1, seeds + 1):
            progress(seed - 1, seeds, optimizer.name)
            began = time.process_time()
            found = optimizer.optimize(task.problem, task.start, np.random.default_rng(seed))
            seconds.append(time.process_time() - began)
            score, left_out = task.scores(found.weights)
            scores.append(score)
            active.append(int(np.count_nonzero(found.weights)))
            if left_out is not None:
                held_out.append(left_out)
    except MosesplugError as error:
        return BenchmarkResult(optimizer.name, refusal=str(error))
    progress(seeds, seeds, optimizer.name)
    return BenchmarkResult(
        optimizer.name, tuple(scores), tuple(held_out), tuple(seconds), tuple(active)
    )


def _warm_up(task: BenchmarkTask, optimizer: Optimizer) -> None:
    """Learn from a few sentences; it does not matter if these are too few."""
    filled = np.flatnonzero(np.diff(task.problem.tuning_set.offsets))[:_WARM_UP_SENTENCES]
    few = _take(task.problem, filled)
    try:
        optimizer.optimize(few, task.start, np.random.default_rng(1))
    except MosesplugError:
        return


def _take(problem: Problem, sentences: NDArray[np.int64]) -> Problem:
    return replace(problem, tuning_set=problem.tuning_set.take_sentences(sentences))
