"""AdaGrad: every feature has a learning rate of its own (Green et al. 2013).

    G <- G + g^2,    w <- w - eta g / sqrt(G)        (eq. 4-5, diagonal)

The regularizer follows by forward-backward splitting with each feature's own rate ``eta / sqrt(G)``
(eq. 15). ``G`` of a feature is constant while its gradient is 0, so the regularization that is due
is one equal dose per update since its last gradient. A feature that never had a gradient has no
rate yet and is not regularized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.descent import (
    Norm,
    RateOptions,
    drop_rare_features,
    ignore_overflow,
    initial_vectors,
    list_count_vectors,
    make_change,
    regularization_dose,
    require_usable,
    shrink,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.options import option

__all__ = ["ALGORITHMS", "AdagradOptions", "adagrad_learner"]


@dataclass(frozen=True)
class AdagradOptions(RateOptions):
    """Settings of AdaGrad."""

    batch: int = option(
        20,
        help="number of sentences per mini-batch",
        source="Green et al. 2013, section 4.2",
        minimum=1,
    )
    rate: float = option(
        0.02,
        help="learning rate, eta",
        source="Green et al. 2013, section 4.2",
        minimum=0.0,
    )
    regularization: float = option(
        0.1,
        help="strength of the regularizer, lambda",
        source="Green et al. 2013, section 4.2",
        minimum=0.0,
    )
    norm: Norm = option(
        "l1",
        help="the regularizer: l1 makes weights zero, l2 makes them small",
        source="Green et al. 2013, section 3.2",
    )


def adagrad_learner(options: AdagradOptions) -> Learner:
    """Return AdaGrad on the summed loss of a batch (Green et al. 2013, Algorithm 1).

    The state's vectors are ``weights``, ``squares`` (``G``) and ``since``, the number of updates
    when each feature was last updated. At the end of an epoch, all regularization is applied.
    """

    def rates(squares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.divide(
            options.rate, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0.0
        )

    def present(state: LearnerState, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        own = rates(state.vectors["squares"][columns])
        missed = state.updates - state.vectors["since"][columns]
        doses = missed * regularization_dose(own, options.regularization, options.norm)
        return shrink(state.vectors["weights"][columns], doses, options.norm)

    def full(state: LearnerState) -> NDArray[np.float64]:
        return present(state, np.arange(len(state.vectors["weights"])))

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = drop_rare_features(state, change, step, options.minimum_count)
        columns, gradient, vectors = change.columns, change.values, state.vectors
        stepped = present(state, columns)
        squares = vectors["squares"][columns] + gradient * gradient
        own = rates(squares)
        stepped -= own * gradient
        doses = regularization_dose(own, options.regularization, options.norm)
        vectors["weights"][columns] = require_usable(shrink(stepped, doses, options.norm))
        vectors["squares"][columns] = squares
        vectors["since"][columns] = state.updates + 1
        memory = {**state.memory, **change.memory}
        state = replace(state, memory=memory, updates=state.updates + 1)
        if step.ends_epoch:
            vectors["weights"][:] = full(state)
            vectors["since"][:] = state.updates
        return state

    fills = {"weights": 0.0, "squares": 0.0, "since": 0.0, **list_count_vectors(options)}
    return Learner(
        fills=fills,
        init=lambda weights: LearnerState(initial_vectors(fills, weights)),
        change=make_change(options, lambda state, columns, _: present(state, columns), summed=True),
        apply=ignore_overflow(apply),
        weights=full,
        initial_memory=options.costs().memory,
        makes_zeros=options.norm == "l1" and options.regularization > 0.0,
    )


ALGORITHMS = (
    online_algorithm(
        name="adagrad",
        summary="Adapt each feature's step size.",
        source="Green et al. 2013",
        options=AdagradOptions,
        learner=adagrad_learner,
    ),
)
