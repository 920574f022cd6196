"""Losses against finite differences, hand-computed values, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.losses import (
    CROSS_ENTROPY,
    EXPECTED_ERROR,
    HINGE,
    LOGISTIC,
    SOFTMAX,
    SQUARED,
    ListLoss,
    PairLoss,
)

PAIRWISE = pytest.mark.parametrize("loss", [LOGISTIC, HINGE, SQUARED], ids=lambda each: each.source)
LISTWISE = pytest.mark.parametrize(
    "loss", [SOFTMAX, EXPECTED_ERROR, CROSS_ENTROPY], ids=lambda each: each.source
)
OFFSETS = np.array([0, 3, 3, 4, 9], dtype=np.int64)


def frozen(values: object) -> NDArray[np.float64]:
    """A read-only copy that begins at an odd address."""
    plain = np.asarray(values, dtype=np.float64)
    return np.frombuffer(b"\0" + plain.tobytes(), np.float64, offset=1)


def lists(seed: int = 0, scale: float = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the sentences of ``OFFSETS``, and a goal of 0 or 1 each, one in each sentence."""
    rng = np.random.default_rng(seed)
    goals = np.zeros(9)
    goals[[1, 3, 4, 8]] = 1.0
    return frozen(scale * rng.standard_normal(9)), frozen(goals)


@PAIRWISE
def test_pairwise_gradients_by_finite_differences(loss: PairLoss) -> None:
    margins = frozen([-30.0, -1.5, -0.2, 0.3, 0.99, 1.01, 4.0, 30.0])
    gaps = frozen(np.linspace(0.05, 0.9, 8))
    step = 1e-6
    slopes = (loss.value(margins + step, gaps) - loss.value(margins - step, gaps)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(margins, gaps), slopes, atol=1e-6)


@LISTWISE
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_listwise_gradients_by_finite_differences(loss: ListLoss, seed: int) -> None:
    scores, goals = lists(seed)
    step = 1e-6
    slopes = [
        (
            loss.value(scores + step * axis, OFFSETS, goals).sum()
            - loss.value(scores - step * axis, OFFSETS, goals).sum()
        )
        / (2 * step)
        for axis in np.eye(9)
    ]
    np.testing.assert_allclose(loss.gradient(scores, OFFSETS, goals), slopes, atol=1e-6)


@PAIRWISE
def test_pairwise_joint_equals_separate(loss: PairLoss) -> None:
    margins, gaps = frozen([-1.0, 0.0, 2.0]), frozen([0.1, 0.2, 0.3])
    values, derivatives = loss.value_and_gradient(margins, gaps)
    np.testing.assert_array_equal(values, loss.value(margins, gaps))
    np.testing.assert_array_equal(derivatives, loss.gradient(margins, gaps))


@LISTWISE
def test_listwise_joint_equals_separate(loss: ListLoss) -> None:
    scores, goals = lists()
    values, derivatives = loss.value_and_gradient(scores, OFFSETS, goals)
    np.testing.assert_array_equal(values, loss.value(scores, OFFSETS, goals))
    np.testing.assert_array_equal(derivatives, loss.gradient(scores, OFFSETS, goals))
    assert values[1] == 0.0  # a sentence without hypotheses


def test_values_by_hand() -> None:
    margins, gaps = np.array([0.0, 1.0, -2.0]), np.array([0.5, 0.5, 0.5])
    np.testing.assert_allclose(
        LOGISTIC.value(margins, gaps), [np.log(2.0), np.log(1 + np.exp(-1)), np.log(1 + np.exp(2))]
    )
    np.testing.assert_array_equal(HINGE.value(margins, gaps), [1.0, 0.0, 3.0])
    np.testing.assert_array_equal(SQUARED.value(margins, gaps), [0.25, 0.25, 6.25])


def test_softmax_is_the_log_probability_of_the_oracles() -> None:
    scores, goals = np.log([1.0, 2.0, 5.0]), np.array([1.0, 0.0, 1.0])
    value = SOFTMAX.value(scores, np.array([0, 3]), goals)
    np.testing.assert_allclose(value, [-np.log(6.0 / 8.0)])


def test_softmax_of_two_is_the_logistic_loss() -> None:
    scores = np.array([0.7, -0.4])
    value = SOFTMAX.value(scores, np.array([0, 2]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(value, LOGISTIC.value(np.array([1.1]), np.array([0.3])))


def test_a_sentence_without_oracles_causes_no_update() -> None:
    scores, _ = lists()
    values, derivatives = SOFTMAX.value_and_gradient(scores, OFFSETS, np.zeros(9))
    assert not values.any()
    assert not derivatives.any()


def test_expected_error_is_the_mean_under_the_softmax() -> None:
    scores, goals = np.log([1.0, 3.0]), np.array([0.2, 0.6])
    value = EXPECTED_ERROR.value(scores, np.array([0, 2]), goals)
    np.testing.assert_allclose(value, [0.25 * 0.2 + 0.75 * 0.6])


def test_cross_entropy_by_hand() -> None:
    scores, goals = np.log([1.0, 3.0]), np.array([0.4, 0.6])
    values, derivatives = CROSS_ENTROPY.value_and_gradient(scores, np.array([0, 2]), goals)
    np.testing.assert_allclose(values, [-0.4 * np.log(0.25) - 0.6 * np.log(0.75)])
    np.testing.assert_allclose(derivatives, [0.25 - 0.4, 0.75 - 0.6])
    values, derivatives = CROSS_ENTROPY.value_and_gradient(scores, np.array([0, 2]), 0.0 * goals)
    assert not values.any()
    assert not derivatives.any()


@PAIRWISE
def test_pairwise_enormous_margins(loss: PairLoss) -> None:
    margins = np.array([-1e5, 1e5])
    values, derivatives = loss.value_and_gradient(margins, np.zeros(2))
    assert np.isfinite(values).all()
    assert np.isfinite(derivatives).all()


@LISTWISE
def test_listwise_enormous_scores(loss: ListLoss) -> None:
    scores, goals = lists(4, scale=1e5)
    values, derivatives = loss.value_and_gradient(scores, OFFSETS, goals)
    assert np.isfinite(values).all()
    assert np.isfinite(derivatives).all()
    np.testing.assert_allclose(np.add.reduceat(derivatives, [0, 3, 4]), 0.0, atol=1e-12)


def test_oracles_far_below_the_best_have_a_gradient() -> None:
    values, derivatives = SOFTMAX.value_and_gradient(
        np.array([5000.0, 0.0]), np.array([0, 2]), np.array([0.0, 1.0])
    )
    np.testing.assert_allclose(values, [5000.0])
    np.testing.assert_allclose(derivatives, [1.0, -1.0])
