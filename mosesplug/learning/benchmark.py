"""Compare algorithms on the same data: scores of seeds, CPU time, active weights.

All algorithms get the same hypotheses, starting weights and seeds. The score on the sentences
learned from favors algorithms that optimize this very score; the score on held-out sentences does
not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, stdev
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import MosesplugError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.cross_validation import split_folds, split_sentences
from mosesplug.learning.data import read_data
from mosesplug.learning.inputs import NOTHING_GIVEN, GivenData, LearningData, restrict_lists
from mosesplug.learning.lists.stored import select_iterations
from mosesplug.optimizers import Algorithm, Optimizer, Problem, Progress, corpus_score
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.optimizers.problem import no_progress, normalize
from mosesplug.settings.algorithm_options import make_options, unknown_option
from mosesplug.settings.learning import LearningSettings
from mosesplug.tuning.online.state import decode_states, encode_states
from mosesplug.tuning.workdir.stores import open_run_store

OPTIMUM = "(optimum)"
"""The name of the best weights of all."""

_WARM_UP_SENTENCES = 3
"""Size of a first, unmeasured run, which loads and compiles what an algorithm needs."""


@dataclass(frozen=True)
class BenchmarkTask:
    """What all algorithms learn from and are scored on.

    Attributes:
        problem: the hypotheses to learn from.
        start: float64 ``[n_features]``, the starting weights.
        held_out: the hypotheses of held-out sentences, or None.
        earlier: the merged hypotheses of earlier decodings, oldest first. Each is learned from in
            turn, starting from the weights that the one before gave.
    """

    problem: Problem
    start: NDArray[np.float64]
    held_out: Problem | None = None
    earlier: tuple[Problem, ...] = ()

    @classmethod
    def split(
        cls,
        problem: Problem,
        start: NDArray[np.float64],
        held_out: NDArray[np.int64] | None = None,
        earlier: Sequence[Problem] = (),
    ) -> BenchmarkTask:
        """Return a task with the sentences at some positions held out.

        Arrays are copied, so that all have one memory layout: each layout compiles kernels of its
        own, whose compilation would be measured.
        """
        lists = problem.tuning_set
        if held_out is None:
            held_out = np.zeros(0, dtype=np.int64)
        rest = np.setdiff1d(np.arange(lists.n_sentences), held_out)
        kept = lists.sentence_ids[rest]
        return cls(
            restrict_lists(problem, rest),
            start,
            restrict_lists(problem, held_out) if len(held_out) else None,
            tuple(
                restrict_lists(
                    earlier_problem,
                    np.flatnonzero(np.isin(earlier_problem.tuning_set.sentence_ids, kept)),
                )
                for earlier_problem in earlier
            ),
        )

    @property
    def n_held_out(self) -> int:
        """Number of held-out sentences."""
        return 0 if self.held_out is None else self.held_out.tuning_set.n_sentences

    def learn(self, optimizer: Optimizer, seed: int) -> NDArray[np.float64]:
        """Return the weights that an optimizer learns, decoding by decoding, as in a run."""
        space, weights = self.problem.tuning_set.space, self.start
        states: tuple[LearnerState, ...] = ()
        for number, problem in enumerate((*self.earlier, self.problem), start=1):
            own = problem.tuning_set.space
            weights = _move_weights(weights, space, own)
            if states and optimizer.is_online:
                states = decode_states(encode_states(states, space), own, optimizer.learner())
            rng = np.random.default_rng([seed, number] if self.earlier else seed)
            is_last = problem is self.problem
            given = replace(problem, states=states, grows=problem.grows or not is_last)
            solution = optimizer.optimize(given, weights, rng)
            space, weights, states = own, solution.weights, solution.states
        return weights


@dataclass(frozen=True)
class SeedValues:
    """One value for each seed; mean and standard deviation (n - 1; one seed: None)."""

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> SeedValues:
        """Compute mean and standard deviation."""
        deviation = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), deviation, tuple(values))


@dataclass(frozen=True)
class BenchmarkResult:
    """The measurements of one algorithm.

    Attributes:
        score: on the sentences learned from.
        held_out: score on the held-out sentences; None without any.
        cpu_seconds: the CPU seconds of all threads, without loading and compiling.
        active: number of weights that are not 0.
        gap: by how much the score is below the optimum; None if that is unknown.
    """

    JSON_KEYS: ClassVar = "algorithm score held_out? cpu_seconds active gap?"

    algorithm: str
    score: SeedValues
    held_out: SeedValues | None
    cpu_seconds: SeedValues
    active: SeedValues
    gap: SeedValues | None = None

    def compare(self, optimum: BenchmarkResult | Refusal | None) -> BenchmarkResult:
        """Return the result with its gap to the optimum, if that was found."""
        if not isinstance(optimum, BenchmarkResult):
            return self
        gaps = [optimum.score.mean - score for score in self.score.values]
        return replace(self, gap=SeedValues.of(gaps))


@dataclass(frozen=True)
class Refusal:
    """The error of an algorithm that rejects the data or the options."""

    algorithm: str
    refusal: str


def make_tasks(
    data: LearningData,
    earlier: Sequence[LearningData] = (),
    *,
    held_out_share: float = 0.0,
    folds: int = 0,
    seed: int = 1,
) -> list[BenchmarkTask]:
    """Return the tasks of some data: one, or one for each fold, which is held out.

    Starting weights are divided by their L1 norm, as before each decoding of a run.

    Args:
        earlier: those of earlier decodings, merged, oldest first.
        held_out_share: share of the sentences to hold out; 0 for none.
        folds: number of folds; 0 for none. It excludes ``held_out_share``.

    Raises:
        UsageError: no sentence would be left to learn from, or there are fewer sentences than
            folds, or a single fold.
    """
    start = normalize(data.problem, data.start.weights)
    away: list[NDArray[np.int64] | None] = [None]
    if folds:
        away = list(split_folds(data.sentences, folds, seed))
    elif held_out_share:
        away = [split_sentences(data.sentences, held_out_share, seed)[1]]
    problems = [task.problem for task in earlier]
    return [BenchmarkTask.split(data.problem, start, task, problems) for task in away]


def read_earlier(
    settings: LearningSettings,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> list[LearningData]:
    """Return the merged lists of each earlier decoding, oldest first.

    Args:
        settings: n-best lists, one file for each decoding, or a store of several iterations.
        given: lists in the place of those that settings name.

    Raises:
        UsageError: neither several lists nor several iterations, or files with a value for each
            hypothesis of all lists.
    """
    if settings.store is not None:
        with open_run_store(settings.store) as (_, opened):
            chosen = select_iterations(settings.iterations, len(opened.iterations()))
        first = chosen[0]
        parts = [(replace(settings, iterations=f"{first}:{last}"), given) for last in chosen[:-1]]
    else:
        if settings.lists.scores or settings.lists.add_feature:
            raise UsageError(
                "{--in-turn} cannot be used with values for each hypothesis of all lists: leave "
                "out {--scores} and {--add-feature}"
            )
        if not all(feature.has_bounds for feature in settings.lists.derive):
            raise UsageError(
                "{--in-turn} cannot be used with bins whose bounds are learned, which differ from"
                " decoding to decoding: give their bounds, as bin(lm, [-20.5, -10])"
            )
        lists = given.lists or settings.nbest
        counts = range(1, len(lists))
        parts = [(settings, replace(given, lists=lists[:count])) for count in counts]
    if not parts:
        raise UsageError(
            "{--in-turn} requires several n-best lists, or a store of several iterations"
        )
    return [read_data(own, progress, data) for own, data in parts]


def bind_settings(
    algorithms: Sequence[Algorithm], settings: Mapping[str, object]
) -> list[Optimizer]:
    """Return each algorithm with its defaults, changed by the settings that it has.

    Args:
        settings: option name (``-`` counts as ``_``) to value.

    Raises:
        UsageError: an option that none of them has, or an invalid value.
    """
    known = {
        algorithm.name: {field.name for field in fields(algorithm.options)}
        for algorithm in algorithms
    }
    for name in settings:
        if not any(name.replace("-", "_") in names for names in known.values()):
            raise unknown_option(name, algorithms)
    return [
        algorithm.bind(
            make_options(
                algorithm,
                {
                    name: value
                    for name, value in settings.items()
                    if name.replace("-", "_") in known[algorithm.name]
                },
            )
        )
        for algorithm in algorithms
    ]


def measure_optimizer(
    tasks: Sequence[BenchmarkTask],
    optimizer: Optimizer,
    seeds: int,
    progress: Progress = no_progress,
) -> BenchmarkResult | Refusal:
    """Run an optimizer with seeds 1 to ``seeds``.

    Args:
        tasks: what to learn from and to score on: one task, or one for each fold. Scores on the
            sentences learned from and CPU seconds are means over the folds; the sentences held out
            have one score together.
    """
    scores, held_out, seconds, active = [], [], [], []
    try:
        _warm_up(tasks[0], optimizer)
        for seed in range(1, seeds + 1):
            progress(seed - 1, seeds, optimizer.name)
            began = time.process_time()
            results = [task.learn(optimizer, seed) for task in tasks]
            seconds.append((time.process_time() - began) / len(tasks))
            score, left_out = score_tasks(tasks, results)
            scores.append(score)
            active.append(round(fmean(np.count_nonzero(weights) for weights in results)))
            if left_out is not None:
                held_out.append(left_out)
    except MosesplugError as error:
        return Refusal(optimizer.name, str(error))
    progress(seeds, seeds, optimizer.name)
    return BenchmarkResult(
        optimizer.name,
        SeedValues.of(scores),
        SeedValues.of(held_out) if held_out else None,
        SeedValues.of(seconds),
        SeedValues.of(active),
    )


def find_optimum(
    tasks: Sequence[BenchmarkTask], progress: Progress = no_progress
) -> BenchmarkResult | Refusal:
    """Find the best weights of all on the merged hypotheses, if these are few enough.

    Args:
        tasks: as for ``measure_optimizer``; hypotheses of earlier decodings do not matter.
    """
    exact = bind_settings([find_algorithm("mert")], {"method": "exact"})[0]
    merged = [replace(task, earlier=()) for task in tasks]
    result = measure_optimizer(merged, exact, 1, progress)
    return replace(result, algorithm=OPTIMUM)


def score_tasks(
    tasks: Sequence[BenchmarkTask], learned: Sequence[NDArray[np.float64]] | None = None
) -> tuple[float, float | None]:
    """Return the mean score on the sentences learned from, and the held-out score.

    The held-out score is one score of all held-out sentences, or None without any.

    Args:
        learned: weights for each, float64 ``[n_features]``; None: the starting weights.
    """
    weights = [task.start for task in tasks] if learned is None else learned
    pairs = list(zip(tasks, weights, strict=True))
    score = fmean(corpus_score(task.problem, own) for task, own in pairs)
    parts = [(task.held_out, own) for task, own in pairs if task.held_out is not None]
    if not parts:
        return score, None
    totals = sum(problem.candidates.first_best(weights) for problem, weights in parts)
    return score, float(tasks[0].problem.metric.score(np.asarray(totals)))


def _warm_up(task: BenchmarkTask, optimizer: Optimizer) -> None:
    """Learn from a few sentences; it does not matter if these are too few."""
    filled = np.flatnonzero(np.diff(task.problem.tuning_set.offsets))[:_WARM_UP_SENTENCES]
    few = restrict_lists(task.problem, filled)
    try:
        optimizer.optimize(few, task.start, np.random.default_rng(1))
    except MosesplugError:
        return


def _move_weights(
    weights: NDArray[np.float64], space: FeatureSpace, to: FeatureSpace
) -> NDArray[np.float64]:
    """Return weights of other features by their names; 0 for those without one."""
    if space == to:
        return weights
    known = dict(zip(space.names, weights.tolist(), strict=True))
    return np.array([known.get(name, 0.0) for name in to.names])
