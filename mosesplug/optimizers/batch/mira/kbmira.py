"""k-best MIRA (Cherry & Foster 2012, section 3): learn from hope and fear.

In each sentence the *hope* is the maximum of model score plus metric, the *fear* that of model
score minus metric. The weights take the smallest step, at most ``C``, that ranks hope above fear by
a margin as large as their difference in gain. The weights are averaged over all updates; the
result is the average with the best score of those after each epoch.

The gain of a hypothesis is the metric's score of its statistics added to a *background* of earlier
choices, which decays, times the reference length of both (Chiang et al. 2008). For BLEU this is
what Moses' ``kbmira`` computes, to the last bit. Any other metric scores the same sums. They are
multiplied by its statistic ``reference_length`` if it has one, otherwise by the mean length of the
sentence's hypotheses and of those in the background: a metric may have no length, and a factor that
is the same for all hypotheses of a sentence favors none. For scores from outside, that factor is
the number of sentences, so that a mean of scores gives the scores themselves as gain.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.metrics.protocol import Metric, needs_texts
from mosesplug.metrics.sentence_bleu import single_bleu
from mosesplug.optimizers.batch.mira.choice import first_best
from mosesplug.optimizers.batch.mira.step import (
    MiraDecisions,
    MiraSettings,
    MiraState,
    average_weights,
    visit_sentences,
)
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.lists.single_precision import MiraLists, mira_lists
from mosesplug.optimizers.options import option
from mosesplug.optimizers.problem import Problem, activate_sparse, check_weights

__all__ = [
    "KbmiraOptions",
    "ListMiraLearner",
    "MiraProgress",
    "make_settings",
    "score_single",
    "single_weights",
    "start_state",
]

LARGEST = 1e15
"""Largest starting weight: beyond it, squares of model scores overflow in single precision."""


@dataclass(frozen=True)
class KbmiraOptions:
    """Settings of k-best MIRA, with the defaults of Moses' ``kbmira``."""

    epochs: int = option(
        60,
        help="number of passes over the sentences",
        source="kbmira --iters",
        minimum=1,
    )
    step_cap: float = option(
        0.01,
        help="largest step of an update, C; smaller values regularize more",
        source="kbmira --cparam; Cherry & Foster 2012",
        minimum=0.0,
    )
    decay: float = option(
        0.999,
        help="fraction of the background kept at each sentence",
        source="kbmira --decay; Chiang et al. 2008",
        minimum=0.0,
    )
    background: Literal["hope", "model"] = option(
        "hope",
        help="hypothesis that joins the background: the hope, or the 1-best",
        source="kbmira --model-bg",
    )
    safe_hope: bool = option(
        False,
        help="limit the model score in the hope to five times the metric",
        source="kbmira --safe-hope",
    )
    shuffle: bool = option(
        True,
        help="visit the sentences in random order each epoch",
        source="kbmira --no-shuffle",
    )
    graph_beam: int = option(
        1,
        help="partial derivations of a node in searches of graphs",
        details="1 searches as Moses' kbmira does. A wider beam finds better hopes and fears, and "
        "takes longer.",
        source="1 in kbmira --type hypergraph",
        minimum=1,
    )


@dataclass(frozen=True)
class MiraProgress:
    """The state of a learner between epochs.

    Attributes:
        state: weights, totals and background.
        background_length: hypothesis length of the background, for metrics without a reference
            length.
    """

    state: MiraState
    background_length: float = 1.0


