"""Settings that large margins and regression share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import SentenceValues, Weights
from mosesplug.optimizers.costs import Costs, UnitOfCosts
from mosesplug.optimizers.lists.scaled import Scaling
from mosesplug.optimizers.problem import Problem
from mosesplug.options import Opt


@dataclass(frozen=True)
class GainOptions:
    """Settings of the gains of hypotheses and of the units of features."""

    cost: Annotated[
        Literal["corpus", "lin-och", "moses", "nakov", "pseudo-corpus"],
        Opt(
            "score of a hypothesis, by corpus or sentence",
            details="lin-och, moses, nakov: smoothed sentence BLEU; other metrics score the "
            "sentence. corpus, pseudo-corpus: the metric of the whole set with this hypothesis in "
            "place of its sentence's greedy oracle (corpus) or 1-best at the starting weights "
            "(pseudo-corpus).",
            source="Neubig & Watanabe 2016, sections 4.2 and 6.1",
        ),
    ] = "lin-och"
    cost_unit: UnitOfCosts = "sentence"
    scaling: Annotated[
        Scaling,
        Opt(
            "scale features by their deviation within a sentence",
            details="Sparse features are scaled by the size of their values.",
            source="mosesplug's: features of MT differ by orders of magnitude",
        ),
    ] = "deviation"

    def sizes(self, problem: Problem) -> SentenceValues:
        """Return the size of each sentence in the unit of costs; see ``Costs.sizes``.

        Raises:
            UsageError: it is unknown.
        """
        costs = Costs(unit=self.cost_unit)
        return costs.sizes(problem.tuning_set, problem.metric, problem.source_lengths)

    def gains(
        self, problem: Problem, initial: Weights, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the gain of each hypothesis, float64 ``[n_hyps]``; larger is better.

        Args:
            problem: hypotheses and metric.
            initial: the starting weights.
            rng: the random generator of the greedy search.

        Raises:
            UsageError: the sizes of sentences are unknown.
        """
        sizes = self.sizes(problem)
        costs, tuning_set = Costs(self.cost, remember="one-best"), problem.tuning_set
        memory = costs.memory(problem.metric)
        if self.cost == "pseudo-corpus":
            memory = costs.update_memory(tuning_set, memory, tuning_set.first_best(initial), sizes)
        return costs.gains(tuning_set, problem.metric, memory, rng, sizes)


@dataclass(frozen=True)
class RegularizedOptions(GainOptions):
    """Settings of problems with a regularizer."""

    regularization: Annotated[
        float,
        Opt(
            "lambda, the factor of half the squared norm of the weights",
            details="The weights are in units of their features; the loss is a mean.",
            source="Neubig & Watanabe 2016, figure 3, line 9; the value is chosen",
            minimum=1e-12,
        ),
    ] = 0.01
