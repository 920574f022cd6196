"""Random search: the best of many random points, then the best of points around it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    normalize,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt


@dataclass(frozen=True)
class RandomSearchOptions:
    """Settings, given as --option NAME=VALUE."""

    points: Annotated[
        int, Opt("number of random points", source="acme", details="Half are near.", minimum=2)
    ] = 200
    radius: Annotated[
        float,
        Opt("distance of the points around the best one", source="acme", minimum=1e-6),
    ] = 0.2


def search(
    problem: Problem,
    initial: np.ndarray,
    rng: np.random.Generator,
    options: RandomSearchOptions,
    progress: Progress,
) -> Solution:
    """Return the best point; see mosesplug.optimizers.problem."""
    best = normalize(problem, initial)
    score = corpus_score(problem, best)
    active = problem.active_mask
    minima, maxima = problem.box
    for done in range(options.points):
        progress(done, options.points, "points")
        point = best.copy()
        if done < options.points // 2:
            point[active] = rng.uniform(minima, maxima)[active]
        else:
            point[active] += options.radius * rng.standard_normal(int(active.sum()))
        if point.any() and (found := corpus_score(problem, point)) > score:
            best, score = point, found
    return score_solution(problem, normalize(problem, best), ())


RANDOM_SEARCH = Algorithm(
    name="random-search",
    family="acme",
    summary="Try random points, then points around the best.",
    source="acme",
    options=RandomSearchOptions,
    optimize=search,
    tunes_sparse=False,
    weighs_sentences=True,
)
