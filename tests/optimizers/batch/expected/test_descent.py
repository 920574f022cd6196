"""Descents against an independent solver, and what they tell of their steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.metrics import metric
from mosesplug.optimizers.batch.expected.descent import Coordinates, DescentSettings, minimize_stage
from mosesplug.optimizers.batch.expected.objectives import softmax, xbleu
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import TuningSet
from tests.optimizers.batch.expected.small import bleu_lists, features

Floats = NDArray[np.float64]

SETTINGS = DescentSettings(l1=0.0, l2=0.05, learns_scale=False, iterations=2000, tolerance=0.0)
SIZES = (9, 1, 0, 14, 6, 8, 11, 7, 10, 12)


def lists_of_all_scales(seed: int) -> TuningSet:
    """A feature in thousands, one in thousandths, and sparse ones."""
    made = bleu_lists(seed, SIZES)
    scales = np.array([1e3, 1e-3, 1.0], dtype=np.float32)
    return replace(made, dense=made.dense * scales)


def coordinates(lists: TuningSet) -> Coordinates:
    everything = np.ones(len(lists.space), dtype=np.bool_)
    problem = Problem(lists, metric("BLEU"), active=everything)
    return Coordinates.of(problem, 0.3 * np.ones(len(lists.space)))


def first_ones(lists: TuningSet) -> NDArray[np.bool_]:
    found = np.zeros(lists.n_hyps, dtype=np.bool_)
    found[lists.offsets[:-1][np.diff(lists.offsets) > 0]] = True
    return found


def log_likelihood(
    lists: TuningSet, weights: Floats, l2: Floats | float, center: Floats | float = 0.0
) -> tuple[float, Floats, Floats]:
    """Minus the mean of that of the first hypotheses, from its definition, with two derivatives."""
    made, filled = features(lists), int(np.count_nonzero(np.diff(lists.offsets)))
    slope = l2 * (weights - center)
    value = 0.5 * float(slope @ (weights - center))
    curvature = np.diag(l2 * np.ones(len(weights)))
    for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        if start < end:
            differences = made[start:end] - made[start]
            scores = differences @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            mean = shares @ differences
            value += (np.log(np.exp(scores - scores.max()).sum()) + scores.max()) / filled
            slope = slope + mean / filled
            curvature += ((differences.T * shares) @ differences - np.outer(mean, mean)) / filled
    return value, slope, curvature


@pytest.mark.parametrize(("seed", "scale"), [(0, 1.0), (1, 3.0)])
def test_convex_minimum_is_that_of_a_newton_solver(seed: int, scale: float) -> None:
    """Of single oracles and L2; with a scale, of the weights times that."""
    lists = lists_of_all_scales(seed)
    found, _ = minimize_stage(
        softmax(WholeLists(lists), first_ones(lists)),
        coordinates(lists),
        coordinates(lists).start,
        scale,
        SETTINGS,
    )
    l2 = SETTINGS.l2 / scale**2
    reference = minimize(
        lambda w: log_likelihood(lists, w, l2)[0],
        np.zeros(len(lists.space)),
        jac=lambda w: log_likelihood(lists, w, l2)[1],
        hess=lambda w: log_likelihood(lists, w, l2)[2],
        method="trust-exact",
        options={"gtol": 1e-11, "maxiter": 500},
    )
    np.testing.assert_allclose(scale * found.weights, reference.x, rtol=0.0, atol=1e-6)
    assert found.rounds[-1]["objective"] == pytest.approx(reference.fun, rel=1e-10)


def test_minimum_around_a_center_is_that_of_a_newton_solver() -> None:
    """With weights in units of their features, from definitions."""
    lists = lists_of_all_scales(2)
    where, made = coordinates(lists), features(lists)
    center = where.start + 0.1
    found, _ = minimize_stage(
        softmax(WholeLists(lists), first_ones(lists)),
        where,
        where.start,
        1.0,
        replace(SETTINGS, scaling="deviation"),
        center,
    )
    n_dense = lists.space.n_dense
    blocks = [made[a:b] for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]
    squares = np.mean([block.var(axis=0) for block in blocks if len(block)], axis=0)
    used = made[:, n_dense:] != 0.0
    squares[n_dense:] = (made[:, n_dense:] ** 2).sum(axis=0) / np.maximum(used.sum(axis=0), 1)
    np.testing.assert_allclose(where.squares, squares, rtol=1e-5)
    l2 = SETTINGS.l2 * where.squares
    reference = minimize(
        lambda w: log_likelihood(lists, w, l2, center)[0],
        center,
        jac=lambda w: log_likelihood(lists, w, l2, center)[1],
        hess=lambda w: log_likelihood(lists, w, l2, center)[2],
        method="trust-exact",
        options={"gtol": 1e-9, "maxiter": 500},
    )
    assert found.rounds[-1]["objective"] == pytest.approx(reference.fun, rel=1e-9)
    scales = np.sqrt(where.variances)
    np.testing.assert_allclose(scales * found.weights, scales * reference.x, rtol=0.0, atol=1e-3)


def test_l1_is_minimal_by_its_optimality_conditions() -> None:
    """A slope of exactly the penalty where a weight is not 0, and no more than it elsewhere."""
    lists, l1 = lists_of_all_scales(4), 0.05
    settings = replace(SETTINGS, l1=l1, l2=0.0)
    objective = softmax(WholeLists(lists), first_ones(lists))
    found, _ = minimize_stage(
        objective, coordinates(lists), coordinates(lists).start, 1.0, settings
    )
    slope, used = objective(found.weights)[1], found.weights != 0.0
    assert 0 < used.sum() < len(used)
    np.testing.assert_allclose(slope[used], -l1 * np.sign(found.weights[used]), rtol=0.0, atol=1e-5)
    assert (np.abs(slope[~used]) <= l1 + 1e-5).all()


def test_l1_and_l2_count_weights_in_the_units_of_their_features() -> None:
    """The same optimality with both, L2 about the start: the slope of weights in deviations."""
    lists, l1, l2 = lists_of_all_scales(4), 0.1, 0.05
    settings = replace(SETTINGS, l1=l1, l2=l2, scaling="deviation", center="start")
    objective = softmax(WholeLists(lists), first_ones(lists))
    where = coordinates(lists)
    found, _ = minimize_stage(objective, where, where.start, 1.0, settings, where.start)
    units = np.sqrt(where.squares)
    slope = objective(found.weights)[1] / units + l2 * units * (found.weights - where.start)
    used = found.weights != 0.0
    assert 0 < used.sum() < len(used)
    np.testing.assert_allclose(slope[used], -l1 * np.sign(found.weights[used]), rtol=0.0, atol=1e-5)
    assert (np.abs(slope[~used]) <= l1 + 1e-5).all()


@pytest.mark.parametrize("learns_scale", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_steps_never_go_up(learns_scale: bool, l1: float) -> None:
    lists = lists_of_all_scales(5)
    settings = replace(SETTINGS, l1=l1, l2=1e-3, learns_scale=learns_scale, iterations=40)
    objective = xbleu(WholeLists(lists))
    where = coordinates(lists)
    found, scaled = minimize_stage(objective, where, where.start, 1.0, settings)
    values = [step["objective"] for step in found.rounds]
    assert len(values) > 5
    assert (np.diff(values) <= 0.0).all()
    end = objective(scaled * where.weights(found.weights))[0]
    penalty = l1 * np.abs(found.weights).sum() + 5e-4 * found.weights @ found.weights
    assert values[-1] == pytest.approx(end + penalty, rel=1e-9)
    assert (scaled != 1.0) == learns_scale


def test_the_reported_gradient_is_that_of_the_weights() -> None:
    lists = lists_of_all_scales(6)
    objective, where = softmax(WholeLists(lists), first_ones(lists)), coordinates(lists)
    settings = replace(SETTINGS, iterations=1)
    first = minimize_stage(objective, where, where.start, 2.0, settings)[0].rounds[0]
    gradient = 2.0 * objective(2.0 * where.start)[1] + settings.l2 * where.start
    assert first["gradient"] == pytest.approx(float(np.linalg.norm(gradient)))
