"""Minimize an objective and regularizers by L-BFGS, or by OWL-QN with L1.

The scales of MT features differ by orders of magnitude, which slows down quasi-Newton methods. So
the search divides each weight by a unit: the inverse deviation of its feature within lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.candidates import Objective
from mosesplug.optimizers.batch.expected.coordinates import Coordinates
from mosesplug.optimizers.batch.expected.objectives import evaluate_scaled
from mosesplug.optimizers.lists.scaled import Scaling
from mosesplug.optimizers.solvers.bounded import minimize_in_box, minimize_in_box_with_l1
from mosesplug.optimizers.solvers.quasi_newton import Minimum, minimize_smooth, minimize_with_l1

Floats = NDArray[np.float64]

_MEMORY = 20
"""Steps that estimate the curvature, as in cdec's ``minrisk_optimize -M``."""

_STEEPNESS = 1e-9
"""Largest component of a gradient, in the units of the search, that counts as 0."""


@dataclass(frozen=True)
class DescentSettings:
    """Start, regularizers and stopping rule of one descent.

    Attributes:
        l1: factor of ``sum |w|``.
        l2: factor of half the squared distance from the center.
        learns_scale: whether the scale changes, too. It is not regularized: weights can shrink
            while it grows, and the regularizer loses its effect.
        iterations: maximum number of steps.
        tolerance: stop when a step lowers the objective by a smaller share of itself (or of 1, if
            that is more).
        scaling: units of the weights in L2: ``deviation``, those of their features, or ``none``.
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


@dataclass(frozen=True)
class StageResult:
    """The result of one descent.

    Attributes:
        x: float64 ``[n_coordinates]``.
        scale: the scale of the distribution's weights.
        steps: figures of the start and of each accepted step: ``objective`` with its regularizers,
            and ``gradient``, the length of its (pseudo-)gradient by the coordinates.
        has_converged: False if the iterations were used up.
    """

    x: Floats
    scale: float
    steps: tuple[dict[str, float], ...]
    has_converged: bool


def minimize_stage(
    objective: Objective,
    coordinates: Coordinates,
    start: Floats,
    scale: float,
    settings: DescentSettings,
    center: Floats | None = None,
) -> StageResult:
    """Minimize ``objective(scale w) + l2/2 |w - center|^2 + l1 |w|_1`` over ``w``.

    The scale is a variable too with ``learns_scale``. No accepted step increases the objective.

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

    minimize: Callable[..., Minimum] = minimize_smooth
    first = np.append(start / units, [math.log(scale)] if settings.learns_scale else [])
    penalties = settings.l1 * np.where(coordinates.is_free(), units, 0.0)
    penalties = np.append(penalties, np.zeros(len(first) - n))
    if settings.l1 > 0.0:
        minimize = partial(minimize_with_l1, penalties=penalties)
    if coordinates.box is not None:
        unlimited = np.full(len(first) - n, np.inf)
        low = np.append(coordinates.box[0] / units, -unlimited)
        high = np.append(coordinates.box[1] / units, unlimited)
        minimize = partial(minimize_in_box, box=(low, high))
        if settings.l1 > 0.0:
            minimize = partial(minimize_in_box_with_l1, box=(low, high), penalties=penalties)
    found = minimize(
        function,
        first,
        memory=_MEMORY,
        max_iterations=settings.iterations,
        steepness=_STEEPNESS,
        decrease=settings.tolerance,
        accepted=record,
    )
    point = found.x
    end = math.exp(point[n]) if settings.learns_scale else scale
    return StageResult(units * point[:n], end, tuple(steps), found.has_converged)
