"""Regularised dual averaging (Xiao 2010): weights from the average of all gradients so far.

After ``t`` updates with average gradient ``g``, the weights are those with the smallest

    g . w + lambda |w|_1 + |w - w_0|^2 / (2 eta sqrt(t))

which has a closed form by feature: ``w_0 - eta sqrt(t) g``, towards 0 by ``eta sqrt(t) lambda``.
Nothing is due between updates, whatever a batch touches: L1 acts on the average, not step by step,
and makes more weights exactly zero than forward-backward splitting. Xiao starts from 0; starting
elsewhere moves the origin. With AdaGrad's scaling, ``t / sqrt(G)`` takes the place of ``sqrt(t)``
(Duchi et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.descent import (
    DescentOptions,
    admitted,
    checked,
    counting,
    ends_epoch,
    filled,
    gradient_of,
    quietly,
)
from mosesplug.optimizers.online.epochs import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.proximal import shrunk
from mosesplug.optimizers.options import option

__all__ = ["ALGORITHMS", "RdaOptions", "rda_learner"]


@dataclass(frozen=True)
class RdaOptions(DescentOptions):
    """Settings of regularised dual averaging."""

    rate: float = option(
        0.2,
        help="learning rate, eta: 1 over gamma of the paper",
        source="Xiao 2010; value: found on recorded lists of Moses",
        minimum=0.0,
    )
    regularization: float = option(
        1e-5,
        help="strength of the L1 regulariser, lambda",
        source="Xiao 2010; value: Watanabe 2012, section 5",
        minimum=0.0,
    )
    scaling: Literal["sgd", "adagrad"] = option(
        "sgd",
        help="one step size for all features, or one of each by its gradients",
        source="Xiao 2010; Duchi et al. 2011",
    )


def rda_learner(options: RdaOptions) -> Learner:
    """Regularised dual averaging of the mean loss of a batch.

    The state's vectors are ``weights`` (at each feature's last update, and at the end of an
    epoch), ``origin`` (``w_0``), ``gradients`` (their sum), ``squares`` (the sum of squares), and
    ``touched``: 1 for features that had a gradient, even if it was 0. Other features keep their
    origin. The memory's ``complete`` is the number of updates when ``weights`` was last complete.
    If mixing has changed the weights since, the origin is moved accordingly.
    """

    def parts(
        state: LearnerState, columns: NDArray[np.int64] | slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how far the gradients and L1 move each weight from its origin."""
        squares = state.vectors["squares"][columns]
        if options.scaling == "sgd":
            sizes = np.full(len(squares), options.rate / np.sqrt(max(1, state.updates)))
        else:
            sizes = np.zeros(len(squares))
            np.divide(options.rate, np.sqrt(squares), out=sizes, where=squares > 0.0)
        doses = sizes * state.updates * options.regularization * state.vectors["touched"][columns]
        return sizes * state.vectors["gradients"][columns], doses

    def present(state: LearnerState, columns: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        moves, doses = parts(state, columns)
        return shrunk(state.vectors["origin"][columns] - moves, doses, "l1")

    def taken_over(state: LearnerState) -> None:
        """Move origins so that they explain the weights, where those were mixed with others'."""
        weights, origin = state.vectors["weights"], state.vectors["origin"]
        foreign = np.flatnonzero(weights != present(state, slice(None)))
        moves, doses = parts(state, foreign)
        origin[foreign] = weights[foreign] + moves + np.sign(weights[foreign]) * doses

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = admitted(state, change, step, options.minimum_count)
        columns, gradient, vectors = change.columns, change.values, state.vectors
        if state.memory["complete"] == state.updates:
            taken_over(state)
        vectors["gradients"][columns] += gradient
        vectors["squares"][columns] += gradient * gradient
        vectors["touched"][columns] = 1.0
        memory = {**state.memory, **change.memory}
        state = replace(state, memory=memory, updates=state.updates + 1)
        vectors["weights"][columns] = checked(present(state, columns))
        if ends_epoch(step):
            vectors["weights"][:] = present(state, slice(None))
            memory["complete"] = np.array([state.updates], dtype=np.float64)
        return state

    def init(weights: NDArray[np.float64]) -> LearnerState:
        vectors = {**filled(fills, weights), "origin": np.array(weights, dtype=np.float64)}
        return LearnerState(vectors, {"complete": np.zeros(1)})

    fills = {
        "weights": 0.0,
        "origin": 0.0,
        "gradients": 0.0,
        "squares": 0.0,
        "touched": 0.0,
        **counting(options),
    }
    return Learner(
        fills=fills,
        init=init,
        change=gradient_of(
            options, lambda state, columns, _: present(state, columns), summed=False
        ),
        apply=quietly(apply),
        weights=lambda state: present(state, slice(None)),
    )


ALGORITHMS = (
    online_algorithm(
        name="rda",
        summary="Average gradients under L1, for sparse weights.",
        source="Xiao 2010",
        options=RdaOptions,
        learner=rda_learner,
    ),
)
