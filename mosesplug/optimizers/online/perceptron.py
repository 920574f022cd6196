"""The structured perceptron (Collins 2002; Neubig & Watanabe 2016, section 6.2).

If the 1-best of a sentence is not an oracle, its features are subtracted from the weights and
those of the oracle are added (equation 59):

    w <- w + eta / K sum of (h(oracle) - h(1-best))

By default, the result is the mean of the weights after every update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.rows import compact_rows
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.learner import (
    Change,
    Learner,
    LearnerState,
    Step,
    additive_learner,
)
from mosesplug.optimizers.online.options import CostOptions
from mosesplug.optimizers.options import option
from mosesplug.optimizers.oracles import sentence_oracles
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "PerceptronOptions", "perceptron_learner"]


@dataclass(frozen=True)
class PerceptronOptions(CostOptions):
    """Settings of the perceptron."""

    averaging: Literal["last", "all", "best"] = option(
        "all",
        help="result: last weights, mean over all updates, or best epoch",
        details="The mean is over the weights after every update.",
        source="Neubig & Watanabe 2016, section 6.2",
    )
    rate: float = option(
        0.0,
        help="learning rate, eta",
        details="0 stands for 0.01 on stored lists, and for 0.001 while decoding. The survey has "
        "1, for weights that start at 0.",
        source="Neubig & Watanabe 2016, section 6.2; values: found on recorded lists, and on "
        "halves of a tuning set",
        minimum=0.0,
    )


def perceptron_learner(options: PerceptronOptions) -> Learner:
    """Return the perceptron on mini-batches.

    Oracles are the hypotheses with the largest gain by the options' costs. Among several, the
    learner takes the one with the highest model score, which needs the smallest step.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        scores = batch.model_scores(state.vectors["weights"])
        best = first_of_largest(batch.offsets, scores)
        oracles = _pick_oracles(batch, gains, scores)
        wrong = scores[best] > scores[oracles]
        wrong |= gains[best] < gains[oracles]
        rows = compact_rows(batch, np.concatenate([oracles[wrong], best[wrong]]))
        violations = int(np.count_nonzero(wrong))
        signs = np.repeat([1.0, -1.0], violations)
        rate = options.rate or step.choose(stored=0.01, decoding=0.001)
        sums = rows.combine(signs) * (rate / max(1, len(best)))
        touched = step.active[rows.columns] & (sums != 0.0)
        return Change(
            columns=rows.columns[touched],
            values=sums[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, scores, gains)),
            report={
                "loss": float((scores[best] - scores[oracles]).sum()) / max(1, len(best)),
                "violations": float(violations),
            },
        )

    return additive_learner(change, costs.memory)


def _pick_oracles(
    batch: Batch, gains: NDArray[np.float64], scores: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the oracle of highest model score of each non-empty sentence, int64."""
    values = np.full(batch.n_hyps, -np.inf)
    rows = sentence_oracles(batch.offsets, gains).rows
    values[rows] = scores[rows]
    return first_of_largest(batch.offsets, values)


ALGORITHMS = (
    online_algorithm(
        name="perceptron",
        summary="Move towards the oracle, away from the 1-best; averaged.",
        source="Collins 2002",
        options=PerceptronOptions,
        learner=perceptron_learner,
    ),
)
