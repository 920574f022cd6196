"""Working sets of the constraints of one sentence, and the quadratic program on them.

The constraints are margins and bounds of relative margin (Eidelman et al. 2013, equation 4); those
of a kind share their slack, so their multipliers share a cap. What a kind leaves of its cap is a
multiplier too, of a constraint without features. Within a kind the sum is then fixed, and the dual
(equation 5) is solved by exchanges between two multipliers, as in Algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.online.differences import Difference

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

    def solved(self, exchanges: int, tolerance: float) -> WorkingSets:
        """The multipliers that maximise ``missing . a - |sum of a sign along|^2 / 2``.

        Args:
            exchanges: of two multipliers, at most.
            tolerance: largest difference of slopes, with what is missing as the unit, at the end.
        """
        kinds = np.array([each.kind for each in self.constraints], dtype=np.int64)
        multipliers = self.multipliers.copy()
        _exchange(
            self.gram, self._missing, kinds, np.array(self.caps), exchanges, tolerance, multipliers
        )
        return replace(self, multipliers=multipliers)

    @property
    def _missing(self) -> NDArray[np.float64]:
        return np.array([each.missing for each in self.constraints], dtype=np.float64)

    def slack(self, kind: int) -> float:
        """How much the constraints of a kind still miss, at most, after their steps."""
        left = self._missing - self.gram @ self.multipliers
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


@kernel
def _exchange(
    gram: NDArray[np.float64],
    missing: NDArray[np.float64],
    kinds: NDArray[np.int64],
    caps: NDArray[np.float64],
    exchanges: int,
    tolerance: float,
    multipliers: NDArray[np.float64],
) -> None:
    """Exchange between the steepest and the least steep multiplier of a kind, until all are alike.

    Args:
        gram, missing, kinds: float64 ``[n, n]``, float64 ``[n]``, int64 ``[n]``.
        caps: float64 ``[2]``.
        exchanges, tolerance: where to end.
        multipliers: in and output, float64 ``[n]``.
    """
    n = len(missing)
    left, slopes = caps.copy(), missing.copy()
    for i in range(n):
        left[kinds[i]] -= multipliers[i]
        for j in range(n):
            slopes[i] -= gram[i, j] * multipliers[j]
    for _ in range(exchanges):
        taker, giver, widest = -1, -1, tolerance
        for kind in range(2):
            # Number -1 is what is left of the cap, whose slope is 0.
            top, bottom, high = -1, -1, 0.0
            low = 0.0 if left[kind] > 0.0 else np.inf
            for i in range(n):
                if kinds[i] == kind and slopes[i] > high:
                    top, high = i, slopes[i]
                if kinds[i] == kind and multipliers[i] > 0.0 and slopes[i] < low:
                    bottom, low = i, slopes[i]
            if high - low > widest:
                taker, giver, widest = top, bottom, high - low
        if taker == giver:
            return
        curvature = 0.0
        if taker >= 0:
            curvature += gram[taker, taker]
        if giver >= 0:
            curvature += gram[giver, giver]
        if taker >= 0 and giver >= 0:
            curvature -= 2.0 * gram[taker, giver]
        kind = kinds[max(taker, giver)]
        size = left[kind] if giver < 0 else multipliers[giver]
        if curvature > 0.0:
            size = min(size, widest / curvature)
        if taker >= 0:
            multipliers[taker] += size
        else:
            left[kind] += size
        if giver >= 0:
            multipliers[giver] -= size
        else:
            left[kind] -= size
        for i in range(n):
            if taker >= 0:
                slopes[i] -= size * gram[i, taker]
            if giver >= 0:
                slopes[i] += size * gram[i, giver]
