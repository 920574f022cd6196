"""Support vector machines against quadratic programming, and the gap against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mosesplug.optimizers.batch.ranking.all_pairs import all_pairs, all_pairs_hinge
from mosesplug.optimizers.batch.ranking.hinge import fit_hinge, minimize_hinge
from mosesplug.optimizers.batch.ranking.linear import compute_moments, scale_list_sums

Floats = NDArray[np.float64]


def examples(seed: int) -> Floats:
    """Examples that no weights satisfy, of features that differ in scale and go together."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((40, 4)) + 0.3
    made[:, 1] += made[:, 0]
    return np.asarray(made * [1.0, 20.0, 0.05, 3.0])


def least_loss(
    rows: Floats, precision: float, offsets: Floats | float = 0.0, weights: Floats | float = 1.0
) -> float:
    """The least loss by quadratic programming: the missed margins are variables, too."""
    n_rows, n_features = rows.shape
    costs = np.broadcast_to(np.asarray(weights, dtype=np.float64), n_rows)
    unit = np.abs(rows).max(axis=0)
    margins = np.hstack([rows / unit, np.eye(n_rows)])
    curved = np.concatenate([precision / unit**2, np.zeros(n_rows)])
    slopes = np.concatenate([np.zeros(n_features), costs])
    found = minimize(
        lambda point: (0.5 * point @ (curved * point) + slopes @ point, curved * point + slopes),
        np.concatenate([np.zeros(n_features), np.maximum(1.0 - offsets, 0.0) * np.ones(n_rows)]),
        jac=True,
        method="SLSQP",
        bounds=[(None, None)] * n_features + [(0.0, None)] * n_rows,
        constraints={
            "type": "ineq",
            "fun": lambda point: margins @ point + offsets - 1.0,
            "jac": lambda point: margins,
        },
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    return float(found.fun)


@pytest.mark.parametrize("precision", [0.1, 10.0])
def test_against_quadratic_programming(precision: float) -> None:
    rows = examples(1)
    truth = least_loss(rows, precision)
    fit = fit_hinge(rows, precision=precision, tolerance=1e-7)
    assert fit.has_converged
    assert truth * (1 - 1e-6) <= fit.loss <= truth * (1 + 1e-6)
    margins = rows @ fit.weights
    own = 0.5 * precision * fit.weights @ fit.weights + np.maximum(1.0 - margins, 0.0).sum()
    assert fit.loss == pytest.approx(own)
    loose = fit_hinge(rows, precision=precision, tolerance=0.05)
    assert loose.loss - loose.gap <= truth * (1 + 1e-6)
    assert fit.gap <= 1e-7 * fit.loss


def test_offsets_and_sparse_rows() -> None:
    rows = examples(2)
    offsets = np.random.default_rng(3).standard_normal(len(rows))
    truth = least_loss(rows, 1.0, offsets)
    for given in (rows, csr_array(rows)):
        fit = fit_hinge(given, precision=1.0, offsets=offsets, tolerance=1e-7)
        assert fit.loss == pytest.approx(truth, rel=1e-6)


def test_many_features() -> None:
    """More than are made independent of each other."""
    rng = np.random.default_rng(4)
    rows = (rng.random((20, 300)) < 0.05) * rng.standard_normal((20, 300))
    rows = np.vstack([rows, -rows[:7] + 0.1 * rows[7:14]])
    fit = fit_hinge(csr_array(rows), precision=0.5, tolerance=1e-7)
    products = rows @ rows.T / 0.5

    def dual(pull: Floats) -> tuple[float, Floats]:
        return float(0.5 * pull @ products @ pull - pull.sum()), products @ pull - 1.0

    bounds = [(0.0, 1.0)] * len(rows)
    options = {"ftol": 1e-15, "gtol": 1e-9}
    found = minimize(
        dual, np.ones(len(rows)), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    assert fit.loss == pytest.approx(-float(found.fun), rel=1e-6)


def test_more_features_than_examples_are_certified_in_few_steps() -> None:
    """Nearly all examples are at the corner then; steps are counted as they are the time it takes.

    A corner that is only made narrower takes three times as many here.
    """
    rng = np.random.default_rng(7)
    rows = (rng.random((300, 2000)) < 0.02) * rng.choice([-1.0, 1.0], (300, 2000))
    rows[:, :3] = rng.standard_normal((300, 3)) * [20.0, 1.0, 0.1] + [3.0, 0.2, 0.0]
    fit = fit_hinge(csr_array(rows), precision=0.5)
    assert fit.has_converged
    assert fit.gap <= 1e-3 * fit.loss
    assert fit.iterations < 36


def test_without_a_prior() -> None:
    fit = fit_hinge(examples(5), precision=0.0)
    small = fit_hinge(examples(5), precision=1e-9, tolerance=1e-7)
    assert small.loss * (1 - 1e-6) <= fit.loss <= small.loss * (1 + 1e-3)
    assert fit.gap >= fit.loss - small.loss - 1e-6


def test_all_pairs_against_quadratic_programming() -> None:
    rng = np.random.default_rng(6)
    offsets = np.array([0, 6, 6, 13])
    rows, gains = rng.standard_normal((13, 3)), rng.integers(0, 4, 13) / 4
    made = all_pairs(offsets, gains, by_gap=True)
    second = compute_moments(rows, scale_list_sums(offsets, rows))
    fixed = rng.standard_normal(13)
    fit = minimize_hinge(
        rows, all_pairs_hinge(made), second, precision=0.3, offsets=fixed, tolerance=1e-7
    )
    pairs = [
        (i, j)
        for start, end in ((0, 6), (6, 13))
        for i in range(start, end)
        for j in range(start, end)
        if gains[i] > gains[j]
    ]
    better, worse = np.array(pairs).T
    shares = made.shares[better] * (gains[better] - gains[worse])
    truth = least_loss(rows[better] - rows[worse], 0.3, fixed[better] - fixed[worse], shares)
    assert fit.loss == pytest.approx(truth, rel=1e-6)
