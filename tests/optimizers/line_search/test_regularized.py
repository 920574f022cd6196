"""The best point of a regularized line, against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.line_search.space import Anchor, Regularizer, best_move

Vector = NDArray[np.float64]

ALL = np.ones(4, dtype=np.bool_)


def sine(weights: Vector, given: Vector) -> float:
    """Squared, by the least distance over scales that are not negative."""
    scale = max(0.0, float(weights @ given) / float(weights @ weights))
    return float(((scale * weights - given) ** 2).sum() / (given @ given))


def test_the_sine_is_the_least_distance_over_scales() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights, direction, given = rng.standard_normal((3, 4))
        anchor = Anchor.of(weights, direction, given)
        steps = rng.standard_normal(5)
        expected = [sine(weights + step * direction, given) for step in steps]
        np.testing.assert_allclose(anchor.sine(steps), expected, atol=1e-12)
        assert Regularizer(2.0, 0.0, given, ALL).penalty(weights) == pytest.approx(
            2.0 * sine(weights, given)
        )
        # Whatever the scale.
        np.testing.assert_allclose(
            Anchor.of(3.0 * weights, 3.0 * direction, given).sine(steps), expected, atol=1e-12
        )


def test_the_minimum_of_the_sine_is_correct() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        weights, direction, given = rng.standard_normal((3, 4))
        anchor = Anchor.of(weights, direction, given)
        grid = anchor.sine(np.linspace(-50.0, 50.0, 20_001))
        squared = (anchor.p + anchor.q * anchor.nearest) / np.sqrt(anchor.length)
        if squared > 0.0 and abs(anchor.nearest) < 50.0:
            assert anchor.sine(np.array([anchor.nearest]))[0] <= grid.min() + 1e-12
    along = np.array([1.0, 2.0, 0.0, 0.0])
    assert np.isnan(Anchor.of(along, 2.0 * along, along).nearest)
    np.testing.assert_array_equal(Anchor.of(along, along, along).sine(np.array([-1.0, -3.0])), 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_grid_is_better_but_for_the_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, direction, given = rng.standard_normal((3, 4))
    thresholds = np.sort(rng.uniform(-2.0, 2.0, 12))
    scores = rng.uniform(0.3, 0.4, 13)
    regularizer = Regularizer(0.1, 0.0, given, ALL)
    found = best_move((thresholds, scores), weights, direction, regularizer, 5.0)
    assert found is not None
    # The value is that of the weights.
    step = float((found.weights - weights)[0] / direction[0])
    there = scores[np.searchsorted(thresholds, step)]
    assert found.value == pytest.approx(there - regularizer.penalty(found.weights))
    grid = np.linspace(-5.0, 5.0, 4001)
    values = scores[np.searchsorted(thresholds, grid)] - 0.1 * np.array(
        [sine(weights + each * direction, given) for each in grid]
    )
    # Less than the sine changes within a tenth of an interval.
    assert found.value > values.max() - 0.01
    assert np.abs(thresholds - step).min() > 1e-3


def test_units_scale_weights_in_the_sine_only() -> None:
    rng = np.random.default_rng(3)
    weights, direction, given = rng.standard_normal((3, 4))
    units = np.array([1.0, 10.0, 0.1, 0.0])
    regularizer = Regularizer(0.1, 0.0, given, ALL, units)
    assert regularizer.penalty(weights) == pytest.approx(0.1 * sine(weights * units, given * units))
    surface = np.array([-0.5, 0.25]), np.array([0.3, 0.31, 0.305])
    found = best_move(surface, weights, direction, regularizer, 5.0)
    assert found is not None
    step = float((found.weights - weights)[0] / direction[0])
    there = surface[1][np.searchsorted(surface[0], step)]
    assert found.value == pytest.approx(there - regularizer.penalty(found.weights))


@pytest.mark.parametrize(("l2", "l0"), [(0.1, 0.0), (0.0, 1e-4), (0.0, 0.0)])
def test_a_step_stays_within_its_ends(l2: float, l0: float) -> None:
    rng = np.random.default_rng(4)
    weights, direction, given = rng.standard_normal((3, 4))
    surface = np.sort(rng.uniform(-2.0, 2.0, 12)), rng.uniform(0.3, 0.4, 13)
    regularizer = Regularizer(l2, l0, given, ALL)
    for low, high in [(-0.1, 0.3), (0.0, 1.0), (-5.0, 0.0)]:
        found = best_move(surface, weights, direction, regularizer, 10.0, (low, high))
        assert found is not None
        step = float((found.weights - weights)[0] / direction[0])
        assert low <= step <= high


def test_a_weight_of_zero_is_chosen_where_it_is_worth_more() -> None:
    weights, direction = np.array([0.5, 0.4, 0.0, 1.0]), np.array([-1.0, 1.0, 0.0, 0.0])
    surface = np.array([0.2, 0.7]), np.array([0.30, 0.31, 0.32])

    def found(l0: float) -> tuple[list[float], float]:
        regularizer = Regularizer(0.0, l0, weights, np.array([True, True, True, False]))
        move = best_move(surface, weights, direction, regularizer, 10.0)
        assert move is not None
        return move.weights.tolist(), move.value

    # 0.02 more for both weights, at 0.8 (past the last threshold).
    moved, value = found(0.005)
    assert moved == pytest.approx([-0.3, 1.2, 0.0, 1.0])
    assert value == pytest.approx(0.31)
    # One weight is worth more than that: the first is 0 at a step of 0.5, exactly.
    moved, value = found(0.015)
    assert moved[0] == 0.0
    assert moved == [0.0, pytest.approx(0.9), 0.0, 1.0]
    assert value == pytest.approx(0.31 - 0.015)


def test_zeros_at_a_threshold_are_ignored() -> None:
    weights, direction = np.array([0.5, 1.0, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0, 0.0])
    regularizer = Regularizer(0.0, 0.1, weights, ALL)
    move = best_move((np.array([0.5]), np.array([0.3, 0.4])), weights, direction, regularizer, 10.0)
    assert move is not None
    assert np.count_nonzero(move.weights) == 2


def test_without_regularizer_it_is_the_line_search_of_mert() -> None:
    weights, direction = np.ones(4), np.array([0.0, 1.0, 0.0, 0.0])
    plain = Regularizer(0.0, 0.0, weights, ALL)
    surface = np.array([-0.5, 0.5]), np.array([0.1, 0.3, 0.2])
    move = best_move(surface, weights, direction, plain, 10.0)
    assert move is not None
    assert (move.weights.tolist(), move.value) == ([1.0, 1.0, 1.0, 1.0], 0.3)
    narrow = np.array([0.0, 1e-12]), np.array([0.1, 0.3, 0.1])
    move = best_move(narrow, weights, direction, Regularizer(0.1, 0.0, weights, ALL), 10.0)
    assert move is not None
    assert move.value <= 0.1