class ListMiraLearner:
    """Weights that learn from one tuning set.

    Attributes:
        lists: the distinct hypotheses.
        rows: int64 ``[n_hyps]``; the row of the tuning set that each hypothesis comes from.
        settings: the settings of the algorithm.
        state: weights, totals and background; changes with each visit.
        n_shards: 1.
    """

    lists: MiraLists
    rows: NDArray[np.int64]
    settings: MiraSettings
    state: MiraState
    n_shards: int = 1

    def __init__(
        self, problem: Problem, initial: NDArray[np.float64], options: KbmiraOptions
    ) -> None:
        """Start from the initial weights, float64 ``[n_features]``.

        Raises:
            OptimizerError: the problem cannot be tuned (see ``check_weights``), or weights are too
                large for single precision.
        """
        problem = activate_sparse(problem)
        weights = single_weights(problem, check_weights(problem, initial))
        self._metric = problem.metric
        self.lists, self.rows = mira_lists(problem.tuning_set)
        self.settings = make_settings(options, problem.active_mask, problem.bounds)
        self.state = start_state(weights, self._metric.n_statistics)
        lengths = problem.tuning_set.lengths[self.rows]
        if not needs_texts(self._metric):  # a mean of scores from outside: each counts alike
            lengths = np.ones_like(lengths)
        self._gains = _Gains(self._metric, self.lists, lengths)

    def resume(self, progress: MiraProgress) -> ListMiraLearner:
        """Return a learner on the same lists that continues from a copy of ``progress``."""
        learner = copy.copy(self)
        learner.state = copy.deepcopy(progress.state)
        learner._gains = copy.copy(self._gains)
        learner._gains.background_length = progress.background_length
        return learner

    @property
    def progress(self) -> MiraProgress:
        """The state after the last visit; ``resume`` continues from it."""
        return MiraProgress(self.state, self._gains.background_length)

    @property
    def updates(self) -> int:
        """Number of updates since the start."""
        return int(self.state.updates[0])

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a hypothesis."""
        return len(self.lists.offsets) - 1

    def visit(self, order: NDArray[np.int64]) -> MiraDecisions:
        """Learn from the given sentences, int64 ``[n]``, one after the other."""
        decisions = _decisions(len(order))
        if self._metric.has_bleu_statistics:
            visit_sentences(self.lists, self.settings, self.state, order, decisions)
            return decisions
        for visit, sentence in enumerate(order.tolist()):
            gains = self._gains.of(sentence, self.state.background)
            one = slice(visit, visit + 1)
            visit_sentences(
                self.lists,
                self.settings,
                self.state,
                order[one],
                MiraDecisions._make(column[one] for column in decisions),
                gains,
            )
            if decisions.occasion[visit]:
                self._gains.join(sentence, float(self.settings.decay))
        return decisions

    def average(self) -> NDArray[np.float32]:
        """Return the averaged weights, float32 ``[n_features]``, in Moses' scale.

        This is the sum of the initial weights and those after each of ``n`` updates, divided by
        ``n``: ``(n + 1) / n`` times their average, which ranks alike.
        """
        return average_weights(self.state)

    def score(self, weights: NDArray[np.float32]) -> float:
        """Return the metric of the 1-best at ``weights``, float32 ``[n_features]``."""
        return score_single(self._metric, self.statistics(weights))

    def statistics(self, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return summed statistics of the 1-best at ``weights``, float64 ``[n_stats]``."""
        best = first_best(self.lists, weights)
        totals = self.lists.rows[self.lists.row_of[best]].sum(axis=0, dtype=np.float64)
        return np.asarray(totals)


def make_settings(
    options: KbmiraOptions, active: NDArray[np.bool_], bounds: Bounds | None
) -> MiraSettings:
    """Return settings of updates to ``active`` weights, bool ``[n_features]``."""
    low, high = (bounds or Bounds.none(len(active))).box
    return MiraSettings(
        np.float32(options.step_cap),
        np.float32(options.decay),
        options.background == "model",
        options.safe_hope,
        np.array(active, dtype=np.bool_),
        low.astype(np.float32),
        high.astype(np.float32),
    )


def start_state(weights: NDArray[np.float32], n_statistics: int) -> MiraState:
    """Return the state before the first update, with float32 ``[n_features]`` weights."""
    return MiraState(
        weights,
        weights.copy(),
        np.zeros(len(weights), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.ones(n_statistics, dtype=np.float32),
    )


def score_single(metric: Metric, totals: NDArray[np.float64]) -> float:
    """Return the metric of summed statistics, ``[n_stats]``.

    BLEU is computed in single precision, as in Moses.
    """
    if metric.has_bleu_statistics:
        return float(single_bleu(totals.astype(np.float32)))
    return float(metric.score(totals))


class _Gains:
    """Gains of hypotheses by a metric without a kernel; see the module."""

    def __init__(self, metric: Metric, lists: MiraLists, lengths: NDArray[np.int32]) -> None:
        self._metric = metric
        self._lists = lists
        names = metric.statistics_names
        self._length_column = (
            names.index("reference_length") if "reference_length" in names else None
        )
        means = np.add.reduceat(lengths, lists.offsets[:-1]) / np.diff(lists.offsets)
        self._lengths = np.maximum(1.0, means)
        self.background_length = 1.0

    def of(self, sentence: int, background: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the gain of each statistics row of the sentence, float32."""
        start, end = self._lists.row_offsets[sentence : sentence + 2]
        totals = self._lists.rows[start:end].astype(np.float64) + background
        if self._length_column is None:
            length = self._lengths[sentence] + self.background_length
        else:
            length = totals[:, self._length_column]
        return np.asarray(self._metric.score(totals) * length, dtype=np.float32)

    def join(self, sentence: int, decay: float) -> None:
        self.background_length = decay * self.background_length + self._lengths[sentence]


def single_weights(problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the weights in single precision, float32 ``[n_features]``.

    Raises:
        OptimizerError: they are too large for it.
    """
    if np.abs(weights).max() > LARGEST:
        column = int(np.argmax(np.abs(weights)))
        raise OptimizerError(
            f"the starting weight of {problem.tuning_set.space.names[column]} is "
            f"{weights[column]:g}, too large for single precision; scale the weights down"
        )
    return weights.astype(np.float32)


def _decisions(n: int) -> MiraDecisions:
    return MiraDecisions(
        hope=np.zeros(n, dtype=np.int64),
        fear=np.zeros(n, dtype=np.int64),
        hope_gain=np.zeros(n, dtype=np.float32),
        fear_gain=np.zeros(n, dtype=np.float32),
        loss=np.zeros(n, dtype=np.float32),
        occasion=np.zeros(n, dtype=np.bool_),
    )
