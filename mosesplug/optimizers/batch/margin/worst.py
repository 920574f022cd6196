"""The worst violation of each sentence: objective, dual bound and dual descent.

The structural hinge loss (Neubig & Watanabe 2016, eq. 30 with the loss-augmented search of eq. 35
and 37) over the ``N`` sentences that have hypotheses, with ``o`` the reference of each:

    lambda/2 |w|^2 + 1/N sum over i of max over e of (demand_e - w . (h(o) - h(e)))

A sentence of weight ``c`` counts ``c`` times, in the sum and in ``N``.

The demand of a hypothesis is its cost (margin rescaling), or 1. The reference demands 0, so that no
loss is below 0.

In the dual problem, divided by lambda so that ``C = 1 / (lambda N)``, each hypothesis has a
multiplier ``a_e >= 0``, those of a sentence add up to ``c C``, and ``w = sum a_e (h(o) - h(e))``.
In a sentence, the multiplier with the steepest slope takes from the flattest one above 0
(sequential minimal optimization, Platt 1999; sentence by sentence, Keerthi et al. 2008). Visits to
all hypotheses alternate with visits to those that have a multiplier. Cutting planes (``planes``)
solve the same problem. All know a lower bound, the dual objective, which never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Offsets, Scores
from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.oracle_pairs import (
    add_difference,
    difference_score,
    difference_square,
)
from mosesplug.optimizers.lists.rows import FeatureRows
from mosesplug.optimizers.lists.scaled import ScaledLists
from mosesplug.optimizers.solvers.quasi_newton import Minimum

_INNER = 10
"""Visits to hypotheses with multipliers between two visits to all."""

_LOOK = 5
"""Visits to all between two computations of the gap."""

_EXCHANGES = 10
"""Maximum exchanges of a visit to a sentence."""


@dataclass(frozen=True)
class WorstLoss:
    """The loss of this module, to be minimized.

    Attributes:
        lists: the hypotheses.
        references: int64 ``[n_sentences]``, rows.
        demands: 0 of references, minus the margin of the fixed scores.
        regularization: lambda.
    """

    lists: ScaledLists
    references: NDArray[np.int64]
    demands: Scores
    regularization: float

    @property
    def shares(self) -> Floats:
        """``c / N`` of each sentence, float64 ``[n_sentences]``."""
        weights = self.lists.weights_of_sentences
        return np.asarray(weights / weights.sum())

    @property
    def caps(self) -> Floats:
        """``c C = c / (lambda N)``, of the same problem divided by lambda."""
        weights = self.lists.weights_of_sentences
        return np.asarray(weights / (self.regularization * weights.sum()))

    def violations(self, weights: Floats) -> Floats:
        """Return by how much each hypothesis misses its margin, float64 ``[n_hyps]``."""
        lists = self.lists
        scores = lists.scores(weights) - lists.fixed_scores
        return self.demands + scores - np.repeat(scores[self.references], np.diff(lists.offsets))

    def objective(self, weights: Floats, violations: Floats) -> float:
        """Return regularizer and mean loss; ``violations`` are those of ``weights``."""
        losses = np.maximum.reduceat(violations, self.lists.offsets[:-1])
        return 0.5 * self.regularization * float(weights @ weights) + self.lists.mean(losses)

    def bound(self, weights: Floats, multipliers: Floats) -> float:
        """Return the dual objective of ``multipliers``, which lead to ``weights``."""
        return dual_bound(self, weights, float(multipliers @ self.demands))

    def weights(self, multipliers: Floats) -> Floats:
        """Return ``sum a_e (h(o) - h(e))``, float64 ``[n_columns]``."""
        coefficients = -multipliers
        coefficients[self.references] += np.add.reduceat(multipliers, self.lists.offsets[:-1])
        return self.lists.combine(coefficients)

    def mean_difference(self, others: NDArray[np.int64]) -> Floats:
        """Return ``1/N sum c (h(o) - h(e))`` over sentences, float64 ``[n_columns]``."""
        coefficients, shares = np.zeros(len(self.demands)), self.shares
        coefficients[self.references] += shares
        coefficients[others] -= shares
        return self.lists.combine(coefficients)

    def start(self) -> Floats:
        """Return multipliers of weights of 0, ``[n_hyps]``: the references have all."""
        multipliers = np.zeros(len(self.demands))
        multipliers[self.references] = self.caps
        return multipliers


def solve_dual(
    loss: WorstLoss,
    rng: np.random.Generator,
    *,
    tolerance: float,
    sweeps: int,
    multipliers: Scores | None = None,
) -> tuple[Minimum, Floats]:
    """Exchange multipliers until the duality gap is small.

    Args:
        loss: to be minimized.
        rng: the random generator of the order of visits.
        tolerance: largest gap at the end, as a share of the objective.
        sweeps: maximum visits to all hypotheses.
        multipliers: initial ones; those of other references are feasible.

    Returns:
        The fit, and its multipliers.
    """
    multipliers = loss.start() if multipliers is None else multipliers.copy()
    weights = loss.weights(multipliers)
    everyone = np.arange(len(multipliers))
    best = BestWeights()
    for sweep in range(1, sweeps + 1):
        spread = visit_all(loss, everyone, multipliers, weights, rng, exchanges=1)
        for _ in range(_INNER):
            some = np.flatnonzero(multipliers)
            if visit_all(loss, some, multipliers, weights, rng) <= 0.1 * spread:
                break
        if sweep % _LOOK == 0 or sweep == sweeps:
            weights = loss.weights(multipliers)
            best.record(loss, weights, loss.violations(weights), loss.bound(weights, multipliers))
            if best.gap <= tolerance * best.objective:
                break
    return replace(best.fit(tolerance), iterations=sweep), multipliers


def dual_bound(loss: WorstLoss, weights: Floats, gained: float) -> float:
    """Return the dual objective of multipliers that lead to ``weights``."""
    return loss.regularization * (gained - 0.5 * float(weights @ weights))


def visit_all(
    loss: WorstLoss,
    members: NDArray[np.int64],
    multipliers: Floats,
    weights: Floats,
    rng: np.random.Generator,
    exchanges: int = _EXCHANGES,
) -> float:
    """Visit every sentence once, in random order, and exchange multipliers.

    Args:
        loss: the loss of the lists.
        members: int64 ``[n]``, ascending rows that may have a multiplier.
        multipliers: in and output, float64 ``[n_hyps]``.
        weights: in and output, float64 ``[n_columns]``.
        rng: draws the order.
        exchanges: maximum number of exchanges in a visit.

    Returns:
        The largest difference of slopes within a sentence, before its visit.
    """
    order = rng.permutation(loss.lists.n_sentences)
    return float(
        _exchange_multipliers(
            loss.lists.features,
            members,
            np.searchsorted(members, loss.lists.offsets),
            loss.references,
            loss.demands,
            order,
            exchanges,
            multipliers,
            weights,
        )
    )


class BestWeights:
    """The best weights and the best bound so far, and the history of both."""

    def __init__(self) -> None:
        self.weights: Floats = np.zeros(0)
        self.objective, self.lower = np.inf, -np.inf
        self.done = False
        self.rounds: list[dict[str, float]] = []

    @property
    def gap(self) -> float:
        """The largest possible distance of the objective from the minimum."""
        return self.objective - self.lower

    def record(self, loss: WorstLoss, weights: Floats, violations: Floats, bound: float) -> None:
        """Record weights with their violations, and a bound."""
        objective = loss.objective(weights, violations)
        if objective < self.objective:
            self.weights, self.objective = weights.copy(), objective
        self.lower = max(self.lower, bound)
        self.rounds.append({"objective": objective, "bound": bound})

    def fit(self, tolerance: float | None) -> Minimum:
        """Return the fit; with no tolerance it converged if the last plane added nothing."""
        done = self.done if tolerance is None else self.gap <= tolerance * self.objective
        return Minimum(
            self.weights, self.objective, len(self.rounds), done, self.lower, tuple(self.rounds)
        )


@kernel
def _exchange_multipliers(
    features: FeatureRows,
    members: NDArray[np.int64],
    offsets: Offsets,
    references: NDArray[np.int64],
    demands: Scores,
    order: NDArray[np.int64],
    exchanges: int,
    multipliers: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """Do what ``visit_all`` does, in the given order.

    Args:
        features: the features of the hypotheses.
        members: int64 ``[n]``, rows; others' multipliers stay 0, and all that are not 0 are here.
        offsets: members of sentence ``i`` are ``members[offsets[i]:offsets[i + 1]]``.
        references: int64 ``[n_sentences]``, rows.
        demands: 0 of references.
        order: int64, sentences.
        exchanges: see ``visit_all``.
        multipliers: in and output, float64 ``[n_hyps]``.
        weights: in and output, float64 ``[n_columns]``.
    """
    scratch, largest = np.zeros(len(weights)), 0.0
    for sentence in order:
        for turn in range(exchanges):
            taker = giver = -1
            top, bottom = -np.inf, np.inf
            for row in members[offsets[sentence] : offsets[sentence + 1]]:
                slope = demands[row] + difference_score(
                    features, row, references[sentence], weights
                )
                if slope > top:
                    taker, top = row, slope
                if multipliers[row] > 0.0 and slope < bottom:
                    giver, bottom = row, slope
            if taker < 0 or giver < 0:
                break
            if turn == 0:
                largest = max(largest, top - bottom)
            if top - bottom <= 0.0:
                break
            curvature = difference_square(features, taker, giver, scratch)
            moved = multipliers[giver]
            if curvature * moved > top - bottom:
                moved = (top - bottom) / curvature
            multipliers[taker] += moved
            multipliers[giver] -= moved
            add_difference(features, giver, taker, moved, weights)
    return largest
