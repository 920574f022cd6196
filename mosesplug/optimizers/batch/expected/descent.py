"""Minimize an objective and regularizers by L-BFGS, or by OWL-QN with L1.

The scales of MT features differ by orders of magnitude, which slows down quasi-Newton methods. So
the search divides each weight by a unit: the inverse deviation of its feature within lists.

The coordinates are active weights, and the scale of the inactive ones. A distribution depends on
the size of its weights. Inactive weights have a size that was chosen for the decoder, which depends
on proportions only. So their score becomes one more feature, that of a vector of length 1, whose
weight is tuned with the others. In the end all weights are multiplied by what gives the inactive
ones their own length back. If the weight of this feature does not stay above 0, it is fixed at its
start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats, Scores, Weights
from mosesplug.candidates import LIST_SIZE, Objective
from mosesplug.optimizers.batch.expected.objectives import evaluate_scaled
from mosesplug.optimizers.lists.scaled import Scaling
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.bounded import Box, minimize
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True)
class Coordinates:
    """Conversion between the tuned weights and those of the distribution.

    Attributes:
        inactive: a vector of length 1 along the inactive weights; None if their score is the
            same for all hypotheses of a sentence.
        variances: float64 ``[n_coordinates]``, mean variance within lists of the active features
            and, if there is one, of the inactive score.
        squares: float64 ``[n_coordinates]``, squared units of the features: the variances, but for
            a sparse feature the mean square of its values where a hypothesis has it, so that a
            rare feature does not count less than a frequent one.
        start: float64 ``[n_coordinates]``; the given weights, scaled so that the standard deviation
            of model scores within lists is the given spread; 0 if scores do not differ.
        length: the length of the given inactive weights.
        held: whether the weight of the inactive score is fixed.
        box: limits of the coordinates, each float64 ``[n_coordinates]``; None if there are none.
        unit: coordinates over weights, if the box fixes the scale of the weights; else None.
    """

    active: FeatureMask
    inactive: Weights | None
    variances: Floats
    squares: Floats
    start: Floats
    length: float
    held: bool = False
    box: Box | None = None
    unit: float | None = None

    @classmethod
    def of(cls, problem: Problem, initial: Weights, spread: float = 1.0) -> Coordinates:
        """Return the coordinates of a problem.

        The variances of search graphs are those of their best translations at ``initial``.

        Args:
            problem: with active features.
            spread: the spread of the model scores at the start, more than 0.
        """
        tuning_set = problem.candidates.best_lists(initial, LIST_SIZE)
        active = problem.active_mask
        fixed = np.where(active, 0.0, initial)
        variances = feature_variances(tuning_set)[active]
        squares = np.append(
            variances[: int(active[: tuning_set.space.n_dense].sum())],
            _mean_squares(tuning_set)[active[tuning_set.space.n_dense :]],
        )
        largest = float(np.abs(fixed).max(initial=0.0))
        inactive, length, start = None, 0.0, initial[active]
        if largest > 0.0:
            length = largest * float(np.linalg.norm(fixed / largest))
            scores = tuning_set.model_scores(fixed / length)
            variance = variance_in_lists(tuning_set, scores)
            if variance > 0.0:
                inactive = fixed / length
                variances, start = np.append(variances, variance), np.append(start, length)
                squares = np.append(squares, variance)
        raw, size, variance = start, float(np.abs(start).max(initial=0.0)), 0.0
        if size > 0.0:
            start = start / size
            weights = _spread(active, inactive, start)
            variance = variance_in_lists(tuning_set, tuning_set.model_scores(weights))
            start = start * (spread / np.sqrt(variance)) if variance > 0.0 else 0.0 * start
        if problem.bounds is None:
            return cls(active, inactive, variances, squares, start, length)
        low, high = problem.bounds.take(active).box
        if problem.has_conic_bounds:
            if inactive is not None:
                low, high = np.append(low, 0.0), np.append(high, np.inf)
            return cls(active, inactive, variances, squares, start, length, box=(low, high))
        unit = float(spread / (size * np.sqrt(variance))) if variance > 0.0 else 1.0
        if inactive is not None:
            low, high = np.append(low, length), np.append(high, length)
        box = (unit * low, unit * high)
        return cls(active, inactive, variances, squares, unit * raw, length, box=box, unit=unit)

    def weights(self, x: Floats) -> Floats:
        """Return the weights of the distribution, float64 ``[n_features]``."""
        return _spread(self.active, self.inactive, x)

    def gradient(self, by_weights: Floats) -> Floats:
        """Return the derivatives by the coordinates, float64 ``[n_coordinates]``."""
        by_active = by_weights[self.active]
        if self.inactive is None:
            return by_active
        return np.append(by_active, 0.0 if self.held else float(by_weights @ self.inactive))

    def is_free(self) -> NDArray[np.bool_]:
        """Return which coordinates may change, bool ``[n_coordinates]``."""
        free = np.ones(len(self.start), dtype=np.bool_)
        if self.inactive is not None:
            free[-1] = not self.held
        return free

    def decoder_weights(self, x: Floats, initial: Floats) -> Floats:
        """Return the decoder's weights, float64 ``[n_features]``, inactive ones unchanged.

        Without an inactive score any scale is valid, and the weights get that of the start, unless
        bounds fix the scale.
        """
        weights = initial.copy()
        if self.unit is not None:
            weights[self.active] = (x if self.inactive is None else x[:-1]) / self.unit
            return weights
        if self.inactive is not None:
            weights[self.active] = x[:-1] * (self.length / x[-1])
            return weights
        before, now = (float(np.abs(weights_of).sum()) for weights_of in (initial[self.active], x))
        weights[self.active] = x * (before / now) if before > 0.0 and now > 0.0 else x
        return weights


def variance_in_lists(tuning_set: TuningSet, values: Scores) -> float:
    """Return the variance of the values within a sentence, averaged over sentences.

    Sentences count by their weights, and empty ones do not count.
    """
    offsets, sentence_weights = tuning_set.offsets, tuning_set.sentence_weights
    filled = np.diff(offsets) > 0
    widths, starts = np.diff(offsets)[filled], offsets[:-1][filled]
    if not len(starts):
        return 0.0
    means = np.add.reduceat(values, starts) / widths
    squares = (values - np.repeat(means, widths)) ** 2
    variances = np.add.reduceat(squares, starts) / widths
    counts = None if sentence_weights is None else sentence_weights[filled]
    return float(np.average(variances, weights=counts))


def feature_variances(tuning_set: TuningSet) -> Floats:
    """Return the mean variance of each feature within lists, float64 ``[n_features]``."""
    variances = np.zeros(len(tuning_set.space))
    for column, values in enumerate(tuning_set.dense.T):
        variances[column] = variance_in_lists(tuning_set, values.astype(np.float64))
    if tuning_set.sparse is not None and len(tuning_set.sparse.data):
        variances[tuning_set.space.n_dense :] = _sparse_variances(tuning_set)
    return variances


def _sparse_variances(tuning_set: TuningSet) -> Floats:
    """Return those of the sparse features: mean of squares minus square of means."""
    from scipy.sparse import csr_array

    sparse, widths = tuning_set.sparse, np.diff(tuning_set.offsets)
    assert sparse is not None
    shape = tuning_set.n_hyps, tuning_set.space.n_sparse
    rows = csr_array((sparse.data.astype(np.float64), sparse.indices, sparse.indptr), shape)
    shares = np.repeat(1.0 / np.maximum(widths, 1), widths)
    mean = csr_array(
        (shares, np.arange(tuning_set.n_hyps), tuning_set.offsets), (len(widths), shape[0])
    )
    means = mean @ rows
    sentence_weights = tuning_set.sentence_weights
    if sentence_weights is None:
        sentence_weights = np.ones(len(widths))
    row_shares = shares * np.repeat(sentence_weights, widths)
    total = row_shares @ rows.multiply(rows) - sentence_weights @ means.multiply(means)
    # Rounding can make the variance of a constant feature negative.
    variances: Floats = np.maximum(total / tuning_set.total_weight, 0.0)
    return variances


def _mean_squares(tuning_set: TuningSet) -> Floats:
    """Return the mean square of each sparse feature's nonzero values, ``[n_sparse]``."""
    n_sparse = tuning_set.space.n_sparse
    if tuning_set.sparse is None:
        return np.zeros(n_sparse)
    values, columns = tuning_set.sparse.data.astype(np.float64), tuning_set.sparse.indices
    squares, counted = values**2, (values != 0.0).astype(np.float64)
    if (weights := tuning_set.row_weights) is not None:
        owners = np.repeat(weights, np.diff(tuning_set.sparse.indptr))
        squares, counted = squares * owners, counted * owners
    sums, counts = np.bincount(columns, squares, n_sparse), np.bincount(columns, counted, n_sparse)
    return np.asarray(sums / np.where(counts > 0.0, counts, 1.0), dtype=np.float64)


