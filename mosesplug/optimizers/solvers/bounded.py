"""Minimizers with and without a box and L1, and a search for a scale.

Inside a box, coordinates at a limit that the function would push further out are held; the others
take the L-BFGS step of their own curvature, and what would leave the box stops at its limit
(Bertsekas 1982, "Projected Newton methods"; Schmidt et al. 2009). A step is halved until the
function has fallen as far as its slope promises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats
from mosesplug.optimizers.solvers.quasi_newton import (
    DECREASE,
    HALVINGS,
    RESTING,
    CurvaturePairs,
    Minimum,
    lbfgs_direction,
    minimize_smooth,
    minimize_with_l1,
)

Box = tuple[Floats, Floats]
"""Lower and upper limits, each float64 ``[n]``; infinite for none."""

ValueAndGradient = Callable[[Floats], tuple[float, Floats]]
T = TypeVar("T")


def minimize(
    value_and_gradient: ValueAndGradient,
    start: Floats,
    *,
    box: Box | None = None,
    penalties: Floats | None = None,
    **settings: Any,
) -> Minimum:
    """Minimize ``f(x) + sum_j penalties_j |x_j|``, perhaps inside a box.

    Args:
        value_and_gradient, start: as for ``minimize_smooth``.
        box: the limits; None if there are none.
        penalties: float64 ``[n]``, not negative; None: 0.
        settings: further arguments of ``minimize_smooth``.
    """
    if box is None:
        if penalties is None:
            return minimize_smooth(value_and_gradient, start, **settings)
        return minimize_with_l1(value_and_gradient, start, penalties, **settings)
    if penalties is None:
        return minimize_in_box(value_and_gradient, start, box, **settings)
    return minimize_in_box_with_l1(value_and_gradient, start, box, penalties, **settings)


def minimize_in_box(
    value_and_gradient: ValueAndGradient,
    start: Floats,
    box: Box,
    *,
    memory: int = 10,
    max_iterations: int = 1000,
    steepness: float = 1e-8,
    decrease: float = 1e-12,
    accepted: Callable[[Floats, float, Floats], None] | None = None,
) -> Minimum:
    """Minimize ``f(x)`` with ``low <= x <= high``. No accepted step increases it.

    Args:
        value_and_gradient: returns the value and gradient of ``f``; a value that is not finite
            is no minimum.
        start: float64 ``[n]``; it is moved into the box.
        box: the limits.
        memory: number of steps that estimate the curvature.
        max_iterations: maximum accepted steps.
        steepness: converged when no component of the gradient that may move is larger.
        decrease: or when five steps in a row lower the value by a smaller share of itself (or of
            1, if that is more).
        accepted: called with ``x``, value and projected gradient at the start and after each step.
    """
    low, high = box
    x = np.clip(np.asarray(start, dtype=np.float64), low, high)
    value, gradient = value_and_gradient(x)
    steep = _free_part(x, gradient, box)
    pairs: CurvaturePairs = deque(maxlen=memory)
    iterations, resting = 0, 0
    if accepted is not None:
        accepted(x, value, steep)
    while np.abs(steep).max(initial=0.0) > steepness and resting < RESTING:
        if iterations == max_iterations:
            return Minimum(x, value, iterations, False)
        free = steep != 0.0
        direction = lbfgs_direction(_restrict(pairs, free), -steep)
        # Curvature from before other coordinates were held may point uphill.
        if not float(direction @ steep) < 0.0:
            pairs.clear()
            direction = -steep
        # A gradient has no scale of its own: without curvature, move by 1 at most.
        length = 1.0 if pairs else min(1.0, 1.0 / float(np.linalg.norm(steep)))
        for _ in range(HALVINGS):
            there = np.clip(x + length * direction, low, high)
            new_value, new_gradient = value_and_gradient(there)
            # Along the step as it was cut off by the box.
            slope = float(steep @ (there - x))
            if slope < 0.0 and new_value <= value + DECREASE * slope:
                break
            length *= 0.5
        else:
            if not pairs:
                return Minimum(x, value, iterations, True)  # lower only by less than rounding
            pairs.clear()
            continue
        step, change = there - x, new_gradient - gradient
        # Only positive curvature keeps the next direction downhill.
        if float(step @ change) > 1e-14 * float(change @ change):
            pairs.append((step, change))
        resting = resting + 1 if value - new_value <= decrease * max(abs(value), 1.0) else 0
        x, value, gradient = there, new_value, new_gradient
        steep = _free_part(x, gradient, box)
        iterations += 1
        if accepted is not None:
            accepted(x, value, steep)
    return Minimum(x, value, iterations, True)


def minimize_in_box_with_l1(
    value_and_gradient: ValueAndGradient,
    start: Floats,
    box: Box,
    penalties: Floats,
    *,
    accepted: Callable[[Floats, float, Floats], None] | None = None,
    **settings: float,
) -> Minimum:
    """Minimize ``f(x) + sum_j penalties_j |x_j|`` inside a box.

    ``x`` is the difference of two parts that are not negative, in which the penalty is linear.

    Args:
        value_and_gradient, start, box, accepted: as for ``minimize_in_box``.
        penalties: float64 ``[n]``, not negative.
        settings: further arguments of ``minimize_in_box``.
    """
    n, (low, high) = len(start), box

    def join(parts: Floats) -> Floats:
        return parts[:n] - parts[n:]

    def split(parts: Floats) -> tuple[float, Floats]:
        value, gradient = value_and_gradient(join(parts))
        total = value + float(penalties @ (parts[:n] + parts[n:]))
        return total, np.concatenate([gradient + penalties, penalties - gradient])

    def report(parts: Floats, value: float, gradient: Floats) -> None:
        if accepted is not None:
            accepted(join(parts), value, gradient[:n] - gradient[n:])

    x = np.clip(start, low, high)
    fit = minimize_in_box(
        split,
        np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)]),
        (
            np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0)]),
            np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)]),
        ),
        accepted=report,
        **settings,  # type: ignore[arg-type]
    )
    return replace(fit, weights=join(fit.weights))


_WIDEST = 12
"""Factors of 4 from the first scale, either way, within which the best one is searched for."""

_NARROWINGS = 16
"""Golden sections of that interval: the scale is known to about a thousandth."""


def minimize_over_scale(fit: Callable[[float], T], loss: Callable[[T], float]) -> tuple[float, T]:
    """Return the scale of the smallest loss, and its fit.

    Args:
        fit: from a scale, above 0, to the best fit with it. Its loss must fall, then rise, with the
            scale; the smallest loss of a convex problem whose limits grow with it does.
        loss: the loss of a fit.
    """
    known: dict[float, T] = {}

    def judge(exponent: float) -> float:
        if exponent not in known:
            known[exponent] = fit(4.0**exponent)
        return loss(known[exponent])

    middle = 0.0
    while abs(middle) < _WIDEST and judge(middle + 1.0) < judge(middle):
        middle += 1.0
    while abs(middle) < _WIDEST and judge(middle - 1.0) < judge(middle):
        middle -= 1.0
    share = 0.5 * (5.0**0.5 - 1.0)
    low, high = middle - 1.0, middle + 1.0
    for _ in range(_NARROWINGS):
        first, second = high - share * (high - low), low + share * (high - low)
        if judge(first) <= judge(second):
            high = second
        else:
            low = first
    best = min(known, key=judge)
    return 4.0**best, known[best]


def _free_part(x: Floats, gradient: Floats, box: Box) -> Floats:
    """Return the gradient, 0 where a step downhill would leave the box."""
    held = ((x <= box[0]) & (gradient > 0.0)) | ((x >= box[1]) & (gradient < 0.0))
    return np.where(held, 0.0, gradient)


def _restrict(pairs: CurvaturePairs, free: NDArray[np.bool_]) -> CurvaturePairs:
    """Return the curvature of free coordinates, without pairs that have none there."""
    if free.all():
        return pairs
    own = ((np.where(free, step, 0.0), np.where(free, change, 0.0)) for step, change in pairs)
    return deque(
        (step, change)
        for step, change in own
        if float(step @ change) > 1e-14 * float(change @ change)
    )
