"""Rank learning against finite differences, general solvers and the paper's equations by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.online.oro.learners import (
    o_oro_learner,
    o_oro_softmax_learner,
    oro_learner,
    oro_softmax_learner,
)
from tests.optimizers.online.oro.updates import (
    LEARNERS,
    RATE,
    differentiate,
    hinge,
    list_differences,
    log_ratio,
    make_change,
    make_step,
    matrix_of,
    minimize_constrained,
    o_hinge,
    o_soft,
    random_batch,
    soft,
    spread_change,
)
from tests.optimizers.problems import tuning_set


@pytest.mark.parametrize("seed", range(5))
def test_the_sub_gradient_of_the_hinge_loss(seed: int) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 100).standard_normal(6)
    losses = np.maximum(0.0, 1.0 - list_differences(batch) @ weights)
    missing = np.count_nonzero(losses)

    def loss(at: NDArray[Any]) -> float:
        return float(np.maximum(0.0, 1.0 - list_differences(batch) @ at).sum()) / missing

    change, after = make_change(oro_learner(hinge(regularization=0.01)), batch, weights)
    slope = differentiate(loss, weights)
    np.testing.assert_allclose(spread_change(change, 6), -RATE * slope, atol=1e-7)
    np.testing.assert_allclose(after, weights - RATE * (0.01 * weights + slope), atol=1e-7)
    assert change.report["violations"] == missing
    assert change.report["loss"] == pytest.approx(losses.mean())


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_of_the_softmax_loss(seed: int) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 100).standard_normal(6)
    change, after = make_change(oro_softmax_learner(soft(regularization=0.01)), batch, weights)
    slope = differentiate(lambda at: -log_ratio(batch, at).mean(), weights)
    np.testing.assert_allclose(spread_change(change, 6), -RATE * slope, atol=1e-7)
    np.testing.assert_allclose(after, weights - RATE * (0.01 * weights + slope), atol=1e-7)
    assert change.report["loss"] == pytest.approx(-log_ratio(batch, weights).mean())
    assert change.report["violations"] == 3  # the sentence of one hypothesis has nothing to learn


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("all_pairs", [False, True])
def test_uniform_multipliers_recover_the_plain_update(seed: int, all_pairs: bool) -> None:
    """Where the rate is so small that every multiplier is at its bound, equation 11 comes out."""
    batch = random_batch(seed)
    weights = np.zeros(6) if all_pairs else np.random.default_rng(seed).standard_normal(6)
    plain = hinge(rate=1e-6)
    optimized = o_hinge(rate=1e-6, all_pairs=all_pairs, dual_tolerance=0.0, dual_sweeps=50)
    _, expected = make_change(oro_learner(plain), batch, weights)
    _, found = make_change(o_oro_learner(optimized), batch, weights)
    np.testing.assert_allclose(found - weights, expected - weights, rtol=1e-6, atol=1e-15)


def test_one_pair_by_hand() -> None:
    batch = tuning_set([2], np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([5, 2]))
    weights = np.array([0.25, 0.5])
    # The difference is (2, -1), its margin 0 and its square 5.
    for rate, tau in ((0.1, 0.1), (2.0, 0.2)):
        scale = rate * 0.85 ** (3 / 7)
        expected = np.array([2.0, -1.0]) * min(tau, scale)
        for options in (o_hinge(), o_hinge(exact_dual=True)):
            options = replace(options, rate=rate, regularization=0.0, dual_tolerance=0.0)
            change, _ = make_change(o_oro_learner(options), batch, weights)
            np.testing.assert_allclose(change.values, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shared", [False, True])
def test_optimized_hinge_updates_solve_their_problem(seed: int, shared: bool) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 50).standard_normal(6)
    options = o_hinge(
        exact_dual=shared,
        renormalize=False,
        all_pairs=True,
        dual_tolerance=1e-10,
        dual_sweeps=10_000,
    )
    _, found = make_change(o_oro_learner(replace(options, regularization=0.02)), batch, weights)
    phi = list_differences(batch)
    shrunk = (1.0 - 0.02 * RATE) * weights
    expected = minimize_constrained(shrunk, phi, np.ones(len(phi)), RATE, shared)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("tangent", [False, True])
def test_optimized_softmax_updates_solve_their_problem(
    seed: int, shared: bool, tangent: bool
) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 50).standard_normal(6)
    options = o_soft(
        exact_dual=shared,
        renormalize=False,
        dual_tolerance=1e-10,
        dual_sweeps=10_000,
        regularization=0.02,
        tangent=tangent,
    )
    _, found = make_change(o_oro_softmax_learner(options), batch, weights)
    planes = differentiate(lambda at: log_ratio(batch, at), weights)
    goals = -log_ratio(batch, weights) + (planes @ weights if tangent else 0.0)
    told = np.abs(planes).sum(axis=1) > 1e-9
    shrunk = (1.0 - 0.02 * RATE) * weights
    expected = minimize_constrained(shrunk, planes[told], goals[told], RATE, shared)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("softmax", [False, True])
def test_shrinking_stops_at_zero_in_the_program_too(softmax: bool) -> None:
    """Where lambda eta is above 1, the step is that from weights of 0, which are what it meets."""
    batch = random_batch(1)
    weights = np.random.default_rng(3).standard_normal(6)
    options = {"renormalize": False, "dual_tolerance": 1e-10, "dual_sweeps": 10_000}

    def after(regularization: float) -> NDArray[Any]:
        if softmax:
            soft = o_soft(regularization=regularization, **options)
            learner = o_oro_softmax_learner(soft)
        else:
            hard = o_hinge(regularization=regularization, **options)
            learner = o_oro_learner(hard)
        return make_change(learner, batch, weights)[0].values

    np.testing.assert_allclose(after(1e3), after(1.0 / RATE), atol=1e-9)


def test_renormalized_multipliers_keep_their_direction() -> None:
    batch = random_batch(3)
    weights = np.random.default_rng(3).standard_normal(6)
    free, _ = make_change(o_oro_learner(o_hinge(renormalize=False)), batch, weights)
    bound, _ = make_change(o_oro_learner(o_hinge()), batch, weights)
    ratios = bound.values / free.values
    np.testing.assert_allclose(ratios, ratios[0])
    assert 0.0 < ratios[0] < 1.0


@pytest.mark.parametrize("name", LEARNERS)
def test_inactive_weights_do_not_change_but_count_in_scores(name: str) -> None:
    batch = random_batch(8)
    weights = np.random.default_rng(8).standard_normal(6)
    active = np.array([True, False, True, True, False, True])
    learner = LEARNERS[name]()
    state = learner.update(learner.init(weights), batch, make_step(active))
    after = learner.weights(state)
    np.testing.assert_array_equal(after[~active], weights[~active])
    assert (after[active] != weights[active]).any()
    # A fixed feature acts like a fixed score: move its share to an active feature of weight 1.
    matrix = matrix_of(batch)
    share = matrix[:, ~active] @ weights[~active]
    dense = np.column_stack([matrix[:, active], share])
    sizes = np.diff(batch.offsets).tolist()
    other = tuning_set(sizes, dense, batch.stats[:, 0])
    mask = np.array([True] * 4 + [False])
    start = np.append(weights[active], 1.0)
    same = learner.weights(learner.update(learner.init(start), other, make_step(mask)))
    np.testing.assert_allclose(same[:4], after[active], rtol=1e-4, atol=1e-5)  # float32 shares


@pytest.mark.parametrize("name", LEARNERS)
def test_a_batch_without_anything_to_learn(name: str) -> None:
    for batch in (random_batch(1, (1, 0, 1)), random_batch(1, (0, 0))):
        weights = np.arange(6.0)
        change, after = make_change(LEARNERS[name](), batch, weights)
        assert not change.values.any()
        assert change.report["violations"] == 0.0
        assert change.report["loss"] == 0.0
        np.testing.assert_allclose(after, (1.0 - 1e-5 * RATE) * weights)


@pytest.mark.parametrize("name", LEARNERS)
def test_zero_start_ignores_the_given_weights(name: str) -> None:
    batch = random_batch(2)
    exact = "exact" in name
    makers: dict[str, Callable[[bool], Learner]] = {
        "oro": lambda zero: oro_learner(hinge(zero_start=zero)),
        "oro-softmax": lambda zero: oro_softmax_learner(soft(zero_start=zero)),
        "o-oro": lambda zero: o_oro_learner(o_hinge(zero_start=zero, exact_dual=exact)),
        "o-oro-softmax": lambda zero: o_oro_softmax_learner(
            o_soft(zero_start=zero, exact_dual=exact)
        ),
    }
    active = np.ones(6, dtype=np.bool_)
    plain, zero = (makers[name.removesuffix(" exact")](each) for each in (False, True))
    expected = plain.update(plain.init(np.zeros(6)), batch, make_step(active, 1))
    found = zero.update(zero.init(np.arange(6.0)), batch, make_step(active, 1))
    assert zero.weights(found).tobytes() == plain.weights(expected).tobytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_only_features_of_the_batch_change(name: str) -> None:
    batch = random_batch(4)
    assert batch.sparse is not None
    wide = replace(
        batch,
        space=type(batch.space)(batch.space.groups, tuple(f"W_{i}" for i in range(1000))),
        sparse=replace(batch.sparse, indices=batch.sparse.indices * 300 + 5),
    )
    weights = np.ones(1002)
    change, after = make_change(LEARNERS[name](), wide, weights)
    touched = np.union1d([0, 1], 2 + wide.sparse.indices)
    assert set(change.columns.tolist()) <= set(touched.tolist())
    untouched = np.setdiff1d(np.arange(1002), touched)
    np.testing.assert_allclose(after[untouched], 1.0 - 1e-5 * RATE)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_feature_that_a_sentence_shares_is_not_learned(name: str) -> None:
    rng = np.random.default_rng(6)
    own = rng.standard_normal((12, 3))
    shared = np.repeat(rng.standard_normal((3, 1)), 4, axis=0)
    won = np.concatenate([rng.permutation(4) for _ in range(3)])
    batch = tuning_set([4, 4, 4], np.column_stack([own, shared]), won)
    change, _ = make_change(LEARNERS[name](), batch, np.ones(4))
    assert change.columns.tolist() == [0, 1, 2, 3]
    assert change.values[:3].all()
    assert change.values[3] == 0.0


@pytest.mark.parametrize("learner", [oro_learner(hinge()), o_oro_learner(o_hinge())])
def test_a_sentence_without_a_match_of_four_words_teaches_something(learner: Learner) -> None:
    """BLEU of both is 0; the first has more right words."""
    batch = tuning_set([2], np.eye(2), np.zeros(2))
    stats = np.array([[4, 6, 2, 5, 0, 4, 0, 3, 6], [2, 6, 0, 5, 0, 4, 0, 3, 6]], dtype=np.int32)
    where = replace(make_step(np.ones(2, dtype=np.bool_), 1), metric=Bleu())
    assert not Bleu().score(stats).any()
    change = learner.change(learner.init(np.zeros(2)), replace(batch, stats=stats), where)
    assert change.values[0] > 0.0 > change.values[1]
