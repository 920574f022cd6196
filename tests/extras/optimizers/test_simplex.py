"""The simplex on functions whose best point is known, and against SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.extras.optimizers.simplex import (
    ARMIJO_FIRST,
    ARMIJO_SHARE,
    ARMIJO_SHORTER,
    ARMIJO_STEPS,
    Plane,
    Search,
    SimplexResult,
    SimplexSettings,
    _armijo_step,
    run_together,
    simplex_search,
)

Vector = NDArray[np.float64]

TOP = np.array([1.0, -2.0, 0.5, 3.0])


def bowl(points: Vector) -> Vector:
    """Highest, 0, at TOP."""
    return -np.asarray((np.array([1.0, 4.0, 2.0, 0.5]) * (points - TOP) ** 2).sum(axis=1))


def settings(
    scale_free: bool = False, step: Literal["amoeba", "armijo"] = "amoeba", **changed: float
) -> SimplexSettings:
    known = {"size": 0.5, "tolerance": 1e-10, **changed}
    return SimplexSettings(
        known["size"],
        known["tolerance"],
        int(known.get("evaluations", 5000)),
        np.array([1.0, 0.5, 2.0, 1.0]),
        0.0 if scale_free else 1.0,
        step,
    )


def test_climbs_to_the_top_of_a_bowl_as_scipy_does() -> None:
    search = simplex_search(np.ones(4), settings(), np.random.default_rng(1))
    (found,) = run_together([search], bowl)
    np.testing.assert_allclose(found.weights, TOP, atol=1e-3)
    assert found.start_score == bowl(np.ones((1, 4)))[0]
    assert found.score == bowl(found.weights[np.newaxis])[0]
    theirs = minimize(
        lambda point: -bowl(point[np.newaxis])[0],
        np.ones(4),
        method="Nelder-Mead",
        options={"adaptive": True, "fatol": 1e-10, "xatol": np.inf},
    )
    # Ours builds fresh simplexes until one gains nothing.
    assert found.evaluations < 4 * theirs.nfev
    assert -found.score < 10 * theirs.fun + 1e-8


def test_armijo_steps_climb_to_the_top_of_a_bowl() -> None:
    search = simplex_search(np.ones(4), settings(step="armijo"), np.random.default_rng(1))
    (found,) = run_together([search], bowl)
    np.testing.assert_allclose(found.weights, TOP, atol=1e-3)
    assert found.score == bowl(found.weights[np.newaxis])[0]


@pytest.mark.parametrize("step", ["amoeba", "armijo"])
def test_stairs_are_climbed_almost_to_the_top(step: Literal["amoeba", "armijo"]) -> None:
    """Scores are constant almost everywhere, as those of a metric are."""

    def stairs(points: Vector) -> Vector:
        return np.floor(4.0 * bowl(points)) / 4.0

    for seed in range(3):
        search = simplex_search(np.ones(4), settings(step=step), np.random.default_rng(seed))
        (found,) = run_together([search], stairs)
        assert found.start_score == stairs(np.ones((1, 4)))[0] < -30.0
        assert found.score == stairs(found.weights[np.newaxis])[0] >= -1.0


def armijo_steps(score: Callable[[float], float]) -> tuple[Vector, Vector]:
    """What a simplex of one score 0, one 3 and one 5 asks for, in two dimensions, and its moves.

    Coordinates are weights, and the worst point is the origin: the centroid of the others is
    ``(1, 1)``, its expected score 4, and step ``t`` leads to ``(1 + t, 1 + t)``, expected to
    score ``4 + 4 t``. ``score`` is told ``t``.
    """
    plane = Plane(np.zeros(2), np.eye(2), np.ones(2), 1.0, np.zeros(2))
    search = _armijo_step(
        plane, np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([5, 3, 0])
    )
    asked = []
    point = next(search)
    while True:
        asked.append(point[0, 0] - 1.0)
        assert point[0, 0] == point[0, 1]
        try:
            point = search.send(np.array([score(asked[-1])]))
        except StopIteration as end:
            found, number = end.value
            assert number == len(asked)
            return np.array(asked), np.zeros(0) if found is None else np.append(*found)


def test_an_armijo_step_is_the_first_that_gains_enough() -> None:
    steps = ARMIJO_FIRST * ARMIJO_SHORTER ** np.arange(ARMIJO_STEPS)

    def just_enough(from_step: float, short_by: float) -> Callable[[float], float]:
        """A score that gains the least that is enough, but nothing before that step."""
        return lambda t: 4.0 + ARMIJO_SHARE * 4.0 * t - short_by if t <= from_step else 4.0

    for number, step in enumerate(steps):
        asked, found = armijo_steps(just_enough(step, 0.0))
        np.testing.assert_array_equal(asked, steps[: number + 1])
        np.testing.assert_allclose(found, [1.0 + step, 1.0 + step, 4.0 + ARMIJO_SHARE * 4.0 * step])
    asked, found = armijo_steps(just_enough(np.inf, 1e-9))
    np.testing.assert_array_equal(asked, steps)
    assert not found.size


def test_finds_a_direction_where_scale_decides_nothing() -> None:
    goal = TOP / np.linalg.norm(TOP)
    asked: list[Vector] = []

    def cosine(points: Vector) -> Vector:
        asked.append(points)
        return np.asarray(points @ goal / np.linalg.norm(points, axis=1))

    start = np.array([1.0, 1.0, 1.0, 1.0])
    tight = settings(True, tolerance=1e-12)
    (found,) = run_together([simplex_search(start, tight, np.random.default_rng(2))], cosine)
    assert found.score == pytest.approx(1.0, abs=1e-7)
    # The first simplex lies in the plane through the start, at a right angle to it.
    spread = tight.spread
    np.testing.assert_allclose(
        (asked[0] * spread - start * spread) @ (start * spread), 0.0, atol=1e-12
    )
    assert len(asked[0]) == 4


def test_weights_that_decide_nothing_stay() -> None:
    flat = SimplexSettings(0.5, 1e-9, 5000, np.array([1.0, 0.0, 1.0, 1.0]), 0.0)
    start = np.array([1.0, 7.0, 1.0, 1.0])
    plane = Plane.at(start, flat, np.random.default_rng(3))
    assert plane.basis.shape == (4, 2)
    moved = plane.weights(np.array([[0.3, -0.4], [0.0, 0.0]]))
    np.testing.assert_array_equal(moved[:, 1], 7.0)
    np.testing.assert_array_equal(moved[1], start)
    contributions = moved[0] * flat.spread - start * flat.spread
    assert np.linalg.norm(contributions) == pytest.approx(0.5 * np.sqrt(3.0))


def test_a_search_from_zero_weights_leaves_them() -> None:
    search = simplex_search(np.zeros(4), settings(True), np.random.default_rng(4))
    (found,) = run_together([search], bowl)
    np.testing.assert_allclose(found.weights, TOP, atol=1e-3)


def test_the_number_of_scored_points_is_limited() -> None:
    search = simplex_search(np.ones(4), settings(evaluations=30), np.random.default_rng(5))
    (found,) = run_together([search], bowl)
    assert 30 <= found.evaluations <= 36


def test_parallel_searches_equal_single_ones() -> None:
    def searches() -> list[Search[SimplexResult]]:
        starts = np.random.default_rng(6).standard_normal((3, 4))
        return [
            simplex_search(start, settings(), generator)
            for start, generator in zip(starts, np.random.default_rng(7).spawn(3), strict=True)
        ]

    together = run_together(searches(), bowl)
    alone = [run_together([search], bowl)[0] for search in searches()]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.evaluations == other.evaluations
