"""Stochastic gradient descent at a falling rate (Neubig & Watanabe 2016, 6.5).

    w <- w - eta_k gradient,    eta_k = eta_1 / (1 + (k - 1) / T)

with ``T`` the number of updates of the whole run. The regularizer follows by forward-backward
splitting (eq. 71-72). The rate is the same for all features, so the regularization that is due for
a feature is the difference of two sums of doses: the current sum, and the sum when the feature was
last updated.
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

__all__ = ["ALGORITHMS", "SgdOptions", "sgd_learner"]


@dataclass(frozen=True)
class SgdOptions(RateOptions):
    """Settings of stochastic gradient descent."""

    rate: float = option(
        0.02,
        help="learning rate of the first update, eta",
        source="Neubig & Watanabe 2016, eq. 70; value: found on recorded lists of Moses",
        minimum=0.0,
    )
    regularization: float = option(
        1e-5,
        help="strength of the regularizer, lambda",
        source="Watanabe 2012, section 5",
        minimum=0.0,
    )
    norm: Norm = option(
        "l2",
        help="the regularizer: l1 makes weights zero, l2 makes them small",
        source="Duchi & Singer 2009",
    )


def sgd_learner(options: SgdOptions) -> Learner:
    """Return stochastic gradient descent on the mean loss of a batch.

    The state's vectors are ``weights`` and ``since``, the sum of doses when each feature was last
    updated; the memory's ``doses`` is the current sum. It starts at 1, and ``since`` is 0 for
    features that were never updated, which are not regularized. At the end of an epoch, all
    regularization is applied.
    """

    def present(state: LearnerState, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        since = state.vectors["since"][columns]
        due = np.where(since > 0.0, state.memory["doses"] - since, 0.0)
        return shrink(state.vectors["weights"][columns], due, options.norm)

    def full(state: LearnerState) -> NDArray[np.float64]:
        return present(state, np.arange(len(state.vectors["weights"])))

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        change = drop_rare_features(state, change, step, options.minimum_count)
        columns = change.columns
        total = max(1, options.epochs * step.per_epoch)
        rate = options.rate / (1.0 + (step.number - 1) / total)
        stepped = present(state, columns) - rate * change.values
        now = regularization_dose(np.array([rate]), options.regularization, options.norm)
        state.vectors["weights"][columns] = require_usable(shrink(stepped, now, options.norm))
        doses = state.memory["doses"] + now
        state.vectors["since"][columns] = doses
        memory = {**state.memory, **change.memory, "doses": doses}
        state = replace(state, memory=memory, updates=state.updates + 1)
        if step.ends_epoch:
            weights, since = state.vectors["weights"], state.vectors["since"]
            weights[:] = full(state)
            since[since > 0.0] = doses
        return state

    fills = {"weights": 0.0, "since": 0.0, **list_count_vectors(options)}
    return Learner(
        fills=fills,
        init=lambda weights: LearnerState(initial_vectors(fills, weights), {"doses": np.ones(1)}),
        change=make_change(
            options, lambda state, columns, _: present(state, columns), summed=False
        ),
        apply=ignore_overflow(apply),
        weights=full,
        initial_memory=options.costs().memory,
        makes_zeros=options.norm == "l1" and options.regularization > 0.0,
    )


ALGORITHMS = (
    online_algorithm(
        name="sgd",
        summary="Run stochastic gradient descent on a selectable loss.",
        source="Neubig & Watanabe 2016",
        options=SgdOptions,
        learner=sgd_learner,
    ),
)
