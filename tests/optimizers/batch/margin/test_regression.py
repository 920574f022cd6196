"""Regression against the normal equations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.margin.regression import (
    RegressionOptions,
    contrast_means,
    contrast_pairs,
    fit_differences,
)
from mosesplug.optimizers.batch.ranking.pairs import RankedPairs
from mosesplug.optimizers.lists.scaled import scale_lists
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.lists.test_scaled import matrix
from tests.optimizers.online.batches import random_batch
from tests.optimizers.problems import Accuracy, planted, tuning_set

regression = algorithm("mse").optimize

SIZES = [6, 8, 1, 7]
PAIRS = RankedPairs(np.array([0, 1, 3, 9, 14, 16, 20]), np.array([5, 0, 4, 7, 8, 20, 15]))


@pytest.mark.parametrize("regularization", [1e-3, 0.5])
@pytest.mark.parametrize("pairs", [PAIRS, None], ids=["pairs", "means"])
def test_normal_equations(regularization: float, pairs: RankedPairs | None) -> None:
    made, rng = random_batch(1, SIZES), np.random.default_rng(2)
    lists = scale_lists(Problem(made, Accuracy(), np.ones(9, np.bool_)), np.ones(9), "deviation")
    lists = replace(lists, fixed_scores=rng.standard_normal(22))
    gains = rng.random(22)
    if pairs is None:
        contrast, map_ = contrast_means(lists.offsets), np.eye(22)
        for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
            map_[start:end, start:end] -= 1.0 / (end - start)
    else:
        contrast, map_ = (
            contrast_pairs(pairs, 22),
            np.eye(22)[pairs.better] - np.eye(22)[pairs.worse],
        )
    np.testing.assert_allclose(contrast.apply(gains), map_ @ gains)
    values = rng.standard_normal(len(map_))
    np.testing.assert_allclose(contrast.transpose(values), map_.T @ values)
    rows, targets = map_ @ matrix(lists), map_ @ (gains - lists.fixed_scores)
    n = len(rows)
    wanted = np.linalg.solve(rows.T @ rows / n + regularization * np.eye(9), rows.T @ targets / n)
    ones = np.ones(len(contrast.apply(gains)))
    fit = fit_differences(lists, gains, contrast, ones, regularization)
    assert fit.has_converged
    np.testing.assert_allclose(fit.weights, wanted, atol=1e-6)
    loss = ((targets - rows @ wanted) ** 2).mean() + regularization * wanted @ wanted
    assert fit.loss == pytest.approx(loss, rel=1e-9)


def test_squares_about_the_mean_equal_all_pairs() -> None:
    values = np.random.default_rng(3).standard_normal(7)
    about = contrast_means(np.array([0, 7])).apply(values)
    pairs = sum((values[i] - values[j]) ** 2 for i in range(7) for j in range(i))
    assert 7 * float(about @ about) == pytest.approx(pairs)


@pytest.mark.parametrize("examples", ["sampled", "oracles", "all"])
def test_exact_gains_are_recovered(examples: str) -> None:
    """Of gains that are linear in the features, the weights are known."""
    rng = np.random.default_rng(4)
    won = rng.integers(0, 10, 60)
    dense = np.stack([won / 2.0 + 7.0, rng.standard_normal(60), np.full(60, 3.0)], axis=1)
    problem = Problem(tuning_set([20, 20, 20], dense, won), Accuracy())
    options = RegressionOptions(examples=examples, regularization=1e-12)  # type: ignore[arg-type]
    found = regression(problem, np.ones(3), np.random.default_rng(1), options)
    np.testing.assert_allclose(found.weights, [1.0, 0.0, 0.0], atol=1e-6)
    json.dumps(found.history)
    assert found.history[0]["objective"] == pytest.approx(0.0, abs=1e-9)


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(31, n_sentences=80)
    active = np.array([True, True, False, True, True])
    start = np.where(active, 0.0, 7.0 * hidden)
    found = regression(
        replace(problem, active=active), start, np.random.default_rng(1), RegressionOptions()
    )
    assert found.weights[2] == start[2]
    np.testing.assert_allclose(found.weights, 7.0 * hidden, rtol=0.3, atol=0.7)


def test_nothing_to_learn_is_an_error() -> None:
    worthless = tuning_set([3], np.arange(6.0).reshape(3, 2), np.array([5, 5, 5]))
    for examples, message in (("sampled", "differ in score"), ("all", "all weights are zero")):
        options = RegressionOptions(examples=examples)  # type: ignore[arg-type]
        with pytest.raises(OptimizerError, match=message):
            regression(
                Problem(worthless, Accuracy()), np.ones(2), np.random.default_rng(1), options
            )
