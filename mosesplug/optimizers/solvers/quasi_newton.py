"""Limited-memory BFGS (Liu & Nocedal 1989), and OWL-QN for an L1 penalty.

SciPy's version calls LAPACK on tiny matrices, and a threaded LAPACK may wake all its threads for
each: with cheap functions, this takes many times as long as the function. Here are only sums of
vectors. The line search halves and doubles until the weak Wolfe conditions hold, which works at
kinks, too (Lewis & Overton 2013): BLEU's smooth brevity penalty is nearly one.

An L1 penalty ``sum_j c_j |x_j|`` has no derivative where a coordinate is 0, which it makes
frequent. But it is linear inside an orthant. Each step of orthant-wise limited-memory quasi-Newton
(Andrew & Gao 2007) takes the L-BFGS direction of the smooth part within the orthant of steepest
descent, and a coordinate that would leave the orthant becomes exactly 0.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosesplug.arrays import Floats

CurvaturePairs = deque[tuple[Floats, Floats]]
"""Steps and their changes of the gradient; the newest last."""

DECREASE = 1e-4
"""Share of the decrease predicted by the slope that a step must reach."""

_FLATTER = 0.9
"""A step ends where the slope is at most this share of the initial one."""

_TRIALS = 60
"""Maximum lengths of a step that are tried."""


@dataclass(frozen=True)
class Minimum:
    """The result of a minimization.

    Attributes:
        weights: float64 ``[n]``.
        loss: the value of the function there.
        iterations: accepted steps.
        has_converged: False if the iterations were used up.
        bound: a value that no weights fall below, such as that of the dual problem; None: unknown.
        rounds: history of the solver's or its caller's rounds.
    """

    weights: Floats
    loss: float
    iterations: int
    has_converged: bool
    bound: float | None = None
    rounds: tuple[Mapping[str, Any], ...] = ()

    @property
    def gap(self) -> float:
        """The largest possible distance from the minimum."""
        return np.inf if self.bound is None else self.loss - self.bound

    def facts(self) -> dict[str, Any]:
        """Return values for the history of a search."""
        facts = {
            "loss": self.loss,
            "iterations": self.iterations,
            "converged": self.has_converged,
        }
        return facts if self.bound is None else {**facts, "gap": self.gap}


def minimize_smooth(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    memory: int = 10,
    max_iterations: int = 1000,
    steepness: float = 1e-8,
    decrease: float = 1e-12,
    accepted: Callable[[Floats, float, Floats], None] | None = None,
) -> Minimum:
    """Minimize ``f(x)``. No accepted step increases it.

    Args:
        value_and_gradient: returns the value and gradient of ``f``; a value that is not finite
            is no minimum.
        start: float64 ``[n]``.
        memory: number of steps that estimate the curvature.
        max_iterations: maximum accepted steps.
        steepness: converged when no component of the gradient is larger.
        decrease: or when a step lowers the value by a smaller share of itself (or of 1, if that is
            more).
        accepted: called with ``x``, value and gradient at the start and after each step.
    """
    x = np.array(start, dtype=np.float64)
    value, gradient = value_and_gradient(x)
    pairs: CurvaturePairs = deque(maxlen=memory)
    if accepted is not None:
        accepted(x, value, gradient)
    for iteration in range(max_iterations):
        if np.abs(gradient).max(initial=0.0) <= steepness:
            return Minimum(x, value, iteration, True)
        direction = lbfgs_direction(pairs, -gradient)
        moved = _step(value_and_gradient, x, value, gradient, direction, first=not pairs)
        if moved is None and pairs:
            pairs.clear()
            moved = _step(value_and_gradient, x, value, gradient, -gradient, first=True)
        if moved is None:
            return Minimum(x, value, iteration, True)  # lower only by less than rounding
        there, new_value, new_gradient = moved
        step, change = there - x, new_gradient - gradient
        if float(step @ change) > 1e-14 * float(change @ change):
            pairs.append((step, change))
        settled = value - new_value <= decrease * max(abs(value), abs(new_value), 1.0)
        x, value, gradient = there, new_value, new_gradient
        if accepted is not None:
            accepted(x, value, gradient)
        if settled:
            return Minimum(x, value, iteration + 1, True)
    return Minimum(x, value, max_iterations, False)


def lbfgs_direction(pairs: CurvaturePairs, downhill: Floats) -> Floats:
    """Return ``downhill`` times the inverse curvature of the pairs, float64 ``[n]``.

    Nocedal & Wright 2006, algorithm 7.4 (two loops).

    Args:
        pairs: steps and the changes in gradient.
        downhill: float64 ``[n]``.
    """
    direction, scratch = downhill.copy(), np.empty_like(downhill)
    products = [float(step @ change) for step, change in pairs]
    shares: deque[float] = deque()
    for (step, change), product in zip(reversed(pairs), reversed(products), strict=True):
        shares.appendleft(float(step @ direction) / product)
        direction -= np.multiply(change, shares[0], out=scratch)
    if pairs:
        newest = pairs[-1][1]
        direction *= products[-1] / float(newest @ newest)
    for (step, change), product, share in zip(pairs, products, shares, strict=True):
        left = share - float(change @ direction) / product
        direction += np.multiply(step, left, out=scratch)
    return direction


def _step(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    x: Floats,
    value: float,
    gradient: Floats,
    direction: Floats,
    *,
    first: bool,
) -> tuple[Floats, float, Floats] | None:
    """Return the end of a step, its value and gradient; None if it is not lower.

    The first step of all has no scale yet, and starts with length 1.
    """
    slope = float(gradient @ direction)
    if not slope < 0.0:
        return None
    length = min(1.0, 1.0 / float(np.linalg.norm(direction))) if first else 1.0
    shortest, longest = 0.0, math.inf
    lower = None
    for _ in range(_TRIALS):
        there = x + length * direction
        new_value, new_gradient = value_and_gradient(there)
        if not new_value <= value + DECREASE * length * slope:
            longest = length
        else:
            lower = there, new_value, new_gradient
            if float(new_gradient @ direction) >= _FLATTER * slope:
                break
            shortest = length
        length = 2.0 * length if longest == math.inf else 0.5 * (shortest + longest)
    return lower


HALVINGS = 60
"""Maximum halvings of a step."""

RESTING = 5
"""After so many steps in a row without decrease the search has converged."""


def minimize_with_l1(
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
    """Minimize ``f(x) + sum_j penalties_j |x_j|``.

    Args:
        value_and_gradient: returns the value and gradient of ``f``, which is smooth; a value that
            is not finite is no minimum.
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
    while np.abs(downhill).max(initial=0.0) > steepness and resting < RESTING:
        if iterations == max_iterations:
            return Minimum(x, value, iterations, False)
        direction = lbfgs_direction(pairs, downhill)
        direction[direction * downhill <= 0.0] = 0.0
        orthant = np.where(x != 0.0, np.sign(x), np.sign(downhill))
        length = 1.0 if pairs else 1.0 / float(np.linalg.norm(downhill))
        for _ in range(HALVINGS):
            there = x + length * direction
            there[there * orthant <= 0.0] = 0.0
            smooth, new_gradient = value_and_gradient(there)
            new_value = smooth + float(penalties @ np.abs(there))
            if new_value <= value - DECREASE * float(downhill @ (there - x)):
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
