"""Cutting planes for the worst violations of sentences: few constraints at a time.

- ``solve_n_slack`` (Tsochantaridis et al. 2005, Algorithm 1): in each round the hypothesis that
  violates its margin most, by more than the sentence's slack and epsilon, joins the sentence's
  working set, and the problem of the working sets is solved again, by exchanges.
- ``solve_one_slack`` (Joachims et al. 2009, Algorithm 3): the worst hypotheses of all sentences
  together make one constraint, on one slack. Few constraints are enough, whatever the number of
  sentences; their quadratic program is that of ``optimizers.solvers.qp``.

The loss is in ``worst``. In each round the dual objective is a bound from below, which never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats
from mosesplug.optimizers.batch.margin.worst import BestWeights, WorstLoss, dual_bound, visit_all
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.solvers.qp import EXCHANGES, solve_groups
from mosesplug.optimizers.solvers.quasi_newton import Minimum

_IDLE = 50
"""Rounds without a multiplier after which a constraint of one slack is dropped (Joachims et al.
2009, section 4)."""


def solve_n_slack(
    loss: WorstLoss,
    rng: np.random.Generator,
    *,
    epsilon: float,
    rounds: int,
    sweeps: int,
    multipliers: Floats | None = None,
) -> tuple[Minimum, Floats]:
    """Solve with a growing working set for each sentence.

    Args:
        loss: to be minimized.
        rng: the random generator of the order of visits.
        epsilon: violations beyond the slack that are ignored.
        rounds: maximum number of rounds.
        sweeps: maximum sweeps over the working sets in a round.
        multipliers: initial ones, as for ``solve_dual``.

    Returns:
        The fit, and its multipliers.
    """
    multipliers = loss.start() if multipliers is None else multipliers.copy()
    weights = loss.weights(multipliers)
    members = multipliers > 0.0
    starts = loss.lists.offsets[:-1]
    best, spread = BestWeights(), np.inf
    for _ in range(rounds):
        violations = loss.violations(weights)
        best.record(loss, weights, violations, loss.bound(weights, multipliers))
        worst = first_of_largest(loss.lists.offsets, violations)
        slack = np.maximum.reduceat(np.where(members, violations, -np.inf), starts)
        joining = worst[violations[worst] > slack + epsilon]
        if not len(joining) and spread <= epsilon:
            best.done = True
            break
        members[joining] = True
        some = np.flatnonzero(members)
        for _ in range(sweeps):
            spread = visit_all(loss, some, multipliers, weights, rng)
            if spread <= 0.5 * epsilon:
                break
        weights = loss.weights(multipliers)
    return best.fit(None), multipliers


@dataclass(frozen=True)
class Planes:
    """The constraints of one slack.

    Attributes:
        others: int64 ``[n, n_sentences]``, rows of the hypotheses of each constraint.
        multipliers: float64 ``[n]``.
    """

    others: NDArray[np.int64]
    multipliers: Floats


def solve_one_slack(
    loss: WorstLoss, *, epsilon: float, rounds: int, planes: Planes | None = None
) -> tuple[Minimum, Planes]:
    """Solve with constraints on the sum of all sentences' losses.

    Args:
        loss: to be minimized.
        epsilon: violation of the mean slack that is ignored.
        rounds: maximum number of rounds.
        planes: initial constraints.

    Returns:
        The fit, and its constraints.
    """
    if planes is None:
        none = np.zeros((0, loss.lists.n_sentences), dtype=np.int64)
        planes = Planes(none, np.zeros(0))
    others, multipliers = planes.others, planes.multipliers
    goals = np.array([loss.lists.mean(demands) for demands in loss.demands[others]])
    size = len(loss.lists.columns)
    normals, gram = _Normals(size), np.zeros((0, 0))
    for rows in others:
        gram = normals.append(loss.mean_difference(rows), gram)
    idle = np.zeros(len(goals), dtype=np.int64)
    cap, best = np.array([1.0 / loss.regularization]), BestWeights()
    for _ in range(rounds):
        multipliers = np.array(multipliers)
        groups = np.zeros(len(goals), dtype=np.int64)
        solve_groups(gram, goals, groups, cap, 0.1 * epsilon, EXCHANGES, multipliers)
        idle = np.where(multipliers > 0.0, 0, idle + 1)
        weights = normals.combine(multipliers)
        violations = loss.violations(weights)
        best.record(
            loss, weights, violations, dual_bound(loss, weights, float(multipliers @ goals))
        )
        worst = first_of_largest(loss.lists.offsets, violations)
        goal, normal = loss.lists.mean(loss.demands[worst]), loss.mean_difference(worst)
        slack = max(0.0, float((goals - normals.products(weights)).max(initial=0.0)))
        if goal - float(normal @ weights) <= slack + epsilon:
            best.done = True
            break
        kept = idle < _IDLE
        others = np.vstack([others[kept], worst])
        normals, goals = normals.select(kept), np.append(goals[kept], goal)
        gram = normals.append(normal, gram[np.ix_(kept, kept)])
        multipliers, idle = np.append(multipliers[kept], 0.0), np.append(idle[kept], 0)
    return best.fit(None), Planes(others, multipliers)


class _Normals:
    """Normal vectors of planes without zeros: sparse features are mostly 0."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._places: list[NDArray[np.int64]] = []
        self._values: list[Floats] = []

    def append(self, normal: Floats, gram: Floats) -> Floats:
        """Append one, float64 ``[size]``, and return the Gram matrix with it."""
        places = np.flatnonzero(normal)
        self._places.append(places)
        self._values.append(normal[places])
        gram = np.pad(gram, (0, 1))
        gram[-1] = gram[:, -1] = self.products(normal)
        return gram

    def products(self, vector: Floats) -> Floats:
        pairs = zip(self._places, self._values, strict=True)
        return np.array([float(values @ vector[places]) for places, values in pairs])

    def combine(self, multipliers: Floats) -> Floats:
        """Return the sum, each normal times its multiplier: float64 ``[size]``."""
        total = np.zeros(self._size)
        for places, values, share in zip(self._places, self._values, multipliers, strict=True):
            if share != 0.0:
                total[places] += share * values
        return total

    def select(self, which: NDArray[np.bool_]) -> _Normals:
        """Return those of the mask, bool ``[n]``."""
        some = _Normals(self._size)
        some._places = [own for own, keep in zip(self._places, which, strict=True) if keep]
        some._values = [own for own, keep in zip(self._values, which, strict=True) if keep]
        return some