def _spread(active: NDArray[np.bool_], inactive: Floats | None, x: Floats) -> Floats:
    weights = np.zeros(len(active))
    if inactive is None:
        weights[active] = x
        return weights
    weights[active] = x[:-1]
    weights += x[-1] * inactive
    return weights


_MEMORY = 20
"""Steps that estimate the curvature, as in cdec's ``minrisk_optimize -M``."""

_STEEPNESS = 1e-9
"""Largest component of a gradient, in the units of the search, that counts as 0."""


@dataclass(frozen=True)
class DescentSettings:
    """Start, regularizers and stopping rule of one descent.

    Attributes:
        l1: factor of ``sum |w|``, in the units of ``scaling``, too.
        l2: factor of half the squared distance from the center.
        learns_scale: whether the scale changes, too. It is not regularized: weights can shrink
            while it grows, and the regularizer loses its effect.
        iterations: maximum number of steps.
        tolerance: stop when a step lowers the objective by a smaller share of itself (or of 1, if
            that is more).
        scaling: units of the weights in the regularizers: ``deviation``, those of their features,
            or ``none``.
        center: where L2 is 0: at the start of the first stage, or at 0.
        start_spread: spread of model scores at that start.
    """

    l1: float
    l2: float
    learns_scale: bool
    iterations: int
    tolerance: float
    scaling: Scaling = "none"
    center: Literal["start", "zero"] = "zero"
    start_spread: float = 1.0


