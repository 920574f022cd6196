"""Dual coordinate descent on all pairs of an oracle and another hypothesis.

It ends when the duality gap is small. The margin loss of the survey (Neubig & Watanabe 2016, eq.
25), with a regularizer, over ``n`` pairs of an oracle ``o`` and a hypothesis ``e`` of the same
sentence that is not an oracle:

    lambda/2 |w|^2 + 1/n sum max(0, demand - w . (h(o) - h(e)))

A pair of a sentence of weight ``c`` counts ``c`` times, in the sum and in ``n``.

It is solved in the dual (Hsieh et al. 2008; section 5.3 of the survey). Pairs are numbers of rows:
their differences are never stored, and memory is some 40 bytes a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats, Scores
from mosesplug.optimizers.lists.oracle_pairs import OraclePairs, count_violations
from mosesplug.optimizers.lists.scaled import ScaledLists
from mosesplug.optimizers.oracles import OracleSets
from mosesplug.optimizers.solvers.pair_descent import add_coefficients, descend_pairs, start_descent
from mosesplug.optimizers.solvers.quasi_newton import Minimum

_SWEEPS = 20
"""Sweeps between two computations of the gap."""


@dataclass(frozen=True)
class PairsLoss:
    """The loss of all pairs, to be minimized.

    Attributes:
        lists: the hypotheses.
        oracles: those of each sentence of the lists.
        gains: the demand of a pair is ``least`` plus their difference. Fixed scores are not
            part of it.
        least: the part of the demand that all pairs share.
        regularization: lambda.
    """

    lists: ScaledLists
    oracles: OracleSets
    gains: Scores
    least: float
    regularization: float

    @property
    def pairs(self) -> OraclePairs:
        """The pairs for kernels; fixed scores and demands are part of the base."""
        is_oracle = np.zeros(len(self.gains), dtype=np.bool_)
        is_oracle[self.oracles.rows] = True
        return OraclePairs(
            self.lists.offsets,
            self.oracles.rows,
            self.oracles.offsets,
            is_oracle,
            self.lists.fixed_scores - self.gains,
            self.lists.features,
        )

    @property
    def row_weights(self) -> Scores:
        """The weight of each hypothesis' sentence."""
        return self.lists.weights_of_sentences[self.lists.owners]

    def mean_loss(self, weights: Floats, pairs: OraclePairs) -> tuple[float, float]:
        """Return the mean hinge loss at ``weights``, and the weighted number of pairs."""
        scores = self.lists.scores(weights) - self.gains
        _, count, loss = count_violations(
            pairs, scores, self.least, self.row_weights, np.zeros(len(scores))
        )
        return float(loss) / (count or 1.0), float(count)


def solve_pairs(
    loss: PairsLoss, rng: np.random.Generator, *, tolerance: float, sweeps: int
) -> Minimum:
    """Descend in the dual until the duality gap is small.

    Args:
        loss: to be minimized.
        rng: the random generator of the order of visits.
        tolerance: largest gap at the end, as a share of the objective.
        sweeps: maximum sweeps over the pairs.
    """
    pairs, size = loss.pairs, len(loss.lists.columns)
    weights = np.zeros(size)
    at_zero, n_pairs = loss.mean_loss(weights, pairs)
    descent = start_descent(pairs, np.zeros(len(loss.gains)))
    demands = loss.least - (pairs.base[descent.better] - pairs.base[descent.worse])
    # The loss of pairs with equal features is the same at any weights.
    counts = loss.row_weights[descent.better]
    constant = at_zero * n_pairs - (counts * np.maximum(demands, 0.0)).sum()
    caps = counts / (loss.regularization * (n_pairs or 1.0))
    seed = np.uint64(rng.integers(1, 2**63))
    best, objective, bound = weights, at_zero, -np.inf
    rounds: list[dict[str, float]] = []
    while len(rounds) * _SWEEPS < sweeps and len(demands):
        after, _ = descend_pairs(pairs, descent, loss.least, weights, caps, 0.0, _SWEEPS, seed)
        seed = np.uint64(after)
        coefficients = np.zeros(len(loss.gains))
        add_coefficients(descent, coefficients)
        weights = loss.lists.combine(coefficients)
        square = 0.5 * loss.regularization * float(weights @ weights)
        reached = square + loss.mean_loss(weights, pairs)[0]
        gained = loss.regularization * float(descent.multipliers @ demands)
        bound = max(bound, float(gained - square + constant / (n_pairs or 1.0)))
        if reached < objective:
            best, objective = weights, reached
        rounds.append({"objective": reached, "bound": bound})
        if objective - bound <= tolerance * objective:
            break
    if not len(demands):
        bound = objective
    done = objective - bound <= tolerance * objective
    return Minimum(best, objective, len(rounds) * _SWEEPS, done, bound, tuple(rounds))
