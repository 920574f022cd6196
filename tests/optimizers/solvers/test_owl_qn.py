"""OWL-QN against a bounded solver on the problem split into positive and negative parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.solvers.quasi_newton import minimize_with_l1, pseudo_gradient

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]


def least_squares(seed: int, n: int = 12, rows: int = 40) -> Function:
    """Half the squared error of a linear model whose features correlate."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((rows, n)) @ (np.eye(n) + 0.1 * rng.standard_normal((n, n)))
    made *= rng.uniform(0.5, 2.0, n)
    wanted = rng.standard_normal(rows)

    def function(x: Floats) -> tuple[float, Floats]:
        miss = made @ x - wanted
        return 0.5 * float(miss @ miss), made.T @ miss

    return function


def logistic(seed: int, n: int = 12, rows: int = 60) -> Function:
    """The logistic loss of noisy labels."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((rows, n))
    signs = np.where(made @ rng.standard_normal(n) + rng.standard_normal(rows) > 0, 1.0, -1.0)

    def function(x: Floats) -> tuple[float, Floats]:
        margins = signs * (made @ x)
        return (
            float(np.logaddexp(0.0, -margins).sum()),
            -(made.T @ (signs / (1.0 + np.exp(margins)))),
        )

    return function


def by_bounds(function: Function, penalties: Floats) -> Floats:
    """The same minimum with ``x = up - down`` and both parts at least 0."""
    n = len(penalties)

    def split(both: Floats) -> tuple[float, Floats]:
        value, gradient = function(both[:n] - both[n:])
        penalized = float(np.concatenate([penalties, penalties]) @ both)
        return value + penalized, np.concatenate([gradient + penalties, penalties - gradient])

    both = np.full(2 * n, 0.1)
    for _ in range(3):  # again, as it may end where its estimate of the curvature is a bad one
        both = minimize(
            split,
            both,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * n),
            options={"maxiter": 10_000, "maxfun": 10_000, "ftol": 0.0, "gtol": 1e-10},
        ).x
    found: Floats = both[:n] - both[n:]
    return found


@pytest.mark.parametrize("made", [least_squares, logistic])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_same_minimum_as_with_bounds(
    made: Callable[[int], Function], seed: int, strength: float
) -> None:
    rng = np.random.default_rng([seed, 1])
    function, penalties = made(seed), strength * rng.uniform(0.0, 2.0, 12)
    penalties[0] = 0.0
    found = minimize_with_l1(function, rng.standard_normal(12), penalties, decrease=0.0)
    expected = by_bounds(function, penalties)
    np.testing.assert_allclose(found.weights, expected, rtol=0.0, atol=1e-6)
    value = function(expected)[0] + penalties @ np.abs(expected)
    assert found.loss == pytest.approx(value, rel=1e-12)
    # The bounded solver keeps coordinates on their bound exactly, and so must this.
    np.testing.assert_array_equal(found.weights == 0.0, np.abs(expected) < 1e-9)
    if strength > 1.0:
        assert (found.weights == 0.0).any()


def test_minimum_in_closed_form() -> None:
    """Of a separable function: shrunk by the penalty, and 0 where that is more than all of it."""
    wanted, penalties = np.array([3.0, -2.0, 0.5, -0.1]), np.array([1.0, 0.5, 0.5, 0.2])

    def function(x: Floats) -> tuple[float, Floats]:
        return 0.5 * float(((x - wanted) ** 2).sum()), x - wanted

    found = minimize_with_l1(function, np.zeros(4), penalties)
    np.testing.assert_allclose(found.weights, [2.0, -1.5, 0.0, 0.0], rtol=0.0, atol=1e-8)
    assert not found.weights[2:].any()
    assert found.has_converged


def test_steps_never_increase_and_are_reported() -> None:
    function, penalties = logistic(9), np.full(12, 0.7)
    steps: list[tuple[Floats, float, Floats]] = []
    found = minimize_with_l1(
        function, np.ones(12), penalties, accepted=lambda *step: steps.append(step)
    )
    values = [value for _, value, _ in steps]
    assert (np.diff(values) <= 0.0).all()
    assert len(steps) == found.iterations + 1
    assert values[-1] == found.loss
    for x, value, slope in steps:
        smooth, gradient = function(x)
        assert value == smooth + float(penalties @ np.abs(x))
        np.testing.assert_array_equal(slope, pseudo_gradient(x, gradient, penalties))


def test_an_exhausted_iteration_limit_is_reported() -> None:
    short = minimize_with_l1(logistic(3), np.ones(12), np.full(12, 0.1), max_iterations=3)
    assert not short.has_converged
    assert short.iterations == 3


def test_steps_avoid_undefined_points() -> None:
    """A step that is too long for the function is shortened."""

    def function(x: Floats) -> tuple[float, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1.0 - 1.0 / x

    found = minimize_with_l1(function, np.full(3, 0.01), np.full(3, 1.0))
    np.testing.assert_allclose(found.weights, 0.5, atol=1e-7)


def test_strong_penalty_leaves_nothing() -> None:
    found = minimize_with_l1(least_squares(1), np.ones(12), np.full(12, 1e6))
    assert not found.weights.any()
    assert found.has_converged
