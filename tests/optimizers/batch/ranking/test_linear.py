"""Newton's method on linear models, and features of hypotheses as rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mosesplug.optimizers.batch.ranking.linear import (
    FeatureUnits,
    LossCurve,
    compute_moments,
    feature_rows,
    minimize_score_loss,
    scale_list_sums,
)
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import tuning_set

Floats = NDArray[np.float64]


def least_squares(goal: Floats) -> object:
    def loss(scores: Floats) -> LossCurve:
        missed = scores - goal
        return LossCurve(0.5 * float(missed @ missed), missed, lambda vector: vector)

    return loss


def test_least_squares() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 4)) * [1.0, 1e4, 1e-3, 1.0]
    rows[:, 3] = rows[:, 0] + 0.01 * rows[:, 3]
    goal, offsets = rng.standard_normal((2, 30))
    truth = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(4), rows.T @ (goal - offsets))
    for given in (rows, csr_array(rows)):
        fit = minimize_score_loss(
            given, least_squares(goal), compute_moments(given), precision=0.5, offsets=offsets  # type: ignore[arg-type]
        )  # fmt: skip
        assert fit.has_converged
        np.testing.assert_allclose(rows @ fit.weights, rows @ truth, atol=1e-5)
        left = goal - offsets - rows @ truth
        assert fit.loss == pytest.approx(0.5 * (left @ left) + 0.25 * truth @ truth)


def test_a_feature_that_never_differs() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    fit = minimize_score_loss(
        rows, least_squares(np.array([2.0, 4.0])), compute_moments(rows), precision=0.0
    )  # type: ignore[arg-type]
    np.testing.assert_allclose(fit.weights, [2.0, 0.0], atol=1e-6)


def test_moments_within_lists() -> None:
    rng = np.random.default_rng(2)
    rows, offsets = rng.standard_normal((9, 3)) + 50.0, np.array([0, 4, 4, 9])
    scatter = sum(len(own) * np.cov(own.T, bias=True) for own in (rows[:4], rows[4:]))
    for given in (rows, csr_array(rows)):
        found = compute_moments(given, scale_list_sums(offsets, given))
        np.testing.assert_allclose(9 * found.products, scatter, atol=1e-9)
        np.testing.assert_allclose(9 * found.squares, np.diag(scatter), atol=1e-9)


def test_units_of_many_features() -> None:
    """Those that most rows have become independent; the others only have one scale."""
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((40, 300))
    wide[:, 50:] *= rng.random((40, 250)) < 0.2
    wide[:, 7] += wide[:, 299] + wide[:, 3]
    wide[:, 299] = 0.0
    found = compute_moments(csr_array(wide))
    assert len(found.block) == 256
    assert set(range(50)) <= set(found.block.tolist())
    np.testing.assert_allclose(found.squares, (wide**2).mean(axis=0))
    units = FeatureUnits.of(found, 0.1)
    basis = np.array([units.outer(unit) for unit in np.eye(300)]).T
    np.testing.assert_allclose(basis.T @ np.ones(300), units.inner(np.ones(300)))
    whole = basis.T @ (wide.T @ wide / 40 + 0.1 * np.eye(300)) @ basis
    np.testing.assert_allclose(np.diag(whole), 1.0)
    inside = np.ix_(found.block, found.block)
    np.testing.assert_allclose(whole[inside], np.eye(256), atol=1e-9)


def test_rows_of_hypotheses() -> None:
    dense = np.arange(8.0).reshape(4, 2)
    none = tuning_set([4], dense, np.arange(4))
    np.testing.assert_array_equal(feature_rows(none, np.array([False, True])), dense[:, 1:])
    sparse = SparseRows(
        np.array([0, 1, 1, 3, 3]), np.array([2, 0, 2], np.int32), np.array([5, 6, 7], np.float32)
    )
    both = tuning_set([4], dense, np.arange(4), sparse, ("a", "b", "c"))
    found = feature_rows(both, np.array([True, False, True, False, True]))
    expected = [[0, 0, 5], [2, 0, 0], [4, 6, 7], [6, 0, 0]]
    np.testing.assert_array_equal(found.toarray(), expected)
