"""Regularized dual averaging (Xiao 2010): weights from the mean of all gradients.

After ``t`` updates with average gradient ``g``, the weights are those with the smallest

    g . w + lambda |w|_1 + |w - w_0|^2 / (2 eta sqrt(t))

which has a closed form by feature: ``w_0 - eta sqrt(t) g``, towards 0 by ``eta sqrt(t) lambda``.
L1 acts on the average and not step by step. No regularization is therefore due between updates, and
more weights are exactly zero than with forward-backward splitting. Xiao starts from 0; other
starting weights become the origin. AdaGrad's scaling replaces ``sqrt(t)`` by ``t / sqrt(G)``
(Duchi et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.descent import (
    RateOptions,
    drop_rare_features,
    ignore_overflow,
    initial_vectors,
    list_count_vectors,
    make_change,
    require_usable,
    shrink,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.options import option

__all__ = ["ALGORITHMS", "RdaOptions", "rda_learner"]


@dataclass(frozen=True)
class RdaOptions(RateOptions):
    """Settings of regularized dual averaging."""

    rate: float = option(
        0.2,
        help="learning rate, eta: 1 / gamma of the paper",
        source="Xiao 2010; value: found on recorded lists of Moses",
        minimum=0.0,
    )
    regularization: float = option(
        1e-5,
        help="strength of the L1 regularizer, lambda",
        source="Xiao 2010; value: Watanabe 2012, section 5",
        minimum=0.0,
    )
    scaling: Literal["sgd", "adagrad"] = option(
        "sgd",
        help="step sizes: one for all features, or one per feature",
        details="sgd: one for all. adagrad: one per feature, by its gradients.",
        source="Xiao 2010; Duchi et al. 2011",
    )


def rda_learner(options: RdaOptions) -> Learner:
    """Return regularized dual averaging of the mean loss of a batch.

    The state's vectors are ``weights`` (at each feature's last update, and at the end of an
    epoch), ``origin`` (``w_0``), ``gradients`` (their sum), ``squares`` (the sum of squares), and
    ``touched``: 1 for features that had a gradient, even if it was 0. Other features keep their
    origin. The memory's ``complete`` is the number of updates when ``weights`` was last complete.
    If mixing or scaling has changed the weights since, the origin is moved accordingly.
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

    def by_gradients(
        state: LearnerState, columns: NDArray[np.int64] | slice
    ) -> NDArray[np.float64]:
        moves, doses = parts(state, columns)
        return shrink(state.vectors["origin"][columns] - moves, doses, "l1")

    def is_complete(state: LearnerState) -> bool:
        return bool(state.memory["complete"] == state.updates)

    def present(state: LearnerState, columns: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        if is_complete(state):
            return state.vectors["weights"][columns].copy()
        return by_gradients(state, columns)

    def move_origins(state: LearnerState) -> None:
        """Move the origins of weights that were changed, so that they give these weights."""
        weights, origin = state.vectors["weights"], state.vectors["origin"]
        mixed = np.flatnonzero(weights != by_gradients(state, slice(None)))
        moves, doses = parts(state, mixed)
        origin[mixed] = weights[mixed] + moves + np.sign(weights[mixed]) * doses

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = drop_rare_features(state, change, step, options.minimum_count)
        columns, gradient, vectors = change.columns, change.values, state.vectors
        if is_complete(state):
            move_origins(state)
        vectors["gradients"][columns] += gradient
        vectors["squares"][columns] += gradient * gradient
        vectors["touched"][columns] = 1.0
        memory = {**state.memory, **change.memory}
        state = replace(state, memory=memory, updates=state.updates + 1)
        vectors["weights"][columns] = require_usable(present(state, columns))
        if step.ends_epoch:
            vectors["weights"][:] = by_gradients(state, slice(None))
            memory["complete"] = np.array([state.updates], dtype=np.float64)
        return state

    def project(state: LearnerState, change: Change, step: Step, bounds: Bounds) -> LearnerState:
        """Move weights into bounds, and their origins so that they give these weights."""
        weights = present(state, slice(None))
        outside = bounds.find_outside(weights)
        moves, doses = parts(state, outside)
        inside = bounds.take(outside).project(weights[outside])
        state.vectors["origin"][outside] = inside + moves + np.sign(inside) * doses
        state.vectors["weights"][outside] = inside
        return state

    def init(weights: NDArray[np.float64]) -> LearnerState:
        vectors = {**initial_vectors(fills, weights), "origin": np.array(weights, dtype=np.float64)}
        return LearnerState(vectors, {"complete": np.zeros(1)})

    fills = {
        "weights": 0.0,
        "origin": 0.0,
        "gradients": 0.0,
        "squares": 0.0,
        "touched": 0.0,
        **list_count_vectors(options),
    }
    return Learner(
        fills=fills,
        init=init,
        change=make_change(
            options, lambda state, columns, _: present(state, columns), summed=False
        ),
        apply=ignore_overflow(apply),
        weights=lambda state: present(state, slice(None)),
        project=project,
        initial_memory=options.costs().memory,
        makes_zeros=options.regularization > 0.0,
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
