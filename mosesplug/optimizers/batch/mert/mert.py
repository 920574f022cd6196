"""Minimum error rate training (Och 2003), on lists or search graphs.

Coordinate search with an exact line search, on graphs as in Macherey et al. (2008), from the given
weights, from historic bests (Foster & Kuhn 2009) and from random points, as in Moses' ``mert``;
then, unlike Moses, an iterated local search around the best point found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mosesplug.candidates import SearchSpace
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.fits import (
    choose_best,
    insert_active,
    make_solution,
    starting_points,
)
from mosesplug.optimizers.batch.mert.climb import (
    NEAR,
    Climb,
    ClimbFunction,
    ClimbSettings,
    climb_axes,
    climb_from_perturbation,
    climb_random_directions,
    make_positive,
    try_random_point,
)
from mosesplug.optimizers.batch.mert.exact import search_exactly
from mosesplug.optimizers.batch.mert.graphs import search_lists_first
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.line_search.space import IntervalChoice, Regularizer
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    normalize,
)
from mosesplug.optimizers.registry import Algorithm

CLIMBS: Mapping[str, ClimbFunction] = MappingProxyType(
    {
        "powell": climb_axes,
        "random-direction": climb_random_directions,
        "random": try_random_point,
    }
)

WAVE = 4
"""Climbs around one best point before the next best is chosen: enough for the threads, and fixed,
so that the result does not depend on their number."""

RESTARTS_AT_ONCE = 20
"""Restarts before the best score so far is a new goal of those that follow; fixed, too."""

POLISH_GAINS = 1.5
"""Upper limit of ``give_up`` in the polish of many sentences: of 39 climbs that ended higher on
recorded lists, it would have given up one."""

MANY_SENTENCES = 500
"""With fewer sentences, a sample says too little, so restarts use all of them. And better points
are further away, so perturbations are larger."""

SAMPLED = 10
"""Every tenth sentence is in the sample: a climb there takes a tenth of the time."""

CONTINUED = 4
"""One of so many climbs on the sample continues with all sentences."""

SMALL = 1000
"""Most hypotheses of a small problem. There, few points are close to the best one, and a climb
takes less than a millisecond: none is given up, and restarts end when several find the best."""

ARRIVALS = 20
"""So many climbs from random points must end with the best score before restarts end."""

MOST_RESTARTS = 20
"""Restarts of a small problem, at most, as a multiple of those that were asked for."""

DIRECTIONS_IN_A_ROW = 50
"""Default number of random directions in a row without gain before ``random-direction`` stops
(``mert-moses.pl`` passes ``-m 50``)."""


def mert(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: MertOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights for the corpus score of the 1-best hypotheses.

    See ``problem`` for the arguments. The result does not depend on the number of threads. If every
    dense weight is active, the given starts and the result are divided by their L1 norms, as in
    Moses; the lengths of the line search suit weights of that size.

    Bounds of weights are kept exactly: each line is searched where it is inside them, and starts
    and perturbations are moved into them.

    Raises:
        OptimizerError: only zero weights were found; or ``method=exact`` refuses the problem.
    """
    initial = normalize(problem, initial)
    if options.method == "exact":
        return search_exactly(problem, initial, progress)
    candidates = problem.candidates
    takes_lists = not _has_lists(problem) and "batches" in candidates.answers
    if takes_lists and options.graph_search == "lists":
        once = replace(options, restarts=0, polish=0, graph_search="graphs")
        return search_lists_first(
            problem,
            initial,
            options.tolerance,
            lambda lists, start, report: MERT.optimize(lists, start, rng, options, report),
            lambda graphs, start, report: MERT.optimize(
                replace(graphs, starts=()), start, rng, once, report
            ),
            progress,
        )
    active = problem.active_mask
    if problem.positive is not None and (problem.positive & ~active & (initial <= 0.0)).any():
        raise OptimizerError("a weight that must be positive is fixed at 0 or below")
    space = candidates.lines(active, initial)
    settings = _settings(problem, options, _regularizer(problem, initial, space, options))
    own, random = starting_points(problem, initial, rng, options.restarts)
    own = [make_positive(start, settings.positive) for start in own]
    random = [make_positive(start, settings.positive) for start in random]
    polish = 0 if options.method == "random" else options.polish
    report, one_at_a_time, total = count(1), threading.Lock(), len(own) + len(random) + polish

    def finished() -> None:
        with one_at_a_time:  # so that counts are reported in order
            progress(next(report), total, "climbs")

    def choose(climbs: list[Climb]) -> Climb:
        weights, scores = [climb.weights for climb in climbs], [climb.score for climb in climbs]
        return climbs[choose_best(problem, initial, weights, scores)]

    with ThreadPoolExecutor(max(1, problem.threads)) as pool:
        run = _runner(space, rng, pool, finished)
        silent = _runner(space, rng, pool, lambda: None)
        climbs = run(CLIMBS[options.method], own, settings)
        best = choose(climbs)
        small = _is_small(problem, options)
        sample = _sample_space(problem, initial, options)
        for first in range(0, len(random), RESTARTS_AT_ONCE):
            starts, climb = random[first : first + RESTARTS_AT_ONCE], run
            bounded = settings if small else _bound_climbs(settings, options.give_up, best)
            if sample is not None:
                ends = _runner(sample, rng, pool, finished)(climb_axes, starts, settings)
                starts = _choose_starts(space, [end.weights for end in ends], settings, pool)
                climb = silent
            climbed = climb(CLIMBS[options.method], starts, bounded)
            climbs += climbed
            best = choose([best, *climbed])
        while small and len(random) < MOST_RESTARTS * options.restarts:
            if sum(end.score >= best.score for end in climbs[len(own) :]) >= ARRIVALS:
                break
            _, more = starting_points(problem, initial, rng, options.restarts)
            random += more
            total += len(more)
            starts = [settings.place(start) for start in more]
            climbed = run(CLIMBS[options.method], starts, _add_directions(settings))
            climbs += climbed
            best = choose([best, *climbed])
        insert_active(problem, initial, best.weights)  # rejects zeros before the polish
        idle, n_starts = 0, len(climbs)
        while idle < polish:
            wave = min(WAVE, polish - idle)
            total = len(own) + len(random) + len(climbs) - n_starts + polish - idle
            around = _polish_settings(settings, problem, options, best)
            climbed = run(climb_from_perturbation, [best.weights] * wave, around)
            climbs += climbed
            better = choose([best, *climbed])
            idle = 0 if better.score > best.score else idle + wave
            best = better

    return make_solution(problem, initial, best.weights, _history(climbs, n_starts))


