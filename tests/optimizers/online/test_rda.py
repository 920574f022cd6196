"""Regularized dual averaging against the minimization that defines it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mosesplug.optimizers.online.descent import RdaOptions, rda_learner
from tests.optimizers.online.eager import N_FEATURES, gradients, lazily, without_looking


def by_definition(
    options: RdaOptions, start: NDArray[np.float64], wanted: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The weights with the smallest g . w + lambda |w| + |w - start|^2 / (2 eta sqrt(t))."""
    n_steps, found = len(wanted), start.copy()
    mean = np.mean(wanted, axis=0)
    sizes = np.full(N_FEATURES, options.rate * np.sqrt(n_steps))
    squares = np.sum(np.square(wanted), axis=0)
    if options.scaling == "adagrad":
        sizes = options.rate * n_steps / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    for column in np.flatnonzero(squares):
        origin, slope, size = start[column], mean[column], sizes[column]

        def objective(value: float) -> float:
            near = (value - origin) ** 2 / (2.0 * size)  # noqa: B023
            return slope * value + options.regularization * abs(value) + near  # noqa: B023

        found[column] = minimize_scalar(
            objective, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-10}
        ).x
    return found


@pytest.mark.parametrize("scaling", ["sgd", "adagrad"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_steps", [1, 7, 60])
def test_closed_form(scaling: str, seed: int, n_steps: int) -> None:
    options = RdaOptions(rate=0.3, regularization=0.05, scaling=scaling)  # type: ignore[arg-type]
    start = np.random.default_rng(seed).standard_normal(N_FEATURES)
    wanted = gradients(seed, n_steps)
    found = without_looking(rda_learner(options), start, wanted)
    np.testing.assert_allclose(found, by_definition(options, start, wanted), atol=2e-6)
    np.testing.assert_array_equal(lazily(rda_learner(options), start, wanted)[-1], found)


def test_small_mean_gradients_give_exact_zeros() -> None:
    rng = np.random.default_rng(1)
    wanted = [rng.standard_normal(N_FEATURES) for _ in range(400)]
    wanted = [gradient - 0.5 * (np.arange(N_FEATURES) < 3) for gradient in wanted]
    found = lazily(rda_learner(RdaOptions(regularization=0.2)), np.zeros(N_FEATURES), wanted)[-1]
    assert (found[:3] > 0.0).all()
    np.testing.assert_array_equal(found[3:], 0.0)


def test_inactive_weights_stay() -> None:
    active = np.arange(N_FEATURES) % 3 > 0
    start = np.linspace(-1.0, 1.0, N_FEATURES)
    found = lazily(rda_learner(RdaOptions()), start, gradients(3), active)[-1]
    np.testing.assert_array_equal(found[~active], start[~active])
