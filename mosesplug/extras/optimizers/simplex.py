"""The downhill simplex of Nelder & Mead (1965): a generator that asks for scores.

A simplex of ``n + 1`` points moves uphill: its worst point is reflected through the centroid of the
others, further if that is good, less far if it is bad, and if nothing helps all points move towards
the best. Instead, an inexact line search may look along the line through worst point and centroid
(after Zhao & Chen 2009, by their abstract).

The score is constant almost everywhere, so a simplex may stop where there is no slope; a fresh one
is then built around the best point, until one gains nothing (as Press et al. 2007, section 10.5,
recommend).

Coordinates are contributions of features to the differences between hypotheses, so that one size of
simplex suits all features. If the scale of the weights changes no decision, the simplex lies in the
plane that touches the unit sphere at its first point: lines in the plane are lines of weights, and
no step only changes the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.optimizers.bounds import Bounds

Result = TypeVar("Result")

Scorer = Callable[[Floats], Floats]
Search = Generator[Floats, Floats, Result]
"""Yields points, float64 ``[m, n]``, and is sent their scores, float64 ``[m]``."""

_Step = tuple[tuple[Floats, float] | None, int]
"""The replacement of the worst point, coordinates and score, or None; and the number of points that
were scored to find it."""

ARMIJO_FIRST, ARMIJO_SHORTER, ARMIJO_STEPS = 2.0, 0.5, 4
"""rho, beta, and the number of steps tried. Mosesplug's: expansion, reflection and contraction of
Nelder & Mead (1965) are the steps 2, 1 and 1/2."""

ARMIJO_SHARE = 0.1
"""eta: the share of the simplex's own slope that a step must gain. Mosesplug's."""


@dataclass(frozen=True)
class SimplexSettings:
    """Settings that all simplexes of a search share.

    Attributes:
        size: distance of the other points of a new simplex from its first, relative to the length
            of that one.
        tolerance: a simplex has converged when its scores differ by at most this; a fresh simplex
            that gains at most this is the last.
        evaluations: a search ends after so many points.
        spread: float64 ``[n_active]``, spread of each feature within a sentence.
        fixed_spread: spread of the inactive weights' score; if 0, multiples of the active weights
            decide alike.
        step: replacement of the worst point: by reflection (Nelder & Mead 1965), or by an inexact
            line search (after Zhao & Chen 2009).
        bounds: the bounds of the active weights; points outside are moved to the nearest inside.
            None if there are none.
    """

    size: float
    tolerance: float
    evaluations: int
    spread: Floats
    fixed_spread: float
    step: Literal["amoeba", "armijo"] = "amoeba"
    bounds: Bounds | None = None

    @property
    def has_free_scale(self) -> bool:
        """Whether multiples of the active weights decide alike and are allowed."""
        return self.fixed_spread == 0.0 and (self.bounds is None or self.bounds.is_cone())


@dataclass(frozen=True)
class SimplexResult:
    """The result of a search.

    Attributes:
        weights: float64 ``[n_active]``.
        start_score: at the start.
        score: at ``weights``.
        evaluations: number of scored points.
        simplexes: number of simplexes built.
    """

    weights: Floats
    start_score: float
    score: float
    evaluations: int
    simplexes: int


@dataclass(frozen=True)
class Plane:
    """Points near some weights, by coordinates of a random orthonormal basis.

    Attributes:
        center: float64 ``[n_active]``, contributions of the features at the origin.
        basis: float64 ``[n_active, n_coordinates]``.
        spread: float64 ``[n_active]``; contributions over it are weights.
        length: the length of the center, fixed weights included, or 1 if that is 0; the unit of
            coordinates.
        at_origin: float64 ``[n_active]``, the weights there.
        bounds: the bounds of the weights; None if there are none.
    """

    center: Floats
    basis: Floats
    spread: Floats
    length: float
    at_origin: Floats
    bounds: Bounds | None = None

    @classmethod
    def at(cls, weights: Floats, settings: SimplexSettings, rng: np.random.Generator) -> Plane:
        """Return the plane around ``weights``, float64 ``[n_active]``.

        A feature that never differs within a sentence has no coordinate, and keeps its weight.
        """
        matters = settings.spread > 0.0
        center = weights * settings.spread
        length = float(np.hypot(np.linalg.norm(center), settings.fixed_spread))
        n = int(np.count_nonzero(matters))
        directions = rng.standard_normal((n, n))
        touching = settings.has_free_scale and length > 0.0 and n > 0
        if touching:
            directions[:, 0] = center[matters]
        basis = np.zeros((len(weights), n))
        basis[matters] = np.linalg.qr(directions)[0]
        return cls(
            center,
            basis[:, int(touching) :],
            settings.spread,
            length or 1.0,
            weights.copy(),
            settings.bounds,
        )

    def weights(self, coordinates: Floats) -> Floats:
        """Return the weights at the coordinates, float64 ``[m, n_active]``.

        ``coordinates`` is float64 ``[m, n_coordinates]``.
        """
        moved = self.length * (coordinates @ self.basis.T)
        matters = self.spread > 0.0
        weights = np.where(
            matters, (self.center + moved) / np.where(matters, self.spread, 1.0), self.at_origin
        )
        return weights if self.bounds is None else self.bounds.project(weights)


def simplex_search(
    start: Floats, settings: SimplexSettings, rng: np.random.Generator
) -> Search[SimplexResult]:
    """Climb from ``start``, float64 ``[n_active]``, by one simplex after the other."""
    best, start_score, score = start, -np.inf, -np.inf
    evaluations = simplexes = 0
    while True:
        plane = Plane.at(best, settings, rng)
        size = settings.size
        points = np.concatenate([np.zeros((1, plane.basis.shape[1])), size * _identity(plane)])
        scores = np.array((yield plane.weights(points)))
        if simplexes == 0:
            start_score = score = float(scores[0])
        evaluations, simplexes = evaluations + len(points), simplexes + 1
        if len(points) == 1:  # only a scale, or nothing, could change
            return SimplexResult(best, start_score, score, evaluations, simplexes)
        room = settings.evaluations - evaluations
        evaluations += yield from _climb(plane, points, scores, settings, room)
        top = int(np.argmax(scores))
        gain = float(scores[top]) - score
        if gain > 0.0:
            best, score = plane.weights(points[top : top + 1])[0], float(scores[top])
        if gain <= settings.tolerance or evaluations >= settings.evaluations:
            return SimplexResult(best, start_score, score, evaluations, simplexes)


def _identity(plane: Plane) -> Floats:
    return np.eye(plane.basis.shape[1])


def _climb(
    plane: Plane, points: Floats, scores: Floats, settings: SimplexSettings, room: int
) -> Search[int]:
    """Move a simplex uphill until it converges; both arrays are written.

    The worst point is replaced by the result of a step. Without one, all points move towards the
    best: by a half (Nelder & Mead), or less in many dimensions (Gao & Han 2012, equation 4.1).

    Args:
        plane: the plane of the coordinates.
        points: float64 ``[n + 1, n]``.
        scores: float64 ``[n + 1]``.
        settings: kind of step and tolerance.
        room: points that may be scored; exceeded by at most one round.

    Returns:
        The number of scored points.
    """
    n = points.shape[1]
    shrinkage = max(0.5, 1.0 - 1.0 / n)
    step = _armijo_step if settings.step == "armijo" else _amoeba_step
    used = 0
    while used < room:
        order = np.argsort(-scores, kind="stable")
        points[:], scores[:] = points[order], scores[order]
        if scores[0] - scores[-1] <= settings.tolerance:
            break
        replacement, asked = yield from step(plane, points, scores)
        used += asked
        if replacement is not None:
            points[-1], scores[-1] = replacement
        else:
            points[1:] = points[0] + shrinkage * (points[1:] - points[0])
            scores[1:] = yield plane.weights(points[1:])
            used += n
    return used


def _amoeba_step(plane: Plane, points: Floats, scores: Floats) -> Search[_Step]:
    """Reflect the worst point, further or less far: the moves of Nelder & Mead (1965).

    Their coefficients are adapted to the number of dimensions as in Gao & Han (2012, equation 4.1).
    If the contraction beyond the centroid is worse than a reflected point that is better than the
    worst, the reflected point is taken; Nelder & Mead would move all points.

    Args:
        plane: the plane of the coordinates.
        points: float64 ``[n + 1, n]``, the best first.
        scores: float64 ``[n + 1]``.
    """
    n = points.shape[1]
    expansion, contraction = 1.0 + 2.0 / n, 0.75 - 0.5 / n
    away = points[:-1].mean(axis=0) - points[-1]
    reflected = points[-1] + 2.0 * away
    score = yield from _score(plane, reflected)
    if scores[0] >= score > scores[-2]:
        return (reflected, score), 1
    if score > scores[0]:
        further = points[-1] + (1.0 + expansion) * away
    elif score > scores[-1]:
        further = points[-1] + (1.0 + contraction) * away
    else:
        further = points[-1] + (1.0 - contraction) * away
    other = yield from _score(plane, further)
    if score > scores[-1] and score >= other:
        return (reflected, score), 2
    return ((further, other), 2) if other > scores[-1] else (None, 2)


def _armijo_step(plane: Plane, points: Floats, scores: Floats) -> Search[_Step]:
    """Search by Armijo's rule from the worst point through the others' centroid.

    After Zhao & Chen (2009): of the steps ``t = rho beta^k``, ``k = 0, 1, ...``, from the centroid
    ``c`` along ``d = c - worst`` the first is taken that gains enough,

        f(c + t d) >= m + eta t (m - f(worst)),

    where ``m`` is the mean score of the other points. The required gain is mosesplug's: on a plane
    through all points of the simplex, ``m`` is the score of ``c``, and ``m - f(worst)`` the slope
    along ``d``; a step must gain the share ``eta`` of it.

    Args:
        plane: the plane of the coordinates.
        points: float64 ``[n + 1, n]``, the best first.
        scores: float64 ``[n + 1]``.
    """
    centroid, mean = points[:-1].mean(axis=0), float(scores[:-1].mean())
    direction, slope = centroid - points[-1], mean - float(scores[-1])
    for tried in range(ARMIJO_STEPS):
        step = ARMIJO_FIRST * ARMIJO_SHORTER**tried
        point = centroid + step * direction
        score = yield from _score(plane, point)
        if score >= mean + ARMIJO_SHARE * step * slope:
            return (point, score), tried + 1
    return None, ARMIJO_STEPS


def _score(plane: Plane, point: Floats) -> Search[float]:
    return float((yield plane.weights(point[np.newaxis]))[0])


def run_together(searches: Sequence[Search[Result]], scorer: Scorer) -> list[Result]:
    """Run searches together; one pass scores the next points of all of them.

    Args:
        searches: not started.
        scorer: from points ``[m, n]`` to scores ``[m]``.

    Returns:
        Their results, in their order.
    """
    results: dict[int, Result] = {}
    asked = {number: next(search) for number, search in enumerate(searches)}
    while asked:
        scores = scorer(np.concatenate(list(asked.values())))
        ends = np.cumsum([len(points) for points in asked.values()])
        answers = dict(zip(asked, np.split(scores, ends[:-1]), strict=True))
        asked = {}
        for number, answer in answers.items():
            try:
                asked[number] = searches[number].send(answer)
            except StopIteration as end:
                results[number] = end.value
    return [results[number] for number in range(len(searches))]