def _add_directions(settings: ClimbSettings) -> ClimbSettings:
    """Return settings with at least as many random directions as axes.

    Climbs leave optima of the axes by them.
    """
    directions = max(settings.random_directions, len(settings.minima))
    return replace(settings, random_directions=directions, symmetric=True)


def _sample_space(
    problem: Problem, initial: NDArray[np.float64], options: MertOptions
) -> SearchSpace | None:
    """Return the space of a sample of sentences to begin restarts in, or None.

    None means to begin with all sentences. Most climbs from random points end far below the best
    one. On a sample, that is seen in a fraction of the time.
    """
    lists = problem.tuning_set
    if options.restarts == 0 or options.method != "powell" or options.give_up == 0.0:
        return None
    if not _has_many_sentences(problem):
        return None
    sample = lists.take_sentences(np.arange(0, len(lists.sentence_ids), SAMPLED))
    if sample.n_hyps == 0:
        return None
    sampled = replace(problem, tuning_set=sample, source=None)
    return sampled.candidates.lines(problem.active_mask, initial)


def _choose_starts(
    space: SearchSpace,
    starts: list[NDArray[np.float64]],
    settings: ClimbSettings,
    pool: ThreadPoolExecutor,
) -> list[NDArray[np.float64]]:
    """Return the best-scoring share of the starts in their order; the first win ties."""
    scores = list(pool.map(lambda start: settings.score(space, start, space.at(start)), starts))
    best = np.argsort(-np.array(scores), kind="stable")[: -(-len(starts) // CONTINUED)]
    return [starts[number] for number in sorted(best.tolist())]


def _has_lists(problem: Problem) -> bool:
    return "lists" in problem.candidates.answers


def _has_many_sentences(problem: Problem) -> bool:
    return _has_lists(problem) and len(problem.tuning_set.sentence_ids) >= MANY_SENTENCES


def _is_small(problem: Problem, options: MertOptions) -> bool:
    if not _has_lists(problem) or problem.grows:
        return False
    if options.method != "powell" or not options.polish:
        return False
    return options.restarts > 0 and problem.tuning_set.n_hyps <= SMALL


def _runner(
    space: SearchSpace,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    finished: Callable[[], None],
) -> Callable[[ClimbFunction, list[NDArray[np.float64]], ClimbSettings], list[Climb]]:
    """Return a function that runs one climb from each start, with a generator each."""

    def run(
        climb: ClimbFunction, starts: list[NDArray[np.float64]], settings: ClimbSettings
    ) -> list[Climb]:
        def one(start: NDArray[np.float64], generator: np.random.Generator) -> Climb:
            result = climb(space, start, generator, settings)
            finished()
            return result

        return list(pool.map(one, starts, rng.spawn(len(starts))))

    return run


def _regularizer(
    problem: Problem, initial: NDArray[np.float64], space: SearchSpace, options: MertOptions
) -> Regularizer | None:
    if options.l2 == 0.0 or options.interval != "best":
        return None
    active = problem.active_mask
    center = initial if problem.center is None else problem.center
    if not center[active].any():
        return None
    every = np.ones(int(active.sum()), dtype=np.bool_)
    return Regularizer(options.l2, 0.0, center[active], every, space.spread)


def _settings(
    problem: Problem, options: MertOptions, regularizer: Regularizer | None
) -> ClimbSettings:
    minima, maxima = (bound[problem.active_mask] for bound in problem.box)
    directions = options.random_directions
    if options.method == "random-direction" and directions == 0:
        directions = DIRECTIONS_IN_A_ROW
    choice = IntervalChoice(options.interval, options.neighbors)
    positive = None if problem.positive is None else problem.positive[problem.active_mask]
    return ClimbSettings(
        minima,
        maxima,
        directions,
        choice,
        options.tolerance,
        positive=positive,
        symmetric=options.directions == "symmetric",
        bounds=None if problem.bounds is None else problem.bounds.take(problem.active_mask),
        regularizer=regularizer,
    )


def _bound_climbs(settings: ClimbSettings, give_up: float, best: Climb) -> ClimbSettings:
    """Return settings of climbs that are given up if they will not reach the best."""
    return settings if give_up == 0.0 else replace(settings, bound=best.score, give_up=give_up)


def _polish_settings(
    settings: ClimbSettings, problem: Problem, options: MertOptions, best: Climb
) -> ClimbSettings:
    if not _has_many_sentences(problem):
        return _bound_climbs(settings, options.give_up, best)
    near = replace(settings, radii=NEAR)
    return _bound_climbs(near, min(options.give_up, POLISH_GAINS), best)


def _history(climbs: list[Climb], n_starts: int) -> tuple[Mapping[str, object], ...]:
    return tuple(
        {
            "climb": "start" if index < n_starts else "polish",
            "start_score": climb.start_score,
            "score": climb.score,
            "rounds": climb.rounds,
        }
        for index, climb in enumerate(climbs)
    )


MERT = Algorithm(
    name="mert",
    summary="Find the metric's optimum along lines, exactly.",
    source="Och 2003",
    family="Moses",
    options=MertOptions,
    optimize=mert,
    asks=frozenset({"lines"}),
    restarts=True,
    tunes_sparse=False,
    keeps_bounds=True,
    # With 20, results of seeds differ two to three times as much, and are no better on average.
    tune_options=MappingProxyType({"restarts": 0}),
    tune_options_with="method=powell",
    weighs_sentences=True,
)

ALGORITHMS = (MERT,)