def minimize_stage(
    objective: Objective,
    coordinates: Coordinates,
    start: Floats,
    scale: float,
    settings: DescentSettings,
    center: Floats | None = None,
) -> tuple[Minimum, float]:
    """Minimize ``objective(scale w) + l2/2 |w - center|^2 + l1 |w|_1`` over ``w``.

    The regularizers count weights in the units of ``settings.scaling``.

    The scale is a variable too with ``learns_scale``. No accepted step increases the objective.

    Returns:
        The fit of the coordinates, and the scale. Its rounds are figures of the start and of each
        accepted step: ``objective`` with its regularizers, and ``gradient``, the length of its
        (pseudo-)gradient by the coordinates.

    Args:
        objective: the objective of the weights of the distribution.
        coordinates: convert ``w`` to weights of the distribution.
        start: float64 ``[n_coordinates]``.
        scale: ``gamma`` of equation 22, more than 0.
        settings: regularizers and stopping rule.
        center: float64 ``[n_coordinates]``, where L2 is 0; None: 0.
    """
    squares = coordinates.squares if settings.scaling == "deviation" else 1.0
    l2 = settings.l2 * squares * coordinates.is_free()
    center = np.zeros(len(start)) if center is None else center
    curvatures = scale**2 * coordinates.variances + l2
    units = 1.0 / np.sqrt(np.where(curvatures > 0.0, curvatures, 1.0))
    n = len(start)

    def function(point: Floats) -> tuple[float, Floats]:
        w = units * point[:n]
        gamma = math.exp(point[n]) if settings.learns_scale else scale
        value, by_weights, by_scale = evaluate_scaled(objective, coordinates.weights(w), gamma)
        away = w - center
        gradient = units * (coordinates.gradient(by_weights) + l2 * away)
        if settings.learns_scale:
            gradient = np.append(gradient, gamma * by_scale)
        return value + 0.5 * float(l2 @ away**2), gradient

    steps: list[dict[str, float]] = []

    def record(point: Floats, value: float, gradient: Floats) -> None:
        length = float(np.linalg.norm(gradient[:n] / units))
        steps.append({"objective": value, "gradient": length})

    first = np.append(start / units, [math.log(scale)] if settings.learns_scale else [])
    penalties = settings.l1 * np.sqrt(squares) * np.where(coordinates.is_free(), units, 0.0)
    penalties = np.append(penalties, np.zeros(len(first) - n))
    box = None
    if coordinates.box is not None:
        unlimited = np.full(len(first) - n, np.inf)
        low = np.append(coordinates.box[0] / units, -unlimited)
        high = np.append(coordinates.box[1] / units, unlimited)
        box = low, high
    fit = minimize(
        function,
        first,
        box=box,
        penalties=penalties if settings.l1 > 0.0 else None,
        memory=_MEMORY,
        max_iterations=settings.iterations,
        steepness=_STEEPNESS,
        decrease=settings.tolerance,
        accepted=record,
    )
    end = math.exp(fit.weights[n]) if settings.learns_scale else scale
    return replace(fit, weights=units * fit.weights[:n], rounds=tuple(steps)), end
