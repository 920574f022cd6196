"""Working sets of the constraints of one sentence, and the quadratic program on them.

The constraints are margins and bounds of relative margin (Eidelman et al. 2013, equation 4); those
of a kind share their slack, so their multipliers share a cap. The dual (equation 5) falls into the
kinds but for the steps that both make: each kind is solved exactly with the other fixed, in turn,
until nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.differences import Difference
from mosesplug.optimizers.online.oro_dual import simplex_multipliers

__all__ = ["BOUND", "MARGIN", "Constraint", "WorkingSets", "most_violated"]

MARGIN, BOUND = 0, 1


@dataclass(frozen=True)
class Constraint:
    """``sign w . along`` should be at least something.

    Attributes:
        kind: ``MARGIN`` or ``BOUND``.
        sign: 1, or -1 for an upper bound.
        along: what the reference has more than the other, in features that may be learnt.
        missing: how far it is from being met at the weights before the sentence.
    """

    kind: int
    sign: float
    along: Difference
    missing: float


@dataclass(frozen=True)
class WorkingSets:
    """Constraints with their multipliers.

    Attributes:
        caps: of the sum of the multipliers of each kind: ``C`` and ``D``.
        constraints: in the order in which they came.
        multipliers: float64 ``[n]``, at least 0.
        gram: float64 ``[n, n]``, products of the steps ``sign along``.
    """

    caps: tuple[float, float]
    constraints: tuple[Constraint, ...] = ()
    multipliers: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    gram: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    def with_constraint(self, new: Constraint) -> WorkingSets:
        """One more constraint, whose multiplier is 0."""
        n = len(self.constraints)
        gram = np.zeros((n + 1, n + 1))
        gram[:n, :n] = self.gram
        products = [new.sign * old.sign * new.along.dot(old.along) for old in self.constraints]
        gram[n, :n] = gram[:n, n] = products
        gram[n, n] = new.along.square
        return replace(
            self,
            constraints=(*self.constraints, new),
            multipliers=np.append(self.multipliers, 0.0),
            gram=gram,
        )

    def solved(self, rounds: int, tolerance: float) -> WorkingSets:
        """The multipliers that maximise ``missing . a - |sum of a sign along|^2 / 2``.

        Args:
            rounds: of both kinds, at most.
            tolerance: a round that changes what is missing by less anywhere is the last.
        """
        kinds = np.array([each.kind for each in self.constraints], dtype=np.int64)
        missing = np.array([each.missing for each in self.constraints])
        multipliers = self.multipliers.copy()
        for _ in range(rounds):
            before = multipliers.copy()
            for kind, cap in enumerate(self.caps):
                own, rest = np.flatnonzero(kinds == kind), np.flatnonzero(kinds != kind)
                if len(own):
                    left = missing[own] - self.gram[np.ix_(own, rest)] @ multipliers[rest]
                    gram = self.gram[np.ix_(own, own)]
                    multipliers[own] = simplex_multipliers(gram, left, cap, multipliers[own])
            if np.abs(self.gram @ (multipliers - before)).max(initial=0.0) <= tolerance:
                break
        return replace(self, multipliers=multipliers)

    def slack(self, kind: int) -> float:
        """How much the constraints of a kind still miss, at most, after their steps."""
        left = np.array([each.missing for each in self.constraints]) - self.gram @ self.multipliers
        own = [place for place, each in enumerate(self.constraints) if each.kind == kind]
        return float(left[own].max(initial=0.0))


def most_violated(
    sets: WorkingSets, leads: NDArray[np.float64], costs: NDArray[np.float64], bound: float
) -> tuple[float, int, int, float]:
    """The constraint that misses most beyond what those of its kind in the sets do.

    Algorithm 1 counts this slack for margins only, and asks for bounds in full. Then it would end
    as soon as a bound that ``D`` does not let be met is the worst, whatever margins miss.

    Args:
        sets: constraints so far.
        leads: float64 ``[n_hyps]``, the reference's model score less each one's, now.
        costs: float64 ``[n_hyps]``, the reference's gain less each one's.
        bound: ``B``.

    Returns:
        How much it misses beyond the slack, its kind, the hypothesis and the sign.
    """
    slacks = sets.slack(MARGIN), sets.slack(BOUND)
    found = []
    for kind, sign, least in ((MARGIN, 1.0, costs), (BOUND, -1.0, -bound), (BOUND, 1.0, -bound)):
        missing = least - sign * leads
        other = int(np.argmax(missing))
        found.append((float(missing[other]) - slacks[kind], kind, other, sign))
    return max(found)
