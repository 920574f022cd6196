"""Minima inside boxes, against SciPy's L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.solvers.bounded import (
    minimize_in_box,
    minimize_in_box_with_l1,
    minimize_over_scale,
)

Floats = NDArray[np.float64]


@pytest.mark.parametrize("seed", range(40))
def test_minimum_in_a_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    matrix = rng.standard_normal((n + 3, n)) * 10 ** rng.uniform(-2, 2, n)
    goal, rows = rng.standard_normal(n + 3), rng.standard_normal((40, n))
    low = np.where(rng.random(n) < 0.3, -np.inf, rng.uniform(-1, 0.5, n))
    high = np.where(rng.random(n) < 0.3, np.inf, np.maximum(low, -1.0) + rng.uniform(0, 1, n))

    def function(x: Floats) -> tuple[float, Floats]:
        margins, missed = rows @ x, matrix @ x - goal
        value = 0.5 * float(missed @ missed) + float(np.logaddexp(0.0, -margins).sum())
        slopes = 0.5 * np.tanh(0.5 * margins) - 0.5
        return value, matrix.T @ missed + rows.T @ slopes

    known = minimize(
        function,
        np.clip(np.zeros(n), low, high),
        jac=True,
        bounds=list(zip(low, high, strict=True)),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    seen: list[float] = []
    found = minimize_in_box(
        function, np.zeros(n), (low, high), accepted=lambda x, value, _: seen.append(value)
    )
    assert ((low <= found.weights) & (found.weights <= high)).all()
    assert found.loss <= known.fun + 1e-7 * max(1.0, abs(known.fun))
    assert (np.diff(seen) <= 0.0).all()


@pytest.mark.parametrize("seed", range(10))
def test_l1_in_a_box_is_a_soft_threshold_and_a_projection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    goal, scale = rng.normal(0.0, 2.0, 8), rng.uniform(0.5, 3.0, 8)
    low, high = rng.uniform(-2.0, 0.3, 8), rng.uniform(0.3, 2.0, 8)

    def function(x: Floats) -> tuple[float, Floats]:
        return 0.5 * float(scale @ (x - goal) ** 2), scale * (x - goal)

    penalties = rng.uniform(0.0, 2.0, 8)
    found = minimize_in_box_with_l1(function, np.zeros(8), (low, high), penalties)
    shrunk = np.sign(goal) * np.maximum(np.abs(goal) - penalties / scale, 0.0)
    np.testing.assert_allclose(found.weights, np.clip(shrunk, low, high), atol=1e-6)


@pytest.mark.parametrize("best", [1e-5, 0.3, 1.0, 700.0])
def test_scale(best: float) -> None:
    scale, fit = minimize_over_scale(lambda scale: scale, lambda each: abs(each - best) + 1.0)
    assert scale == fit
    assert scale == pytest.approx(best, rel=2e-3)
