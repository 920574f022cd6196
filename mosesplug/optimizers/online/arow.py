"""Adaptive regularization of weights (Crammer et al. 2009) on hope and fear.

Hope and fear are those of Chiang (2012). Each weight has a normal distribution with its own
variance. In each sentence, the hope hypothesis (high model score and high metric) should outscore
the fear hypothesis (high model score and low metric) by their difference in cost (Neubig & Watanabe
2016, eq. 35-36). With ``x`` the difference of their features, ``loss = max(0, cost - w . x)``,
diagonal ``S`` and ``r = 1 / (2 lambda)`` (eq. 64-67):

    w <- w + loss b S x,     S <- S - b (S x)(S x)' on the diagonal,     b = 1 / (x . S x + r)

This update balances the distance to the old distribution, the squared loss and the variance of
``w . x``. Weights of frequent features have small variances and change less. Equation 66 has a
cost of 1, as in classification; here the cost is the difference in gain, as in eq. 63.

The linearized form replaces the loss of eq. 63 by its tangent at the old weights. Every sentence
with a loss then has the same influence, and a batch of ``K`` sentences is one step:

    w <- w + C / K sum of S x,     1 / S <- 1 / S + lambda / K sum of x x
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.lists.rows import (
    RowDifference,
    compact_rows,
    difference,
    drop_empty_sentences,
    given_oracles,
    row_scores,
)
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.learner import (
    Change,
    Learner,
    LearnerState,
    Step,
    apply_sum,
)
from mosesplug.optimizers.online.options import GraphCostOptions
from mosesplug.optimizers.options import option
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "ArowOptions", "arow_learner"]


@dataclass(frozen=True)
class ArowOptions(GraphCostOptions):
    """Settings of adaptive regularization of weights."""

    variance_weight: float = option(
        0.01,
        help="lambda: rate at which variances shrink",
        details="In closed form, it is also the weight of losses.",
        source="Neubig & Watanabe 2016, eq. 63 and 67; value: found on recorded lists",
        minimum=0.0,
    )
    slack: float = option(
        0.01,
        help="C: weight of losses in the linearized update",
        source="Neubig & Watanabe 2016, eq. 63; value: Eidelman et al. 2013, section 4.1",
        only_with="update=linearized",
        minimum=0.0,
    )
    update: Literal["closed-form", "linearized"] = option(
        "linearized",
        help="form of the update",
        details="closed-form: minimize the squared loss sentence by sentence. linearized: one "
        "gradient step per batch.",
        source="Neubig & Watanabe 2016, eq. 63-67; default: better on recorded lists",
    )


@dataclass(frozen=True)
class _Walk:
    """The weight distribution during a batch; the arrays are updated in place.

    Attributes:
        weights: float64 ``[n_columns]``; current weights.
        variances: float64 ``[n_columns]``; current variances.
        moved: float64 ``[n_columns]``; sum of the weight steps so far.
        shrink: float64 ``[n_columns]``; product of the variance factors so far.
        squares: float64 ``[n_columns]``; sum of ``x x`` in the linearized form.
    """

    weights: NDArray[np.float64]
    variances: NDArray[np.float64]
    moved: NDArray[np.float64]
    shrink: NDArray[np.float64]
    squares: NDArray[np.float64]


def arow_learner(options: ArowOptions) -> Learner:
    """Return adaptive regularization of weights with diagonal covariance.

    The state's vectors are ``weights`` and ``variances``, which start at 1. A change's ``more``
    has ``shrink``, the factors of the variances, so that changes computed on old weights can be
    applied in any order.

    Raises:
        UsageError: ``variance_weight`` is not positive.
    """
    if not 0.0 < options.variance_weight < np.inf:
        raise UsageError(f"variance_weight must be above 0, not {options.variance_weight:g}")
    costs = options.costs()

    def learn(walk: _Walk, along: RowDifference, loss: float) -> None:
        places, values = along.places, along.values
        variances = walk.variances[places]
        if options.update == "linearized":
            walk.moved[places] += variances * values
            walk.squares[places] += values**2
            return
        share = 1.0 / (variances @ values**2 + 1.0 / (2.0 * options.variance_weight))
        moved = loss * share * variances * values
        walk.weights[places] += moved
        walk.moved[places] += moved
        shrink = 1.0 - share * variances * values**2
        walk.variances[places] *= shrink
        walk.shrink[places] *= shrink

    def finish(walk: _Walk, n_sentences: int) -> None:
        if options.update == "linearized":
            walk.moved[:] *= options.slack / n_sentences
            per_square = options.variance_weight / n_sentences
            walk.shrink[:] = 1.0 / (1.0 + per_square * walk.variances * walk.squares)

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        rows = compact_rows(batch, np.arange(batch.n_hyps))
        features = rows.arrays(step.active)
        walk = _begin(state, rows.columns)
        scores, losses = np.zeros(batch.n_hyps), []
        ends = drop_empty_sentences(batch.offsets).tolist()
        for (start, end), oracle in zip(pairwise(ends), given_oracles(batch).tolist(), strict=True):
            own = slice(start, end)
            scores[own] = row_scores(features, walk.weights, start, end)
            hope = start + int(np.argmax(scores[own] + gains[own])) if oracle < 0 else oracle
            fear = start + int(np.argmax(scores[own] - gains[own]))
            loss = gains[hope] - gains[fear] - (scores[hope] - scores[fear])
            losses.append(max(0.0, float(loss)))
            if loss > 0.0:
                learn(walk, difference(features, hope, fear), losses[-1])
        n_sentences = max(1, len(losses))
        finish(walk, n_sentences)
        touched = (walk.moved != 0.0) | (walk.shrink != 1.0)
        return Change(
            columns=rows.columns[touched],
            values=walk.moved[touched],
            more={"shrink": walk.shrink[touched]},
            memory=costs.update_memory(batch, memory, costs.choose(batch, scores, gains)),
            report={
                "loss": sum(losses) / n_sentences,
                "violations": float(np.count_nonzero(losses)),
            },
        )

    fills = {"weights": 0.0, "variances": 1.0}
    return Learner(
        fills=fills,
        init=lambda weights: LearnerState(
            {"weights": np.array(weights, np.float64), "variances": np.ones(len(weights))}
        ),
        change=change,
        apply=_apply,
        weights=lambda state: state.vectors["weights"].copy(),
        initial_memory=costs.memory,
    )


def _begin(state: LearnerState, columns: NDArray[np.int64]) -> _Walk:
    weights, variances = (state.vectors[name][columns] for name in ("weights", "variances"))
    moved, squares = np.zeros(len(columns)), np.zeros(len(columns))
    return _Walk(weights, variances, moved, np.ones(len(columns)), squares)


def _apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
    state = apply_sum(state, change, step)
    state.vectors["variances"][change.columns] *= change.more["shrink"]
    return state


ALGORITHMS = (
    online_algorithm(
        name="arow",
        summary="Learn weights with a confidence for each feature.",
        source="Crammer et al. 2009; Chiang 2012",
        options=ArowOptions,
        learner=arow_learner,
        graphs="derivations",
    ),
)
