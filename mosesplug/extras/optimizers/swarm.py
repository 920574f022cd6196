"""``pso``: a particle swarm on the corpus metric (Suzuki et al. 2011).

Each particle is a weight vector with a velocity. It is drawn towards the best point that it has
seen itself and towards the best that any has seen (Kennedy & Eberhart 1995). All particles are
scored in one pass over the lists. The number of particles and the coefficients are those of
standard particle swarms (Clerc 2012).

Positions are contributions of features to the differences between hypotheses, so that one velocity
suits all features. If the scale of the weights changes no decision, particles move on the unit
sphere, where they cannot drift along their own scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.errors import UsageError
from mosesplug.extras.optimizers.decoding import PointDecoder
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
class PsoOptions:
    """Settings of the particle swarm."""

    particles: Annotated[
        int,
        Opt(
            "number of particles",
            details="The first is at the given weights, the others at random points from the box "
            "of the ranges.",
            source="Clerc 2012, standard particle swarm",
            minimum=2,
            maximum=10_000,
        ),
    ] = 40
    moves: Annotated[
        int,
        Opt(
            "maximum moves of all particles",
            source="mosesplug's, found on recorded lists",
            minimum=1,
        ),
    ] = 100
    idle_moves: Annotated[
        int,
        Opt(
            "stop after this many moves in a row without improvement",
            source="mosesplug's, found on recorded lists",
            minimum=1,
        ),
    ] = 20
    inertia: Annotated[
        float,
        Opt(
            "fraction of its velocity that a particle keeps, below 1",
            source="Clerc & Kennedy 2002",
            minimum=0.0,
        ),
    ] = 0.7298
    own_pull: Annotated[
        float,
        Opt(
            "largest attraction of the particle's own best point",
            source="Clerc & Kennedy 2002",
            minimum=0.0,
        ),
    ] = 1.49618
    swarm_pull: Annotated[
        float,
        Opt(
            "largest attraction of the best point of the swarm",
            source="Clerc & Kennedy 2002",
            minimum=0.0,
        ),
    ] = 1.49618


@dataclass(frozen=True)
class Swarm:
    """Particles at one time.

    Attributes:
        places: float64 ``[n_particles, n_active]``.
        velocities: the same.
        own: the same; the best place that each has seen.
        own_scores: float64 ``[n_particles]``, their scores.
    """

    places: Floats
    velocities: Floats
    own: Floats
    own_scores: Floats

    @property
    def best(self) -> int:
        """The particle that has seen the best place; the first in a tie."""
        return int(np.argmax(self.own_scores))

    def move(
        self, options: PsoOptions, rng: np.random.Generator, place: Callable[[Floats], Floats]
    ) -> Swarm:
        """Return the particles after a move, not scored yet.

            v <- inertia v + r1 own_pull (own - x) + r2 swarm_pull (best - x);  x <- x + v

        with ``r1`` and ``r2`` uniform from 0 to 1, drawn for each coordinate (Suzuki et al. 2011,
        after Kennedy & Eberhart 1995). ``place`` moves new places to allowed ones.
        """
        own, swarm = rng.random((2, *self.places.shape))
        velocities = (
            options.inertia * self.velocities
            + options.own_pull * own * (self.own - self.places)
            + options.swarm_pull * swarm * (self.own[self.best] - self.places)
        )
        places = self.places + velocities
        return replace(self, places=place(places), velocities=velocities)

    def with_scores(self, scores: Floats) -> Swarm:
        """Return the swarm with what its places score, float64 ``[n_particles]``."""
        better = scores > self.own_scores
        return replace(
            self,
            own=np.where(better[:, np.newaxis], self.places, self.own),
            own_scores=np.where(better, scores, self.own_scores),
        )


def project_to_sphere(places: Floats) -> Floats:
    """Return the rows divided by their lengths; rows of zeros are kept."""
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return places / np.where(lengths > 0.0, lengths, 1.0)


def pso(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: PsoOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights for the corpus score of the 1-best hypotheses.

    See ``problem`` for the arguments. The first particles are the initial weights and the historic
    bests, the others random points of the box; each starts with half of the way to a random point
    as its velocity (Clerc 2012).

    Raises:
        UsageError: an inertia of 1 or more, with which particles never converge.
        OptimizerError: only zero weights
            were found.
    """
    if options.inertia >= 1.0:
        raise UsageError(f"inertia must be below 1, not {options.inertia:g}")
    initial = normalize(problem, initial)
    space = line_space(problem.tuning_set, problem.metric, problem.active_mask, initial)
    decoder = PointDecoder(space, problem.threads)
    # A weight without effect keeps its scale, and all particles have the same value of it.
    matters = space.spread > 0.0
    scale = np.where(matters, space.spread, 1.0)
    on_sphere = space.fixed_spread == 0.0 and problem.has_conic_bounds
    bounds = None if problem.bounds is None else problem.bounds.take(problem.active_mask)

    def place(places: Floats) -> Floats:
        inside = places if bounds is None else bounds.project(places / scale) * scale
        return project_to_sphere(inside) if on_sphere else inside

    def scores(places: Floats) -> Floats:
        return decoder.scores(places / scale)

    own, random = starting_points(problem, initial, rng, 2 * options.particles)
    own = own[: options.particles]
    n_random = options.particles - len(own)
    places = np.array([*own, *random[:n_random]]) * scale
    goals = np.array(random[-options.particles :]) * scale
    places[:, ~matters] = goals[:, ~matters] = 0.0
    places, goals = place(places), place(goals)
    swarm = Swarm(
        places, 0.5 * (goals - places), places, np.full(options.particles, -np.inf)
    ).with_scores(scores(places))
    history: list[Mapping[str, object]] = [_step(0, swarm)]
    idle = 0
    for move in range(1, options.moves + 1):
        before = float(swarm.own_scores[swarm.best])
        swarm = swarm.move(options, rng, place)
        swarm = swarm.with_scores(scores(swarm.places))
        history.append(_step(move, swarm))
        progress(move, options.moves, "moves")
        idle = idle + 1 if float(swarm.own_scores[swarm.best]) <= before else 0
        if idle >= options.idle_moves:
            break
    number = choose_best(problem, initial, list(swarm.own), swarm.own_scores.tolist())
    best = swarm.own[number] / scale
    best[~matters] = initial[problem.active_mask][~matters]
    return make_solution(problem, initial, best, tuple(history))


def _step(move: int, swarm: Swarm) -> Mapping[str, object]:
    speeds = np.linalg.norm(swarm.velocities, axis=1)
    return {
        "move": move,
        "score": float(swarm.own_scores.max()),
        "mean_score": float(swarm.own_scores.mean()),
        "speed": float(speeds.mean()),
    }


PSO = Algorithm(
    name="pso",
    summary="Search with a particle swarm on the metric.",
    source="Suzuki et al. 2011",
    family="direct search",
    options=PsoOptions,
    optimize=pso,
    restarts=True,
    tunes_sparse=False,
    keeps_bounds=True,
    weighs_sentences=True,
)
