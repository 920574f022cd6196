"""Rank learning against finite differences, general solvers and the paper's equations by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.metrics.bleu import Bleu
from mosesplug.optimizers import Problem, algorithm, corpus_score
from mosesplug.optimizers.online.learner import Change, Learner, Step
from mosesplug.optimizers.online.oro.hinge import (
    o_oro_learner,
    oro_learner,
    rank_mira_learner,
)
from mosesplug.optimizers.online.oro.options import (
    HingeOptions,
    OOroOptions,
    RankMiraOptions,
)
from mosesplug.optimizers.online.oro.softmax import (
    OOroSoftmaxOptions,
    OroSoftmaxOptions,
    o_oro_softmax_learner,
    oro_softmax_learner,
)
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning_set import Batch, SparseRows
from tests.optimizers.problems import Accuracy, tuning_set

PLAIN: dict[str, Any] = {"rate": 0.2}
DUAL: dict[str, Any] = {**PLAIN, "bound": "rate"}
"""The paper's, from the given weights."""


def hinge(**changed: Any) -> HingeOptions:
    return HingeOptions(**{**PLAIN, **changed})


def soft(**changed: Any) -> OroSoftmaxOptions:
    return OroSoftmaxOptions(**{**PLAIN, **changed})


def o_hinge(**changed: Any) -> OOroOptions:
    return OOroOptions(**{**DUAL, "margin": "one", "all_pairs": True, **changed})


def o_soft(**changed: Any) -> OOroSoftmaxOptions:
    return OOroSoftmaxOptions(**{**DUAL, **changed})


LEARNERS: dict[str, Callable[[], Learner]] = {
    "oro": lambda: oro_learner(hinge()),
    "oro-softmax": lambda: oro_softmax_learner(soft()),
    "o-oro": lambda: o_oro_learner(o_hinge()),
    "o-oro exact": lambda: o_oro_learner(o_hinge(exact_dual=True)),
    "o-oro-softmax": lambda: o_oro_softmax_learner(o_soft()),
    "o-oro-softmax exact": lambda: o_oro_softmax_learner(o_soft(exact_dual=True)),
}
RATE = 0.2 * 0.85 ** (3 / 7)
"""The learning rate of the step below."""


def step(active: NDArray[np.bool_], number: int = 3) -> Step:
    return Step(number, 1, 7, Accuracy(), active, np.random.default_rng(5))


def random_batch(seed: int, sizes: tuple[int, ...] = (4, 0, 5, 1, 3)) -> Batch:
    """Sentences of two dense and four sparse features; accuracy has one best choice in each."""
    rng = np.random.default_rng(seed)
    n_hyps = sum(sizes)
    matrix = rng.standard_normal((n_hyps, 4)) * (rng.random((n_hyps, 4)) < 0.6)
    rows, columns = np.nonzero(matrix)
    sparse = SparseRows(
        np.searchsorted(rows, np.arange(n_hyps + 1)).astype(np.int64),
        columns.astype(np.int32),
        matrix[rows, columns].astype(np.float32),
    )
    won = np.concatenate([rng.permutation(size) for size in sizes])
    names = ("A_a", "A_b", "A_c", "A_d")
    return tuning_set(list(sizes), rng.standard_normal((n_hyps, 2)), won, sparse, names)


def matrix_of(batch: Batch) -> NDArray[Any]:
    """All features of all hypotheses, float64."""
    matrix = np.zeros((batch.n_hyps, len(batch.space)))
    n_dense = batch.dense.shape[1]
    matrix[:, :n_dense] = batch.dense
    if batch.sparse is not None:
        owner = np.repeat(np.arange(batch.n_hyps), np.diff(batch.sparse.indptr))
        matrix[owner, n_dense + batch.sparse.indices] = batch.sparse.data
    return matrix


