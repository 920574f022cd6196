"""Climb from one starting point until no searched line leads to a better score.

Four ways to choose the next line, all with the same exact line search:

- ``climb_axes``: search every axis from the same point, move along the best (Moses' ``mert -t
  powell``);
- ``climb_random_directions``: search random lines only (``-t random-direction``);
- ``try_random_point``: score one random point, search no line (``-t random``);
- ``climb_from_perturbation``: perturb a good point a little, then search one axis after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats
from mosesplug.candidates import SearchSpace, Surface
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.line_search.space import (
    IntervalChoice,
    Regularizer,
    best_move,
)

FURTHEST = 1000.0
"""Longest step, relative to the L1 norms of weights and direction: beyond it the other weights are
rounding noise."""

RADII = (0.02, 0.3)
"""Sizes of perturbations, as shares of the mean contribution of a feature. Mosesplug's, found on
recorded lists: one size for all ends lower."""

NEAR = (0.02, 0.13)
"""The same for many sentences, where nearly no larger perturbation leads to a higher score."""


@dataclass(frozen=True)
class ClimbSettings:
    """Settings that all climbs of a search share.

    Attributes:
        minima: float64 ``[n_active]``, lower ends of the box of random points and directions.
        maxima: float64 ``[n_active]``, its upper ends.
        random_directions: number of random directions (see each climb).
        choice: how an interval of a line is chosen.
        tolerance: a round that gains at most this ends the climb.
        bound: a score that the climb should reach.
        give_up: the climb ends if this many more gains like its last would not reach the bound.
        positive: bool ``[n_active]``, weights that are and must stay above 0; None if there are
            none.
        symmetric: draw random directions from -1/2 to 1/2, not from the box.
        bounds: the bounds of the active weights, which the start keeps and every step must; None if
            there are none.
        radii: least and greatest size of perturbations, as shares of the mean contribution of a
            feature.
        regularizer: the regularizer of the active weights: its penalty is subtracted from all
            scores; None without one. It excludes a choice that smooths.
    """

    minima: Floats
    maxima: Floats
    random_directions: int
    choice: IntervalChoice
    tolerance: float
    bound: float = -np.inf
    give_up: float = 0.0
    positive: NDArray[np.bool_] | None = None
    symmetric: bool = False
    bounds: Bounds | None = None
    radii: tuple[float, float] = RADII
    regularizer: Regularizer | None = None

    def score(self, space: SearchSpace, weights: Floats, point: Floats) -> float:
        """Return the metric of decoding at the weights' point, minus the penalty."""
        score = space.decode(point)
        return score if self.regularizer is None else score - self.regularizer.penalty(weights)

    def place(self, weights: Floats) -> Floats:
        """Return the weights, moving those that must be positive or inside bounds."""
        weights = make_positive(weights, self.positive)
        return weights if self.bounds is None else self.bounds.project(weights)

    def room(self, weights: Floats, direction: Floats) -> tuple[float, float]:
        """Return how far a step may go, either way, before a weight meets a limit."""
        low, high = _room(weights, direction, self.positive)
        if self.bounds is None:
            return low, high
        least, most = self.bounds.box
        moving = direction != 0.0
        along = direction[moving]
        to_least = (least[moving] - weights[moving]) / along
        to_most = (most[moving] - weights[moving]) / along
        return (
            max(low, float(np.minimum(to_least, to_most).max(initial=-np.inf))),
            min(high, float(np.maximum(to_least, to_most).min(initial=np.inf))),
        )


@dataclass(frozen=True)
class Climb:
    """The result of a climb.

    Attributes:
        weights: float64 ``[n_active]``.
        start_score: metric of decoding at the start, minus the penalty.
        score: the same at ``weights``.
        rounds: number of rounds of line searches.
    """

    weights: Floats
    start_score: float
    score: float
    rounds: int


