"""RAMPION: its losses, its steps, and that none of them goes up."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.margin.rampion import Ramp, RampionOptions, take_ramp_steps
from mosesplug.optimizers.lists.scaled import scale_lists
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.lists.test_scaled import matrix
from tests.optimizers.online.batches import random_batch
from tests.optimizers.problems import Accuracy, planted

rampion = algorithm("rampion").optimize

LOSSES = {"1": (1.0, 0.0), "2": (0.0, 1.0), "3": (1.0, 1.0)}


def ramp_of(name: str, seed: int = 1) -> tuple[Ramp, NDArray[np.float64]]:
    """A loss over random lists, and all rows."""
    rng = np.random.default_rng(seed)
    made = random_batch(seed, [4, 3, 5])
    lists = scale_lists(Problem(made, Accuracy(), np.ones(9, np.bool_)), np.ones(9), "none")
    raised, lowered = LOSSES[name]
    return Ramp(lists, rng.random(12), raised, lowered, rng.standard_normal(9), 0.7), matrix(lists)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_the_paper(name: str) -> None:
    ramp, rows = ramp_of(name)
    weights = np.random.default_rng(2).standard_normal(9)
    scores, costs = rows @ weights, ramp.costs
    wanted = 0.35 * float(((weights - ramp.origin) ** 2).sum())
    for start, end in ((0, 4), (4, 7), (7, 12)):
        s, c = scores[start:end], costs[start:end]
        wanted += {
            "1": max(s + c) - max(s),
            "2": max(s) - max(s - c),
            "3": max(s + c) - max(s - c),
        }[name]
    assert ramp.surrogate(weights, ramp.second_maxima(weights)) == pytest.approx(wanted)


@pytest.mark.parametrize("name", LOSSES)
def test_the_surrogate_is_convex_above_the_loss_and_touches_it(name: str) -> None:
    ramp, _ = ramp_of(name)
    rng = np.random.default_rng(3)
    here = rng.standard_normal(9)
    fixed = ramp.second_maxima(here)
    for _ in range(20):
        one, other = rng.standard_normal((2, 9))
        assert ramp.surrogate(one, fixed) >= ramp.surrogate(one, ramp.second_maxima(one)) - 1e-12
        middle = 0.5 * (ramp.surrogate(one, fixed) + ramp.surrogate(other, fixed))
        assert ramp.surrogate(0.5 * (one + other), fixed) <= middle + 1e-12


def test_steps_against_plain_ones() -> None:
    ramp, rows = ramp_of("3")
    lists, rng = ramp.lists, np.random.default_rng(4)
    fixed, order = ramp.second_maxima(ramp.origin), rng.integers(0, 3, 40)
    start = 0.1 * rng.standard_normal(9)
    step, shrinkage = 0.05, 1.0 - 0.05 * 0.7 / 3
    moved = start.copy()
    base = lists.scores(ramp.origin) + ramp.costs
    steps, shrinkages = (np.full(lists.n_sentences, value) for value in (step, shrinkage))
    take_ramp_steps(lists.features, lists.offsets, base, fixed, order, steps, shrinkages, moved)
    weights = ramp.origin + start
    for sentence in order:
        own = np.arange(*lists.offsets[sentence : sentence + 2])
        fear = own[np.argmax(rows[own] @ weights + ramp.costs[own])]
        weights -= step * 0.7 / 3 * (weights - ramp.origin)
        weights += step * (rows[fixed[sentence]] - rows[fear])
    np.testing.assert_allclose(ramp.origin + moved, weights, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("step", [1e-3, 100.0])
def test_accepted_steps_never_increase_the_objective(step: float) -> None:
    """Also where the first steps are far too long."""
    problem, _ = planted(24, n_sentences=40, noise=1.0)
    options = RampionOptions(step=step, rounds=8)
    history = rampion(problem, np.full(5, 0.2), np.random.default_rng(1), options).history
    for before, after in itertools.pairwise(history):
        assert after["before"] == before["ramp"]
        assert after["before"] <= before["objective"]
    assert all(each["objective"] < each["before"] for each in history[:3])
    assert (history[0]["step"] < step) == (step == 100.0)


@pytest.mark.parametrize("name", ["1", "3"])
def test_finds_planted_weights(name: str) -> None:
    problem, _ = planted(25, n_sentences=100)
    options = RampionOptions(ramp=name)  # type: ignore[arg-type]
    found = rampion(problem, np.full(5, 0.2), np.random.default_rng(1), options)
    assert found.score > 0.93
    json.dumps(found.history)
    assert np.abs(found.weights).sum() == pytest.approx(1.0)


def test_the_scale_of_a_free_start_does_not_count() -> None:
    problem, _ = planted(26, n_sentences=30, noise=1.0)
    starts = (np.full(5, 0.5), np.full(5, 4.0))
    one, other = (
        rampion(problem, start, np.random.default_rng(1), RampionOptions(rounds=5)).weights
        for start in starts
    )
    np.testing.assert_array_equal(one, other)
    options = RampionOptions(rounds=5, start_norm=0.0)
    kept = [rampion(problem, start, np.random.default_rng(1), options).weights for start in starts]
    assert np.abs(kept[0] - kept[1]).max() > 1e-3


def test_inactive_weights_and_the_scale_stay() -> None:
    problem, hidden = planted(27, n_sentences=100)
    active = np.array([True, True, False, True, True])
    start = np.where(active, 0.5, 5.0 * hidden)
    fixed = replace(problem, active=active)
    found = rampion(fixed, start, np.random.default_rng(1), RampionOptions())
    assert found.weights[2] == start[2]
    assert found.score > 0.9


def test_costs_that_do_not_count_are_rejected() -> None:
    """Hope, fear and first best would be the same, and the start the result."""
    problem, _ = planted(1)
    with pytest.raises(UsageError, match="cost_scale must be above 0"):
        rampion(problem, np.ones(5), np.random.default_rng(0), RampionOptions(cost_scale=0.0))


def test_a_strong_regularizer_holds_the_weights_where_they_were() -> None:
    problem, _ = planted(28, n_sentences=30)
    start = np.array([0.4, -0.3, 0.1, 0.1, 0.1])
    options = RampionOptions(regularization=1e6, step=1e-6)
    found = rampion(problem, start, np.random.default_rng(1), options)
    np.testing.assert_allclose(found.weights, start, atol=1e-3)


def test_the_regularizer_pulls_towards_the_weights_that_a_run_began_with() -> None:
    """And not towards those of the last decoding, at whatever scale either is."""
    problem, _ = planted(28, n_sentences=30)
    first, last = np.array([0.4, -0.3, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.2, -0.2, 0.4])
    run = replace(problem, center=3.0 * first)
    options = RampionOptions(regularization=1e6, step=1e-6)
    pulled, history = [], []
    for center, start in ((run, last), (problem, last)):
        found = rampion(center, start, np.random.default_rng(1), options)
        pulled.append(found.weights)
        history.append(found.history)
    np.testing.assert_allclose(pulled[0], first, atol=1e-2)
    np.testing.assert_allclose(pulled[1], last, atol=1e-2)
    assert history[0][0]["before"] > 1e4 > history[1][0]["before"]
