"""Margins, oracles and other variants of rank learning against general solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers import Problem, algorithm, corpus_score
from mosesplug.optimizers.online.oro.learners import (
    o_oro_learner,
    o_oro_softmax_learner,
    oro_learner,
    rank_mira_learner,
)
from mosesplug.optimizers.online.oro.options import HingeOptions, OOroOptions, RankMiraOptions
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning_set import Batch
from tests.optimizers.online.oro.updates import (
    RATE,
    hinge,
    list_differences,
    make_change,
    matrix_of,
    minimize_constrained,
    o_hinge,
    o_soft,
    random_batch,
    split_oracles,
    spread_change,
)
from tests.optimizers.problems import Accuracy, planted, tuning_set


def corpus_gains(batch: Batch) -> NDArray[Any]:
    """Each hypothesis in the place of its sentence's oracle: the accuracy, times the sentences."""
    own = [o[0] for o, _ in split_oracles(batch) if o]
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
    change, _ = make_change(oro_learner(options), batch, weights)
    missing = np.count_nonzero(losses)
    expected = RATE * phi[losses > 0.0].sum(axis=0) / max(1, missing)
    np.testing.assert_allclose(spread_change(change, 6), expected, atol=1e-9)
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
    _, found = make_change(o_oro_learner(options), batch, weights)
    expected = minimize_constrained(
        (1.0 - 0.02 * RATE) * weights, phi[few], least[few], rate, shared
    )
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("softmax", [False, True])
def test_multipliers_are_scaled_up_to_the_rate(softmax: bool) -> None:
    """With a rate that no multiplier reaches, they are those of twice the rate, but for scale."""
    batch, weights = random_batch(3), np.zeros(6)
    tight = {"dual_tolerance": 1e-11, "dual_sweeps": 20_000, "rate_decay": 1.0, "scale_up": True}

    def after(rate: float) -> NDArray[Any]:
        settings: dict[str, Any] = {**tight, "rate": rate, "regularization": 0.0}
        if softmax:
            return make_change(o_oro_softmax_learner(o_soft(**settings)), batch, weights)[1]
        return make_change(o_oro_learner(o_hinge(**settings)), batch, weights)[1]

    np.testing.assert_allclose(after(2000.0), 2.0 * after(1000.0), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shared", [False, True])
def test_mira_on_pairs_solves_its_problem(seed: int, shared: bool) -> None:
    """Equation 13: the nearest weights, without a regularizer, at the same rate in every step."""
    batch = random_batch(seed)
    weights = np.random.default_rng(seed + 50).standard_normal(6)
    options = RankMiraOptions(slack=0.3, exact_dual=shared, renormalize=False, bound="rate")
    options = replace(options, margin="one", oracles="best", all_pairs=True)
    options = replace(options, dual_tolerance=1e-11, dual_sweeps=20_000)
    _, found = make_change(rank_mira_learner(options), batch, weights)
    phi = list_differences(batch)
    expected = minimize_constrained(weights, phi, np.ones(len(phi)), 0.3, shared)
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


@pytest.mark.parametrize(
    ("name", "sharding"), [("oro", None), ("oro", Sharding(2)), ("rank-mira", None)]
)
def test_the_first_line_search_of_the_paper_starts_from_zero(
    name: str, sharding: Sharding | None
) -> None:
    """Algorithm 3 of Watanabe 2012: no starting weights have any influence."""
    (problem, truth), tuner = planted(4, n_sentences=30, noise=1.0), algorithm(name)
    given = {"variant": "paper", "epochs": 2, "batch": 2, "averaging": "last"}
    optimizer = tuner.bind(make_options(tuner, given))

    def learn(start: NDArray[Any]) -> Any:
        rng = np.random.default_rng(1)
        if sharding is None:
            return optimizer.optimize(problem, start, rng)
        return optimize_sharded(problem, optimizer, sharding, start, rng)

    ends = [learn(start) for start in (truth, np.linspace(-1.0, 1.0, 5))]
    assert ends[0].history[0]["rho"] == 1.0
    assert ends[0].history == ends[1].history
    np.testing.assert_array_equal(ends[0].weights, ends[1].weights)


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
