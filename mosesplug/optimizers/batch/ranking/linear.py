"""Minimum of a convex loss of model scores with a Gaussian prior on the weights.

    precision/2 |w|^2  +  loss(X w + offsets)

``X`` has a row for each pair or hypothesis. Newton's method in a trust region with conjugate
gradients (Lin & Moré 1999, which rankSVM's solvers use: Lee & Lin 2014) asks for the loss, its
derivatives by the scores, and products with its second derivatives, never for a matrix of them.
Features of MT differ in scale by orders of magnitude and go together, which conjugate gradients
take badly: they work on weights in units of the features' second moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.tuning_set import TuningSet

__all__ = [
    "Curve",
    "Fit",
    "ScoreLoss",
    "feature_rows",
    "in_proportion",
    "minimise",
    "moments",
    "within_lists",
]

Floats = NDArray[np.float64]

_FULL = 256
"""Features up to this many are made independent of each other; more are only brought to scale."""


class Curve(NamedTuple):
    """A loss at some scores.

    Attributes:
        value: the loss.
        derivatives: by each score, float64 ``[n]``.
        product: the second derivatives times float64 ``[n]``.
    """

    value: float
    derivatives: Floats
    product: Callable[[Floats], Floats]


ScoreLoss = Callable[[Floats], Curve]
"""A convex function of scores, float64 ``[n]``, and its derivatives."""


@dataclass(frozen=True)
class Fit:
    """Where a fit ended.

    Attributes:
        weights: float64 ``[n_features]``.
        loss: the minimised function there.
        iterations: of the solver.
        converged: whether this is the minimum; if not, the iterations were used up.
    """

    weights: Floats
    loss: float
    iterations: int
    converged: bool


def in_proportion(
    fixed: Floats, length: float, fit: Callable[[Floats | None, Floats | float], Fit]
) -> Fit:
    """Fit weights in proportion to others that keep their values.

    Inactive weights have a scale of their own, which is not the fit's. Their score is therefore
    one more feature, that of a vector of length 1, and the others are multiplied by what gives it
    back its length; unless its weight is not positive, when the inactive score is taken as it is.

    Args:
        fixed: float64 ``[n]``, score of the inactive weights in each row.
        length: of the vector of inactive weights.
        fit: ``(column, offsets)`` to the weights with the smallest loss; where there is a column
            it is one more feature, and its weight comes last.
    """
    if not fixed.any():
        return fit(None, 0.0)
    found = fit(fixed / length, 0.0)
    if found.weights[-1] > 0.0:
        return replace(found, weights=found.weights[:-1] * (length / found.weights[-1]))
    return fit(None, fixed)


def feature_rows(tuning_set: TuningSet, columns: NDArray[np.bool_]) -> Any:
    """Features of every hypothesis, float64 ``[n_hyps, number of columns]``.

    An array where all columns are dense, otherwise a SciPy sparse one (CSR).

    Args:
        tuning_set: the hypotheses.
        columns: bool ``[n_features]``, the features wanted.
    """
    n_dense = tuning_set.space.n_dense
    dense = tuning_set.dense[:, columns[:n_dense]].astype(np.float64)
    if tuning_set.sparse is None or not columns[n_dense:].any():
        return dense
    # Here and not above: SciPy takes a tenth of a second, and other algorithms do without it.
    from scipy.sparse import csr_array, hstack

    rows = tuning_set.sparse
    tail = csr_array(
        (rows.data.astype(np.float64), rows.indices, rows.indptr),
        shape=(tuning_set.n_hyps, tuning_set.space.n_sparse),
    )
    return hstack([csr_array(dense), tail[:, np.flatnonzero(columns[n_dense:])]], format="csr")


def within_lists(offsets: NDArray[np.int64], rows: Any) -> Any:
    """Sums of each list's rows over the root of their number, ``[n_lists, n_features]``."""
    from scipy.sparse import csr_array

    widths = np.diff(offsets)
    shares = np.repeat(1.0 / np.sqrt(np.maximum(widths, 1)), widths)
    return csr_array((shares, np.arange(len(shares)), offsets)) @ rows


