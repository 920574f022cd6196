"""MERT on dense features and summaries of sparse ones (survey, section 2.3.3).

Sparse weights are the initial ones, or come from a first pass of a learner of many features. Each
group of them becomes one dense feature (``summary``), and MERT tunes the few remaining weights for
the metric itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.mert.mert import MertOptions, mert
from mosesplug.optimizers.batch.ranking.summary import Grouping, Summaries, group_names
from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.options import option
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    corpus_score,
    no_progress,
    normalise,
)
from mosesplug.optimizers.registry import algorithm

__all__ = ["ALGORITHMS", "SummaryMertOptions", "summary_mert"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SummaryMertOptions(MertOptions):
    """Settings of MERT, of the groups, and of the first pass."""

    first: str = option(
        "pro",
        help="algorithm that learns sparse weights if all initial ones are 0",
        details="It runs with its default settings.",
        source="Neubig & Watanabe 2016, section 2.3.3",
    )
    group_by: Grouping = option(
        "first",
        help="sparse features that share a summary",
        details=(
            "Those with the same name up to the first or the last separator, all (one), or those "
            "with the same match of a pattern."
        ),
        source="Xiang & Ittycheriah 2011; Liu et al. 2013",
    )
    separator: str = option(
        "_",
        help="separator after a group's name, as in WT_haus~house",
        source="Moses' names of sparse features",
        only_with="group_by=first|last",
    )
    pattern: str = option(
        "",
        help="regular expression for the beginning of feature names",
        details=(
            "Its first group, or its whole match, is the name of the summary. Other features keep "
            "their weights."
        ),
        source="Xiang & Ittycheriah 2011; Liu et al. 2013",
        only_with="group_by=pattern",
    )


def summary_mert(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: SummaryMertOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Tune dense weights and one factor for each group of sparse weights.

    See ``problem`` for the arguments. The active sparse weights are those of ``initial`` if any is
    not 0, otherwise those of ``options.first``, whose dense weights become one more start. They are
    multiplied by their group's factor, which starts at 1. MERT does not change the proportions
    within a group.

    Returns:
        The history begins with a step that lists the groups and their sizes.

    Raises:
        OptimizerError: the problem cannot be tuned, by the first pass or by MERT, or the first pass
            found no sparse weights.
        UsageError: ``first`` is unknown, or invalid settings of groups.
    """
    learner = algorithm(options.first)
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    space, active = problem.tuning_set.space, problem.active_mask
    learns = active & (np.arange(len(space)) >= space.n_dense)
    names = group_names(space.sparse, options.group_by, options.separator, options.pattern)
    learnt, starts = initial, problem.starts
    if learns.any() and not initial[learns].any():
        learnt = _first_pass(problem, initial, rng, learner).weights
        starts = (learnt, *starts)
    groups = Summaries.of(problem, learnt, names)
    dense = replace(problem, active=active & ~learns, starts=starts)
    start = np.where(learns, learnt, initial)
    summarised = groups.add_to(dense)
    solution = mert(summarised, groups.start(start), rng, options, progress)
    weights = normalise(dense, groups.expand_weights(solution.weights))
    step = {"groups": groups.sizes()}
    return Solution(weights, corpus_score(problem, weights), (step, *solution.history))


def _first_pass(
    problem: Problem, initial: Floats, rng: np.random.Generator, learner: Algorithm
) -> Solution:
    """Return the solution of an algorithm with default settings."""
    found = learner.optimize(problem, initial, rng, learner.options(), no_progress)
    if not found.weights[problem.tuning_set.space.n_dense :].any():
        raise OptimizerError(
            f"{learner.name} found no sparse weights to summarise; choose another algorithm for "
            "the first pass, such as kbmira or rank-all"
        )
    return found


ALGORITHMS = (
    Algorithm(
        name="summary-mert",
        summary="Run MERT on dense features and summaries of sparse ones.",
        source="Neubig & Watanabe 2016, section 2.3.3",
        family="ranking",
        options=SummaryMertOptions,
        optimize=summary_mert,
        restarts=True,
    ),
)
