"""MIRA against its equations spelled out, and against SciPy on the problem as it is posed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.online.learner import Change
from mosesplug.optimizers.online.margins import MiraOptions, mira_learner
from mosesplug.tuning_set import Batch
from tests.optimizers.online.batches import full_rows, random_batch, step_over
from tests.optimizers.problems import tuning_set

OPTIONS = MiraOptions(cost="lin-och", slack=0.05, solver_tolerance=1e-7)
MANY = pytest.mark.parametrize("constraints", ["working-set", "cutting-plane"])
CHOICES = pytest.mark.parametrize("choice", ["hope-fear", "best-oracle"])


def gains_of(batch: Batch) -> NDArray[np.float64]:
    return np.asarray(batch.stats[:, 0] / batch.stats[:, 1], dtype=np.float64)


def change_of(
    options: MiraOptions,
    batch: Batch,
    weights: NDArray[np.float64],
    active: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], Change]:
    """The step on all features, and the change that has it."""
    learner = mira_learner(options)
    change = learner.change(
        learner.init(weights), batch, step_over(len(batch.space), active=active)
    )
    step = np.zeros(len(weights))
    step[change.columns] = change.values
    return step, change


def start_of(batch: Batch, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0.0, 0.2, len(batch.space))


@CHOICES
@pytest.mark.parametrize("seed", range(4))
def test_one_constraint_is_closed_form(choice: Any, seed: int) -> None:
    """Equations 35, 36, 61 and 62, sentence by sentence."""
    batch = random_batch(seed, [5, 0, 1, 4, 6])
    start, gains, rows = start_of(batch, seed), gains_of(batch), full_rows(batch)
    active = np.arange(len(start)) != 1
    weights, losses = start.copy(), []
    for first, last in pairwise(batch.offsets):
        if first == last:
            continue
        scores, worth = rows[first:last] @ weights, gains[first:last]
        if choice == "hope-fear":
            reference, other = np.argmax(scores + worth), np.argmax(scores - worth)
        else:
            oracles = np.flatnonzero(worth == worth.max())
            reference, other = oracles[np.argmax(scores[oracles])], np.argmax(scores)
        along = rows[first + reference] - rows[first + other]
        loss = worth[reference] - worth[other] - weights @ along
        losses.append(max(0.0, loss))
        along = np.where(active, along, 0.0)
        if loss > 0.0:
            weights += min(OPTIONS.slack, loss / (along @ along)) * along
    found, change = change_of(replace(OPTIONS, choice=choice), batch, start, active)
    np.testing.assert_allclose(found, weights - start, atol=1e-14)
    assert change.report["loss"] == pytest.approx(np.mean(losses))
    assert change.report["violations"] == np.count_nonzero(losses) > 0


def references_of(
    choice: str, batch: Batch, scores: NDArray[np.float64], gains: NDArray[np.float64]
) -> list[int]:
    found = []
    for first, last in pairwise(batch.offsets):
        own, worth = scores[first:last], gains[first:last]
        merit = own + worth if choice == "hope-fear" else own + 1e6 * (worth == worth.max())
        found.append(int(first + np.argmax(merit)))
    return found


def by_scipy(choice: str, batch: Batch, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of least ``1/2 |w - w_t|^2 + C sum xi``, over weights and slacks."""
    n, gains, rows = len(start), gains_of(batch), full_rows(batch)
    references = references_of(choice, batch, rows @ start, gains)
    owners = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
    reference = np.array(references)[owners]
    slopes = np.hstack([rows[reference] - rows, np.eye(batch.n_sentences)[owners]])
    least = gains[reference] - gains

    def value(point: NDArray[np.float64]) -> float:
        return float(0.5 * np.sum((point[:n] - start) ** 2) + OPTIONS.slack * point[n:].sum())

    def slope(point: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.append(point[:n] - start, np.full(batch.n_sentences, OPTIONS.slack))

    found = minimize(
        value,
        np.append(start, np.full(batch.n_sentences, 5.0)),
        jac=slope,
        bounds=[(None, None)] * n + [(0.0, None)] * batch.n_sentences,
        constraints={
            "type": "ineq",
            "fun": lambda point: slopes @ point - least,
            "jac": lambda point: slopes,
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 400},
    )
    return np.asarray(found.x[:n])


@CHOICES
@pytest.mark.parametrize("seed", range(3))
def test_cutting_plane_solves_the_batch(choice: Any, seed: int) -> None:
    batch = random_batch(seed, [6, 1, 8, 5])
    start = start_of(batch, seed + 10)
    options = replace(OPTIONS, constraints="cutting-plane", choice=choice)
    found, _ = change_of(options, batch, start)
    np.testing.assert_allclose(start + found, by_scipy(choice, batch, start), atol=2e-5)
    assert np.abs(found).max() > 0.01


@CHOICES
@pytest.mark.parametrize("seed", range(3))
def test_working_sets_solve_each_sentence_in_turn(choice: Any, seed: int) -> None:
    batch = random_batch(seed, [6, 7])
    start = start_of(batch, seed + 20)
    weights = start
    for sentence in range(2):
        weights = by_scipy(choice, batch.take_sentences(np.array([sentence])), weights)
    options = replace(OPTIONS, constraints="working-set", choice=choice)
    found, _ = change_of(options, batch, start)
    np.testing.assert_allclose(start + found, weights, atol=2e-5)


@MANY
def test_many_constraints_find_room(constraints: Any) -> None:
    """Each hypothesis but the hope has a feature of its own, which must fall by the margin."""
    n = 20
    won = np.append(10, np.arange(1, n) % 10)
    features = np.eye(n)
    features[0] = 0.0
    options = replace(OPTIONS, constraints=constraints, slack=1e3)
    step, _ = change_of(options, tuning_set([n], features, won), np.zeros(n))
    np.testing.assert_allclose(step, -(10 - won) / 10, atol=1e-6)


@MANY
def test_of_two_hypotheses_all_ways_are_one(constraints: Any) -> None:
    batch = random_batch(3, [2])
    start = start_of(batch, 4)
    closed, _ = change_of(OPTIONS, batch, start)
    solved, _ = change_of(replace(OPTIONS, constraints=constraints), batch, start)
    assert closed.any()
    np.testing.assert_allclose(solved, closed, atol=1e-9)


@pytest.mark.parametrize("constraints", ["one", "working-set", "cutting-plane"])
def test_shared_features_are_not_learned(constraints: Any) -> None:
    batch = random_batch(6, [5, 7, 4])
    dense = batch.dense.copy()
    dense[:, 2] = 0.1
    step, change = change_of(
        replace(OPTIONS, constraints=constraints),
        replace(batch, dense=dense),
        start_of(batch, 7),
    )
    assert step[2] == 0.0
    assert 2 not in change.columns
    assert step[:2].all()


@pytest.mark.parametrize("constraints", ["one", "working-set", "cutting-plane"])
def test_satisfied_margins_cause_no_update(constraints: Any) -> None:
    batch = random_batch(8, [4, 6], n_sparse=0)
    dense = np.zeros_like(batch.dense)
    dense[:, 0] = gains_of(batch)
    met = np.array([1.5, 0.0, 0.0])
    options = replace(OPTIONS, constraints=constraints)
    _, change = change_of(options, replace(batch, dense=dense), met)
    assert len(change.columns) == 0
    assert (change.report["loss"], change.report["violations"]) == (0.0, 0.0)
