"""Minimize a convex loss of model scores with a Gaussian prior on the weights.

    precision/2 |w|^2  +  loss(X w + offsets)

``X`` has a row for each pair or hypothesis. Truncated Newton steps, as in solvers of rankSVM (Lee &
Lin 2014), require the loss, its derivatives by the scores, and products with its second
derivatives, never their matrix. Conjugate gradients find a step, and the slope along it its length:
losses with a flat side bend more than their second derivatives predict, and a trust region would
shrink at every turn. MT features differ in scale by orders of magnitude and are correlated, which
slows down conjugate gradients: they work on weights in units of the features' second moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats, Weights
from mosesplug.optimizers.batch.fits import fit_active
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.bounded import Box, minimize_in_box
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.tuning_set import TuningSet

_BLOCK = 256
"""Up to this many features, those that most rows have, are made independent of each other; the
others are only scaled."""

_MOST_PRODUCTS = 100
"""Maximum steps of the conjugate gradients."""

_MOST_TRIALS = 30
_FLATTER = 0.1
"""A step ends where the slope along it has fallen to this share."""


class LossCurve(NamedTuple):
    """A loss at given scores.

    Attributes:
        value: the loss.
        derivatives: the derivatives by each score, float64 ``[n]``.
        product: the second derivatives times float64 ``[n]``.
    """

    value: float
    derivatives: Floats
    product: Callable[[Floats], Floats]


ScoreLoss = Callable[[Floats], LossCurve]
"""A convex function of scores, float64 ``[n]``, and its derivatives."""


def feature_rows(tuning_set: TuningSet, columns: FeatureMask) -> Any:
    """Return features of every hypothesis, float64 ``[n_hyps, number of columns]``.

    A NumPy array if all columns are dense, otherwise a SciPy sparse array (CSR).

    Args:
        tuning_set: the hypotheses.
        columns: the requested features.
    """
    n_dense = tuning_set.space.n_dense
    dense = tuning_set.dense[:, columns[:n_dense]].astype(np.float64)
    if tuning_set.sparse is None or not columns[n_dense:].any():
        return dense
    # SciPy takes a tenth of a second to import, and other algorithms do not need it.
    from scipy.sparse import csr_array, hstack

    rows = tuning_set.sparse
    tail = csr_array(
        (rows.data.astype(np.float64), rows.indices, rows.indptr),
        shape=(tuning_set.n_hyps, tuning_set.space.n_sparse),
    )
    return hstack([csr_array(dense), tail[:, np.flatnonzero(columns[n_dense:])]], format="csr")


def scale_list_sums(offsets: NDArray[np.int64], rows: Any) -> Any:
    """Return the sum of each list's rows over the root of their number.

    The result is ``[n_lists, n_columns]``.
    """
    from scipy.sparse import csr_array

    widths = np.diff(offsets)
    # Divided by the root, so that products of two such sums are those of means, times the number of
    # rows.
    shares = np.repeat(1.0 / np.sqrt(np.maximum(widths, 1)), widths)
    return csr_array((shares, np.arange(len(shares)), offsets)) @ rows


@dataclass(frozen=True)
class FeatureMoments:
    """Means of the products of features over rows.

    Attributes:
        squares: float64 ``[n_features]``, of each with itself.
        block: int64, the features that most rows have, at most 256.
        products: float64 ``[len(block), len(block)]``, of these with each other.
    """

    squares: Floats
    block: NDArray[np.int64]
    products: Floats


def compute_moments(rows: Any, less: Any = None) -> FeatureMoments:
    """Return second moments of rows, minus those of other rows.

    Args:
        rows: float64 ``[n, n_features]``, a NumPy or SciPy sparse array.
        less: other rows; those of ``scale_list_sums`` leave the scatter around the means of lists.
    """
    n_rows, n_features = max(1, rows.shape[0]), rows.shape[1]
    block = np.arange(n_features)
    if n_features > _BLOCK:
        held = rows.count_nonzero(axis=0) if _is_sparse(rows) else np.count_nonzero(rows, axis=0)
        # An eigendecomposition of all features would take too long with thousands of them.
        block = np.sort(np.argsort(-held, kind="stable")[:_BLOCK])
    parts = [(1.0, rows)] if less is None else [(1.0, rows), (-1.0, less)]
    squares, products = np.zeros(n_features), np.zeros((len(block), len(block)))
    for sign, part in parts:
        own = part[:, block]
        product = own.T @ own
        products += sign * (product.toarray() if _is_sparse(product) else product)
        squared = part.multiply(part) if _is_sparse(part) else part * part
        squares += sign * np.asarray(squared.sum(axis=0))
    return FeatureMoments(np.maximum(squares, 0.0) / n_rows, block, products / n_rows)


def _is_sparse(rows: Any) -> bool:
    return not isinstance(rows, np.ndarray)


class FeatureUnits(NamedTuple):
    """The solver's weights ``u``, with independent features of one scale: ``w = T u``.

    Attributes:
        scale: the factor of each ``u``.
        block: int64; the features of ``turn``.
        turn: float64 ``[len(block), len(block)]``, ``T`` of these instead of their scale.
    """

    scale: Weights
    block: NDArray[np.int64]
    turn: Floats

    @classmethod
    def of(cls, second: FeatureMoments, precision: float) -> FeatureUnits:
        """Return units in which the moments plus the prior are 1, unless they are 0."""
        curvature = second.squares + precision
        values, vectors = np.linalg.eigh(second.products + precision * np.eye(len(second.block)))
        # Directions that differ by rounding only have no curvature.
        most = float(values.max(initial=0.0))
        usable = np.where(values > 1e-12 * most, values, most if most > 0.0 else 1.0)
        return cls(
            1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0)),
            second.block,
            np.asarray(vectors / np.sqrt(usable)),
        )

    def outer(self, inner: Floats) -> Floats:
        """Return ``T u``: weights."""
        weights = self.scale * inner
        weights[self.block] = self.turn @ inner[self.block]
        return weights

    def inner(self, gradient: Floats) -> Floats:
        """Return ``T' g``: a gradient by weights as one by ``u``."""
        turned = self.scale * gradient
        turned[self.block] = self.turn.T @ gradient[self.block]
        return turned


