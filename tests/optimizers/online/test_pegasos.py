"""Pegasos: lazy against eager, and the minimum that it goes to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.online.descent import PegasosOptions, pegasos_learner
from tests.optimizers.online.eager import N_FEATURES, gradients, lazily, without_looking


def eagerly(
    strength: float,
    start: NDArray[np.float64],
    wanted: list[NDArray[np.float64]],
    active: NDArray[np.bool_],
) -> list[NDArray[np.float64]]:
    """Watanabe (2012), Algorithm 2, lines 7 and 8, on all active features."""
    weights, found = start.copy(), []
    for number, gradient in enumerate(wanted, start=1):
        rate = 1.0 / (strength * number)
        moved = weights - rate * (strength * weights + gradient)
        norm = np.linalg.norm(moved[active])
        moved *= min(1.0, 1.0 / (np.sqrt(strength) * norm)) if norm > 0.0 else 1.0
        weights = np.where(active, moved, start)
        found.append(weights)
    return found


@pytest.mark.parametrize("strength", [1e-5, 0.1, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lazy_equals_eager(strength: float, seed: int) -> None:
    start = np.random.default_rng(seed).standard_normal(N_FEATURES)
    wanted = gradients(seed)
    everything = np.ones(N_FEATURES, dtype=np.bool_)
    expected = eagerly(strength, start, wanted, everything)
    learner = pegasos_learner(PegasosOptions(regularization=strength))
    scale = 1.0 / np.sqrt(strength)
    found = lazily(learner, start, wanted)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)
    last = without_looking(learner, start, wanted)
    np.testing.assert_allclose(last, expected[-1], rtol=0, atol=1e-12 * scale)


def test_inactive_weights_do_not_change_and_do_not_count() -> None:
    active = np.arange(N_FEATURES) % 3 > 0
    start = np.linspace(-9.0, 9.0, N_FEATURES)
    wanted = [np.where(active, gradient, 0.0) for gradient in gradients(3)]
    learner = pegasos_learner(PegasosOptions(regularization=0.1))
    found = lazily(learner, start, wanted, active)
    expected = eagerly(0.1, start, wanted, active)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_a_batch_without_gradients_keeps_the_weights() -> None:
    wanted = [np.zeros(N_FEATURES)] * 3
    found = lazily(pegasos_learner(PegasosOptions()), np.zeros(N_FEATURES), wanted)
    np.testing.assert_array_equal(found, 0.0)
