"""AROW: each weight has a confidence (Crammer et al. 2009; survey, 6.4).

Each weight has a normal distribution with its own variance. With ``x`` the difference of the
features of hope and fear (see ``margins``), ``D`` that of their gains,
``loss = max(0, D - w . x)``, diagonal ``S`` and ``r = 1 / (2 lambda)`` (eq. 64-67),

    w <- w + loss b S x,     S <- S - b (S x)(S x)' on the diagonal,     b = 1 / (x . S x + r)

which balances the distance to the old distribution, the squared loss and the variance of ``w .
x``. Weights of frequent features have small variances and change less. Equation 66 has a cost of
1, as in classification; here the cost is the difference in gain, as in eq. 63. The linearized
form replaces the loss of eq. 63 by its tangent at the old weights. Every sentence with a loss
then has the same influence, and a batch of ``K`` sentences is one step:

    w <- w + C / K sum of S x,     1 / S <- 1 / S + lambda / K sum of x x

The terms of a sentence, in closed form its ``lambda``, are multiplied by its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.optimizers.lists.rows import (
    compact_rows,
    difference,
    drop_empty_sentences,
    filled_weights,
    given_oracles,
    row_scores,
)
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step, apply_sum
from mosesplug.optimizers.online.options import GraphCostOptions
from mosesplug.optimizers.spread import report_spreads
from mosesplug.options import Opt
from mosesplug.tuning_set import Batch


@dataclass(frozen=True)
class ArowOptions(GraphCostOptions):
    """Settings of adaptive regularization of weights."""

    variance_weight: Annotated[
        float,
        Opt(
            "lambda: rate at which variances shrink",
            details="In closed form, it is also the weight of losses.",
            source="Neubig & Watanabe 2016, eq. 63 and 67; value: found on recorded lists",
            minimum=0.0,
        ),
    ] = 0.01
    slack: Annotated[
        float,
        Opt(
            "C: weight of losses in the linearized update",
            source="Neubig & Watanabe 2016, eq. 63; value: Eidelman et al. 2013, section 4.1",
            only_with="update=linearized",
            minimum=0.0,
        ),
    ] = 0.01
    update: Annotated[
        Literal["closed-form", "linearized"],
        Opt(
            "form of the update",
            details="closed-form: minimize the squared loss sentence by sentence. linearized: one "
            "gradient step per batch.",
            source="Neubig & Watanabe 2016, eq. 63-67; default: better on recorded lists",
        ),
    ] = "linearized"


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
    costs, is_linear = options.costs(), options.update == "linearized"

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        sizes = costs.sizes(batch, step.metric, step.source_lengths)
        gains = costs.gains(batch, step.metric, memory, step.rng, sizes)
        rows = compact_rows(batch)
        features = rows.masked(step.active)
        weights = state.vectors["weights"][rows.columns]
        variances = state.vectors["variances"][rows.columns]
        total_step, squares = np.zeros(len(weights)), np.zeros(len(weights))
        shrink, scores = np.ones(len(weights)), np.zeros(batch.n_hyps)
        losses, spreads = [], []
        ends = drop_empty_sentences(batch.offsets).tolist()
        oracles, counts = given_oracles(batch).tolist(), filled_weights(batch).tolist()
        for (start, end), oracle, count in zip(pairwise(ends), oracles, counts, strict=True):
            own = slice(start, end)
            scores[own] = row_scores(features.rows, weights, start, end)
            hope = start + int(np.argmax(scores[own] + gains[own])) if oracle < 0 else oracle
            fear = start + int(np.argmax(scores[own] - gains[own]))
            loss = max(0.0, float(gains[hope] - gains[fear] - (scores[hope] - scores[fear])))
            losses.append(loss)
            spreads.append(float(scores[hope] - scores[own].min()))
            if loss == 0.0:
                continue
            places, values = difference(features, hope, fear)
            own_variances = variances[places]
            if is_linear:
                total_step[places] += count * own_variances * values
                squares[places] += count * values**2
                continue
            inverse = 1.0 / (2.0 * count * options.variance_weight)
            share = 1.0 / (own_variances @ values**2 + inverse)
            moved = loss * share * own_variances * values
            weights[places] += moved
            total_step[places] += moved
            factors = 1.0 - share * own_variances * values**2
            variances[places] *= factors
            shrink[places] *= factors
        n_sentences = max(1, len(losses))
        if is_linear:
            total_step *= options.slack / n_sentences
            per_square = options.variance_weight / n_sentences
            shrink = 1.0 / (1.0 + per_square * variances * squares)
        touched = (total_step != 0.0) | (shrink != 1.0)
        return Change(
            columns=rows.columns[touched],
            values=total_step[touched],
            more={"shrink": shrink[touched]},
            memory=costs.update_memory(batch, memory, costs.choose(batch, scores, gains), sizes),
            report={
                "loss": sum(losses) / n_sentences,
                "violations": float(np.count_nonzero(losses)),
                **report_spreads(np.array(spreads)),
            },
        )

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        state = apply_sum(state, change, step)
        state.vectors["variances"][change.columns] *= change.more["shrink"]
        return state

    return Learner(
        fills={"weights": 0.0, "variances": 1.0},
        init=lambda weights: LearnerState(
            {"weights": np.array(weights, np.float64), "variances": np.ones(len(weights))}
        ),
        change=change,
        apply=apply,
        weights=lambda state: state.vectors["weights"].copy(),
        initial_memory=costs.memory,
    )


ALGORITHMS = (
    online_algorithm(
        name="arow",
        summary="Learn weights with a confidence for each feature.",
        source="Crammer et al. 2009; Chiang 2012",
        options=ArowOptions,
        learner=arow_learner,
        graphs=True,
    ),
)
