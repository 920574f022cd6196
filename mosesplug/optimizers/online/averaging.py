"""Means of an online learner's weights over its updates.

(Neubig & Watanabe 2016, section 6.2.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step

AVERAGE = "sum of weights"
"""Name of the state vector that sums the weights of all updates."""

_AVERAGED_FROM = "averaged from"
"""Name of the array in the memory with the number of updates before the first in that sum."""


def add_averaging(learner: Learner) -> Learner:
    """Return a learner that also sums its weights after every update, for averaging.

    (Neubig & Watanabe 2016, section 6.2, averaged perceptron.) The sum is an additional vector of
    the state. It costs a pass over all weights per update, because regularization and scaling
    change all weights.
    """

    def init(weights: NDArray[np.float64]) -> LearnerState:
        state = learner.init(weights)
        return replace(state, vectors={**state.vectors, AVERAGE: np.zeros(len(weights))})

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        total = state.vectors[AVERAGE]
        vectors = {name: vector for name, vector in state.vectors.items() if name != AVERAGE}
        state = learner.apply(replace(state, vectors=vectors), change, step)
        total += learner.weights(state)
        return replace(state, vectors={**state.vectors, AVERAGE: total})

    return replace(learner, fills={**learner.fills, AVERAGE: 0.0}, init=init, apply=apply)


def mean_weights(learner: Learner, state: LearnerState) -> NDArray[np.float64]:
    """Return the weights to decode with.

    They are the mean over updates if the state has their sum, and the current weights otherwise.
    Weights that L1 has made 0 are 0 in the mean, too.
    """
    updates = state.updates - int(state.memory.get(_AVERAGED_FROM, 0))
    if AVERAGE in state.vectors and updates:
        return keep_zeros(learner, state.vectors[AVERAGE] / updates, learner.weights(state))
    return learner.weights(state)


def keep_zeros(
    learner: Learner, mean: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a mean of weights without those that L1 has made 0.

    A weight that was ever different from 0 has a mean different from 0, which would undo the
    selection of features.

    Args:
        learner: the learner; its mean is returned unchanged if its regularizer makes no zeros.
        weights: float64 ``[n_features]``, after the last update.
    """
    return np.where(weights != 0.0, mean, 0.0) if learner.makes_zeros else mean


def restart_averaging(state: LearnerState) -> LearnerState:
    """Return the state with a mean over the updates that follow.

    A sum in the state is set to 0 in place.
    """
    if AVERAGE not in state.vectors:
        return state
    state.vectors[AVERAGE][:] = 0.0
    memory = {**state.memory, _AVERAGED_FROM: np.array(state.updates, dtype=np.float64)}
    return replace(state, memory=memory)
