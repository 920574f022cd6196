"""State, settings and decisions of k-best MIRA, in single precision as in Moses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class MiraSettings(NamedTuple):
    """Settings of a step.

    Attributes:
        step_cap: the largest step, ``C``.
        decay: the decay of the background, each time it grows.
        model_background: whether the 1-best joins the background, not the hope.
        safe_hope: whether to limit the model score in the hope.
        active: the weights that may change.
        low, high: ``[n_features]``, the limits of the weights.
    """

    step_cap: np.float32
    decay: np.float32
    model_background: bool
    safe_hope: bool
    active: NDArray[np.bool_]
    low: NDArray[np.float32]
    high: NDArray[np.float32]


class MiraState(NamedTuple):
    """State of a learner, whose arrays change with each visit.

    Attributes:
        weights: ``[n_features]``.
        totals: ``[n_features]``; sum of the initial weights and those after each update up to the
            one in ``updated``.
        updated: ``[n_features]``; number of the update that ``totals`` includes.
        updates: ``[1]``; updates so far.
        background: ``[n_statistics]``; decayed sum of the statistics of earlier choices.
        length: ``[1]``; hypothesis length of the background, which only metrics without a
            reference length use.
    """

    weights: NDArray[np.float32]
    totals: NDArray[np.float32]
    updated: NDArray[np.int64]
    updates: NDArray[np.int64]
    background: NDArray[np.float32]
    length: NDArray[np.float64]


class MiraDecisions(NamedTuple):
    """Choices at each of ``n`` visited sentences.

    Attributes:
        hope, fear: ``[n]``; hypotheses: their numbers in lists, or what was found in graphs.
        hope_gain, fear_gain: ``[n]``.
        loss: ``[n]``; 0 without ``occasion``, negative where the margin is large enough.
        occasion: ``[n]``; whether hope and fear differ, and the hope has the larger gain.
        spread: ``[n]``; the model score of the hope minus the lowest one of the list or graph,
            before the update.
    """

    hope: NDArray[Any]
    fear: NDArray[Any]
    hope_gain: NDArray[np.float32]
    fear_gain: NDArray[np.float32]
    loss: NDArray[np.float32]
    occasion: NDArray[np.bool_]
    spread: NDArray[np.float32]

    @classmethod
    def empty(cls, n: int, hypothesis: type[Any]) -> MiraDecisions:
        """Return decisions to write to; hypotheses have the given type."""
        return cls(
            np.zeros(n, hypothesis),
            np.zeros(n, hypothesis),
            np.zeros(n, np.float32),
            np.zeros(n, np.float32),
            np.zeros(n, np.float32),
            np.zeros(n, np.bool_),
            np.zeros(n, np.float32),
        )


def average_weights(state: MiraState) -> NDArray[np.float32]:
    """Return the averaged weights, float32 ``[n_features]``, in Moses' scale.

    This is the sum of the initial weights and those after each of ``n`` updates, divided by ``n``:
    ``(n + 1) / n`` times their average, which ranks alike. Every total catches up.
    """
    weights, totals, updated, updates, *_ = state
    if updates[0] == 0:
        return weights.copy()
    missed = (updates[0] - updated).astype(np.float32)
    totals += missed * weights + np.float32(0.0)
    weights += np.float32(0.0)  # an update by nothing: negative zero becomes zero
    updated[:] = updates[0]
    return np.asarray(totals / np.float32(updates[0]))
