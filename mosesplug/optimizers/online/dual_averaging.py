"""Regularized dual averaging (Xiao 2010): the mean of all gradients, under L1.

    w = w_0 - eta sqrt(t) (mean of all g), towards 0 by eta sqrt(t) lambda

with ``g`` the gradients of the mini-batches (``gradients``) so far, and ``t`` their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Columns, ColumnValues, Weights
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.descent import (
    ALL,
    Some,
    count_vectors,
    divide_rate,
    drop_rare_features,
    ignore_overflow,
    initial_vectors,
    require_usable,
    shrink,
)
from mosesplug.optimizers.online.gradients import RateOptions, loss_gradient
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.options import Opt


@dataclass(frozen=True)
class RdaOptions(RateOptions):
    """Settings of regularized dual averaging."""

    rate: Annotated[
        float,
        Opt(
            "learning rate, eta: 1 / gamma of the paper",
            source="Xiao 2010; value: found on recorded lists of Moses",
            minimum=0.0,
        ),
    ] = 0.2
    regularization: Annotated[
        float,
        Opt(
            "strength of the L1 regularizer, lambda",
            source="Xiao 2010; value: Watanabe 2012, section 5",
            minimum=0.0,
        ),
    ] = 1e-5
    scaling: Annotated[
        Literal["sgd", "adagrad"],
        Opt(
            "step sizes: one for all features, or one per feature",
            details="sgd: one for all. adagrad: one per feature, by its gradients.",
            source="Xiao 2010; Duchi et al. 2011",
        ),
    ] = "sgd"


def rda_learner(options: RdaOptions) -> Learner:
    """Return regularized dual averaging (Xiao 2010) of the mean loss of a batch.

    After ``t`` updates with average gradient ``g``, the weights are those with the smallest

        g . w + lambda |w|_1 + |w - w_0|^2 / (2 eta sqrt(t))

    L1 acts on the average and not step by step. No regularization is therefore due between updates,
    and more weights are exactly zero than with forward-backward splitting. Xiao starts from 0;
    other starting weights become the origin. AdaGrad's scaling replaces ``sqrt(t)`` by ``t /
    sqrt(G)`` (Duchi et al. 2011).

    The state's vectors are ``weights`` (at each feature's last update, and at the end of an
    epoch), ``origin`` (``w_0``), ``gradients`` (their sum), ``squares`` (the sum of squares), and
    ``touched``: 1 for features that had a gradient, even if it was 0. Other features keep their
    origin. The memory's ``complete`` is the number of updates when ``weights`` was last complete.
    If mixing or scaling has changed the weights since, the origin is moved accordingly.
    """

    def moves_and_doses(state: LearnerState, columns: Some) -> tuple[ColumnValues, ColumnValues]:
        """Return how far the gradients and L1 move each weight from its origin."""
        squares = state.vectors["squares"][columns]
        if options.scaling == "sgd":
            sizes = np.full(len(squares), options.rate / np.sqrt(max(1, state.updates)))
        else:
            sizes = divide_rate(options.rate, squares)
        doses = sizes * state.updates * options.regularization * state.vectors["touched"][columns]
        return sizes * state.vectors["gradients"][columns], doses

    def by_gradients(state: LearnerState, columns: Some) -> ColumnValues:
        moves, doses = moves_and_doses(state, columns)
        return shrink(state.vectors["origin"][columns] - moves, doses, "l1")

    def is_complete(state: LearnerState) -> bool:
        return bool(state.memory["complete"] == state.updates)

    def present(state: LearnerState, columns: Some) -> ColumnValues:
        if is_complete(state):
            return state.vectors["weights"][columns].copy()
        return by_gradients(state, columns)

    def move_origins(state: LearnerState, columns: Columns, weights: ColumnValues) -> None:
        """Move the origins of features so that they give these weights."""
        moves, doses = moves_and_doses(state, columns)
        state.vectors["origin"][columns] = weights + moves + np.sign(weights) * doses

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = drop_rare_features(state, change, step, options.minimum_count)
        columns, gradient, vectors = change.columns, change.values, state.vectors
        if is_complete(state):
            mixed = np.flatnonzero(vectors["weights"] != by_gradients(state, ALL))
            move_origins(state, mixed, vectors["weights"][mixed])
        vectors["gradients"][columns] += gradient
        vectors["squares"][columns] += gradient * gradient
        vectors["touched"][columns] = 1.0
        memory = {**state.memory, **change.memory}
        state = replace(state, memory=memory, updates=state.updates + 1)
        vectors["weights"][columns] = require_usable(present(state, columns))
        if step.ends_epoch:
            vectors["weights"][:] = by_gradients(state, ALL)
            memory["complete"] = np.array([state.updates], dtype=np.float64)
        return state

    def project(state: LearnerState, change: Change, step: Step, bounds: Bounds) -> LearnerState:
        weights = present(state, ALL)
        outside = bounds.find_outside(weights)
        inside = bounds.take(outside).project(weights[outside])
        move_origins(state, outside, inside)
        state.vectors["weights"][outside] = inside
        return state

    def init(weights: Weights) -> LearnerState:
        vectors = {
            **initial_vectors(fills, weights),
            "origin": np.array(weights, dtype=np.float64),
        }
        return LearnerState(vectors, {"complete": np.zeros(1)})

    names = ("weights", "origin", "gradients", "squares", "touched")
    fills = {**dict.fromkeys(names, 0.0), **count_vectors(options)}
    return Learner(
        fills=fills,
        init=init,
        change=loss_gradient(
            options, lambda state, columns, step: present(state, columns), summed=False
        ),
        apply=ignore_overflow(apply),
        weights=lambda state: present(state, ALL),
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