def moments(rows: Any, less: Any = None) -> Floats:
    """``X'X / n``, less that of other rows: all of it for a few features, else its diagonal.

    Args:
        rows: float64 ``[n, n_features]``, an array or a SciPy sparse one.
        less: the same with other rows; those of ``within_lists`` leave the scatter around the
            means of lists.
    """
    found = _second_moments(rows)
    if less is not None:
        found = found - _second_moments(less)
    return np.asarray(found / max(1, rows.shape[0]))


def _second_moments(rows: Any) -> Floats:
    if rows.shape[1] <= _FULL:
        product = rows.T @ rows
        return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())
    squares = rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows
    return np.asarray(squares.sum(axis=0))


class _Units(NamedTuple):
    """Weights as the solver sees them: ``w = T u``, or ``T * u`` where only the scale differs."""

    transform: Floats

    def weights(self, inner: Floats) -> Floats:
        full = self.transform.ndim == 2
        return self.transform @ inner if full else self.transform * inner

    def inner_gradient(self, gradient: Floats) -> Floats:
        full = self.transform.ndim == 2
        return self.transform.T @ gradient if full else self.transform * gradient

    def inner(self, weights: Floats) -> Floats:
        full = self.transform.ndim == 2
        inner = np.linalg.solve(self.transform, weights) if full else weights / self.transform
        return np.asarray(inner, dtype=np.float64)


def _units(second: Floats, precision: float) -> _Units:
    """Units in which ``second`` plus the prior is one, where it is not zero."""
    if second.ndim == 1:
        curvature = np.maximum(second, 0.0) + precision
        return _Units(1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0)))
    values, vectors = np.linalg.eigh(second + precision * np.eye(len(second)))
    # Directions that do not differ, but for rounding, have no curvature to be measured in.
    least = 1e-12 * values.max(initial=0.0)
    usable = np.where(values > least, values, values.max(initial=0.0))
    return _Units(np.asarray(vectors / np.sqrt(np.where(usable > 0.0, usable, 1.0))))


def minimise(
    rows: Any,
    loss: ScoreLoss,
    second: Floats,
    *,
    precision: float,
    offsets: Floats | float = 0.0,
    start: Floats | None = None,
    steepness: float = 1e-7,
    max_iterations: int = 200,
) -> Fit:
    """Find the weights with the smallest loss and prior.

    Args:
        rows: float64 ``[n, n_features]``, an array or a SciPy sparse one.
        loss: convex, of the scores ``rows @ weights + offsets``.
        second: ``moments`` of the rows.
        precision: of the prior.
        offsets: float64 ``[n]``, what is not to be fitted.
        start: float64 ``[n_features]``; 0 if None.
        steepness: the gradient, in units of the second moments and of the loss at the start, is
            no longer than this at the end.
        max_iterations: Newton steps at most.
    """
    from scipy.optimize import minimize

    n_features = rows.shape[1]
    start = np.zeros(n_features) if start is None else start
    units = _units(second, precision / max(1, rows.shape[0]))
    curve = loss(np.asarray(rows @ start + offsets))
    # The solver's tolerances are absolute.
    scale = 1.0 / max(curve.value + 0.5 * precision * float(start @ start), np.finfo(float).tiny)
    latest: list[tuple[bytes, Curve]] = []

    def curve_at(inner: Floats) -> tuple[Floats, Curve]:
        weights, key = units.weights(inner), inner.tobytes()
        if not latest or latest[0][0] != key:
            latest[:] = [(key, loss(np.asarray(rows @ weights + offsets)))]
        return weights, latest[0][1]

    def value_and_gradient(inner: Floats) -> tuple[float, Floats]:
        weights, curve = curve_at(inner)
        value = curve.value + 0.5 * precision * float(weights @ weights)
        gradient = np.asarray(rows.T @ curve.derivatives) + precision * weights
        return scale * value, scale * units.inner_gradient(gradient)

    def product(inner: Floats, direction: Floats) -> Floats:
        _, curve = curve_at(inner)
        along = units.weights(direction)
        second = np.asarray(rows.T @ curve.product(np.asarray(rows @ along)))
        return scale * units.inner_gradient(second + precision * along)

    result = minimize(
        value_and_gradient,
        units.inner(start),
        jac=True,
        hessp=product,
        method="trust-ncg",
        options={"gtol": steepness, "maxiter": max_iterations},
    )
    # Status 2: rounding hides what a further step would gain.
    converged = result.status in (0, 2)
    return Fit(units.weights(result.x), float(result.fun / scale), int(result.nit), converged)
