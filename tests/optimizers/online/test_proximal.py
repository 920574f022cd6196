"""Doses of regularization against the minimization that defines a step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from mosesplug.optimizers.online.descent import Norm, regularization_dose, shrink

NORMS = pytest.mark.parametrize("norm", ["l1", "l2"])
moderate = st.floats(-5.0, 5.0)


@NORMS
@pytest.mark.parametrize("weight", [-2.0, -0.05, 0.0, 0.3, 4.0])
def test_a_step_is_the_proximal_point(norm: Norm, weight: float) -> None:
    rate, strength = 0.4, 0.7

    def objective(value: float) -> float:
        size = abs(value) if norm == "l1" else 0.5 * value**2
        return 0.5 * (value - weight) ** 2 + rate * strength * size

    expected = minimize_scalar(objective, bounds=(-5.0, 5.0), method="bounded").x
    found = shrink(np.array([weight]), regularization_dose(np.array([rate]), strength, norm), norm)
    assert found[0] == pytest.approx(expected, abs=1e-4)
    assert objective(found[0]) <= objective(expected) + 1e-12


@NORMS
@given(weight=moderate, rates=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30))
def test_the_sum_of_doses_is_all_the_steps(norm: Norm, weight: float, rates: list[float]) -> None:
    doses = regularization_dose(np.array(rates), 0.3, norm)
    stepwise = np.array([weight])
    for each in doses:
        stepwise = shrink(stepwise, each, norm)
    np.testing.assert_allclose(shrink(np.array([weight]), doses.sum(), norm), stepwise, atol=1e-14)


@NORMS
def test_no_dose_no_change(norm: Norm) -> None:
    weights = np.array([-1.0, 0.0, 3.0])
    np.testing.assert_array_equal(shrink(weights, np.zeros(3), norm), weights)
