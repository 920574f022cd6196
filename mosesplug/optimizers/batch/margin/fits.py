"""Where a margin problem's solver ended, with a bound that says how good that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosesplug.optimizers.batch.fits import Fit

__all__ = ["MarginFit"]


@dataclass(frozen=True)
class MarginFit(Fit):
    """Weights of a convex problem, in their features' units.

    ``loss`` is the objective, regulariser included; ``iterations`` are the solver's rounds.

    Attributes:
        bound: no weights have an objective below this: the value of a dual problem.
        rounds: of the solver or of what calls it, for people; each a mapping.
    """

    bound: float
    rounds: tuple[Mapping[str, Any], ...] = field(default=())

    @property
    def gap(self) -> float:
        """The objective is at most this much above the least."""
        return self.loss - self.bound
