"""How algorithms compare on the same lists: scores over seeds, CPU time, weights that are used.

Every algorithm gets the same hypotheses, the same start and the same seeds. What it reaches on the
sentences that it learnt from flatters those that optimise that very score; a share of the
sentences that is held out, the same for all, tells what is left of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import MosesplugError, UsageError
from mosesplug.optimizers import Algorithm, Problem, Progress, corpus_score
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.algorithm_options import algorithm_options
from mosesplug.tuning_set import TuningSet

__all__ = ["Outcome", "Task", "measured", "options_of"]

_WARMING = 3
"""Sentences of a first, unmeasured run, which loads and compiles what an algorithm needs."""


@dataclass(frozen=True)
class Task:
    """What all algorithms learn from, and what they are scored on.

    Attributes:
        problem: the hypotheses to learn from.
        start: float64 ``[n_features]``.
        held_out: the same with other sentences, or None.
    """

    problem: Problem
    start: NDArray[np.float64]
    held_out: Problem | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        start: NDArray[np.float64],
        held_out: NDArray[np.int64] | None = None,
    ) -> Task:
        """A task, of which sentences at some positions are held out.

        Arrays are copied, so that all of them are held alike, wherever they come from: other
        layouts are other kernels, whose compilation would be measured.
        """
        made = problem.tuning_set
        everything = np.arange(made.n_sentences)
        if held_out is None:
            return cls(_with(problem, made, everything), start)
        rest = np.setdiff1d(everything, held_out)
        return cls(_with(problem, made, rest), start, _with(problem, made, held_out))

    @property
    def n_held_out(self) -> int:
        """Sentences that are held out."""
        return 0 if self.held_out is None else self.held_out.tuning_set.n_sentences

    @property
    def start_scores(self) -> tuple[float, float | None]:
        """What the start scores, on the sentences to learn from and on those held out."""
        return self.scores(self.start)

    def scores(self, weights: NDArray[np.float64]) -> tuple[float, float | None]:
        """What weights score, on the sentences to learn from and on those held out."""
        held_out = None if self.held_out is None else corpus_score(self.held_out, weights)
        return corpus_score(self.problem, weights), held_out


@dataclass(frozen=True)
class Outcome:
    """What one algorithm did, one value a seed.

    Attributes:
        algorithm: its name.
        scores: of the weights, on the sentences that were learnt from.
        held_out: on those held out; none without.
        cpu_seconds: of all threads, loading and compiling left out.
        active: weights that are not 0.
        refusal: why it did not run, or None.
    """

    algorithm: str
    scores: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    cpu_seconds: tuple[float, ...] = ()
    active: tuple[int, ...] = ()
    refusal: str | None = None

    def as_record(self) -> dict[str, Any]:
        """Plain data, with means and standard deviations (n - 1; None for one seed)."""
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


def options_of(algorithms: Sequence[Algorithm], settings: Mapping[str, str]) -> dict[str, Any]:
    """The options of each algorithm, by its name: its defaults, but for settings that it has.

    Args:
        algorithms: from the registry.
        settings: option name (``-`` counts as ``_``) to value.

    Raises:
        UsageError: a setting that none of them has, or a value that one cannot take.
    """
    known = {each.name: {field.name for field in fields(each.options)} for each in algorithms}
    for given in settings:
        if not any(given.replace("-", "_") in names for names in known.values()):
            raise UsageError(f"none of {', '.join(known)} has an option {given}")
    return {
        each.name: algorithm_options(
            each,
            {
                given: value
                for given, value in settings.items()
                if given.replace("-", "_") in known[each.name]
            },
        )
        for each in algorithms
    }


def measured(
    task: Task, algorithm: Algorithm, options: Any, seeds: int, progress: Progress = no_progress
) -> Outcome:
    """Run one algorithm with seeds 1 to ``seeds``.

    Args:
        task: the lists.
        algorithm: from the registry.
        options: of its own kind.
        seeds: how many.
        progress: told of runs done.

    Returns:
        What it reached, or why it refused these lists or options.
    """
    scores, held_out, seconds, active = [], [], [], []
    try:
        _warm(task, algorithm, options)
        for seed in range(1, seeds + 1):
            progress(seed - 1, seeds, algorithm.name)
            began = time.process_time()
            found = algorithm.optimize(
                task.problem, task.start, np.random.default_rng(seed), options, no_progress
            )
            seconds.append(time.process_time() - began)
            score, left_out = task.scores(found.weights)
            scores.append(score)
            active.append(int(np.count_nonzero(found.weights)))
            if left_out is not None:
                held_out.append(left_out)
    except MosesplugError as error:
        return Outcome(algorithm.name, refusal=str(error))
    progress(seeds, seeds, algorithm.name)
    return Outcome(algorithm.name, tuple(scores), tuple(held_out), tuple(seconds), tuple(active))


def _warm(task: Task, algorithm: Algorithm, options: Any) -> None:
    """Learn from a few sentences; that these may be too few is nobody's fault."""
    made = task.problem.tuning_set
    filled = np.flatnonzero(np.diff(made.offsets))[:_WARMING]
    few = _with(task.problem, made, filled)
    try:
        algorithm.optimize(few, task.start, np.random.default_rng(1), options, no_progress)
    except MosesplugError:
        return


def _with(problem: Problem, made: TuningSet, sentences: NDArray[np.int64]) -> Problem:
    return replace(problem, tuning_set=made.take_sentences(sentences))
