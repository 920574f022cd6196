"""Learners, random batches and the equations of the paper, written out for the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.online.learner import Change, Learner, Step
from mosesplug.optimizers.online.oro.learners import (
    o_oro_learner,
    o_oro_softmax_learner,
    oro_learner,
    oro_softmax_learner,
)
from mosesplug.optimizers.online.oro.options import (
    HingeOptions,
    OOroOptions,
    OOroSoftmaxOptions,
    OroSoftmaxOptions,
)
from mosesplug.tuning_set import Batch, SparseRows
from tests.optimizers.problems import Accuracy, tuning_set

PLAIN: dict[str, Any] = {"rate": 0.2}
DUAL: dict[str, Any] = {**PLAIN, "bound": "rate"}
"""Settings of Watanabe (2012): multipliers are bounded by the rate."""


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
"""The learning rate of ``make_step``."""


def make_step(active: NDArray[np.bool_], number: int = 3) -> Step:
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
    """Return all features of all hypotheses, float64 ``[n_hyps, n_features]``."""
    matrix = np.zeros((batch.n_hyps, len(batch.space)))
    n_dense = batch.dense.shape[1]
    matrix[:, :n_dense] = batch.dense
    if batch.sparse is not None:
        owner = np.repeat(np.arange(batch.n_hyps), np.diff(batch.sparse.indptr))
        matrix[owner, n_dense + batch.sparse.indices] = batch.sparse.data
    return matrix


def split_oracles(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """Return the rows of oracles and of others of each sentence, by its own accuracy."""
    found = []
    for start, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        won = batch.stats[start:end, 0]
        oracles = [row for row in range(start, end) if batch.stats[row, 0] == won.max()]
        found.append((oracles, [row for row in range(start, end) if row not in oracles]))
    return found


def list_differences(batch: Batch) -> NDArray[Any]:
    """Return ``h(oracle) - h(other)`` of all pairs, ``[n_pairs, n_features]``."""
    matrix = matrix_of(batch)
    return np.array(
        [matrix[a] - matrix[b] for o, rest in split_oracles(batch) for a in o for b in rest]
    )


def log_ratio(batch: Batch, weights: NDArray[Any]) -> NDArray[Any]:
    """Return ``L = log(Z_O / Z_N)`` of each sentence that has hypotheses (equation 6)."""
    scores = np.exp(matrix_of(batch) @ weights)
    return np.array(
        [np.log(scores[o].sum() / scores[o + rest].sum()) for o, rest in split_oracles(batch) if o]
    )


def differentiate(function: Callable[[NDArray[Any]], Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the gradient by central differences, ``[..., n_features]``."""
    steps = np.eye(len(weights)) * 1e-6
    parts = [function(weights + each) - function(weights - each) for each in steps]
    return np.stack(parts, axis=-1) / 2e-6


def spread_change(change: Change, size: int) -> NDArray[Any]:
    values = np.zeros(size)
    values[change.columns] = change.values
    return values


def make_change(
    learner: Learner, batch: Batch, weights: NDArray[Any]
) -> tuple[Change, NDArray[Any]]:
    """Return the change of a learner for one batch, and the weights after it."""
    active = np.ones(len(weights), dtype=np.bool_)
    state = learner.init(weights)
    change = learner.change(state, batch, make_step(active))
    np.testing.assert_array_equal(learner.weights(state), weights)
    return change, learner.weights(learner.apply(state, change, make_step(active)))


def minimize_constrained(
    weights: NDArray[Any], phi: NDArray[Any], goals: NDArray[Any], rate: float, shared: bool
) -> NDArray[Any]:
    """Solve equations 12 and 16 with scipy: a slack for each constraint, or one if ``shared``."""
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
