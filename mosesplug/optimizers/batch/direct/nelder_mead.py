"""``nelder-mead``: the downhill simplex on the corpus metric itself.

Nelder & Mead's (1965), as Zens et al. (2007) tune with it, or with an inexact line search in it,
after Zhao & Chen (2009). No gradient and no exact line is needed: the lists are decoded at the
points of simplexes (``simplex.py``), one from each start. All starts go on at once, so that a pass
over the lists serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.direct.decoding import PointDecoder
from mosesplug.optimizers.batch.direct.simplex import (
    SimplexResult,
    SimplexSettings,
    run_together,
    simplex_search,
)
from mosesplug.optimizers.batch.direct.solutions import choose_best, make_solution
from mosesplug.optimizers.batch.mert.starts import starting_points
from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.line_search.lists import line_space
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    check_weights,
    no_progress,
    normalise,
)

__all__ = ["ALGORITHMS", "NelderMeadOptions", "nelder_mead"]


@dataclass(frozen=True)
class NelderMeadOptions:
    """Settings of the downhill simplex."""

    simplex_step: Literal["amoeba", "armijo"] = field(
        default="amoeba",
        metadata={
            "help": "how the worst point of a simplex is replaced: amoeba by reflection, expansion "
            "or contraction; armijo by an inexact line search through the centroid of the others "
            "(on recorded lists level with amoeba: BLEU 0.4094 after 9 CPU s, 0.4092 after 7)",
            "source": "Nelder & Mead 1965; after Zhao & Chen 2009, constants mosesplug's",
        },
    )
    restarts: int = field(
        default=5,
        metadata={
            "help": "random starting points, drawn from the box of the ranges",
            "source": "Zhao & Chen 2009 restart at random; the number: mosesplug's",
            "minimum": 0,
        },
    )
    simplex_size: float = field(
        default=0.2,
        metadata={
            "help": "distance of a new simplex's other points from its first, relative to the "
            "length of that one, where features count by how much they differ within a sentence",
            "source": "mosesplug's, found on recorded lists",
            "minimum": 1e-6,
        },
    )
    simplex_tolerance: float = field(
        default=5e-4,
        metadata={
            "help": "a simplex rests when its scores differ by no more, and a fresh one is built "
            "around its best point until that gains no more",
            "source": "Press et al. 2007, section 10.5; value: mosesplug's, on recorded lists",
            "minimum": 0.0,
        },
    )
    evaluations: int = field(
        default=5000,
        metadata={
            "help": "a start ends after it has scored about so many points",
            "source": "mosesplug's, a bound for many features; 14 need a third of it",
            "minimum": 1,
        },
    )


def nelder_mead(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: NelderMeadOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Tune the active weights for the corpus score of the first-best hypotheses.

    Args:
        problem: hypotheses, metric, active features and the box of random starts.
        initial: float64 ``[n_features]``, the first start; inactive weights stay as they are.
        rng: of the random starts, and of the orientation of simplexes.
        options: settings.
        progress: told of points that were scored, of the most that may be.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights``), or nothing but zero
            weights was found.
    """
    initial = normalise(problem, check_weights(problem, initial))
    space = line_space(problem, initial)
    settings = SimplexSettings(
        options.simplex_size,
        options.simplex_tolerance,
        options.evaluations,
        space.spread,
        space.fixed_spread,
        options.simplex_step,
    )
    given, random = starting_points(problem, initial, rng, options.restarts)
    starts = [*given, *random]
    searches = [
        simplex_search(start, settings, generator)
        for start, generator in zip(starts, rng.spawn(len(starts)), strict=True)
    ]
    decoder, scored = PointDecoder(space, problem.threads), 0

    def scorer(points: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal scored
        scored += len(points)
        progress(scored, options.evaluations * len(starts), "points")
        return decoder.scores(points)

    found = run_together(searches, scorer)
    weights = [each.weights for each in found]
    best = choose_best(problem, initial, weights, [each.score for each in found])
    return make_solution(problem, initial, weights[best], _history(found))


def _history(found: list[SimplexResult]) -> tuple[Mapping[str, object], ...]:
    """One mapping a start."""
    return tuple(
        {
            "start_score": each.start_score,
            "score": each.score,
            "evaluations": each.evaluations,
            "simplexes": each.simplexes,
        }
        for each in found
    )


ALGORITHMS = (
    Algorithm(
        name="nelder-mead",
        summary="Search with a downhill simplex on the metric.",
        source="Zens et al. 2007",
        family="direct search",
        options=NelderMeadOptions,
        optimize=nelder_mead,
        restarts=True,
        tunes_sparse=False,
    ),
)
