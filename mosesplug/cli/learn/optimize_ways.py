"""How ``mosesplug optimize`` learns: once or with several seeds, from all sentences or some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.cli.learn.optimize_input import Given
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.learning.cross_validation import CrossValidation, Learn, cross_validated, divided
from mosesplug.optimizers import Progress, Solution, corpus_score
from mosesplug.optimizers.problem import Problem, no_progress, normalise
from mosesplug.settings.configuration import SelectRun

__all__ = ["Learnt", "Run", "Ways", "learnt", "ways_of"]


@dataclass(frozen=True)
class Ways:
    """How to learn.

    Attributes:
        folds: of a cross-validation beforehand; 0 for none.
        share: of the sentences that is held out; 0 for none.
        heldout_lists: lists of other text to score, and ``heldout_refs`` its references.
        runs: how many, with seeds one after the other; 0 for a single one.
        choice: whose weights of several runs are taken.
    """

    folds: int = 0
    share: float = 0.0
    heldout_lists: tuple[Path, ...] = ()
    heldout_refs: Path | None = None
    runs: int = 0
    choice: SelectRun = "median"

    @property
    def holds_out(self) -> bool:
        """Whether there is anything to score that is not learnt from."""
        return bool(self.share or self.heldout_lists)


@dataclass(frozen=True)
class Run:
    """What one seed gives.

    Attributes:
        seed: of all random choices.
        solution: the weights, and their score on what they were learnt from.
        held_out: their score on what was held out; None where nothing was.
    """

    seed: int
    solution: Solution
    held_out: float | None


@dataclass(frozen=True)
class Learnt:
    """What came of it.

    Attributes:
        solution: the weights to write, and their score on what was learnt from.
        held_out: their score on what was held out; None where nothing was.
        start, start_held_out: the same of the starting weights.
        sentences: learnt from, and held out.
        runs: all of them.
        chosen: which of them; None for their mean.
        validation: of a cross-validation.
    """

    solution: Solution
    held_out: float | None
    start: float
    start_held_out: float | None
    sentences: tuple[int, int]
    runs: tuple[Run, ...]
    chosen: Run | None
    validation: CrossValidation | None


def ways_of(
    folds: int | None,
    share: float | None,
    heldout_nbest: list[Path] | None,
    heldout_refs: Path | None,
    runs: int | None,
    select: str | None,
) -> Ways:
    """What the command line says.

    Raises:
        UsageError: options that exclude or need each other.
    """
    lists = tuple(heldout_nbest or ())
    if bool(lists) != (heldout_refs is not None):
        raise UsageError("--heldout-nbest and --heldout-refs go together: give both, or neither")
    given = {
        "--folds": folds is not None,
        "--held-out": share is not None,
        "--heldout-nbest": bool(lists),
    }
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other: use one of them")
    if folds is not None and runs is not None:
        raise UsageError("--folds and --runs exclude each other: use one of them")
    if share is not None and not 0.0 < share < 1.0:
        raise UsageError(f"--held-out is a share of the sentences, as 0.2, not {share:g}")
    choices = get_args(SelectRun)
    if select is not None and runs is None:
        raise UsageError("--select chooses among several runs: give --runs N, too")
    if select is not None and select not in choices:
        raise UsageError(f"--select is one of {', '.join(choices)}, not {select}")
    if select == "best-heldout" and not (share or lists):
        raise UsageError("--select best-heldout needs --held-out SHARE or --heldout-nbest FILE")
    choice = next((each for each in choices if each == select), choices[0])
    return Ways(folds or 0, share or 0.0, lists, heldout_refs, runs or 0, choice)


def learnt(
    given: Given, judged: Problem | None, learn: Learn, ways: Ways, seed: int, told: Progress
) -> Learnt:
    """Learn.

    Args:
        given: what to learn from.
        judged: other sentences to score, or None.
        learn: finds weights, from the starting weights on.
        ways: how to.
        seed: of all random choices; run K has seed + K - 1.
        told: how far it is.

    Raises:
        UsageError: there are too few sentences.
        OptimizerError: no usable weights come of it.
    """
    start = given.start.weights
    problem, left_out = given.problem, 0
    if ways.share:
        kept, away = divided(given.listed, ways.share, seed)
        problem, judged, left_out = given.part(kept), given.part(away), len(away)
    elif judged is not None:
        left_out = int(np.count_nonzero(np.diff(judged.tuning_set.offsets)))
    validation = None
    if ways.folds:
        validation = cross_validated(given, start, learn, ways.folds, seed, told)
    runs = []
    for number in range(max(ways.runs, 1)):
        solution = learn(
            problem, np.random.default_rng(seed + number), no_progress if ways.runs else told
        )
        runs.append(Run(seed + number, solution, _score(judged, solution.weights)))
        if ways.runs:
            told(number + 1, ways.runs, "runs")
    chosen = None if ways.runs and ways.choice == "average" else _chosen(runs, ways.choice)
    solution = _mean(problem, runs) if chosen is None else chosen.solution
    return Learnt(
        solution=solution,
        held_out=_score(judged, solution.weights),
        start=corpus_score(problem, start),
        start_held_out=_score(judged, start),
        sentences=(len(given.listed) - (left_out if ways.share else 0), left_out),
        runs=tuple(runs),
        chosen=chosen,
        validation=validation,
    )


def _score(problem: Problem | None, weights: NDArray[np.float64]) -> float | None:
    return None if problem is None else corpus_score(problem, weights)


def _chosen(runs: list[Run], choice: str) -> Run:
    """The best run on what was held out, or the median one: the lower of two in the middle.

    By what was held out, where anything was, else by what was learnt from; of equal scores, that
    of the earlier run counts as the lower.
    """
    order = sorted(runs, key=_worth)
    if choice == "best-heldout":
        return max(runs, key=_worth)
    return order[(len(runs) - 1) // 2]


def _worth(run: Run) -> float:
    return run.solution.score if run.held_out is None else run.held_out


def _mean(problem: Problem, runs: list[Run]) -> Solution:
    """The mean of all runs' weights, normalised where their scale is free.

    Raises:
        OptimizerError: they cancel out.
    """
    mean = np.mean([normalise(problem, run.solution.weights) for run in runs], axis=0)
    if not mean.any():
        raise OptimizerError("the runs' weights cancel out: --select median takes those of one run")
    return replace(runs[0].solution, weights=mean, score=corpus_score(problem, mean), history=())