@dataclass(frozen=True)
class _Place:
    """A point of the space and its metric.

    Attributes:
        weights: float64 ``[n_active]``.
        point: the space's representation of the weights.
        score: metric of decoding here, minus the penalty.
        value: what the point was chosen by: the score, or its interval's smoothed value.
    """

    weights: Floats
    point: Floats
    score: float
    value: float

    @classmethod
    def start(cls, space: SearchSpace, weights: Floats, settings: ClimbSettings) -> _Place:
        """Return the start of a climb, which has no smoothed value yet."""
        point = space.at(weights)
        score = settings.score(space, weights, point)
        return cls(weights, point, score, -np.inf if settings.choice.smooths else score)

    def follow(self, space: SearchSpace, step: _Step, settings: ClimbSettings) -> _Place | None:
        """Return the end of a step if it is better, by the score of decoding there.

        If intervals are judged by their neighborhood, so are steps: the score may then fall while
        its neighborhood rises.
        """
        if step.value <= self.value:
            return None
        # Decoded there: rounding may have put the point into the interval beside the one that was
        # chosen.
        there = _Place.start(space, step.weights, settings)
        if settings.choice.smooths:
            return replace(there, value=step.value)
        return there if there.score > self.score else None


class _Step(NamedTuple):
    """The best point of one line: its weights, its value, and the line's number."""

    weights: Floats
    value: float
    line: int


ClimbFunction = Callable[[SearchSpace, Floats, np.random.Generator, ClimbSettings], Climb]


def try_random_point(
    space: SearchSpace, start: Floats, rng: np.random.Generator, settings: ClimbSettings
) -> Climb:
    """Return a random point if it beats the start (Moses' ``RandomOptimizer``)."""
    origin = _Place.start(space, start, settings)
    somewhere = rng.uniform(settings.minima, settings.maxima)
    point = _Place.start(space, settings.place(somewhere), settings)
    better = max(origin, point, key=lambda place: place.score)
    return Climb(better.weights, origin.score, better.score, 1)


def climb_axes(
    space: SearchSpace, start: Floats, rng: np.random.Generator, settings: ClimbSettings
) -> Climb:
    """Search all axes and some random directions from one point, move along the best.

    The climb ends with a round that gains at most the tolerance.
    """
    n_axes = len(start)
    place = _Place.start(space, start, settings)
    start_score = place.score
    moved_along, rounds = -1, 0
    while True:
        rounds += 1
        # The axis of the last move is the same line again, with the same best point.
        wanted = np.flatnonzero(np.arange(n_axes) != moved_along)
        steps = _axis_steps(space, wanted, place, settings)
        steps += _random_steps(space, rng, place, settings)
        if not steps:
            break
        # The first of equal ones wins, as in all ties.
        best = max(steps, key=lambda step: step.value)
        moved = place.follow(space, best, settings)
        if moved is None:
            break
        gain = moved.value - place.value
        place, moved_along = moved, best.line
        hopeless = place.score + settings.give_up * gain < settings.bound
        if gain <= settings.tolerance or hopeless:
            break
    return Climb(place.weights, start_score, place.score, rounds)


def climb_random_directions(
    space: SearchSpace, start: Floats, rng: np.random.Generator, settings: ClimbSettings
) -> Climb:
    """Search random directions until ``random_directions`` in a row gain nothing."""
    one_direction = replace(settings, random_directions=1)
    place = _Place.start(space, start, settings)
    start_score = place.score
    idle = rounds = 0
    while idle < settings.random_directions:
        rounds += 1
        idle += 1
        for step in _random_steps(space, rng, place, one_direction):
            moved = place.follow(space, step, settings)
            if moved is not None:
                idle = 0 if moved.value - place.value > settings.tolerance else idle
                place = moved
    return Climb(place.weights, start_score, place.score, rounds)


