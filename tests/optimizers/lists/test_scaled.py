"""Lists in features' units against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.fits import fit_scaled
from mosesplug.optimizers.lists.scaled import ScaledLists, scale_lists
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from tests.optimizers.online.batches import N_DENSE, full_rows, random_batch
from tests.optimizers.problems import Accuracy

SIZES = [4, 0, 6, 1, 3]
ACTIVE = np.array([True, False, True, True, True, False, True, True, False])


def problem_of(seed: int, active: NDArray[np.bool_] | None = ACTIVE) -> Problem:
    return Problem(random_batch(seed, SIZES), Accuracy(), active)


def matrix(lists: ScaledLists) -> NDArray[np.float64]:
    """All rows, float64 ``[n_hyps, n_columns]``, in features' units."""
    dense, indptr, indices, data = lists.features
    rows = np.zeros((len(dense), len(lists.columns)))
    rows[:, : dense.shape[1]] = dense
    rows[np.repeat(np.arange(len(rows)), np.diff(indptr)), indices] = data
    return rows


def test_active_features_in_their_units() -> None:
    problem = problem_of(1)
    full = full_rows(problem.tuning_set)
    initial = np.random.default_rng(2).standard_normal(full.shape[1])
    lists = scale_lists(problem, initial, "deviation")
    np.testing.assert_array_equal(lists.columns, np.flatnonzero(ACTIVE))
    np.testing.assert_array_equal(lists.offsets, [0, 4, 10, 11, 14])
    np.testing.assert_allclose(matrix(lists) * lists.units, full[:, ACTIVE], rtol=1e-12)
    centered = full.copy()
    for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        centered[start:end] -= full[start:end].mean(axis=0)
    for place, column in enumerate(lists.columns):
        values = full[:, column][full[:, column] != 0.0]
        wanted = centered[:, column] if column < N_DENSE else values
        assert lists.units[place] == pytest.approx(np.sqrt((wanted**2).mean()))
    fixed = full @ np.where(ACTIVE, 0.0, initial)
    np.testing.assert_allclose(lists.fixed_scores, fixed - fixed[lists.offsets[:-1]][lists.owners])
    np.testing.assert_array_equal(scale_lists(problem, initial, "none").units, 1.0)


def test_scores_and_combinations() -> None:
    problem, rng = problem_of(3), np.random.default_rng(4)
    lists = scale_lists(problem, np.ones(9), "deviation")
    rows, weights = matrix(lists), rng.standard_normal(6)
    np.testing.assert_allclose(
        lists.scores(weights), rows @ weights + lists.fixed_scores, atol=1e-12
    )
    coefficients = rng.standard_normal(len(rows))
    np.testing.assert_allclose(lists.combine(coefficients), coefficients @ rows, atol=1e-12)


def test_values_that_cancel_out_are_zero() -> None:
    problem = problem_of(5, None)
    problem.tuning_set.dense.flags.writeable = True
    problem.tuning_set.dense[:, 1] = 0.1
    lists = scale_lists(problem, np.ones(9), "deviation")
    assert lists.units[1] == 1.0
    assert lists.combine(np.append([0.3, 0.6, -0.9], np.zeros(11)))[1] == 0.0


def test_a_column_of_fixed_scores() -> None:
    lists = scale_lists(problem_of(6), np.arange(9.0), "deviation")
    wider = lists.with_fixed_column(lists.fixed_scores)
    rows = matrix(wider)
    np.testing.assert_array_equal(rows[:, :-1], matrix(lists))
    np.testing.assert_allclose(rows[:, -1] * wider.units[-1], lists.fixed_scores)
    np.testing.assert_allclose(
        wider.scores(np.append(np.zeros(6), wider.units[-1])), lists.fixed_scores
    )


def test_weights_are_scaled_in_proportion_to_fixed_ones() -> None:
    problem, initial = problem_of(7), np.arange(1.0, 10.0)
    lists = scale_lists(problem, initial, "deviation")
    length = float(np.linalg.norm(initial[~ACTIVE]))

    def twice(own: ScaledLists) -> Minimum:
        """A fit in whose scale fixed weights weigh double."""
        weights = np.append(np.full(6, 3.0), 2.0 * length) * own.units
        return Minimum(weights, 0.0, 1, True, 0.0)

    weights, _ = fit_scaled(problem, initial, lists, twice)
    np.testing.assert_array_equal(weights[~ACTIVE], initial[~ACTIVE])
    np.testing.assert_allclose(weights[ACTIVE], 1.5)


def test_weights_of_zero_are_rejected() -> None:
    problem = problem_of(8, np.ones(9, dtype=np.bool_))
    lists = scale_lists(problem, np.ones(9), "none")
    nothing = Minimum(np.zeros(len(lists.columns)), 0.0, 1, True, 0.0)
    with pytest.raises(OptimizerError, match="all weights are zero"):
        fit_scaled(problem, np.ones(9), lists, lambda own: nothing)
