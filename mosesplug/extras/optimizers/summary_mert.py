"""MERT on dense features and summaries of sparse ones (survey, section 2.3.3).

Sparse weights come from a first pass of a learner of many features, or are the initial ones. As in
Dyer et al. (2009), He and Deng (2012) and others, each group of them is condensed into the dense
feature ``w_sparse . h_sparse`` (survey, equation 7), whose weight is tuned with the dense ones for
the metric itself. The sparse weights times their summary's weight are sparse weights again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.batch.mert.mert import MERT
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.batch.ranking.summaries import Summaries
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    no_progress,
    normalize,
)
from mosesplug.optimizers.registry import Algorithm, algorithm
from mosesplug.options import Opt

Grouping = Literal["first", "last", "one", "pattern"]

_KEEP = "initial"
"""The value of ``first`` that keeps the initial sparse weights."""


def group_names(
    names: Sequence[str], by: Grouping, separator: str = "_", pattern: str = ""
) -> list[str | None]:
    """Return the group of each sparse feature; None for features outside all groups.

    Args:
        names: the names of the features, such as ``WT_haus~house``.
        by: ``first`` or ``last``: the text before the first or the last separator (the whole name
            without one); ``one``: one group for all, ``sparse``; ``pattern``: the first group of a
            regular expression, or its whole match if it has no group; names that do not match stay
            sparse features.
        separator: not empty.
        pattern: matched at the beginning of the name.

    Raises:
        UsageError: no separator, a missing pattern, or an invalid regular expression.
    """
    if by == "one":
        return ["sparse"] * len(names)
    if by == "pattern":
        if not pattern:
            raise UsageError("group_by=pattern requires a pattern")
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None
        matches = [compiled.match(name) for name in names]
        return [match and match[min(1, compiled.groups)] for match in matches]
    if not separator:
        raise UsageError("the separator is empty; choose one, such as _")
    if by == "first":
        return [name.partition(separator)[0] for name in names]
    return [name.rpartition(separator)[0] or name for name in names]


@dataclass(frozen=True)
class SummaryMertOptions(MertOptions):
    """Settings of MERT, of the groups, and of the first pass."""

    first: Annotated[
        str,
        Opt(
            "algorithm that learns sparse weights; initial: none, keep those given",
            details="It runs with its default settings, anew after each decoding. initial: the "
            "sparse weights that a run starts with are tuned by their summaries only.",
            source="Neubig & Watanabe 2016, section 2.3.3",
        ),
    ] = "pro"
    group_by: Annotated[
        Grouping,
        Opt(
            "sparse features that share a summary",
            details="Those with the same name up to the first or the last separator, all (one), "
            "or those with the same match of a pattern.",
            source="Xiang & Ittycheriah 2011; Liu et al. 2013",
        ),
    ] = "first"
    separator: Annotated[
        str,
        Opt(
            "separator after a group's name, as in WT_haus~house",
            source="Moses' names of sparse features",
            only_with="group_by=first|last",
        ),
    ] = "_"
    pattern: Annotated[
        str,
        Opt(
            "regular expression for the beginning of feature names",
            details="Its first group, or its whole match, is the name of the summary. Other "
            "features keep their weights.",
            source="Xiang & Ittycheriah 2011; Liu et al. 2013",
            only_with="group_by=pattern",
        ),
    ] = ""


def summary_mert(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: SummaryMertOptions,
    progress: Progress,
) -> Solution:
    """Tune dense weights and one factor for each group of sparse weights.

    See ``problem`` for the arguments. The active sparse weights are those that ``options.first``
    learns, whose dense weights become one more start; those of ``initial`` are not used, unless
    ``options.first`` is ``initial``. They are multiplied by their group's factor, which starts at
    1. MERT does not change the proportions within a group.

    Returns:
        The history begins with a step that lists the groups and their sizes.

    Raises:
        OptimizerError: the problem cannot be tuned, by the first pass or by MERT, or the first pass
            found no sparse weights, or there are none to keep.
        UsageError: ``first`` is unknown, or invalid settings of groups.
    """
    learner = None if options.first == _KEEP else algorithm(options.first)
    space, active = problem.tuning_set.space, problem.active_mask
    learns = active & (np.arange(len(space)) >= space.n_dense)
    names = group_names(space.sparse, options.group_by, options.separator, options.pattern)
    first_weights, starts = initial, problem.starts
    if learns.any() and learner is not None:
        first_weights = _first_pass(problem, initial, rng, learner).weights
        starts = (first_weights, *starts)
    elif learns.any() and not initial[learns].any():
        raise OptimizerError(
            "first=initial summarizes the sparse weights that are given, but all of them are 0; "
            "give some, or choose an algorithm for the first pass, such as pro"
        )
    groups = Summaries.of(problem, first_weights, names)
    dense = replace(problem, active=active & ~learns, starts=starts)
    start = np.where(learns, first_weights, initial)
    summarized = groups.add_to(dense)
    solution = MERT.optimize(summarized, groups.start(start), rng, options, progress)
    weights = normalize(dense, groups.expand_weights(solution.weights))
    step = {"groups": groups.sizes()}
    return Solution(weights, corpus_score(problem, weights), (step, *solution.history))


def _first_pass(
    problem: Problem, initial: Floats, rng: np.random.Generator, learner: Algorithm
) -> Solution:
    solution = learner.optimize(problem, initial, rng, learner.options(), no_progress)
    if not solution.weights[problem.tuning_set.space.n_dense :].any():
        raise OptimizerError(
            f"{learner.name} found no sparse weights to summarize; choose another algorithm for "
            "the first pass, such as kbmira or rank-all"
        )
    return solution


SUMMARY_MERT = Algorithm(
    name="summary-mert",
    summary="Run MERT on dense features and summaries of sparse ones.",
    source="Neubig & Watanabe 2016, section 2.3.3",
    family="ranking",
    options=SummaryMertOptions,
    optimize=summary_mert,
    restarts=True,
    weighs_sentences=True,
)
