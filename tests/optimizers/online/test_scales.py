"""Scales and regularizers of gradient learners: lazy steps against eager ones, by definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.descent import (
    AdagradOptions,
    Norm,
    PegasosOptions,
    SgdOptions,
    adagrad_learner,
    pegasos_learner,
    regularization_dose,
    sgd_learner,
    shrink,
)
from mosesplug.optimizers.online.dual_averaging import RdaOptions, rda_learner
from mosesplug.optimizers.online.learner import Change, Learner
from tests.optimizers.online.eager import (
    N_FEATURES,
    gradients,
    lazily,
    proximal_point,
    step_of,
    without_looking,
)

Floats = NDArray[np.float64]
NORMS = pytest.mark.parametrize("norm", ["l1", "l2"])
ALL = np.ones(N_FEATURES, dtype=np.bool_)
SGD = SgdOptions(rate=0.3, regularization=0.05, epochs=6)
ADAGRAD = AdagradOptions(rate=0.3, regularization=0.05)
PEGASOS = PegasosOptions(regularization=0.1)
RDA = RdaOptions(rate=0.3, regularization=0.05)
moderate = st.floats(-5.0, 5.0)


def step_by_step(
    start: Floats, steps: list[Floats], move: Callable[[int, Floats, Floats], Floats]
) -> list[Floats]:
    """The weights after each of ``move(number, weights, gradient)``."""
    weights, path = start.copy(), []
    for number, gradient in enumerate(steps, start=1):
        weights = move(number, weights, gradient)
        path.append(weights)
    return path


def sgd_eagerly(
    options: SgdOptions, start: Floats, steps: list[Floats], active: NDArray[np.bool_]
) -> list[Floats]:
    """Equations 70 to 72 on every feature that has had a gradient, T being 6 epochs of 10."""
    known = np.zeros(N_FEATURES, dtype=np.bool_)

    def move(number: int, weights: Floats, gradient: Floats) -> Floats:
        np.logical_or(known, gradient != 0.0, out=known)
        rate = options.rate / (1.0 + (number - 1) / 60.0)
        moved = weights - rate * gradient
        shrunk = proximal_point(moved, np.array(rate), options.regularization, options.norm)
        return np.where(known, shrunk, moved)

    return step_by_step(start, steps, move)


def adagrad_eagerly(
    options: AdagradOptions, start: Floats, steps: list[Floats], active: NDArray[np.bool_]
) -> list[Floats]:
    """Green et al. (2013), equations 4, 5 and 14, on every feature that has had a gradient."""
    squares = np.zeros(N_FEATURES)

    def move(number: int, weights: Floats, gradient: Floats) -> Floats:
        squares[:] += gradient**2
        known = squares > 0.0
        rates = np.where(known, options.rate / np.sqrt(np.where(known, squares, 1.0)), 0.0)
        moved = weights - rates * gradient
        return proximal_point(moved, rates, options.regularization, options.norm)

    return step_by_step(start, steps, move)


def pegasos_eagerly(
    options: PegasosOptions, start: Floats, steps: list[Floats], active: NDArray[np.bool_]
) -> list[Floats]:
    """Watanabe (2012), Algorithm 2, lines 7 and 8, on all active features."""
    strength = options.regularization

    def move(number: int, weights: Floats, gradient: Floats) -> Floats:
        rate = 1.0 / (strength * number)
        moved = weights - rate * (strength * weights + gradient)
        norm = np.linalg.norm(moved[active])
        moved *= min(1.0, 1.0 / (np.sqrt(strength) * norm)) if norm > 0.0 else 1.0
        return np.where(active, moved, start)

    return step_by_step(start, steps, move)


EAGERLY: dict[str, tuple[Callable[[Any], Learner], Callable[..., list[Floats]], Any]] = {
    "sgd, l1": (sgd_learner, sgd_eagerly, replace(SGD, norm="l1")),
    "sgd, l2": (sgd_learner, sgd_eagerly, SGD),
    "adagrad, l1": (adagrad_learner, adagrad_eagerly, ADAGRAD),
    "adagrad, l2": (adagrad_learner, adagrad_eagerly, replace(ADAGRAD, norm="l2")),
    "pegasos, 1e-5": (pegasos_learner, pegasos_eagerly, PegasosOptions(regularization=1e-5)),
    "pegasos, 0.1": (pegasos_learner, pegasos_eagerly, PEGASOS),
    "pegasos, 2": (pegasos_learner, pegasos_eagerly, PegasosOptions(regularization=2.0)),
}


@pytest.mark.parametrize("name", EAGERLY)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lazy_equals_eager(name: str, seed: int) -> None:
    make, eagerly, options = EAGERLY[name]
    start, steps = np.random.default_rng(seed).standard_normal(N_FEATURES), gradients(seed)
    expected = eagerly(options, start, steps, ALL)
    # Weights of Pegasos are as large as the radius of its ball.
    tolerance = 1e-12 * max(1.0, options.regularization**-0.5)
    np.testing.assert_allclose(
        lazily(make(options), start, steps), expected, rtol=0, atol=tolerance
    )
    last = without_looking(make(options), start, steps)
    np.testing.assert_allclose(last, expected[-1], rtol=0, atol=tolerance)


def best_rda_weights(options: RdaOptions, start: Floats, steps: list[Floats]) -> Floats:
    """The weights with the smallest g . w + lambda |w| + |w - start|^2 / (2 eta sqrt(t))."""
    n_steps, weights = len(steps), start.copy()
    mean, squares = np.mean(steps, axis=0), np.sum(np.square(steps), axis=0)
    sizes = np.full(N_FEATURES, options.rate * np.sqrt(n_steps))
    if options.scaling == "adagrad":
        sizes = options.rate * n_steps / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    for column in np.flatnonzero(squares):
        origin, slope, size = start[column], mean[column], sizes[column]

        def objective(value: float) -> float:
            near = (value - origin) ** 2 / (2.0 * size)  # noqa: B023
            return slope * value + options.regularization * abs(value) + near  # noqa: B023

        weights[column] = minimize_scalar(
            objective, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-10}
        ).x
    return weights


@pytest.mark.parametrize("scaling", ["sgd", "adagrad"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_steps", [1, 7, 60])
def test_the_closed_form_of_dual_averaging(scaling: Any, seed: int, n_steps: int) -> None:
    options = replace(RDA, scaling=scaling)
    start = np.random.default_rng(seed).standard_normal(N_FEATURES)
    steps = gradients(seed, n_steps)
    weights = without_looking(rda_learner(options), start, steps)
    np.testing.assert_allclose(weights, best_rda_weights(options, start, steps), atol=2e-6)
    np.testing.assert_array_equal(lazily(rda_learner(options), start, steps)[-1], weights)


def test_small_mean_gradients_give_exact_zeros() -> None:
    rng = np.random.default_rng(1)
    steps = [rng.standard_normal(N_FEATURES) for _ in range(400)]
    steps = [gradient - 0.5 * (np.arange(N_FEATURES) < 3) for gradient in steps]
    learner = rda_learner(RdaOptions(regularization=0.2))
    weights = lazily(learner, np.zeros(N_FEATURES), steps)[-1]
    assert (weights[:3] > 0.0).all()
    np.testing.assert_array_equal(weights[3:], 0.0)


def test_l1_makes_rare_weights_zero_and_keeps_unseen_ones() -> None:
    steps = [np.zeros(N_FEATURES) for _ in range(200)]
    steps[0][1] = 1.0
    last = lazily(adagrad_learner(ADAGRAD), np.full(N_FEATURES, 0.5), steps)[-1]
    assert last[1] == 0.0
    np.testing.assert_array_equal(last[2:], 0.5)


@pytest.mark.parametrize(
    "learner",
    [sgd_learner(SGD), adagrad_learner(ADAGRAD), pegasos_learner(PEGASOS), rda_learner(RDA)],
    ids=["sgd", "adagrad", "pegasos", "rda"],
)
def test_inactive_weights_stay(learner: Learner) -> None:
    active = np.arange(N_FEATURES) % 3 > 0
    start = np.linspace(-1.0, 1.0, N_FEATURES)
    weights = lazily(learner, start, gradients(3), active)[-1]
    np.testing.assert_array_equal(weights[~active], start[~active])
    assert (weights[active] != start[active]).sum() > 4


def test_inactive_weights_do_not_count_in_the_ball() -> None:
    active = np.arange(N_FEATURES) % 3 > 0
    start = np.linspace(-9.0, 9.0, N_FEATURES)
    steps = [np.where(active, gradient, 0.0) for gradient in gradients(3)]
    weights = lazily(pegasos_learner(PEGASOS), start, steps, active)
    expected = pegasos_eagerly(PEGASOS, start, steps, active)
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-11)


def test_a_batch_without_gradients_keeps_the_weights() -> None:
    steps = [np.zeros(N_FEATURES)] * 3
    weights = lazily(pegasos_learner(PegasosOptions()), np.zeros(N_FEATURES), steps)
    np.testing.assert_array_equal(weights, 0.0)


@pytest.mark.parametrize(
    "learner", [sgd_learner(SGD), adagrad_learner(ADAGRAD)], ids=["sgd", "adagrad"]
)
def test_overflow_is_an_error(learner: Learner) -> None:
    state = learner.init(np.zeros(N_FEATURES))
    change = Change(np.array([0]), np.array([np.inf]))
    with pytest.raises(OptimizerError, match="lower learning rate"):
        learner.apply(state, change, step_of(1))


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


@NORMS
@pytest.mark.parametrize("weight", [-2.0, -0.05, 0.0, 0.3, 4.0])
def test_a_step_is_the_proximal_point(norm: Norm, weight: float) -> None:
    rate, strength = 0.4, 0.7

    def objective(value: float) -> float:
        size = abs(value) if norm == "l1" else 0.5 * value**2
        return 0.5 * (value - weight) ** 2 + rate * strength * size

    expected = minimize_scalar(objective, bounds=(-5.0, 5.0), method="bounded").x
    dose = regularization_dose(np.array([rate]), strength, norm)
    (shrunk,) = shrink(np.array([weight]), dose, norm)
    assert shrunk == pytest.approx(expected, abs=1e-4)
    assert objective(shrunk) <= objective(expected) + 1e-12


@NORMS
@given(weight=moderate, rates=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30))
def test_the_sum_of_doses_is_all_the_steps(norm: Norm, weight: float, rates: list[float]) -> None:
    doses = regularization_dose(np.array(rates), 0.3, norm)
    stepwise = np.array([weight])
    for dose in doses:
        stepwise = shrink(stepwise, dose, norm)
    np.testing.assert_allclose(shrink(np.array([weight]), doses.sum(), norm), stepwise, atol=1e-14)


@NORMS
def test_no_dose_no_change(norm: Norm) -> None:
    weights = np.array([-1.0, 0.0, 3.0])
    np.testing.assert_array_equal(shrink(weights, np.zeros(3), norm), weights)
