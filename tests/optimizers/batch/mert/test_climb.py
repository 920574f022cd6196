"""Where climbs end, and what they believe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.batch.mert.climb import (
    RADII,
    ClimbFunction,
    ClimbSettings,
    climb_axes,
    climb_from_perturbation,
    climb_random_directions,
    try_random_point,
)
from mosesplug.optimizers.line_search import space as points
from mosesplug.optimizers.line_search.lists import (
    LineSpace,
)
from mosesplug.optimizers.line_search.space import IntervalChoice, LinePoint, best_point
from tests.optimizers.problems import planted, space_of

SETTINGS = ClimbSettings(-np.ones(5), np.ones(5), 0, IntervalChoice(), 0.0)
START = np.array([1.0, -0.5, 0.25, 0.5, 1.0])


def hill(seed: int = 1) -> LineSpace:
    problem, _ = planted(seed, noise=1.0)
    return space_of(problem, START)


def score(space: LineSpace, weights: NDArray[np.float64]) -> float:
    return space.decode(space.at(weights))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("climbing", "random_directions"),
    [(climb_axes, 0), (climb_axes, 3), (climb_from_perturbation, 0)],
)
def test_no_axis_leads_up_from_where_a_climb_ends(
    climbing: ClimbFunction, random_directions: int, seed: int
) -> None:
    space = hill(seed)
    settings = replace(SETTINGS, random_directions=random_directions)
    found = climbing(space, START, np.random.default_rng(seed), settings)
    assert found.score == score(space, found.weights)
    assert found.start_score == score(space, START)
    intercepts = space.at(found.weights)
    surfaces = list(space.along_axes(np.arange(5), intercepts))
    assert len(surfaces) == 5
    for thresholds, scores in surfaces:
        point = best_point(thresholds, scores, SETTINGS.choice, 100.0)
        assert point is not None
        assert point.value <= found.score + 1e-12


def test_the_best_of_all_axes_is_taken_first() -> None:
    space = hill()
    intercepts = space.at(START)
    surfaces = space.along_axes(np.arange(5), intercepts)
    points = [best_point(*surface, SETTINGS.choice, 1000.0) for surface in surfaces]
    best = max(point.value for point in points if point is not None)
    found = climb_axes(space, START, np.random.default_rng(0), replace(SETTINGS, tolerance=np.inf))
    assert found.rounds == 1
    assert found.score == pytest.approx(best)


def test_random_directions_continue_while_they_gain() -> None:
    settings = replace(SETTINGS, random_directions=5)
    found = climb_random_directions(hill(), START, np.random.default_rng(0), settings)
    assert found.score > found.start_score
    assert found.rounds > 5
    unmoved = replace(settings, minima=np.zeros(5), maxima=np.zeros(5))
    stuck = climb_random_directions(hill(), START, np.random.default_rng(0), unmoved)
    assert stuck.rounds == 5
    np.testing.assert_array_equal(stuck.weights, START)


def test_random_directions_are_of_the_box_or_symmetric(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[NDArray[np.float64]] = []
    lines = LineSpace.lines

    def recorded(space: LineSpace, directions: NDArray[np.float64]) -> Any:
        drawn.append(directions)
        return lines(space, directions)

    monkeypatch.setattr(LineSpace, "lines", recorded)
    settings = replace(
        SETTINGS, random_directions=30, minima=np.full(5, 2.0), maxima=np.full(5, 3.0)
    )
    climb_axes(hill(), START, np.random.default_rng(0), settings)
    assert (np.concatenate(drawn) >= 2.0).all()
    drawn.clear()
    climb_axes(hill(), START, np.random.default_rng(0), replace(settings, symmetric=True))
    of_all = np.concatenate(drawn)
    assert (np.abs(of_all) <= 0.5).all()
    assert (of_all < -0.2).any(axis=0).all()
    assert (of_all > 0.2).any(axis=0).all()


def test_random_directions_are_searched_with_the_axes() -> None:
    one_round = replace(SETTINGS, tolerance=np.inf)
    more = replace(one_round, random_directions=50)
    alone = climb_axes(hill(), START, np.random.default_rng(0), one_round)
    helped = climb_axes(hill(), START, np.random.default_rng(0), more)
    assert helped.score > alone.score
    assert np.count_nonzero(helped.weights != START) == 5


def test_only_the_axis_moved_along_last_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[list[int]] = []

    changes = LineSpace.changes

    def recorded(space: LineSpace, lines: Any, wanted: NDArray[np.int64], *others: Any) -> Any:
        searched.append(wanted.tolist())
        return changes(space, lines, wanted, *others)

    monkeypatch.setattr(LineSpace, "changes", recorded)
    ways = set()
    for seed in range(20):
        settings = replace(SETTINGS, random_directions=1)
        first = replace(settings, tolerance=np.inf)
        moved = climb_axes(hill(), START, np.random.default_rng(seed), first).weights != START
        searched.clear()
        climb_axes(hill(), START, np.random.default_rng(seed), settings)
        random_won = np.count_nonzero(moved) == 5
        left_out = [] if random_won else np.flatnonzero(moved).tolist()
        assert searched[:2] == [[0, 1, 2, 3, 4], [0]]
        assert searched[2] == [axis for axis in range(5) if axis not in left_out]
        ways.add(random_won)
    assert ways == {False, True}


def test_one_random_point_or_the_start() -> None:
    space = hill()
    founds = [try_random_point(space, START, np.random.default_rng(k), SETTINGS) for k in range(30)]
    assert all(found.score == score(space, found.weights) for found in founds)
    assert all(found.score >= found.start_score for found in founds)
    assert any(np.array_equal(found.weights, START) for found in founds)
    assert any(found.score > found.start_score for found in founds)


@pytest.mark.parametrize("climbing", [climb_axes, climb_random_directions, climb_from_perturbation])
def test_decoding_has_the_last_word(
    climbing: ClimbFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line search that promises too much leads nowhere worse."""
    space = hill()
    settings = replace(SETTINGS, random_directions=3)
    good = climb_axes(space, START, np.random.default_rng(0), SETTINGS).weights
    monkeypatch.setattr(points, "best_point", lambda *_: LinePoint(0.4, 2.0))
    found = climbing(space, good, np.random.default_rng(0), settings)
    assert found.score == score(space, found.weights)
    if climbing is not climb_from_perturbation:  # that one starts from a perturbed point
        assert found.score >= score(space, good)


