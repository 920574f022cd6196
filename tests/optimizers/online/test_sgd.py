"""Stochastic gradient descent: lazy against eager."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.descent import SgdOptions, sgd_learner
from mosesplug.optimizers.online.learner import Change
from tests.optimizers.online.eager import (
    N_FEATURES,
    gradients,
    lazily,
    proximal_point,
    step_of,
    without_looking,
)

NORMS = pytest.mark.parametrize("norm", ["l1", "l2"])
OPTIONS = SgdOptions(rate=0.3, regularization=0.05, epochs=6)


def eagerly(
    options: SgdOptions, start: NDArray[np.float64], wanted: list[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Equations 70 to 72 on every feature that has had a gradient, T being 6 epochs of 10."""
    weights, found = start.copy(), []
    known = np.zeros(N_FEATURES, dtype=np.bool_)
    for number, gradient in enumerate(wanted):
        known |= gradient != 0.0
        rate = options.rate / (1.0 + number / 60.0)
        weights = weights - rate * gradient
        shrunk = proximal_point(weights, np.array(rate), options.regularization, options.norm)
        weights = np.where(known, shrunk, weights)
        found.append(weights)
    return found


@NORMS
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lazy_equals_eager(norm: str, seed: int) -> None:
    options = replace(OPTIONS, norm=norm)  # type: ignore[arg-type]
    start = np.random.default_rng(seed).standard_normal(N_FEATURES)
    wanted = gradients(seed)
    expected = eagerly(options, start, wanted)
    learner = sgd_learner(options)
    np.testing.assert_allclose(lazily(learner, start, wanted), expected, rtol=0, atol=1e-12)
    last = without_looking(learner, start, wanted)
    np.testing.assert_allclose(last, expected[-1], rtol=0, atol=1e-12)


def test_inactive_weights_stay() -> None:
    active = np.arange(N_FEATURES) % 3 > 0
    start = np.linspace(-1.0, 1.0, N_FEATURES)
    found = lazily(sgd_learner(OPTIONS), start, gradients(3), active)[-1]
    np.testing.assert_array_equal(found[~active], start[~active])
    assert (found[active] != start[active]).sum() > 4


def test_overflow_is_an_error() -> None:
    learner = sgd_learner(OPTIONS)
    state = learner.init(np.zeros(N_FEATURES))
    change = Change(np.array([0]), np.array([np.inf]))
    with pytest.raises(OptimizerError, match="lower learning rate"):
        learner.apply(state, change, step_of(1))
