"""Minimise a smooth function plus an L1 penalty by OWL-QN (Andrew & Gao 2007).

The penalty ``sum_j c_j |x_j|`` has no derivative where a coordinate is 0, which it makes frequent.
But it is linear inside an orthant. Each step of orthant-wise limited-memory quasi-Newton takes the
L-BFGS direction of the smooth part within the orthant of steepest descent, and a coordinate that
would leave the orthant becomes exactly 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.solvers.lbfgs import CurvaturePairs, Minimum, lbfgs_direction

__all__ = ["minimise_with_l1", "pseudo_gradient"]

Floats = NDArray[np.float64]

_DECREASE = 1e-4
"""Share of the decrease predicted by the slope that a step must reach (gamma)."""

_HALVINGS = 60
"""Maximum halvings of a step."""

_RESTING = 5
"""After so many steps in a row without decrease the search has converged."""


def minimise_with_l1(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    penalties: Floats,
    *,
    memory: int = 10,
    max_iterations: int = 1000,
    steepness: float = 1e-8,
    decrease: float = 1e-12,
    accepted: Callable[[Floats, float, Floats], None] | None = None,
) -> Minimum:
    """Minimise ``f(x) + sum_j penalties_j |x_j|``.

    Args:
        value_and_gradient: of ``f``, which is smooth; a value that is not finite is no minimum.
        start: float64 ``[n]``.
        penalties: float64 ``[n]``, not negative; 0 for none.
        memory: number of steps that estimate the curvature.
        max_iterations: maximum accepted steps.
        steepness: converged when no component of the pseudo-gradient is larger.
        decrease: or when five steps in a row lower the objective by a smaller share of itself (or
            of 1, if that is more).
        accepted: called with ``x``, objective and pseudo-gradient at the start and after each step.
    """
    x = np.array(start, dtype=np.float64)
    smooth, gradient = value_and_gradient(x)
    value = smooth + float(penalties @ np.abs(x))
    downhill = -pseudo_gradient(x, gradient, penalties)
    pairs: CurvaturePairs = deque(maxlen=memory)
    iterations, resting = 0, 0
    if accepted is not None:
        accepted(x, value, -downhill)
    while np.abs(downhill).max(initial=0.0) > steepness and resting < _RESTING:
        if iterations == max_iterations:
            return Minimum(x, value, iterations, False)
        direction = lbfgs_direction(pairs, downhill)
        direction[direction * downhill <= 0.0] = 0.0
        orthant = np.where(x != 0.0, np.sign(x), np.sign(downhill))
        length = 1.0 if pairs else 1.0 / float(np.linalg.norm(downhill))
        for _ in range(_HALVINGS):
            there = x + length * direction
            there[there * orthant <= 0.0] = 0.0
            smooth, new_gradient = value_and_gradient(there)
            new_value = smooth + float(penalties @ np.abs(there))
            if new_value <= value - _DECREASE * float(downhill @ (there - x)):
                break
            length *= 0.5
        else:
            if not pairs:
                return Minimum(x, value, iterations, True)  # lower only by less than rounding
            pairs.clear()
            continue
        step, change = there - x, new_gradient - gradient
        if float(step @ change) > 1e-14 * float(change @ change):
            pairs.append((step, change))
        resting = resting + 1 if value - new_value <= decrease * max(abs(value), 1.0) else 0
        x, value, gradient = there, new_value, new_gradient
        downhill = -pseudo_gradient(x, gradient, penalties)
        iterations += 1
        if accepted is not None:
            accepted(x, value, -downhill)
    return Minimum(x, value, iterations, True)


def pseudo_gradient(x: Floats, gradient: Floats, penalties: Floats) -> Floats:
    """Return the shortest sub-gradient (Andrew & Gao 2007, eq. 4), float64 ``[n]``.

    Args:
        x: float64 ``[n]``.
        gradient: float64 ``[n]``, of the smooth part at ``x``.
        penalties: float64 ``[n]``.
    """
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - penalties, 0.0)
    return np.where(x != 0.0, gradient + penalties * np.sign(x), at_zero)