@pytest.mark.parametrize("climbing", [climb_axes, climb_random_directions, climb_from_perturbation])
@pytest.mark.parametrize("method", ["average", "minimum"])
def test_smoothed_values_rise(
    climbing: ClimbFunction,
    method: Literal["average", "minimum"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once its neighborhood has spoken for a point, only a better neighborhood moves it."""
    values = iter([0.3, *[0.1] * 10_000])
    monkeypatch.setattr(points, "best_point", lambda *_: LinePoint(0.4, next(values)))
    space = hill()
    settings = replace(SETTINGS, random_directions=1, choice=IntervalChoice(method, 2))
    begin = START
    if climbing is climb_from_perturbation:
        begin = START * 0.0  # no contribution, so no perturbation
    found = climbing(space, begin, np.random.default_rng(0), settings)
    moved = found.weights - begin
    if climbing is climb_random_directions:
        assert 0.0 < np.abs(moved).max() <= 0.4
    else:
        assert np.abs(moved).sum() == pytest.approx(0.4)


def test_a_hopeless_search_is_abandoned() -> None:
    settings = replace(SETTINGS, bound=2.0, give_up=0.001)
    full = climb_axes(hill(), START, np.random.default_rng(0), SETTINGS)
    short = climb_axes(hill(), START, np.random.default_rng(0), settings)
    assert short.rounds == 1 < full.rounds
    assert short.start_score < short.score < full.score
    hopeful = replace(settings, give_up=1e6)
    assert climb_axes(hill(), START, np.random.default_rng(0), hopeful).score == full.score


def test_a_hopeless_search_around_a_point_is_abandoned() -> None:
    begin = np.array([1.0, 0.2, 0.2, 0.2, 0.2])
    full, short, hopeful = (
        climb_from_perturbation(hill(), begin, np.random.default_rng(2), settings)
        for settings in (
            SETTINGS,
            replace(SETTINGS, bound=2.0, give_up=0.001),
            replace(SETTINGS, bound=2.0, give_up=1e6),
        )
    )
    assert short.rounds == 1 < full.rounds == hopeful.rounds
    assert hopeful.score == full.score


def test_perturbations_are_small_and_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "best_point", lambda *_: None)  # no line leads away
    space = hill()
    contribution = np.abs(START * space.spread).mean()
    sizes = []
    for seed in range(40):
        found = climb_from_perturbation(space, START, np.random.default_rng(seed), SETTINGS)
        noise = (found.weights - START) * space.spread / contribution
        sizes.append(np.sqrt((noise**2).mean()))
    low, high = RADII
    tenth, half, ninth = np.quantile(sizes, [0.1, 0.5, 0.9])
    assert low / 2 < tenth < 3 * low < half < high / 2
    assert high / 3 < ninth < 1.5 * high
