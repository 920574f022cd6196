"""N-best lists as candidates, in this process or in shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Scores, Statistics, Weights
from mosesplug.candidates import Candidates, Objective, Question, SearchSpace, require_local
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.costs import Costs, first_of_largest
from mosesplug.optimizers.line_search.lists import line_space
from mosesplug.optimizers.line_search.shards import sharded_space
from mosesplug.optimizers.lists.shards import ListShards
from mosesplug.tuning_set import TuningSet

__all__ = ["Lists", "Sharded"]


@dataclass(frozen=True)
class Lists(Candidates):
    """The lists of this process.

    Attributes:
        tuning_set: the hypotheses.
        metric: scores their summed statistics.
        shards: the same lists as one shard, for sums over sentences.
    """

    tuning_set: TuningSet
    metric: Metric
    shards: ListShards

    answers: ClassVar[frozenset[Question]] = frozenset(
        {"lists", "lines", "expectations", "updates", "batches"}
    )

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have hypotheses."""
        return int(np.count_nonzero(np.diff(self.tuning_set.offsets)))

    def score(self, weights: Weights) -> float:
        """Return the corpus score of the 1-best hypotheses."""
        return float(self.metric.score(self.first_best(weights)))

    def first_best(self, weights: Weights) -> Statistics:
        """Return the summed statistics of the 1-best hypotheses."""
        rows = self.tuning_set.first_best(weights)
        return np.asarray(self.tuning_set.weighted_stats[rows].sum(axis=0, dtype=np.float64))

    def lines(self, active: FeatureMask, weights: Weights) -> SearchSpace:
        """Arrange the features for line search."""
        return line_space(self.tuning_set, self.metric, active, weights)

    def best_lists(self, weights: Weights, k: int) -> TuningSet:
        """Return all lists."""
        return self.tuning_set

    def choose_sentences(self, oracles: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Return the sentences that have hypotheses."""
        require_local(oracles)
        return np.flatnonzero(np.diff(self.tuning_set.offsets) > 0), ()

    def hopes_and_fears(
        self,
        sentences: NDArray[np.int64],
        weights: Callable[[], Weights],
        k: int,
        beam: int,
        *,
        bold: bool = False,
    ) -> TuningSet:
        """Return the lists of the sentences, in that order."""
        return self.tuning_set.take_sentences(sentences)

    def matches(self) -> NDArray[np.bool_]:
        """Return whether a hypothesis has a match of each n-gram length, bool ``[4]``."""
        return np.asarray(self.tuning_set.stats[:, 0:-1:2].any(axis=0))

    def expansion_point(self, weights: Weights) -> Statistics:
        """Return the statistics of the 1-best hypotheses."""
        return self.first_best(weights)

    def gains(
        self, kind: Any, option: str, rng: np.random.Generator
    ) -> Callable[[Weights], Scores]:
        """Return the gains of all hypotheses; only a pseudo-corpus depends on the weights."""
        costs = Costs(kind, "one-best")
        if kind != "pseudo-corpus":
            same = costs.gains(self.tuning_set, self.metric, {}, rng)
            return lambda weights: same

        def in_corpus(weights: Weights) -> Scores:
            # The corpus of 1-best hypotheses (survey, eq. 56), times the number of sentences.
            memory = costs.update_memory(
                self.tuning_set, costs.memory(self.metric), self.tuning_set.first_best(weights)
            )
            return costs.gains(self.tuning_set, self.metric, memory, rng)

        return in_corpus

    def expected_error(self, gains: Scores | LinearBleu, temperature: float) -> Objective:
        """Return the mean expected error of a sentence minus entropy."""
        if isinstance(gains, LinearBleu):
            gains = self.tuning_set.total_weight * gains.gains(self.tuning_set.stats)
        return objectives.risk(self.shards, -gains, temperature)

    def expected_bleu(self, temperature: float) -> Objective:
        """Return minus BLEU of expected statistics, minus entropy."""
        return objectives.xbleu(self.shards, temperature)

    def oracle_loss(
        self,
        weights: Weights,
        rng: np.random.Generator,
        *,
        gain: Any,
        oracles: str,
        tolerance: float,
        margin: float,
    ) -> Objective:
        """Return minus the mean log-probability of the oracles."""
        require_local(oracles)
        is_oracle, costs = self.choose_oracles(gain, oracles == "single", tolerance, margin, rng)
        return objectives.softmax(self.shards, is_oracle, costs)

    def choose_oracles(
        self, gain: Any, single: bool, tolerance: float, margin: float, rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], Scores | None]:
        """Return which hypotheses are oracles, and the costs of the others.

        The costs are None without a margin.

        A corpus gain is the change in the score of all other sentences' oracles, times the number
        of sentences; the largest gains make the sets that ``corpus_oracles`` finds.
        """
        offsets = self.tuning_set.offsets
        gains = Costs(gain).gains(self.tuning_set, self.metric, {}, rng)
        best = first_of_largest(offsets, gains)
        widths = np.diff(offsets)
        losses = np.repeat(gains[best], widths[widths > 0]) - gains
        if single:
            is_oracle = np.zeros(len(gains), dtype=np.bool_)
            is_oracle[best] = True
        else:
            is_oracle = losses <= tolerance
        return is_oracle, None if margin == 0.0 else np.where(is_oracle, 0.0, margin * losses)


@dataclass(frozen=True)
class Sharded(Lists):
    """Lists whose work other threads, processes or machines share.

    The lists of all shards are in this process, too. Every answer is that of ``Lists``, to the last
    bit: sums are taken block by block, and shards begin where blocks do.
    """

    def lines(self, active: FeatureMask, weights: Weights) -> SearchSpace:
        """Let each shard arrange its features for line search."""
        return sharded_space(self.shards, self.metric, active, weights)
