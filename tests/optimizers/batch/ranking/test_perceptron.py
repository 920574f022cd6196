"""The averaged perceptron, against weights averaged one by one."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mosesplug.optimizers.batch.ranking.classifiers import fit_perceptron


def test_average_of_every_step() -> None:
    rng = np.random.default_rng(1)
    rows = np.round(rng.standard_normal((25, 4)), 1) * (rng.random((25, 4)) < 0.7)
    offsets = rng.standard_normal(25)
    fit = fit_perceptron(csr_array(rows), np.random.default_rng(2), offsets=offsets, epochs=3)
    orders = np.random.default_rng(2)
    weights, kept = np.zeros(4), []
    for _ in range(3):
        for example in orders.permutation(25):
            if rows[example] @ weights + offsets[example] <= 0.0:
                weights = weights + rows[example]
            kept.append(weights)
    np.testing.assert_allclose(fit.weights, np.mean(kept, axis=0))
    assert fit.iterations == 3
    assert not fit.has_converged
    np.testing.assert_allclose(fit.loss, np.maximum(-(rows @ fit.weights + offsets), 0.0).sum())


def test_stops_without_a_mistake() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((40, 3))
    rows *= np.sign(rows @ [1.0, -2.0, 0.5])[:, None]
    fit = fit_perceptron(csr_array(rows), rng, epochs=500)
    assert fit.has_converged
    assert fit.iterations < 500
    assert np.mean(rows @ fit.weights > 0.0) > 0.9