def minimize_score_loss(
    rows: Any,
    loss: ScoreLoss,
    second: FeatureMoments,
    *,
    precision: float,
    offsets: Floats | float = 0.0,
    start: Weights | None = None,
    steepness: float = 1e-7,
    max_iterations: int = 200,
    box: Box | None = None,
) -> Minimum:
    """Find the weights with the smallest loss and prior.

    Args:
        rows: float64 ``[n, n_features]``, a NumPy or SciPy sparse array.
        loss: convex, of the scores ``rows @ weights + offsets``.
        second: ``compute_moments`` of the rows.
        precision: the precision of the prior.
        offsets: float64 ``[n]``, scores that are not fitted.
        start: 0 if None.
        steepness: largest length of the gradient at the end, in units of the second moments and of
            the initial loss.
        max_iterations: maximum Newton steps.
        box: limits of the weights; None if there are none. Inside a box, L-BFGS takes five times as
            many steps.
    """
    if box is not None:
        return _minimize_in_box(
            rows, loss, second, box, precision, offsets, start, steepness, 5 * max_iterations
        )
    units = FeatureUnits.of(second, precision / max(1, rows.shape[0]))
    weights = np.zeros(rows.shape[1]) if start is None else start.copy()
    scores = np.asarray(rows @ weights + offsets)
    curve = loss(scores)
    value = curve.value + 0.5 * precision * float(weights @ weights)
    flat = steepness * max(value, np.finfo(float).tiny)

    def gradient() -> Floats:
        return units.inner(np.asarray(rows.T @ curve.derivatives) + precision * weights)

    def product(direction: Floats) -> Floats:
        along = units.outer(direction)
        second = np.asarray(rows.T @ curve.product(np.asarray(rows @ along)))
        return units.inner(second + precision * along)

    steep, first, converged, iterations = gradient(), 0.0, False, 0
    while iterations < max_iterations:
        length = float(np.linalg.norm(steep))
        first = first or length
        converged = length <= flat
        if converged:
            break
        closeness = min(0.1, (length / first) ** 0.5)
        step = units.outer(_conjugate_gradients(product, -steep, closeness * length))
        change = np.asarray(rows @ step)
        size, ahead = _along(loss, scores, change, weights, step, precision, curve)
        point = weights + size * step
        reached = ahead.value + 0.5 * precision * float(point @ point)
        if not value - reached > 1e-14 * abs(value):
            # Rounding hides the gain of a further step, or the second derivatives are useless.
            converged = abs(reached - value) <= 1e-10 * abs(value)
            break
        scores, weights, curve, value = scores + size * change, point, ahead, reached
        iterations += 1
        steep = gradient()
    return Minimum(weights, value, iterations, converged)


