"""L-BFGS against closed forms and an independent solver."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize, rosen, rosen_der

from mosesplug.optimizers.solvers.quasi_newton import lbfgs_direction, minimize_smooth

Floats = NDArray[np.float64]


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    return float(rosen(x)), np.asarray(rosen_der(x))


def quadratic(x: Floats) -> tuple[float, Floats]:
    """With curvatures from 0.01 to 1000, lowest at 1, 2, ..."""
    curvatures = 10.0 ** np.linspace(-2, 3, len(x))
    miss = x - np.arange(1.0, len(x) + 1.0)
    return 0.5 * float(curvatures @ miss**2), curvatures * miss


def test_minimum_of_a_curved_valley() -> None:
    found = minimize_smooth(rosenbrock, np.full(8, -1.0), decrease=0.0)
    assert found.has_converged
    value, gradient = rosenbrock(found.weights)
    assert value == found.loss
    assert np.abs(gradient).max() < 1e-6
    expected = minimize(rosen, found.weights + 0.01, jac=rosen_der, method="BFGS", tol=1e-9)
    np.testing.assert_allclose(found.weights, expected.x, atol=1e-5)


def test_minimum_of_very_different_curvatures() -> None:
    found = minimize_smooth(quadratic, np.zeros(10), memory=20, decrease=0.0)
    np.testing.assert_allclose(found.weights, np.arange(1.0, 11.0), atol=1e-5)


def test_a_kink_does_not_stop_it() -> None:
    """The larger of two slopes, rounded over a hundred-thousandth."""

    def function(x: Floats) -> tuple[float, Floats]:
        far = 1e5 * (x[0] - 0.3)
        side = np.tanh(far)
        value = float(np.logaddexp(far, -far)) / 1e5 + float(((x[1:] - 1.0) ** 2).sum())
        return value, np.concatenate([[side], 2.0 * (x[1:] - 1.0)])

    found = minimize_smooth(function, np.zeros(3), decrease=0.0)
    np.testing.assert_allclose(found.weights, [0.3, 1.0, 1.0], atol=1e-5)


def test_steps_never_increase_and_are_reported() -> None:
    steps: list[tuple[Floats, float, Floats]] = []
    found = minimize_smooth(rosenbrock, np.full(5, 2.0), accepted=lambda *step: steps.append(step))
    values = [value for _, value, _ in steps]
    assert (np.diff(values) < 0.0).all()
    assert len(steps) == found.iterations + 1
    assert values[-1] == found.loss
    for x, value, gradient in steps:
        assert value == rosenbrock(x)[0]
        np.testing.assert_array_equal(gradient, rosenbrock(x)[1])


def test_an_exhausted_iteration_limit_is_reported() -> None:
    short = minimize_smooth(rosenbrock, np.full(5, 2.0), max_iterations=3)
    assert not short.has_converged
    assert short.iterations == 3


def test_steps_avoid_undefined_points() -> None:
    def function(x: Floats) -> tuple[float, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1.0 - 1.0 / x

    found = minimize_smooth(function, np.full(3, 0.01))
    np.testing.assert_allclose(found.weights, 1.0, atol=1e-6)


def test_no_steps_at_the_minimum() -> None:
    found = minimize_smooth(quadratic, np.arange(1.0, 6.0))
    assert found.has_converged
    assert found.iterations == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_direction_matches_the_dense_matrix(seed: int) -> None:
    """The BFGS update of the inverse curvature, step by step, from a multiple of the identity."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    curvature = root @ root.T + np.eye(4)
    pairs = [(step, curvature @ step) for step in rng.standard_normal((3, 4))]
    step, change = pairs[-1]
    inverse = np.eye(4) * (step @ change) / (change @ change)
    for step, change in pairs:
        left = np.eye(4) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    downhill = rng.standard_normal(4)
    found = lbfgs_direction(deque(pairs), downhill)
    np.testing.assert_allclose(found, inverse @ downhill, rtol=1e-10)
