"""Scaled weights against the same updates written out over all features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.ball import (
    FILLS,
    all_weights,
    exponential_rate,
    init_state,
    present_weights,
    take_step,
)
from mosesplug.optimizers.online.learner import Change, LearnerState, Step, grow_state
from tests.optimizers.problems import Accuracy


def at(number: int, active: NDArray[np.bool_], per_epoch: int = 4) -> Step:
    epoch = 1 + (number - 1) // per_epoch
    return Step(number, epoch, per_epoch, Accuracy(), active, np.random.default_rng(number))


def random_change(rng: np.random.Generator, active: NDArray[np.bool_]) -> Change:
    columns = np.flatnonzero(active & (rng.random(len(active)) < 0.4)).astype(np.int64)
    return Change(columns, rng.standard_normal(len(columns)))


def written_out(
    weights: NDArray[Any], change: Change, active: NDArray[np.bool_], rate: float, strength: float
) -> NDArray[Any]:
    """Algorithm 2, lines 7 and 8, on the active weights; no step, no shrinking to 0."""
    weights = weights.copy()
    if len(change.columns) or strength * rate < 1.0:
        weights[active] *= max(0.0, 1.0 - strength * rate)
    weights[change.columns] += change.values
    norm = float(np.linalg.norm(weights[active]))
    if norm > 0.0:
        weights[active] *= min(1.0, 1.0 / np.sqrt(strength) / norm)
    return weights


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rate", "strength"), [(0.2, 1e-5), (0.5, 0.3), (0.9, 1.0), (2.0, 1.0)])
def test_shrinking_stepping_and_projecting(seed: int, rate: float, strength: float) -> None:
    rng = np.random.default_rng(seed)
    active = rng.random(12) < 0.7
    active[0] = True
    weights = 3.0 * rng.standard_normal(12)
    state = init_state(weights)
    fixed = weights[~active].copy()
    for number in range(1, 11):
        step, change = at(number, active), random_change(rng, active)
        weights = written_out(weights, change, active, rate, strength)
        state = take_step(state, change, step, rate=rate, regularization=strength)
        np.testing.assert_allclose(all_weights(state), weights, rtol=1e-10, atol=1e-12)
        some = np.array([0, 3, 11])
        np.testing.assert_allclose(
            present_weights(state, some, step), weights[some], rtol=1e-10, atol=1e-12
        )
        np.testing.assert_array_equal(all_weights(state)[~active], fixed)
        assert np.linalg.norm(all_weights(state)[active]) <= (1.0 + 1e-9) / np.sqrt(strength)
    assert state.updates == 10


def test_scales_too_small_to_divide_by_are_multiplied_out() -> None:
    active = np.ones(3, dtype=np.bool_)
    weights = np.array([1.0, -2.0, 0.5])
    state = init_state(weights)
    nothing = Change(np.zeros(0, dtype=np.int64), np.zeros(0))
    for number in range(2, 40):  # never the first or the last of an epoch
        state = take_step(state, nothing, at(number, active, 1000), rate=0.9, regularization=1.0)
    change = Change(np.array([1]), np.array([0.25]))
    state = take_step(state, change, at(40, active, 1000), rate=0.9, regularization=1.0)
    np.testing.assert_allclose(all_weights(state), [0.0, 0.25, 0.0], atol=1e-30)


def test_weights_mixed_between_epochs_are_used() -> None:
    active = np.ones(3, dtype=np.bool_)
    state = init_state(np.array([1.0, 2.0, 2.0]))
    change = Change(np.array([1]), np.array([1.0]))
    for number in range(1, 5):
        state = take_step(state, change, at(number, active), rate=0.5, regularization=0.01)
    mixed = np.array([8.0, 6.0, 0.0])
    state = LearnerState({**state.vectors, "weights": mixed.copy()}, state.memory, state.updates)
    np.testing.assert_array_equal(all_weights(state), mixed)
    state = take_step(state, change, at(5, active), rate=0.5, regularization=0.01)
    np.testing.assert_allclose(all_weights(state), written_out(mixed, change, active, 0.5, 0.01))


def test_zero_start() -> None:
    active = np.array([True, False, True])
    state = init_state(np.array([5.0, 7.0, -5.0]))
    change = Change(np.array([2]), np.array([0.5]))
    columns = np.arange(3)
    for number, expected in ((1, [0.0, 7.0, 0.5]), (2, [0.0, 7.0, 0.9])):
        step = at(number, active)
        seen = present_weights(state, columns, step, from_zero=True)
        np.testing.assert_allclose(seen, [0.0, 7.0, 0.0 if number == 1 else 0.5])
        state = take_step(state, change, step, rate=1.0, regularization=0.2, from_zero=True)
        np.testing.assert_allclose(all_weights(state), expected)


def test_features_that_appear_later_begin_at_zero() -> None:
    active = np.ones(2, dtype=np.bool_)
    change = Change(np.array([0]), np.array([1.0]))
    state = take_step(init_state(np.ones(2)), change, at(1, active), rate=1.0, regularization=0.1)
    state = grow_state(state, 4, FILLS)
    change = Change(np.array([3]), np.array([0.5]))
    longer = np.ones(4, dtype=np.bool_)
    state = take_step(state, change, at(2, longer), rate=1.0, regularization=0.1)
    np.testing.assert_allclose(all_weights(state), [0.9 * 1.9, 0.81, 0.0, 0.5])


def test_nothing_to_learn_does_not_make_all_weights_zero() -> None:
    active = np.array([True, True, False])
    nothing = Change(np.zeros(0, dtype=np.int64), np.zeros(0))
    state = init_state(np.array([1.0, -2.0, 0.5]))
    for number in (1, 2):
        state = take_step(state, nothing, at(number, active), rate=2.0, regularization=0.5)
        first, second, fixed = all_weights(state)
        assert first > 0.0
        assert second == pytest.approx(-2.0 * first)
        assert fixed == 0.5
    state = take_step(
        state, Change(np.array([1]), np.ones(1)), at(3, active), rate=2.0, regularization=0.5
    )
    np.testing.assert_array_equal(all_weights(state), [0.0, 1.0, 0.5])


def test_weights_that_overflow_are_an_error() -> None:
    active = np.ones(2, dtype=np.bool_)
    change = Change(np.array([0]), np.array([1e300]))
    with pytest.raises(OptimizerError, match="overflow"):
        take_step(init_state(np.ones(2)), change, at(1, active), rate=1.0, regularization=0.1)


def test_the_learning_rate_falls_by_its_factor_in_each_epoch() -> None:
    active = np.ones(1, dtype=np.bool_)
    rates = [exponential_rate(at(number, active), 0.2, 0.85) for number in (1, 2, 4, 8, 120)]
    expected = [0.2 * 0.85**0.25, 0.2 * 0.85**0.5, 0.17, 0.1445, 0.2 * 0.85**30]
    np.testing.assert_allclose(rates, expected)


def test_a_learning_rate_that_overflows_is_an_error() -> None:
    with pytest.raises(OptimizerError, match="learning rate"):
        exponential_rate(at(8, np.ones(1, dtype=np.bool_)), 0.2, 1e300)