def climb_from_perturbation(
    space: SearchSpace,
    start: Floats,
    rng: np.random.Generator,
    settings: ClimbSettings,
) -> Climb:
    """Perturb the start a little, and climb from there along one axis after the other.

    A better point than a local optimum is often close by (iterated local search). The perturbation
    changes the contribution of each feature to the differences between hypotheses by about ``r`` of
    the mean contribution, whatever the scale of its values. The distance of the better point is
    unknown, so ``r`` is drawn uniformly on a logarithmic scale between the ends of ``radii``.
    """
    least, greatest = settings.radii
    radius = least * (greatest / least) ** rng.random()
    spread = space.spread
    contribution = np.abs(start * spread).mean()
    noise = rng.standard_normal(len(start)) * radius * contribution
    perturbed = start + np.divide(noise, spread, out=np.zeros_like(noise), where=spread > 0.0)
    start_score = _Place.start(space, start, settings).score
    place = _Place.start(space, settings.place(perturbed), settings)
    rounds = moves = 0
    searched = np.full(len(start), -1)  # the number of moves when each axis was searched
    while True:
        rounds += 1
        before = place.value
        for axis in rng.permutation(len(start)):
            if searched[axis] == moves:
                continue  # the same line again, with the same best point
            wanted = np.array([axis], dtype=np.int64)
            for step in _axis_steps(space, wanted, place, settings):
                moved = place.follow(space, step, settings)
                if moved is not None:
                    place = moved
                    moves += 1
            searched[axis] = moves
        # Smoothed values start at minus infinity, whose difference would be NaN.
        if place.value == before:
            break
        gain = place.value - before
        hopeless = place.score + settings.give_up * gain < settings.bound
        if gain <= settings.tolerance or hopeless:
            break
    return Climb(place.weights, start_score, place.score, rounds)


def make_positive(weights: Floats, positive: NDArray[np.bool_] | None) -> Floats:
    """Return the weights, ``[n_active]``; raise those that must be positive above 0."""
    if positive is None:
        return weights
    small = 1e-3 * (np.abs(weights).mean() or 1.0)
    return np.where(positive & (weights <= 0.0), small, weights)


def _room(
    weights: Floats, direction: Floats, positive: NDArray[np.bool_] | None
) -> tuple[float, float]:
    """Return how far a step may go, either way, before a positive weight becomes 0."""
    if positive is None:
        return -np.inf, np.inf
    moving = positive & (direction != 0.0)
    ends = -weights[moving] / direction[moving]
    upwards = direction[moving] > 0.0
    return ends[upwards].max(initial=-np.inf), ends[~upwards].min(initial=np.inf)


def _axis_steps(
    space: SearchSpace, wanted: NDArray[np.int64], place: _Place, settings: ClimbSettings
) -> list[_Step]:
    """Return the best points along the wanted axes, whose numbers are the lines'."""
    surfaces = space.along_axes(wanted, place.point)
    return _steps(surfaces, np.eye(len(place.weights))[wanted], wanted, place, settings)


def _random_steps(
    space: SearchSpace, rng: np.random.Generator, place: _Place, settings: ClimbSettings
) -> list[_Step]:
    """Return the best points along new random directions; their line numbers are -1."""
    if not settings.random_directions:
        return []
    shape = (settings.random_directions, len(place.weights))
    if settings.symmetric:
        directions = rng.uniform(-0.5, 0.5, shape)
    else:
        directions = rng.uniform(settings.minima, settings.maxima, shape)
    # A direction of zeros is no line.
    directions = directions[np.abs(directions).sum(axis=1) > 0.0]
    if not len(directions):
        return []
    surfaces = space.along(directions, place.point)
    return _steps(surfaces, directions, np.full(len(directions), -1), place, settings)


def _steps(
    surfaces: Iterable[Surface],
    directions: Floats,
    numbers: NDArray[np.int64],
    place: _Place,
    settings: ClimbSettings,
) -> list[_Step]:
    """Return the best point of each line; lines without one are left out."""
    reach = FURTHEST * max(1.0, np.abs(place.weights).sum())
    steps = []
    for direction, number, surface in zip(directions, numbers, surfaces, strict=True):
        move = best_move(
            surface,
            place.weights,
            direction,
            settings.regularizer,
            reach / np.abs(direction).sum(),
            settings.room(place.weights, direction),
            settings.choice,
        )
        if move is not None:
            weights = move.weights
            if settings.bounds is not None:
                weights = settings.bounds.project(weights)  # rounding
            steps.append(_Step(weights, move.value, int(number)))
    return steps
