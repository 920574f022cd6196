"""Shrinking and projection of all weights at the cost of a sparse update.

The cost is proportional to the features of the batch. Each update of Watanabe 2012 (Algorithm 2,
after Pegasos: Shalev-Shwartz et al. 2007) is

    w <- (1 - lambda eta) w + step,     w <- min{1, (1 / sqrt(lambda)) / |w|} w

and changes every weight. The state therefore stores the weights as a scale times a vector, with
their squared norm. Shrinking and projection change these two numbers, and a step changes only the
features of the batch. Once per epoch, and when the scale becomes tiny, the vector is multiplied by
the scale and the norm is recomputed.

Inactive weights do not shrink and do not count in the norm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.online.learner import Change, LearnerState, Step

FILLS: Mapping[str, float] = MappingProxyType({"weights": 0.0, "fixed": 0.0})
"""The vectors of the state; ``fixed`` is 1 for inactive weights, which have no scale."""

_TINY = 1e-30
"""Smallest absolute scale, because steps are divided by it."""


def exponential_rate(step: Step, rate: float, decay: float) -> float:
    """Return ``eta_k = eta_0 alpha^(k / K)`` (Watanabe 2012, section 3.2).

    Raises:
        OptimizerError: the rate overflows.
    """
    try:
        return float(rate * decay ** (step.number / step.per_epoch))
    except OverflowError as error:
        raise OptimizerError(
            f"the learning rate overflows in epoch {step.epoch}. Choose a decay of at most 1."
        ) from error


def shrink_factor(rate: float, regularization: float) -> float:
    """Return ``max(0, 1 - lambda eta)``, the factor of the weights."""
    return max(0.0, 1.0 - regularization * rate)


def init_state(weights: NDArray[np.float64]) -> LearnerState:
    """Return the initial state for ``weights``, float64 ``[n_features]``."""
    vectors = {"weights": weights.astype(np.float64), "fixed": np.zeros(len(weights))}
    return LearnerState(vectors, {"scale": np.array(1.0), "square": np.array(0.0)})


def present_weights(
    state: LearnerState, columns: NDArray[np.int64], step: Step, *, from_zero: bool = False
) -> NDArray[np.float64]:
    """Return the weights of some features; the state is only read.

    Args:
        columns: int64 ``[n]``; the features.
        from_zero: treat active weights as 0 before the first update.
    """
    weights = state.vectors["weights"][columns]
    if state.updates == 0:
        scale = 0.0 if from_zero else float(state.memory["scale"])
        return np.where(step.active[columns], scale * weights, weights)
    # Not ``step.active``: features admitted since the last step have no scale until ``take_step``.
    return np.where(state.vectors["fixed"][columns] > 0.0, weights, state.memory["scale"] * weights)


def all_weights(state: LearnerState) -> NDArray[np.float64]:
    """Return all weights, float64 ``[n_features]``, a new array."""
    weights = state.vectors["weights"]
    return np.where(state.vectors["fixed"] > 0.0, weights, state.memory["scale"] * weights)


def project_all(state: LearnerState, change: Change, step: Step, bounds: Bounds) -> LearnerState:
    """Move all weights into bounds, and recompute the norm if one has moved."""
    weights = all_weights(state)
    inside = bounds.project(weights)
    if np.array_equal(weights, inside):
        return state
    state.vectors["weights"][:] = inside
    moving = inside[step.active]
    memory = {"scale": np.array(1.0), "square": np.array(float((moving * moving).sum()))}
    return replace(state, memory={**state.memory, **memory})


def take_step(
    state: LearnerState,
    change: Change,
    step: Step,
    *,
    rate: float,
    regularization: float,
    from_zero: bool = False,
) -> LearnerState:
    """Shrink the weights, add the change, and project the weights into the ball.

    Weights shrink by ``1 - lambda eta``; the radius of the ball is ``1 / sqrt(lambda)``. The state
    is overwritten. If the change is empty, weights are not shrunk to 0, because weights that are
    all 0 cannot decode.

    Args:
        change: the change, whose ``values`` are added; its columns are active.
        from_zero: treat active weights as 0 before the first update.

    Raises:
        OptimizerError: the change or the norm overflows.
    """
    weights, fixed = state.vectors["weights"], state.vectors["fixed"]
    scale, square = float(state.memory["scale"]), float(state.memory["square"])
    if from_zero and state.updates == 0:
        scale = 0.0
    begins_epoch = step.number % step.per_epoch == 1 % step.per_epoch
    if state.updates == 0 or scale == 0.0 or begins_epoch:
        # The weights may have been mixed with other shards' since the last update.
        fixed[:] = ~step.active
        scale, square = _apply_scale(weights, step.active, scale)
    # Enough sentences have had these features by now: they get the scale of the other weights.
    admitted = np.flatnonzero((fixed > 0.0) & step.active)
    if len(admitted):
        square += float((weights[admitted] ** 2).sum())
        weights[admitted] /= scale
        fixed[admitted] = 0.0
    shrink = shrink_factor(rate, regularization)
    if shrink == 0.0 and not change.values.any():
        shrink = 1.0
    scale, square = scale * shrink, square * shrink**2
    if scale < _TINY:
        scale, square = _apply_scale(weights, step.active, scale)
    before = weights[change.columns]
    with np.errstate(over="ignore", invalid="ignore"):
        after = before + change.values / scale
        square += scale**2 * float(((after - before) * (after + before)).sum())
    if not math.isfinite(square):
        raise OptimizerError(
            "the weights overflow. Choose a lower learning rate or smaller starting weights."
        )
    weights[change.columns] = after
    if regularization * square > 1.0:
        scale *= 1.0 / math.sqrt(regularization * square)
        square = 1.0 / regularization
    if step.ends_epoch or scale < _TINY:
        scale, square = _apply_scale(weights, step.active, scale)
    memory = {
        **state.memory,
        **change.memory,
        "scale": np.array(scale),
        "square": np.array(max(0.0, square)),
    }
    return replace(state, memory=memory, updates=state.updates + 1)


def _apply_scale(
    weights: NDArray[np.float64], active: NDArray[np.bool_], scale: float
) -> tuple[float, float]:
    """Multiply active weights by ``scale`` in place; return new scale, squared norm."""
    weights[active] *= scale
    moving = weights[active]
    # No dot product: for long vectors its rounding depends on the number of threads.
    return 1.0, float((moving * moving).sum())
