"""Learn weights with one or several seeds, held-out data, and cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.errors import OptimizerError
from mosesplug.learning.cross_validation import CrossValidation, cross_validate, split_sentences
from mosesplug.learning.domains import LearnFunction
from mosesplug.learning.inputs import LearningData
from mosesplug.optimizers import Optimizer, Problem, Progress, Solution, corpus_score
from mosesplug.optimizers.problem import no_progress, normalize
from mosesplug.settings.configuration import SelectRun
from mosesplug.settings.sharding import Sharding

HeldOut = Callable[[Weights], Problem]
"""Returns held-out data in which the hypotheses that weights choose have a score."""


@dataclass(frozen=True)
class SeedResult:
    """What the optimizer found with one seed.

    Attributes:
        solution: the weights, with their score on the data that they were learned from.
        held_out: score on the held-out data; None without any.
    """

    seed: int
    solution: Solution
    held_out: float | None

    @property
    def comparison_score(self) -> float:
        """The held-out score, or without held-out data the score of the solution."""
        return self.solution.score if self.held_out is None else self.held_out


@dataclass(frozen=True)
class LearningResult:
    """The weights of all runs together.

    Attributes:
        solution: the resulting weights, with their score on the data that they were learned from.
        held_out: their score on the held-out data; None without any.
        start, start_held_out: the same scores of the starting weights.
        sentences: number of sentences learned from, and held out.
        learned_sentences, held_out_sentences: int64, positions of the sentences learned from, and
            of those that were held out of them; the second is empty if no share was held out.
        chosen_run: the run whose weights were chosen; None for the average.
        validation: the cross-validation, or None.
        is_start: whether the resulting weights are the starting weights, up to a factor.
    """

    solution: Solution
    held_out: float | None
    start: float
    start_held_out: float | None
    sentences: tuple[int, int]
    learned_sentences: NDArray[np.int64]
    held_out_sentences: NDArray[np.int64]
    runs: tuple[SeedResult, ...]
    chosen_run: SeedResult | None
    validation: CrossValidation | None
    is_start: bool = False


def make_learner(
    optimizer: Optimizer,
    start: Weights,
    sharding: Sharding | None = None,
) -> LearnFunction:
    """Return a function that learns the weights of a problem.

    It learns in shards if there is a sharding.
    """

    def learn(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
        if sharding is None:
            return optimizer.optimize(problem, start, rng, progress)
        from mosesplug.tuning.parallel.optimize import optimize_sharded

        return optimize_sharded(problem, optimizer, sharding, start, rng, progress)

    return learn


def learn_weights(
    data: LearningData,
    learn: LearnFunction,
    seed: int,
    *,
    held_out: HeldOut | None = None,
    n_held_out: int = 0,
    held_out_share: float | None = None,
    folds: int | None = None,
    runs: int | None = None,
    select: SelectRun = "median",
    progress: Progress = no_progress,
) -> LearningResult:
    """Learn weights, with a held-out set, a cross-validation or several runs.

    Args:
        data: the data to learn from, with the starting weights that the result is compared with.
        learn: see ``make_learner``.
        held_out: the held-out data, of ``n_held_out`` sentences.
        seed: seed of all random choices; run K has ``seed + K - 1``.
        held_out_share: share of the sentences to hold out; it excludes ``held_out``.
        folds: number of folds of a cross-validation before the learning.
        select: which weights of several runs are the result: those of the ``median`` run (of an
            even number, the lower of the two in the middle), of the ``best-heldout`` run, or their
            ``average``. Runs are compared on held-out data if there is any. If scores are equal,
            the earlier run counts as the lower one.
    """
    start, problem = data.start.weights, data.problem
    kept, away = data.sentences, data.sentences[:0]
    if held_out_share:
        kept, away = split_sentences(data.sentences, held_out_share, seed)
        problem, others = data.take_sentences(kept), data.hold_out(away)
        held_out, n_held_out = lambda weights: others, len(away)
    validation = None
    if folds:
        of_fold = select_from_runs(learn, runs, select) if runs else learn
        validation = cross_validate(data, of_fold, folds, seed, progress)
    results = []
    for number in range(runs or 1):
        rng = np.random.default_rng(seed + number)
        solution = learn(problem, rng, no_progress if runs else progress)
        results.append(SeedResult(seed + number, solution, _score(data, held_out, solution)))
        if runs:
            progress(number + 1, runs, "runs")
    chosen = _choose_run(results, select)
    solution = _average_runs(problem, results) if chosen is None else chosen.solution
    before = Solution(start, 0.0, length_exponent=data.start_exponent)
    return LearningResult(
        solution=solution,
        held_out=_score(data, held_out, solution),
        start=corpus_score(data.rescore(problem, data.start_exponent), start),
        start_held_out=_score(data, held_out, before),
        sentences=(len(kept), n_held_out),
        learned_sentences=kept,
        held_out_sentences=away,
        runs=tuple(results),
        chosen_run=chosen,
        validation=validation,
        is_start=np.allclose(
            normalize(problem, solution.weights), normalize(problem, start), rtol=1e-9, atol=0.0
        ),
    )


def _score(data: LearningData, held_out: HeldOut | None, solution: Solution) -> float | None:
    if held_out is None:
        return None
    problem = data.rescore(held_out(solution.weights), solution.length_exponent)
    return corpus_score(problem, solution.weights)


def select_from_runs(learn: LearnFunction, runs: int, select: SelectRun) -> LearnFunction:
    """Return a function that learns several times, and selects weights of these runs."""

    def learn_and_select(
        problem: Problem, rng: np.random.Generator, progress: Progress
    ) -> Solution:
        results = [
            SeedResult(number, learn(problem, child, no_progress), None)
            for number, child in enumerate(rng.spawn(runs))
        ]
        chosen = _choose_run(results, select)
        return _average_runs(problem, results) if chosen is None else chosen.solution

    return learn_and_select


def _choose_run(runs: list[SeedResult], select: SelectRun) -> SeedResult | None:
    order = sorted(runs, key=lambda run: run.comparison_score)
    if select == "best-heldout":
        return max(runs, key=lambda run: run.comparison_score)
    return order[(len(runs) - 1) // 2] if select == "median" else None


def _average_runs(problem: Problem, runs: list[SeedResult]) -> Solution:
    mean = np.mean([normalize(problem, run.solution.weights) for run in runs], axis=0)
    if problem.bounds is not None:
        mean = problem.bounds.project(mean)  # rounding
    if not mean.any():
        raise OptimizerError("the average of the runs' weights is 0: use {--select median}")
    return replace(runs[0].solution, weights=mean, score=corpus_score(problem, mean), history=())
