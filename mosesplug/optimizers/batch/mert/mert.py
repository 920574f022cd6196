"""Minimum error rate training (Och 2003), on n-best lists or search graphs (Macherey et al. 2008).

Coordinate search with an exact line search, from the given weights, from historic bests (Foster &
Kuhn 2009) and from random points, as Moses' ``mert`` does it; then a search around the best point
found, as long as that leads on, which Moses' has not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.mert.climb import (
    Climb,
    ClimbFunction,
    ClimbSettings,
    climb_axes,
    climb_from_perturbation,
    climb_random_directions,
    make_positive,
    try_random_point,
)
from mosesplug.optimizers.batch.mert.starts import starting_points
from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.line_search.lists import IntervalChoice, search_space
from mosesplug.optimizers.line_search.space import SearchSpace
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    check_weights,
    corpus_score,
    no_progress,
    normalise,
)

__all__ = ["ALGORITHMS", "MertOptions", "mert"]

CLIMBS: Mapping[str, ClimbFunction] = MappingProxyType(
    {
        "powell": climb_axes,
        "random-direction": climb_random_directions,
        "random": try_random_point,
    }
)

WAVE = 4
"""Climbs around one best point before the next best is chosen: enough to occupy the threads, and
fixed, so that the result does not depend on their number."""

DIRECTIONS_IN_A_ROW = 50
"""Fruitless random directions before ``random-direction`` stops, where none are given
(``mert-moses.pl`` passes ``-m 50``)."""


@dataclass(frozen=True)
class MertOptions:
    """Settings of MERT; those that ``mert-moses.pl`` has too have its defaults."""

    restarts: int = field(
        default=20,
        metadata={
            "help": "random starting points, drawn from the box of the ranges",
            "source": "mert-moses.pl --random-restarts",
            "minimum": 0,
        },
    )
    method: Literal["powell", "random-direction", "random"] = field(
        default="powell",
        metadata={
            "help": "powell: best of all axes each round; random-direction: random lines only; "
            "random: score random points",
            "source": "mert -t",
        },
    )
    random_directions: int = field(
        default=0,
        metadata={
            "help": "random directions a round besides the axes; with random-direction, how many "
            "in a row may gain nothing before it stops (0: 50)",
            "source": "mert -m; Cer et al. 2008",
            "minimum": 0,
        },
    )
    directions: Literal["box", "symmetric"] = field(
        default="box",
        metadata={
            "help": "random directions from the box of the ranges, as Moses' mert has them, or "
            "with all weights from -1/2 to 1/2 (with random-direction: stochastic search)",
            "source": "mert -t random-direction; Cer et al. 2008, as Phrasal's CerStyleOptimizer",
        },
    )
    interval: Literal["best", "average", "minimum"] = field(
        default="best",
        metadata={
            "help": "judge an interval of a line by its score, or by the average or minimum of "
            "its neighbourhood",
            "source": "Cer et al. 2008",
        },
    )
    neighbours: int = field(
        default=3,
        metadata={
            "help": "intervals on either side that make the neighbourhood",
            "source": "Cer et al. 2008",
            "only_with": "interval=average|minimum",
            "minimum": 0,
        },
    )
    tolerance: float = field(
        default=1e-4,
        metadata={
            "help": "a round that gains no more than this ends a climb",
            "source": "Moses mert",
            "minimum": 0.0,
        },
    )
    give_up: float = field(
        default=5.0,
        metadata={
            "help": "a climb is given up when this many more gains like that of its last round "
            "would not bring it to the best of the given starts (a random restart), or to the best "
            "point (a climb of polish); 0 for never",
            "source": "mosesplug's; saves a third of the time of Moses' search",
            "minimum": 0.0,
        },
    )
    polish: int = field(
        default=32,
        metadata={
            "help": "after the restarts, climbs from small perturbations of the best point, until "
            "this many in a row have found nothing better; 0 for the search of Moses' mert alone",
            "source": "mosesplug's, an iterated local search",
            "minimum": 0,
        },
    )


def mert(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: MertOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Tune the active weights for the corpus score of the first-best hypotheses.

    Climbs run on ``problem.threads`` threads; the result does not depend on their number. Where
    every dense weight is active, the given starts and the result are divided by their L1 norms,
    as Moses does, which changes no decision of the decoder; the lengths that a line search knows
    suit weights of that size.

    Args:
        problem: hypotheses (its source's, where it has one), metric, active features and the box
            of random starts.
        initial: float64 ``[n_features]``, the first start; inactive weights stay as they are.
        rng: source of starts, directions and perturbations.
        options: settings.
        progress: told of finished climbs.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights``), or nothing but zero
            weights was found.
    """
    initial = normalise(problem, check_weights(problem, initial))
    active = problem.active_mask
    if problem.positive is not None and (problem.positive & ~active & (initial <= 0.0)).any():
        raise OptimizerError("a weight that must be positive is fixed and is not")
    space = search_space(problem, initial)
    settings = _settings(problem, options)
    fixed_count = bool(initial[~active].any())
    given, random = starting_points(problem, initial, rng, options.restarts)
    given = [make_positive(start, settings.positive) for start in given]
    random = [make_positive(start, settings.positive) for start in random]
    polish = 0 if options.method == "random" else options.polish
    told, one_at_a_time, total = count(1), threading.Lock(), len(given) + len(random) + polish

    def finished() -> None:
        with one_at_a_time:  # or a later count could be told before an earlier one
            progress(next(told), total, "climbs")

    with ThreadPoolExecutor(max(1, problem.threads)) as pool:
        run = _runner(space, rng, pool, finished)
        climbs = run(CLIMBS[options.method], given, settings)
        best = _best(climbs, counts=fixed_count)
        climbs += run(CLIMBS[options.method], random, _bounded(settings, options, best))
        best = _best(climbs, counts=fixed_count)
        if not best.weights.any() and not fixed_count:
            raise OptimizerError(
                "the search found nothing better than weights that are all zero; start from "
                "other weights, or with more restarts"
            )
        idle = 0
        while idle < polish:
            wave = min(WAVE, polish - idle)
            total = len(climbs) + polish - idle
            found = run(
                climb_from_perturbation, [best.weights] * wave, _bounded(settings, options, best)
            )
            climbs += found
            better = _best([best, *found], counts=fixed_count)
            idle = 0 if better.score > best.score else idle + wave
            best = better

    weights = initial.copy()
    weights[active] = best.weights
    weights = normalise(problem, weights)
    return Solution(
        weights, corpus_score(problem, weights), _history(climbs, len(given) + len(random))
    )


