"""Weights in proportion to others that stay as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.fits import fit_in_proportion
from mosesplug.optimizers.solvers.quasi_newton import Minimum

Floats = NDArray[np.float64]


def test_scale_in_proportion_to_inactive_weights() -> None:
    asked = []

    def fit(column: Floats | None, offsets: Floats | float) -> Minimum:
        asked.append((column is not None, np.ndim(offsets)))
        weights = [3.0, sign * 2.0] if column is not None else [9.0]
        return Minimum(np.array(weights), 1.0, 1, True)

    sign = 1.0
    fixed = np.array([4.0, -4.0])
    np.testing.assert_array_equal(fit_in_proportion(fixed, 8.0, fit).weights, [3.0 * 8.0 / 2.0])
    sign = -1.0
    np.testing.assert_array_equal(fit_in_proportion(fixed, 8.0, fit).weights, [9.0])
    np.testing.assert_array_equal(fit_in_proportion(0.0 * fixed, 8.0, fit).weights, [9.0])
    assert asked == [(True, 0), (True, 0), (False, 1), (False, 0)]
