"""Changes made up from a seed, and learners that spell out every step on every feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.learner import Change, Learner, Step
from tests.optimizers.problems import Accuracy

N_FEATURES = 12


def step_of(number: int, per_epoch: int = 10, active: NDArray[np.bool_] | None = None) -> Step:
    """Where update ``number`` stands."""
    return Step(
        number=number,
        epoch=1 + (number - 1) // per_epoch,
        per_epoch=per_epoch,
        metric=Accuracy(),
        active=np.ones(N_FEATURES, dtype=np.bool_) if active is None else active,
        rng=np.random.default_rng(number),
    )


def gradients(seed: int, n_steps: int = 60) -> list[NDArray[np.float64]]:
    """One gradient a step; the first feature is always there, the others rarely, some never."""
    rng = np.random.default_rng(seed)
    chance = np.append(1.0, np.geomspace(0.5, 0.02, N_FEATURES - 1))
    return [
        np.where(rng.random(N_FEATURES) < chance, rng.standard_normal(N_FEATURES), 0.0)
        for _ in range(n_steps)
    ]


def lazily(
    learner: Learner,
    start: NDArray[np.float64],
    wanted: list[NDArray[np.float64]],
    active: NDArray[np.bool_] | None = None,
) -> list[NDArray[np.float64]]:
    """The learner's weights after every step, told of the features with a gradient only."""
    state, found = learner.init(start), []
    for number, gradient in enumerate(wanted, start=1):
        step = step_of(number, active=active)
        columns = np.flatnonzero((gradient != 0.0) & step.active)
        state = learner.apply(state, Change(columns, gradient[columns]), step)
        found.append(learner.weights(state))
    return found


def without_looking(
    learner: Learner, start: NDArray[np.float64], wanted: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The last weights; nothing is asked for in between."""
    state = learner.init(start)
    for number, gradient in enumerate(wanted, start=1):
        columns = np.flatnonzero(gradient)
        state = learner.apply(state, Change(columns, gradient[columns]), step_of(number))
    return learner.weights(state)


def proximal_point(
    weights: NDArray[np.float64], rates: NDArray[np.float64], strength: float, norm: str
) -> NDArray[np.float64]:
    """One step of the regularizer on every feature, by its definition."""
    if norm == "l2":
        return weights / (1.0 + rates * strength)
    signs = np.sign(weights)
    return signs * np.clip(np.abs(weights) - rates * strength, 0.0, None)