def split(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """Oracles and others of each sentence: the metric is a sum over sentences."""
    found = []
    for start, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        won = batch.stats[start:end, 0]
        oracles = [row for row in range(start, end) if batch.stats[row, 0] == won.max()]
        found.append((oracles, [row for row in range(start, end) if row not in oracles]))
    return found


def differences(batch: Batch) -> NDArray[Any]:
    """``h(oracle) - h(other)`` of all pairs."""
    matrix = matrix_of(batch)
    return np.array([matrix[a] - matrix[b] for o, rest in split(batch) for a in o for b in rest])


def log_ratio(batch: Batch, weights: NDArray[Any]) -> NDArray[Any]:
    """``L = log(Z_O / Z_N)`` of each sentence that has hypotheses (equation 6)."""
    scores = np.exp(matrix_of(batch) @ weights)
    return np.array(
        [np.log(scores[o].sum() / scores[o + rest].sum()) for o, rest in split(batch) if o]
    )


def gradient(function: Callable[[NDArray[Any]], Any], weights: NDArray[Any]) -> NDArray[Any]:
    """By central differences: ``[..., n_features]``."""
    steps = np.eye(len(weights)) * 1e-6
    parts = [function(weights + each) - function(weights - each) for each in steps]
    return np.stack(parts, axis=-1) / 2e-6


def on_all_features(change: Change, size: int) -> NDArray[Any]:
    values = np.zeros(size)
    values[change.columns] = change.values
    return values


def changed(learner: Learner, batch: Batch, weights: NDArray[Any]) -> tuple[Change, NDArray[Any]]:
    """The change, and the weights after it."""
    active = np.ones(len(weights), dtype=np.bool_)
    state = learner.init(weights)
    change = learner.change(state, batch, step(active))
    np.testing.assert_array_equal(learner.weights(state), weights)
    return change, learner.weights(learner.apply(state, change, step(active)))


@pytest.mark.parametrize("seed", range(5))
def test_the_sub_gradient_of_the_hinge_loss(seed: int) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 100).standard_normal(6)
    losses = np.maximum(0.0, 1.0 - differences(batch) @ weights)
    missing = np.count_nonzero(losses)

    def loss(at: NDArray[Any]) -> float:
        return float(np.maximum(0.0, 1.0 - differences(batch) @ at).sum()) / missing

    change, after = changed(oro_learner(hinge(regularization=0.01)), batch, weights)
    slope = gradient(loss, weights)
    np.testing.assert_allclose(on_all_features(change, 6), -RATE * slope, atol=1e-7)
    np.testing.assert_allclose(after, weights - RATE * (0.01 * weights + slope), atol=1e-7)
    assert change.report["violations"] == missing
    assert change.report["loss"] == pytest.approx(losses.mean())


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_of_the_softmax_loss(seed: int) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 100).standard_normal(6)
    change, after = changed(oro_softmax_learner(soft(regularization=0.01)), batch, weights)
    slope = gradient(lambda at: -log_ratio(batch, at).mean(), weights)
    np.testing.assert_allclose(on_all_features(change, 6), -RATE * slope, atol=1e-7)
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
    _, expected = changed(oro_learner(plain), batch, weights)
    _, found = changed(o_oro_learner(optimized), batch, weights)
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
            change, _ = changed(o_oro_learner(options), batch, weights)
            np.testing.assert_allclose(change.values, expected, atol=1e-9)


