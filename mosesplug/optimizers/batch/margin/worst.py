"""Each sentence's worst violation: objective, dual bound, and three ways to the minimum.

The structural hinge loss (Neubig & Watanabe 2016, eq. 30 with the loss-augmented search of eq. 35
and 37), over the ``N`` sentences that have hypotheses, with ``o`` the reference of each:

    lambda/2 |w|^2 + 1/N sum over i of max over e of (demand_e - w . (h(o) - h(e)))

where a hypothesis demands its difference in worth (margin rescaling), or 1. The reference itself
demands 0, so that no loss is below 0.

- ``solve_dual``: all hypotheses take part; visits to all alternate with some to those alone that
  have a multiplier.
- ``solve_n_slack`` (Tsochantaridis et al. 2005, Algorithm 1): in each round the hypothesis that
  violates its margin most, by more than the sentence's slack and epsilon, joins the sentence's
  working set, and the problem of the working sets is solved again.
- ``solve_one_slack`` (Joachims et al. 2009, Algorithm 3): the worst hypotheses of all sentences
  together make one constraint, on one slack. Few constraints are enough, whatever the number of
  sentences; their quadratic program is that of ``optimizers.qp``.

All three know a bound from below, the dual objective, which never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.margin.fits import MarginFit
from mosesplug.optimizers.batch.margin.lists import Lists
from mosesplug.optimizers.batch.margin.sentence_descent import exchange
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.qp import EXCHANGES, solve_groups

__all__ = ["Planes", "WorstLoss", "solve_dual", "solve_n_slack", "solve_one_slack"]

Floats = NDArray[np.float64]

_INNER = 10
"""Visits to hypotheses with multipliers between two visits to all."""

_LOOK = 5
"""Visits to all between two looks at the gap."""

_EXCHANGES = 10
"""Exchanges of a visit to a sentence at most."""

_IDLE = 50
"""Rounds after which a constraint of one slack that had no multiplier is dropped (Joachims et al.
2009, section 4)."""


@dataclass(frozen=True)
class WorstLoss:
    """The loss above, to be minimised.

    Attributes:
        lists: the hypotheses.
        references: int64 ``[n_sentences]``, rows.
        demands: float64 ``[n_hyps]``, 0 of references; what fixed scores add to the margin is
            taken off already.
        regularization: lambda.
    """

    lists: Lists
    references: NDArray[np.int64]
    demands: Floats
    regularization: float

    @property
    def cap(self) -> float:
        """``C = 1 / (lambda N)``, of the same problem divided by lambda."""
        return 1.0 / (self.regularization * self.lists.n_sentences)

    def violations(self, weights: Floats) -> Floats:
        """By how much each hypothesis misses its margin, float64 ``[n_hyps]``."""
        lists = self.lists
        scores = lists.scores(weights) - lists.fixed
        return self.demands + scores - np.repeat(scores[self.references], np.diff(lists.offsets))

    def objective(self, weights: Floats, violations: Floats) -> float:
        """Regulariser and mean loss; ``violations`` are those of ``weights``."""
        losses = np.maximum.reduceat(violations, self.lists.offsets[:-1])
        return 0.5 * self.regularization * float(weights @ weights) + float(losses.mean())

    def bound(self, weights: Floats, multipliers: Floats) -> float:
        """The dual objective; ``multipliers`` (float64 ``[n_hyps]``) are those of ``weights``."""
        return _bound(self, weights, float(multipliers @ self.demands))

    def weights(self, multipliers: Floats) -> Floats:
        """``sum a_e (h(o) - h(e))``, float64 ``[n_columns]``."""
        coefficients = -multipliers
        coefficients[self.references] += np.add.reduceat(multipliers, self.lists.offsets[:-1])
        return self.lists.combined(coefficients)

    def start(self) -> Floats:
        """Multipliers of weights that are all 0, float64 ``[n_hyps]``: the references have all."""
        multipliers = np.zeros(len(self.demands))
        multipliers[self.references] = self.cap
        return multipliers


def solve_dual(
    loss: WorstLoss,
    rng: np.random.Generator,
    *,
    tolerance: float,
    sweeps: int,
    multipliers: Floats | None = None,
) -> tuple[MarginFit, Floats]:
    """Exchange multipliers until the duality gap is small.

    Args:
        loss: to be minimised.
        rng: of the order of visits.
        tolerance: the gap, as a share of the objective, at the end.
        sweeps: visits to all hypotheses at most.
        multipliers: float64 ``[n_hyps]``, to begin with: those of any references are feasible.

    Returns:
        The fit, and its multipliers.
    """
    multipliers = loss.start() if multipliers is None else multipliers.copy()
    weights = loss.weights(multipliers)
    everyone = np.ones(len(multipliers), dtype=np.bool_)
    best = _Best()
    for sweep in range(1, sweeps + 1):
        spread = _visit(loss, everyone, multipliers, weights, rng, exchanges=1)
        for _ in range(_INNER):
            if _visit(loss, multipliers > 0.0, multipliers, weights, rng) <= 0.1 * spread:
                break
        if sweep % _LOOK == 0 or sweep == sweeps:
            weights = loss.weights(multipliers)
            best.see(loss, weights, loss.violations(weights), loss.bound(weights, multipliers))
            if best.gap <= tolerance * best.objective:
                break
    return replace(best.fit(tolerance), iterations=sweep), multipliers


def solve_n_slack(
    loss: WorstLoss,
    rng: np.random.Generator,
    *,
    epsilon: float,
    rounds: int,
    sweeps: int,
    multipliers: Floats | None = None,
) -> tuple[MarginFit, Floats]:
    """Working sets that grow, one for each sentence.

    Args:
        loss: to be minimised.
        rng: of the order of visits.
        epsilon: violations beyond the slack that are let be.
        rounds: at most.
        sweeps: of the working sets' problem, at most, in a round.
        multipliers: as ``solve_dual`` has them.

    Returns:
        The fit, and its multipliers.
    """
    multipliers = loss.start() if multipliers is None else multipliers.copy()
    weights = loss.weights(multipliers)
    members = multipliers > 0.0
    starts = loss.lists.offsets[:-1]
    best, spread = _Best(), np.inf
    for _ in range(rounds):
        violations = loss.violations(weights)
        best.see(loss, weights, violations, loss.bound(weights, multipliers))
        worst = first_of_largest(loss.lists.offsets, violations)
        slack = np.maximum.reduceat(np.where(members, violations, -np.inf), starts)
        joining = worst[violations[worst] > slack + epsilon]
        if not len(joining) and spread <= epsilon:
            best.done = True
            break
        members[joining] = True
        for _ in range(sweeps):
            spread = _visit(loss, members, multipliers, weights, rng)
            if spread <= 0.5 * epsilon:
                break
        weights = loss.weights(multipliers)
    return best.fit(None), multipliers


@dataclass(frozen=True)
class Planes:
    """Constraints of one slack, whatever the references.

    Attributes:
        others: int64 ``[n, n_sentences]``, the hypotheses of each: rows.
        multipliers: float64 ``[n]``.
    """

    others: NDArray[np.int64]
    multipliers: Floats


def solve_one_slack(
    loss: WorstLoss, *, epsilon: float, rounds: int, planes: Planes | None = None
) -> tuple[MarginFit, Planes]:
    """Constraints on the sum of all sentences' losses.

    Args:
        loss: to be minimised.
        epsilon: violation of the mean slack that is let be.
        rounds: at most.
        planes: constraints to begin with.

    Returns:
        The fit, and its constraints.
    """
    if planes is None:
        none = np.zeros((0, loss.lists.n_sentences), dtype=np.int64)
        planes = Planes(none, np.zeros(0))
    others, multipliers = planes.others, planes.multipliers
    normals = np.zeros((len(others), len(loss.lists.columns)))
    for normal, rows in zip(normals, others, strict=True):
        normal[:] = _mean_difference(loss, rows)
    goals = loss.demands[others].mean(axis=1)
    gram, idle = normals @ normals.T, np.zeros(len(goals), dtype=np.int64)
    cap, best = np.array([1.0 / loss.regularization]), _Best()
    for _ in range(rounds):
        multipliers = np.array(multipliers)
        groups = np.zeros(len(goals), dtype=np.int64)
        solve_groups(gram, goals, groups, cap, 0.1 * epsilon, EXCHANGES, multipliers)
        idle = np.where(multipliers > 0.0, 0, idle + 1)
        weights = multipliers @ normals
        violations = loss.violations(weights)
        best.see(loss, weights, violations, _bound(loss, weights, float(multipliers @ goals)))
        worst = first_of_largest(loss.lists.offsets, violations)
        goal, normal = float(loss.demands[worst].mean()), _mean_difference(loss, worst)
        slack = max(0.0, float((goals - normals @ weights).max(initial=0.0)))
        if goal - float(normal @ weights) <= slack + epsilon:
            best.done = True
            break
        kept = idle < _IDLE
        others = np.vstack([others[kept], worst])
        normals, goals = np.vstack([normals[kept], normal]), np.append(goals[kept], goal)
        gram = np.pad(gram[np.ix_(kept, kept)], (0, 1))
        gram[-1] = gram[:, -1] = normals @ normal
        multipliers, idle = np.append(multipliers[kept], 0.0), np.append(idle[kept], 0)
    return best.fit(None), Planes(others, multipliers)


def _bound(loss: WorstLoss, weights: Floats, gained: float) -> float:
    """The dual objective, of multipliers that lead to ``weights`` and gain so much."""
    return loss.regularization * (gained - 0.5 * float(weights @ weights))


def _visit(
    loss: WorstLoss,
    members: NDArray[np.bool_],
    multipliers: Floats,
    weights: Floats,
    rng: np.random.Generator,
    exchanges: int = _EXCHANGES,
) -> float:
    """Visit every sentence once, in random order; see ``exchange``."""
    order = rng.permutation(loss.lists.n_sentences)
    return float(
        exchange(
            loss.lists.features,
            loss.lists.offsets,
            loss.references,
            loss.demands,
            members,
            order,
            exchanges,
            0.0,
            multipliers,
            weights,
        )
    )


def _mean_difference(loss: WorstLoss, others: NDArray[np.int64]) -> Floats:
    """``1/N sum (h(o) - h(e))`` over sentences, float64 ``[n_columns]``."""
    coefficients = np.zeros(len(loss.demands))
    coefficients[loss.references] += 1.0 / loss.lists.n_sentences
    coefficients[others] -= 1.0 / loss.lists.n_sentences
    return loss.lists.combined(coefficients)


class _Best:
    """The best weights so far, the best bound, and what came when."""

    def __init__(self) -> None:
        self.weights: Floats = np.zeros(0)
        self.objective, self.lower = np.inf, -np.inf
        self.done = False
        self.rounds: list[dict[str, float]] = []

    @property
    def gap(self) -> float:
        """How far the objective may be from the least."""
        return self.objective - self.lower

    def see(self, loss: WorstLoss, weights: Floats, violations: Floats, bound: float) -> None:
        """Weights with their violations, and a bound."""
        objective = loss.objective(weights, violations)
        if objective < self.objective:
            self.weights, self.objective = weights.copy(), objective
        self.lower = max(self.lower, bound)
        self.rounds.append({"objective": objective, "bound": bound})

    def fit(self, tolerance: float | None) -> MarginFit:
        """The end; converged by the gap, or where a cutting plane had nothing to add."""
        done = self.done if tolerance is None else self.gap <= tolerance * self.objective
        return MarginFit(
            self.weights, self.objective, len(self.rounds), done, self.lower, tuple(self.rounds)
        )
