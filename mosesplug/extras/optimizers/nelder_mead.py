"""``nelder-mead``: the downhill simplex on the corpus metric.

Nelder & Mead's (1965), as Zens et al. (2007) tune with it, or with an inexact line search, after
Zhao & Chen (2009). It requires no gradient and no exact line search: the lists are decoded at the
points of simplexes (``simplex``), one from each start. All starts run together, so that one pass
over the lists serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.extras.optimizers.decoding import PointDecoder
from mosesplug.extras.optimizers.simplex import (
    SimplexResult,
    SimplexSettings,
    run_together,
    simplex_search,
)
from mosesplug.optimizers.batch.fits import choose_best, make_solution, starting_points
from mosesplug.optimizers.line_search.lists import line_space
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    normalize,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt


@dataclass(frozen=True)
class NelderMeadOptions:
    """Settings of the downhill simplex."""

    simplex_step: Annotated[
        Literal["amoeba", "armijo"],
        Opt(
            "how the worst point of a simplex is replaced",
            details="amoeba: reflection, expansion or contraction. armijo: inexact line search "
            "through the centroid of the others. On recorded lists, armijo reached BLEU 0.4092 "
            "after 7 CPU s, amoeba 0.4094 after 9.",
            source="Nelder & Mead 1965; after Zhao & Chen 2009, constants mosesplug's",
        ),
    ] = "amoeba"
    restarts: Annotated[
        int,
        Opt(
            "number of random starting points, drawn from the box of the ranges",
            source="Zhao & Chen 2009 restart at random; the number: mosesplug's",
            minimum=0,
            maximum=10_000,
        ),
    ] = 5
    simplex_size: Annotated[
        float,
        Opt(
            "relative size of a new simplex",
            details="The distance of its other points from the first, relative to the length of "
            "the first, with features scaled by their spread within a sentence.",
            source="mosesplug's, found on recorded lists",
            minimum=1e-6,
        ),
    ] = 0.2
    simplex_tolerance: Annotated[
        float,
        Opt(
            "largest difference of scores of a converged simplex",
            details="A new simplex is built around its best point until that gains nothing more.",
            source="Press et al. 2007, section 10.5; value: mosesplug's, on recorded lists",
            minimum=0.0,
        ),
    ] = 5e-4
    evaluations: Annotated[
        int,
        Opt(
            "approximate maximum of scored points per start",
            source="mosesplug's, a bound for many features; 14 need a third of it",
            minimum=1,
        ),
    ] = 5000


def nelder_mead(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: NelderMeadOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights for the corpus score of the 1-best hypotheses.

    See ``problem`` for the arguments. ``initial`` is the first start, and ``problem`` has the box
    of random starts. ``rng`` draws the random starts and the orientation of simplexes.

    Raises:
        OptimizerError: only zero weights
            were found.
    """
    initial = normalize(problem, initial)
    space = line_space(problem.tuning_set, problem.metric, problem.active_mask, initial)
    settings = SimplexSettings(
        options.simplex_size,
        options.simplex_tolerance,
        options.evaluations,
        space.spread,
        space.fixed_spread,
        options.simplex_step,
        None if problem.bounds is None else problem.bounds.take(problem.active_mask),
    )
    own, random = starting_points(problem, initial, rng, options.restarts)
    starts = [*own, *random]
    searches = [
        simplex_search(start, settings, generator)
        for start, generator in zip(starts, rng.spawn(len(starts)), strict=True)
    ]
    decoder, scored = PointDecoder(space, problem.threads), 0

    def scorer(points: Floats) -> Floats:
        nonlocal scored
        scored += len(points)
        progress(scored, options.evaluations * len(starts), "points")
        return decoder.scores(points)

    results = run_together(searches, scorer)
    weights = [result.weights for result in results]
    best = choose_best(problem, initial, weights, [result.score for result in results])
    return make_solution(problem, initial, weights[best], _history(results))


def _history(results: list[SimplexResult]) -> tuple[Mapping[str, object], ...]:
    return tuple(
        {
            "start_score": result.start_score,
            "score": result.score,
            "evaluations": result.evaluations,
            "simplexes": result.simplexes,
        }
        for result in results
    )


NELDER_MEAD = Algorithm(
    name="nelder-mead",
    summary="Search with a downhill simplex on the metric.",
    source="Zens et al. 2007",
    family="direct search",
    options=NelderMeadOptions,
    optimize=nelder_mead,
    restarts=True,
    tunes_sparse=False,
    keeps_bounds=True,
    weighs_sentences=True,
)
