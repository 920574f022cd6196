"""The scale of starting weights: the spread of model scores that they give.

Decoders use weights up to a positive factor, and a run divides them by their L1 norm before each
decoding. Losses and step sizes depend on that factor: at norm 1, the scores of the hypotheses of a
sentence may differ by so little that every loss is nearly linear, and any step is a large one. A
learner therefore may start from weights whose model scores have a given spread, the root of their
mean variance within n-best lists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.expected.coordinates import variance_in_lists
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.tuning_set import Batch

__all__ = ["aim_for_spread", "apply_scale", "find_scale", "scale_state"]

_AIM = "start spread"
"""Name of the array in a new state's memory with the spread that its first batch will give it."""


def find_scale(batch: Batch, weights: NDArray[np.float64], spread: float) -> float:
    """Return the factor of the weights that gives model scores a spread.

    Args:
        batch: the n-best lists.
        weights: float64 ``[n_features]``.
        spread: root of the mean variance of the model scores of a list.

    Returns:
        A positive number; 1 if scores do not differ, or if the factor is no finite number.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if not (spread > 0.0 and largest > 0.0):
        return 1.0
    scores = batch.model_scores(weights / largest)
    variance = variance_in_lists(batch.offsets, scores)
    # The variance of equal scores may be a rounding error.
    if not np.sqrt(variance) > 1e-9 * float(np.abs(scores).max(initial=0.0)):
        return 1.0
    scale = spread / (largest * np.sqrt(variance))
    return float(scale) if 0.0 < scale < np.inf else 1.0


def aim_for_spread(state: LearnerState, spread: float) -> LearnerState:
    """Return a new state that takes a spread from the first batch; 0 leaves it as it is."""
    if not spread:
        return state
    return replace(state, memory={**state.memory, _AIM: np.array(spread, dtype=np.float64)})


def scale_state(state: LearnerState, batch: Batch) -> tuple[LearnerState, float]:
    """Return the state at the spread that it aims for, and the factor of its weights.

    Args:
        state: a state that aims for a spread has no other history; others are returned as they are.
        batch: the first batch.
    """
    if _AIM not in state.memory:
        return state, 1.0
    scale = find_scale(batch, state.vectors["weights"], float(state.memory[_AIM]))
    return apply_scale(state, scale), scale


def apply_scale(state: LearnerState, scale: float) -> LearnerState:
    """Return a state that aims for a spread with its weights multiplied, and without the aim."""
    if _AIM not in state.memory:
        return state
    return LearnerState(
        {**state.vectors, "weights": scale * state.vectors["weights"]},
        {name: array for name, array in state.memory.items() if name != _AIM},
        state.updates,
    )