def minimised(
    weights: NDArray[Any], phi: NDArray[Any], goals: NDArray[Any], rate: float, shared: bool
) -> NDArray[Any]:
    """Equations 12 and 16 as they stand, with a slack for each constraint, or one for all."""
    size, n_slacks = len(weights), 1 if shared else len(goals)
    owner = np.zeros(len(goals), dtype=int) if shared else np.arange(len(goals))
    spread = np.eye(n_slacks)[owner]
    solved = minimize(
        lambda x: 0.5 * ((x[:size] - weights) ** 2).sum() + rate * x[size:].sum(),
        np.concatenate([weights, np.ones(n_slacks) * 10.0]),
        jac=lambda x: np.concatenate([x[:size] - weights, np.full(n_slacks, rate)]),
        bounds=[(None, None)] * size + [(0.0, None)] * n_slacks,
        constraints={
            "type": "ineq",
            "fun": lambda x: phi @ x[:size] - goals + spread @ x[size:],
            "jac": lambda x: np.hstack([phi, spread]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return np.asarray(solved.x[:size])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shared", [False, True])
def test_optimized_hinge_updates_solve_their_problem(seed: int, shared: bool) -> None:
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 50).standard_normal(6)
    options = o_hinge(
        exact_dual=shared,
        renormalise=False,
        all_pairs=True,
        dual_tolerance=1e-10,
        dual_sweeps=10_000,
    )
    _, found = changed(o_oro_learner(replace(options, regularization=0.02)), batch, weights)
    phi = differences(batch)
    shrunk = (1.0 - 0.02 * RATE) * weights
    expected = minimised(shrunk, phi, np.ones(len(phi)), RATE, shared)
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
        renormalise=False,
        dual_tolerance=1e-10,
        dual_sweeps=10_000,
        regularization=0.02,
        tangent=tangent,
    )
    _, found = changed(o_oro_softmax_learner(options), batch, weights)
    planes = gradient(lambda at: log_ratio(batch, at), weights)
    goals = -log_ratio(batch, weights) + (planes @ weights if tangent else 0.0)
    told = np.abs(planes).sum(axis=1) > 1e-9
    shrunk = (1.0 - 0.02 * RATE) * weights
    expected = minimised(shrunk, planes[told], goals[told], RATE, shared)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("softmax", [False, True])
def test_shrinking_stops_at_zero_in_the_program_too(softmax: bool) -> None:
    """Where lambda eta is above 1, the step is that from weights of 0, which are what it meets."""
    batch = random_batch(1)
    weights = np.random.default_rng(3).standard_normal(6)
    options = {"renormalise": False, "dual_tolerance": 1e-10, "dual_sweeps": 10_000}

    def after(regularization: float) -> NDArray[Any]:
        if softmax:
            soft = o_soft(regularization=regularization, **options)
            learner = o_oro_softmax_learner(soft)
        else:
            hard = o_hinge(regularization=regularization, **options)
            learner = o_oro_learner(hard)
        return changed(learner, batch, weights)[0].values

    np.testing.assert_allclose(after(1e3), after(1.0 / RATE), atol=1e-9)


def test_renormalised_multipliers_keep_their_direction() -> None:
    batch = random_batch(3)
    weights = np.random.default_rng(3).standard_normal(6)
    free, _ = changed(o_oro_learner(o_hinge(renormalise=False)), batch, weights)
    bound, _ = changed(o_oro_learner(o_hinge()), batch, weights)
    ratios = bound.values / free.values
    np.testing.assert_allclose(ratios, ratios[0])
    assert 0.0 < ratios[0] < 1.0


@pytest.mark.parametrize("name", LEARNERS)
def test_inactive_weights_do_not_change_but_count_in_scores(name: str) -> None:
    batch = random_batch(8)
    weights = np.random.default_rng(8).standard_normal(6)
    active = np.array([True, False, True, True, False, True])
    learner = LEARNERS[name]()
    state = learner.update(learner.init(weights), batch, step(active))
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
    same = learner.weights(learner.update(learner.init(start), other, step(mask)))
    np.testing.assert_allclose(same[:4], after[active], rtol=1e-4, atol=1e-5)  # float32 shares


@pytest.mark.parametrize("name", LEARNERS)
def test_a_batch_without_anything_to_learn(name: str) -> None:
    for batch in (random_batch(1, (1, 0, 1)), random_batch(1, (0, 0))):
        weights = np.arange(6.0)
        change, after = changed(LEARNERS[name](), batch, weights)
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
    expected = plain.update(plain.init(np.zeros(6)), batch, step(active, 1))
    found = zero.update(zero.init(np.arange(6.0)), batch, step(active, 1))
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
    change, after = changed(LEARNERS[name](), wide, weights)
    touched = np.union1d([0, 1], 2 + wide.sparse.indices)
    assert set(change.columns.tolist()) <= set(touched.tolist())
    untouched = np.setdiff1d(np.arange(1002), touched)
    np.testing.assert_allclose(after[untouched], 1.0 - 1e-5 * RATE)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_feature_that_a_sentence_shares_is_not_learnt(name: str) -> None:
    rng = np.random.default_rng(6)
    own = rng.standard_normal((12, 3))
    shared = np.repeat(rng.standard_normal((3, 1)), 4, axis=0)
    won = np.concatenate([rng.permutation(4) for _ in range(3)])
    batch = tuning_set([4, 4, 4], np.column_stack([own, shared]), won)
    change, _ = changed(LEARNERS[name](), batch, np.ones(4))
    assert change.columns.tolist() == [0, 1, 2, 3]
    assert change.values[:3].all()
    assert change.values[3] == 0.0


@pytest.mark.parametrize("learner", [oro_learner(hinge()), o_oro_learner(o_hinge())])
def test_a_sentence_without_a_match_of_four_words_teaches_something(learner: Learner) -> None:
    """BLEU of both is 0; the first has more right words."""
    batch = tuning_set([2], np.eye(2), np.zeros(2))
    stats = np.array([[4, 6, 2, 5, 0, 4, 0, 3, 6], [2, 6, 0, 5, 0, 4, 0, 3, 6]], dtype=np.int32)
    where = replace(step(np.ones(2, dtype=np.bool_), 1), metric=Bleu())
    assert not Bleu().score(stats).any()
    change = learner.change(learner.init(np.zeros(2)), replace(batch, stats=stats), where)
    assert change.values[0] > 0.0 > change.values[1]


def corpus_gains(batch: Batch) -> NDArray[Any]:
    """Each hypothesis in the place of its sentence's oracle: the accuracy, times the sentences."""
    own = [o[0] for o, _ in split(batch) if o]
    totals = batch.stats[own].sum(axis=0).astype(float)
    owners = np.repeat(np.arange(len(own)), [n for n in np.diff(batch.offsets) if n])
    swapped = totals - batch.stats[own][owners] + batch.stats
    return np.asarray(Accuracy().score(swapped)) * len(own)


def constraints_of(
    batch: Batch, weights: NDArray[Any], options: HingeOptions | OOroOptions
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Differences of all pairs, and their required margins, one by one."""
    matrix, gains = matrix_of(batch), corpus_gains(batch)
    merits = matrix @ weights + gains
    phi, least = [], []
    for start, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        rows = list(range(start, end))
        if options.oracles == "hope":
            better = [max(rows, key=lambda row: merits[row])] if rows else []
        else:
            better = [row for row in rows if gains[row] == gains[rows].max()]
        for a in better:
            for b in (row for row in rows if gains[row] < gains[a]):
                phi.append(matrix[a] - matrix[b])
                least.append(gains[a] - gains[b] if options.margin == "cost" else 1.0)
    return np.array(phi), np.array(least)


VARIANTS = pytest.mark.parametrize(
    ("margin", "oracles"), [("cost", "best"), ("one", "hope"), ("cost", "hope")]
)


@pytest.mark.parametrize("seed", range(4))
@VARIANTS
def test_margins_and_oracles_of_the_plain_update(seed: int, margin: Any, oracles: Any) -> None:
    batch = random_batch(seed)
    weights = 0.2 * np.random.default_rng(seed + 100).standard_normal(6)
    options = hinge(margin=margin, oracles=oracles, regularization=0.0, rate=0.2)
    options = replace(options, rate_decay=0.85)
    phi, least = constraints_of(batch, weights, options)
    losses = np.maximum(0.0, least - phi @ weights)
    change, _ = changed(oro_learner(options), batch, weights)
    missing = np.count_nonzero(losses)
    expected = RATE * phi[losses > 0.0].sum(axis=0) / max(1, missing)
    np.testing.assert_allclose(on_all_features(change, 6), expected, atol=1e-9)
    assert change.report["violations"] == missing
    assert change.report["loss"] == pytest.approx(losses.mean())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [False, True])
@VARIANTS
def test_margins_and_oracles_of_the_optimized_update(
    seed: int, shared: bool, margin: Any, oracles: Any
) -> None:
    """An equal share of the rate for each violated pair, or one bound for all pairs together."""
    batch = random_batch(seed)
    weights = 0.2 * np.random.default_rng(seed + 50).standard_normal(6)
    options = o_hinge(margin=margin, oracles=oracles, bound="share", exact_dual=shared)
    options = replace(options, all_pairs=False, dual_tolerance=1e-11, dual_sweeps=20_000)
    options = replace(options, regularization=0.02, rate=0.2, rate_decay=0.85)
    phi, least = constraints_of(batch, weights, options)
    missing = phi @ weights < least
    few = np.ones(len(phi), dtype=bool) if shared else missing
    rate = RATE if shared else RATE / max(1, np.count_nonzero(missing))
    _, found = changed(o_oro_learner(options), batch, weights)
    expected = minimised((1.0 - 0.02 * RATE) * weights, phi[few], least[few], rate, shared)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("softmax", [False, True])
def test_multipliers_are_scaled_up_to_the_rate(softmax: bool) -> None:
    """With a rate that no multiplier reaches, they are those of twice the rate, but for scale."""
    batch, weights = random_batch(3), np.zeros(6)
    tight = {"dual_tolerance": 1e-11, "dual_sweeps": 20_000, "rate_decay": 1.0, "scale_up": True}

    def after(rate: float) -> NDArray[Any]:
        settings: dict[str, Any] = {**tight, "rate": rate, "regularization": 0.0}
        if softmax:
            return changed(o_oro_softmax_learner(o_soft(**settings)), batch, weights)[1]
        return changed(o_oro_learner(o_hinge(**settings)), batch, weights)[1]

    np.testing.assert_allclose(after(2000.0), 2.0 * after(1000.0), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shared", [False, True])
def test_mira_on_pairs_solves_its_problem(seed: int, shared: bool) -> None:
    """Equation 13: the nearest weights, without a regulariser, at the same rate in every step."""
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 50).standard_normal(6)
    options = RankMiraOptions(slack=0.3, exact_dual=shared, renormalise=False, bound="rate")
    options = replace(options, margin="one", oracles="best", all_pairs=True)
    options = replace(options, dual_tolerance=1e-11, dual_sweeps=20_000)
    _, found = changed(rank_mira_learner(options), batch, weights)
    phi = differences(batch)
    expected = minimised(weights, phi, np.ones(len(phi)), 0.3, shared)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_variant_sets_what_is_not_given() -> None:
    o_oro = algorithm("o-oro")
    paper = make_options(o_oro, {"variant": "paper"})
    assert (paper.margin, paper.oracles, paper.bound, paper.all_pairs) == (
        "one",
        "best",
        "rate",
        True,
    )
    assert paper.rate == 0.2
    assert paper.zero_start
    mixed = make_options(o_oro, {"rate": "0.3", "variant": "cicada"})
    assert (mixed.margin, mixed.rate, mixed.scale_up) == ("cost", 0.3, True)
    soft = make_options(algorithm("oro-softmax"), {"variant": "paper", "zero-start": "false"})
    assert not soft.zero_start


@pytest.mark.parametrize("averaging", ["best", "all", "last"])
def test_a_line_search_after_each_epoch_is_that_of_one_shard(averaging: Any) -> None:
    problem = Problem(random_batch(4, (5, 4, 6, 3, 5)), Accuracy())
    start, rng = np.linspace(-1.0, 1.0, 6), np.random.default_rng
    options = hinge(epochs=4, batch=2, averaging=averaging, line_search=True)
    oro = algorithm("oro").bind(options)
    alone = oro.optimize(problem, start, rng(1))
    sharded = optimize_sharded(problem, oro, Sharding(1), start, rng(1))
    assert alone.weights.tobytes() == sharded.weights.tobytes()
    assert alone.history == sharded.history
    assert {"rho"} <= set(alone.history[0])


def test_the_start_is_kept_if_all_epochs_are_worse() -> None:
    """Two of three sentences contradict the third, which has most of the points."""
    dense = np.array([[1.0, 0.0], [0.0, 1.0]] * 3)
    problem = Problem(tuning_set([2, 2, 2], dense, np.array([9, 0, 0, 1, 0, 1])), Accuracy())
    start = np.array([1.0, 0.5])
    tuner = algorithm("oro")
    for averaging, kept in (("best", True), ("last", False)):
        given = {"averaging": averaging, "variant": "paper", "line_search": False}
        options = make_options(tuner, {**given, "zero_start": False, "rate": 1.0})
        found = tuner.bind(options).optimize(problem, start, np.random.default_rng(1))
        assert (found.score == corpus_score(problem, start)) == kept
