"""States with which a learner begins to learn from stored lists: new or kept.

A run calls a learner once for each decoding. What the learner has learned about its features and
its steps stays valid when hypotheses are added: learning rates, AdaGrad's sums of squares, AROW's
variances, decayed statistics, and the scale of the weights. So its state is kept from call to call,
as it is from epoch to epoch. Means over updates start again: earlier weights knew fewer hypotheses.

Decoders use weights up to a positive factor, and a run divides them by their L1 norm before each
decoding. Losses and step sizes depend on that factor: at norm 1, the scores of the hypotheses of a
sentence may differ by so little that every loss is nearly linear, and any step is a large one. A
new learner therefore may start from weights whose model scores have a given spread, the root of
their mean variance within n-best lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.candidates import LIST_SIZE
from mosesplug.optimizers.batch.expected.descent import variance_in_lists
from mosesplug.optimizers.online.learner import (
    Learner,
    LearnerState,
    mean_weights,
    restart_averaging,
)
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.problem import Problem, can_scale, normalize
from mosesplug.tuning_set import Batch


def copy_state(state: LearnerState) -> LearnerState:
    """Return the state with arrays of its own, which an update may overwrite."""
    return replace(
        state,
        vectors={name: vector.copy() for name, vector in state.vectors.items()},
        memory={name: array.copy() for name, array in state.memory.items()},
    )


def find_scale(batch: Batch, weights: NDArray[np.float64], spread: float) -> float:
    """Return the factor of the weights that gives model scores a spread.

    Args:
        spread: root of the mean variance of the model scores of a list.

    Returns:
        A positive number; 1 if scores do not differ, or if the factor is no finite number.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if not (spread > 0.0 and largest > 0.0):
        return 1.0
    scores = batch.model_scores(weights / largest)
    variance = variance_in_lists(batch, scores)
    # The variance of equal scores may be a rounding error.
    if not np.sqrt(variance) > 1e-9 * float(np.abs(scores).max(initial=0.0)):
        return 1.0
    scale = spread / (largest * np.sqrt(variance))
    return float(scale) if 0.0 < scale < np.inf else 1.0


def start_states(
    problem: Problem,
    initial: Weights,
    learner: Learner,
    options: OnlineOptions,
    shards: int = 1,
) -> list[LearnerState]:
    """Return a state for each shard to start with; the learner may overwrite them.

    Args:
        problem: the n-best lists, and the states after earlier decodings.
        initial: the starting weights.
    """
    kept = problem.states if options.keep_state else ()
    if len(kept) == shards and all(_has_vectors(state.vectors, learner) for state in kept):
        return [_resume(problem, initial, learner, copy_state(state)) for state in kept]
    scale = 1.0
    if options.start_spread and can_scale(problem):
        lists = problem.candidates.best_lists(initial, LIST_SIZE)
        scale = find_scale(lists, initial, options.start_spread)
    weights = initial * scale
    if problem.is_fixed is not None:
        weights = np.where(problem.is_fixed, initial, weights)
    return [learner.init(weights.copy()) for _ in range(shards)]


def _has_vectors(vectors: Mapping[str, NDArray[np.float64]], learner: Learner) -> bool:
    """Return whether a kept state has the vectors of the learner, and no others."""
    return set(vectors) == set(learner.fills)


def _resume(
    problem: Problem, initial: NDArray[np.float64], learner: Learner, state: LearnerState
) -> LearnerState:
    """Return a kept state, with the initial weights if they are not its own."""
    expected = normalize(problem, mean_weights(learner, state))
    state = restart_averaging(state)
    if np.allclose(normalize(problem, initial), expected, rtol=1e-6, atol=1e-9):
        return state
    # Interpolated with those of an earlier iteration, for example.
    before, now = (float(np.abs(vector).sum()) for vector in (learner.weights(state), initial))
    scale = before / now if before > 0.0 and now > 0.0 and can_scale(problem) else 1.0
    return replace(state, vectors={**state.vectors, "weights": scale * initial})


def count_epochs(states: Sequence[LearnerState], sentences: int, batch: int) -> int:
    """Return the number of epochs that kept states have behind them."""
    return states[0].updates // max(1, -(-sentences // batch))