def _minimize_in_box(
    rows: Any,
    loss: ScoreLoss,
    second: FeatureMoments,
    box: Box,
    precision: float,
    offsets: Floats | float,
    start: Floats | None,
    steepness: float,
    max_iterations: int,
) -> Minimum:
    """Minimize inside a box, with each weight in units of its second moment."""
    curvature = second.squares + precision / max(1, rows.shape[0])
    units = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))

    def value_and_gradient(scaled: Floats) -> tuple[float, Floats]:
        weights = units * scaled
        curve = loss(np.asarray(rows @ weights + offsets))
        gradient = np.asarray(rows.T @ curve.derivatives) + precision * weights
        return curve.value + 0.5 * precision * float(weights @ weights), units * gradient

    x = np.zeros(len(units)) if start is None else start / units
    limits = box[0] / units, box[1] / units
    first = value_and_gradient(np.clip(x, *limits))[0]
    fit = minimize_in_box(
        value_and_gradient,
        x,
        limits,
        memory=20,
        max_iterations=max_iterations,
        steepness=steepness * max(first, np.finfo(float).tiny),
    )
    return replace(fit, weights=units * fit.weights)


def _conjugate_gradients(
    product: Callable[[Floats], Floats], goal: Floats, tolerance: float
) -> Floats:
    """Return ``x`` with ``product(x)`` closer to ``goal`` than the tolerance."""
    x, left = np.zeros_like(goal), goal.copy()
    direction, squared = left.copy(), float(left @ left)
    for _ in range(_MOST_PRODUCTS):
        if squared**0.5 <= tolerance:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:  # flat, but for rounding: the gradient is all that is known
            return x if x.any() else direction
        size = squared / curvature
        x += size * direction
        left -= size * image
        before, squared = squared, float(left @ left)
        direction = left + (squared / before) * direction
    return x


def _along(
    loss: ScoreLoss,
    scores: Floats,
    change: Floats,
    weights: Floats,
    step: Floats,
    precision: float,
    curve: LossCurve,
) -> tuple[float, LossCurve]:
    """Return the length of a step, 1 being Newton's, and the loss there.

    Beyond the reach of the second derivatives the loss may bend otherwise. The slope along the step
    grows monotonically and shows on which side of the minimum a point is.
    """
    linear, square = precision * float(weights @ step), precision * float(step @ step)
    slope = float(curve.derivatives @ change) + linear
    low, low_slope, high, high_slope, size = 0.0, slope, np.inf, 0.0, 1.0
    for _ in range(_MOST_TRIALS):
        curve = loss(scores + size * change)
        own = float(curve.derivatives @ change) + linear + size * square
        if abs(own) <= _FLATTER * abs(slope):
            break
        if own < 0.0:
            low, low_slope = size, own
        else:
            high, high_slope = size, own
        if np.isinf(high):
            size *= 4.0
        else:  # where a straight slope would be 0, but not next to either end
            share = low_slope / (low_slope - high_slope)
            size = low + min(max(share, 0.1), 0.9) * (high - low)
    return size, curve


def fit_score_loss(
    problem: Problem,
    initial: Weights,
    fit: Callable[..., Minimum],
) -> tuple[Floats, Minimum]:
    """Return the weights that minimize a loss of all model scores, and their fit.

    Args:
        problem: hypotheses and active features.
        initial: checked; inactive weights keep their values.
        fit: ``(rows, moments within lists, offsets, box)`` to the best weights, as
            ``minimize_score_loss``. Adding a constant to all scores of a list must not change the
            loss.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    offsets = problem.tuning_set.offsets
    rows = feature_rows(problem.tuning_set, problem.active_mask)
    filled = np.diff(offsets) > 0

    def relative_to_first(scores: Floats) -> Floats:
        firsts = scores[offsets[:-1][filled]]
        return np.asarray(scores - np.repeat(firsts, np.diff(offsets)[filled]))

    def with_column(
        column: Floats | None, others: Floats | float, box: Box | None = None
    ) -> Minimum:
        own = rows if column is None else _append_column(rows, column)
        return fit(own, compute_moments(own, scale_list_sums(offsets, own)), others, box)

    return fit_active(problem, initial, relative_to_first, with_column)


def _append_column(rows: Any, column: Floats) -> Any:
    if isinstance(rows, np.ndarray):
        return np.column_stack([rows, column])
    from scipy.sparse import csr_array, hstack

    return hstack([rows, csr_array(column[:, None])], format="csr")
