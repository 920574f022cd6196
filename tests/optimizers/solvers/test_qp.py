"""The quadratic program of shared slack, against SciPy and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from mosesplug.optimizers.solvers.qp import EXCHANGES, solve_groups


def group_multipliers(
    gram: NDArray[np.float64],
    goals: NDArray[np.float64],
    groups: NDArray[np.int64],
    caps: NDArray[np.float64],
    tolerance: float = 1e-10,
    exchanges: int = EXCHANGES,
) -> NDArray[np.float64]:
    """The multipliers, float64 ``[n]``, from a start at 0."""
    multipliers = np.zeros(len(goals))
    solve_groups(gram, goals, groups, caps, tolerance, exchanges, multipliers)
    return multipliers


def random_program(
    seed: int, n: int, n_features: int, n_groups: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Gram matrix, goals and groups; of lower rank than size where there are few features."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((n, n_features))
    return steps @ steps.T, rng.normal(0.5, 1.0, n), rng.integers(0, n_groups, n)


def objective(
    multipliers: NDArray[np.float64], gram: NDArray[np.float64], goals: NDArray[np.float64]
) -> float:
    return float(0.5 * multipliers @ gram @ multipliers - goals @ multipliers)


@pytest.mark.parametrize("seed", range(12))
def test_equals_scipy(seed: int) -> None:
    n, cap = 8, [0.05, 0.5, 5.0][seed % 3]
    gram, goals, groups = random_program(seed, n, 2 + seed % 5, 3)
    found = group_multipliers(gram, goals, groups, np.full(3, cap))
    limits = [
        {"type": "ineq", "fun": lambda a, own=groups == group: cap - a[own].sum()}
        for group in range(3)
    ]
    wanted = minimize(
        objective,
        np.zeros(n),
        (gram, goals),
        jac=lambda a, gram, goals: gram @ a - goals,
        bounds=[(0.0, None)] * n,
        constraints=limits,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert objective(found, gram, goals) == pytest.approx(wanted.fun, abs=1e-8)
    # The multipliers may be of many kinds where features are few; the step is one.
    np.testing.assert_allclose(gram @ found, gram @ wanted.x, atol=1e-4)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 12),
    n_features=st.integers(1, 6),
    n_groups=st.integers(1, 4),
    cap=st.sampled_from([0.0, 0.01, 0.3, 10.0]),
)
def test_is_optimal(seed: int, n: int, n_features: int, n_groups: int, cap: float) -> None:
    """No multiplier of a group is steeper than one that has something to give, rest included."""
    gram, goals, groups = random_program(seed, n, n_features, n_groups)
    found = group_multipliers(gram, goals, groups, np.full(n_groups, cap))
    assert (found >= 0.0).all()
    slopes = goals - gram @ found
    for group in range(n_groups):
        own = groups == group
        assert found[own].sum() <= cap + 1e-12
        steepest = max(0.0, slopes[own].max(initial=0.0))
        givers = slopes[own & (found > 1e-12)]
        assert steepest - givers.min(initial=np.inf) <= 1e-8
        if found[own].sum() < cap - 1e-9:
            assert steepest <= 1e-8


def test_one_constraint_is_the_closed_form() -> None:
    one, gram = np.zeros(1, dtype=np.int64), np.array([[4.0]])
    for goal, cap, wanted in ((1.0, 10.0, 0.25), (1.0, 0.1, 0.1), (-1.0, 10.0, 0.0)):
        assert group_multipliers(gram, np.array([goal]), one, np.array([cap])) == [wanted]


def test_constraints_without_features_take_the_cap_or_nothing() -> None:
    goals, groups = np.array([1.0, -1.0, 0.0]), np.arange(3)
    found = group_multipliers(np.zeros((3, 3)), goals, groups, np.full(3, 0.5))
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.0])


def test_equal_constraints_with_different_goals() -> None:
    """Only the harder one counts."""
    found = group_multipliers(
        np.ones((2, 2)), np.array([1.0, 2.0]), np.zeros(2, np.int64), np.full(1, 5.0)
    )
    np.testing.assert_allclose(found, [0.0, 2.0], atol=1e-9)


def test_starts_from_given_multipliers_and_writes_nothing_else() -> None:
    gram, goals, groups = random_program(5, 9, 4, 2)
    room = np.full((11, 11), np.nan)
    room[:9, :9] = gram
    before = room.copy(), goals.copy(), groups.copy()
    multipliers = np.full(9, 0.01)
    solve_groups(room, goals, groups, np.full(2, 0.4), 1e-10, EXCHANGES, multipliers)
    cold = group_multipliers(gram, goals, groups, np.full(2, 0.4))
    np.testing.assert_allclose(gram @ multipliers, gram @ cold, atol=1e-7)
    for now, then in zip((room, goals, groups), before, strict=True):
        np.testing.assert_array_equal(now, then)
