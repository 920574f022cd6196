"""Settings that large margins and regression have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.costs import Costs
from mosesplug.optimizers.lists.scaled import Scaling
from mosesplug.optimizers.problem import Problem

__all__ = ["GainOptions", "RegularizedOptions"]


@dataclass(frozen=True)
class GainOptions:
    """What hypotheses are worth, and in what units features are."""

    cost: Literal["corpus", "lin-och", "moses", "nakov", "pseudo-corpus"] = field(
        default="lin-och",
        metadata={
            "help": "what a hypothesis is worth: lin-och, moses or nakov (smoothed BLEU of the "
            "sentence; another metric as it is), or the metric of the whole set with this one in "
            "the place of what is there: the greedy oracles (corpus), or the first bests at the "
            "starting weights (pseudo-corpus)",
            "source": "Neubig & Watanabe 2016, sections 4.2 and 6.1",
        },
    )
    scaling: Scaling = field(
        default="deviation",
        metadata={
            "help": "the unit of each feature while weights are looked for: its deviation within "
            "a sentence (of a sparse one, the size of its values), or none",
            "source": "mosesplug's: features of MT differ by orders of magnitude",
        },
    )

    def gains(
        self, problem: Problem, initial: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """What each hypothesis is worth, float64 ``[n_hyps]``, larger being better.

        Args:
            problem: hypotheses and metric.
            initial: float64 ``[n_features]``, the starting weights.
            rng: of the greedy search.
        """
        costs, tuning_set = Costs(self.cost, remember="one-best"), problem.tuning_set
        memory = costs.memory(problem.metric)
        if self.cost == "pseudo-corpus":
            memory = costs.remembered(tuning_set, memory, tuning_set.first_best(initial))
        return costs.gains(tuning_set, problem.metric, memory, rng)


@dataclass(frozen=True)
class RegularizedOptions(GainOptions):
    """Those of problems whose weights are kept small."""

    regularization: float = field(
        default=0.01,
        metadata={
            "help": "lambda: what half the squared norm of the weights, in their features' units, "
            "counts beside the mean loss",
            "source": "Neubig & Watanabe 2016, figure 3, line 9; the value is chosen",
            "minimum": 1e-12,
        },
    )