def _runner(
    space: SearchSpace,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    finished: Callable[[], None],
) -> Callable[[ClimbFunction, list[NDArray[np.float64]], ClimbSettings], list[Climb]]:
    """A function that runs one climb from each start, each with a generator of its own."""

    def run(
        climb: ClimbFunction, starts: list[NDArray[np.float64]], settings: ClimbSettings
    ) -> list[Climb]:
        def one(start: NDArray[np.float64], generator: np.random.Generator) -> Climb:
            result = climb(space, start, generator, settings)
            finished()
            return result

        return list(pool.map(one, starts, rng.spawn(len(starts))))

    return run


def _settings(problem: Problem, options: MertOptions) -> ClimbSettings:
    """The options as the climbs want them."""
    minima, maxima = (bound[problem.active_mask] for bound in problem.box)
    directions = options.random_directions
    if options.method == "random-direction" and directions == 0:
        directions = DIRECTIONS_IN_A_ROW
    choice = IntervalChoice(options.interval, options.neighbours)
    positive = None if problem.positive is None else problem.positive[problem.active_mask]
    return ClimbSettings(
        minima,
        maxima,
        directions,
        choice,
        options.tolerance,
        positive=positive,
        symmetric=options.directions == "symmetric",
    )


def _bounded(settings: ClimbSettings, options: MertOptions, best: Climb) -> ClimbSettings:
    """The settings of climbs that are given up if they will not reach the best so far."""
    if options.give_up == 0.0:
        return settings
    return replace(settings, bound=best.score, give_up=options.give_up)


def _best(climbs: list[Climb], *, counts: bool) -> Climb:
    """The highest score; of equals weights that are not all zero, and the first of those.

    Unless other weights count, all zero are no result at all, whatever they score.
    """

    def merit(climb: Climb) -> tuple[bool, float, bool]:
        tunes = bool(climb.weights.any())
        return counts or tunes, climb.score, tunes

    return max(climbs, key=merit)


def _history(climbs: list[Climb], n_starts: int) -> tuple[Mapping[str, object], ...]:
    """One mapping a climb."""
    return tuple(
        {
            "climb": "start" if index < n_starts else "polish",
            "start_score": climb.start_score,
            "score": climb.score,
            "rounds": climb.rounds,
        }
        for index, climb in enumerate(climbs)
    )


ALGORITHMS = (
    Algorithm(
        name="mert",
        summary="Find the metric's optimum along lines, exactly.",
        source="Och 2003",
        family="Moses",
        options=MertOptions,
        optimize=mert,
        graphs="source",
        restarts=True,
        tunes_sparse=False,
    ),
)
