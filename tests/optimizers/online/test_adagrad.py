"""AdaGrad: lazy against eager, and what its rates are for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.online.descent import AdagradOptions, adagrad_learner
from mosesplug.optimizers.online.learner import Change
from tests.optimizers.online.eager import (
    N_FEATURES,
    gradients,
    lazily,
    proximal_point,
    step_of,
    without_looking,
)

OPTIONS = AdagradOptions(rate=0.3, regularization=0.05)


def eagerly(
    options: AdagradOptions, start: NDArray[np.float64], wanted: list[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Green et al. (2013), equations 4, 5 and 14, on every feature that has had a gradient."""
    weights, squares, found = start.copy(), np.zeros(N_FEATURES), []
    for gradient in wanted:
        squares = squares + gradient**2
        known = squares > 0.0
        rates = np.where(known, options.rate / np.sqrt(np.where(known, squares, 1.0)), 0.0)
        weights = weights - rates * gradient
        weights = proximal_point(weights, rates, options.regularization, options.norm)
        found.append(weights)
    return found


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lazy_equals_eager(norm: str, seed: int) -> None:
    options = replace(OPTIONS, norm=norm)  # type: ignore[arg-type]
    start = np.random.default_rng(seed).standard_normal(N_FEATURES)
    wanted = gradients(seed)
    expected = eagerly(options, start, wanted)
    learner = adagrad_learner(options)
    np.testing.assert_allclose(lazily(learner, start, wanted), expected, rtol=0, atol=1e-12)
    last = without_looking(learner, start, wanted)
    np.testing.assert_allclose(last, expected[-1], rtol=0, atol=1e-12)


def test_l1_makes_rare_weights_zero_and_keeps_unseen_ones() -> None:
    wanted = [np.zeros(N_FEATURES) for _ in range(200)]
    wanted[0][1] = 1.0
    start = np.full(N_FEATURES, 0.5)
    last = lazily(adagrad_learner(OPTIONS), start, wanted)[-1]
    assert last[1] == 0.0
    np.testing.assert_array_equal(last[2:], 0.5)


def test_the_first_step_is_the_rate_for_any_scale() -> None:
    gradient = np.zeros(N_FEATURES)
    gradient[:3] = [1e-8, -5.0, 1e6]
    options = AdagradOptions(regularization=0.0)
    last = lazily(adagrad_learner(options), np.zeros(N_FEATURES), [gradient])[0]
    np.testing.assert_allclose(last[:3], [-0.02, 0.02, -0.02])


def test_rare_features_wait_for_enough_sentences_of_one_epoch() -> None:
    learner = adagrad_learner(AdagradOptions(minimum_count=3, regularization=0.0))
    state = learner.init(np.zeros(N_FEATURES))
    columns = np.array([0, 1, 2])
    moved = []
    # Sentences with each feature: feature 0 is dense, and let in at once.
    for number, counts in [(1, [3, 2, 1]), (2, [3, 0, 1]), (11, [3, 1, 2]), (12, [3, 1, 1])]:
        more = {"sentences": np.array(counts, dtype=np.float64)}
        change = Change(columns, np.full(3, -1.0), more)
        state = learner.apply(state, change, step_of(number))
        moved.append(learner.weights(state)[columns] != 0.0)
    np.testing.assert_array_equal(
        moved,
        [[True, False, False], [True, False, False], [True, False, False], [True, False, True]],
    )
