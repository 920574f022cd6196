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

A sentence of weight ``c`` may take a step of ``c C``, which is how far ``c`` updates by the same
hope and fear move the weights, and joins the background ``c`` times.

An update depends on all earlier ones, so an epoch cannot be computed in parallel with the same
result. With shards (iterative parameter mixing, McDonald et al. 2010, Fig. 3), each shard visits
its own sentences, from the same weights and with a background of its own, and after each epoch all
shards continue with the mean of their weights. One shard learns as without shards, to the last bit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import SentenceValues, Weights
from mosesplug.candidates import Candidates
from mosesplug.errors import OptimizerError
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.batch.mira.hypotheses import (
    GraphHypotheses,
    ListHypotheses,
    MiraHypotheses,
    Order,
    SingleWeights,
    score_totals,
)
from mosesplug.optimizers.batch.mira.state import (
    MiraDecisions,
    MiraSettings,
    MiraState,
    average_weights,
)
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.lists.shards import ListShard, ListShards
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.spread import report_spreads
from mosesplug.options import Opt

LARGEST = 1e15
"""Largest starting weight: beyond it, squares of model scores overflow in single precision."""


@dataclass(frozen=True)
class KbmiraOptions:
    """Settings of k-best MIRA, with the defaults of Moses' ``kbmira``."""

    epochs: Annotated[
        int, Opt("number of passes over the sentences", source="kbmira --iters", minimum=1)
    ] = 60
    step_cap: Annotated[
        float,
        Opt(
            "largest step of an update, C; smaller values regularize more",
            source="kbmira --cparam; Cherry & Foster 2012",
            minimum=0.0,
        ),
    ] = 0.01
    decay: Annotated[
        float,
        Opt(
            "fraction of the background kept at each sentence",
            source="kbmira --decay; Chiang et al. 2008",
            minimum=0.0,
        ),
    ] = 0.999
    background: Annotated[
        Literal["hope", "model"],
        Opt(
            "hypothesis that joins the background: the hope, or the 1-best",
            source="kbmira --model-bg",
        ),
    ] = "hope"
    safe_hope: Annotated[
        bool,
        Opt(
            "limit the model score in the hope to five times the metric",
            source="kbmira --safe-hope",
        ),
    ] = False
    shuffle: Annotated[
        bool, Opt("visit the sentences in random order each epoch", source="kbmira --no-shuffle")
    ] = True
    graph_beam: Annotated[
        int,
        Opt(
            "partial derivations of a node in searches of graphs",
            details="1 searches as Moses' kbmira does. A wider beam finds better hopes and fears, "
            "and takes longer.",
            source="1 in kbmira --type hypergraph",
            minimum=1,
        ),
    ] = 1


class MiraLearner:
    """Weights that learn from hypotheses, in lists or in search graphs.

    Attributes:
        hypotheses: finds hope, fear and 1-best.
        settings: the settings of the algorithm.
        state: weights, totals and background; changes with each visit.
        n_shards: number of shards that learn at once.
    """

    n_shards = 1

    def __init__(
        self, hypotheses: MiraHypotheses, settings: MiraSettings, state: MiraState
    ) -> None:
        self.hypotheses, self.settings, self.state = hypotheses, settings, state

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a hypothesis."""
        return self.hypotheses.n_sentences

    @property
    def updates(self) -> int:
        """Number of updates since the start."""
        return int(self.state.updates[0])

    def visit(self, order: Order) -> MiraDecisions:
        """Learn from the given sentences, one after the other."""
        return self.hypotheses.visit(order, self.settings, self.state)

    def average(self) -> SingleWeights:
        """Return the averaged weights in Moses' scale; see ``average_weights``."""
        return average_weights(self.state)

    def score(self, weights: SingleWeights) -> float:
        """Return the metric of the 1-best at ``weights``."""
        return self.hypotheses.score(weights)


class VisitFigures(NamedTuple):
    """Losses and spreads of visited sentences, those of each shard in its order.

    They are those of ``MiraDecisions``.
    """

    loss: NDArray[np.float32]
    spread: NDArray[np.float32]


class ShardedMiraLearner:
    """The mean of learners of shards of lists; has the methods of ``MiraLearner``.

    The lists of this process are one shard, which learns as ``MiraLearner`` does, to the last bit.

    The averaged weights are the mean of the initial weights and those after each update, of all
    shards.
    """

    def __init__(
        self, shards: ListShards, metric: Metric, settings: MiraSettings, state: MiraState
    ) -> None:
        self.settings, self._metric = settings, metric
        self._prepared = shards.prepare(_prepare_shard, {"metric": metric})
        before = np.append(0, np.cumsum(np.diff(shards.offsets) > 0))
        self._firsts = before[shards.bounds]
        self.n_sentences, self.n_shards = int(before[-1]), len(shards.bounds) - 1
        self._states = [state] * self.n_shards

    @property
    def updates(self) -> int:
        """Number of updates of all shards since the start."""
        return sum(int(state.updates[0]) for state in self._states)

    def visit(self, order: Order) -> VisitFigures:
        """Let each shard learn from its sentences in order, then mix the weights."""
        ends = zip(self._firsts[:-1].tolist(), self._firsts[1:].tolist(), strict=True)
        orders = [order[(order >= first) & (order < last)] - first for first, last in ends]
        visits = self._prepared.map(_visit_shard, orders, repeat(self.settings), self._states)
        self._states = [state for state, _ in visits]
        if self.n_shards > 1:
            weights = [state.weights for state in self._states]
            mean = np.mean(weights, axis=0, dtype=np.float64).astype(np.float32)
            mean = np.clip(mean, self.settings.low, self.settings.high)  # rounding
            mean = np.where(self.settings.active, mean, weights[0])
            self._states = [state._replace(weights=mean) for state in self._states]
        columns = zip(*(figures for _, figures in visits), strict=True)
        return VisitFigures(*map(np.concatenate, columns))

    def average(self) -> SingleWeights:
        """Return the averaged weights in Moses' scale; see ``average_weights``."""
        if self.updates == 0:
            return self._states[0].weights.copy()
        totals = self._states[0].totals
        for state in self._states[1:]:
            totals = totals + state.totals
        return np.asarray(totals / np.float32(self.updates))

    def score(self, weights: SingleWeights) -> float:
        """Return the metric of the 1-best at ``weights``."""
        totals, *others = self._prepared.map(ListHypotheses.statistics, repeat(weights))
        for shard_totals in others:
            totals = totals + shard_totals
        return score_totals(self._metric, totals)


def _prepare_shard(shard: ListShard, metric: Metric) -> ListHypotheses:
    return ListHypotheses(shard.lists, metric)


def _visit_shard(
    hypotheses: ListHypotheses, order: Order, settings: MiraSettings, state: MiraState
) -> tuple[MiraState, VisitFigures]:
    """Return the state after an epoch, and the losses and spreads."""
    state = copy.deepcopy(state)
    decisions = hypotheses.visit(order, settings, state)
    average_weights(state)  # every total catches up, before the weights are mixed
    return state, VisitFigures(decisions.loss, decisions.spread)


def list_learner(problem: Problem, initial: Weights, options: KbmiraOptions) -> MiraLearner:
    """Return a learner from lists; ``epochs`` and ``shuffle`` are not used.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights``), or weights are too
            large for single precision.
    """
    problem = activate_sparse(problem)
    weights = _single_weights(problem, check_weights(problem, initial))
    return MiraLearner(
        ListHypotheses(problem.tuning_set, problem.metric),
        make_settings(options, problem.active_mask, problem.bounds),
        start_state(weights, problem.metric.n_statistics),
    )


def search_learner(
    search: Candidates, n_dense: int, initial: Weights, options: KbmiraOptions
) -> MiraLearner:
    """Return a learner of all weights from search graphs; see ``list_learner``."""
    settings = make_settings(options, np.ones(len(initial), dtype=np.bool_), None)
    state = start_state(initial.astype(np.float32), len(Bleu.statistics_names))
    return MiraLearner(GraphHypotheses(search, n_dense), settings, state)


def make_settings(
    options: KbmiraOptions, active: NDArray[np.bool_], bounds: Bounds | None
) -> MiraSettings:
    """Return settings of updates to ``active`` weights."""
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


def start_state(weights: SingleWeights, n_statistics: int) -> MiraState:
    """Return the state before the first update."""
    return MiraState(
        weights,
        weights.copy(),
        np.zeros(len(weights), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.ones(n_statistics, dtype=np.float32),
        np.ones(1),
    )


def _single_weights(problem: Problem, weights: Weights) -> SingleWeights:
    if np.abs(weights).max() > LARGEST:
        column = int(np.argmax(np.abs(weights)))
        raise OptimizerError(
            f"the starting weight of {problem.tuning_set.space.names[column]} is "
            f"{weights[column]:g}, too large for single precision; scale the weights down"
        )
    return weights.astype(np.float32)


class MiraEpoch(NamedTuple):
    """Summary of one epoch.

    Attributes:
        updates: sentences with a margin that was too small.
        sentences: sentences visited.
        loss: sum of the missed margins divided by the number of sentences.
        score: the metric of the 1-best hypotheses at ``weights``.
        weights: averaged over all updates so far, in Moses' scale (see ``average_weights``).
        total_updates: updates since the start.
        n_shards: number of shards, each of which started from the initial weights.
        spreads: float64 ``[sentences]``, those of ``MiraDecisions``.
    """

    updates: int
    sentences: int
    loss: float
    score: float
    weights: SingleWeights
    total_updates: int
    n_shards: int
    spreads: SentenceValues

    @property
    def average(self) -> Weights:
        """The average of the initial weights and those after each update so far."""
        n = self.total_updates
        return np.asarray(self.weights.astype(np.float64) * (n / (n + self.n_shards) if n else 1.0))


def run_epochs(
    learner: MiraLearner | ShardedMiraLearner,
    order_sentences: Callable[[], Order],
    epochs: int,
    visit: Callable[[Order], MiraDecisions | VisitFigures] | None = None,
) -> Iterator[MiraEpoch]:
    """Visit all sentences ``epochs`` times.

    Args:
        learner: learns.
        order_sentences: returns the order of the sentences in the next epoch.
        epochs: number of epochs.
        visit: ``learner.visit``, or a function that calls it.

    Raises:
        OptimizerError: the weights overflow.
    """
    for _ in range(epochs):
        figures = (visit or learner.visit)(order_sentences())
        weights = learner.average()
        if not np.isfinite(weights).all():
            raise OptimizerError(
                "the weights overflow; use a smaller step_cap (-C of the program kbmira), or start"
                " from smaller weights"
            )
        missed = np.maximum(figures.loss, 0.0)
        yield MiraEpoch(
            updates=int(np.count_nonzero(missed)),
            sentences=len(missed),
            # A running sum in single precision, as in Moses.
            loss=float(np.cumsum(missed, dtype=np.float32)[-1]) / len(missed),
            score=learner.score(weights),
            weights=weights,
            total_updates=learner.updates,
            n_shards=learner.n_shards,
            spreads=figures.spread.astype(np.float64),
        )


def kbmira(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: KbmiraOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights, sparse ones too, by k-best MIRA.

    See ``problem`` for the arguments; its box and further starts are not used. Each shard learns on
    one thread. The result is the averaged weights of the epoch with the best score, the first in a
    tie.

    Raises:
        OptimizerError: search graphs with a metric other than BLEU, or the weights overflow or
            become all zero.
    """
    learner = _make_learner(problem, initial, options)
    numbers = np.arange(learner.n_sentences)

    def order_sentences() -> Order:
        return rng.permutation(numbers) if options.shuffle else numbers

    best: MiraEpoch | None = None
    history: list[Mapping[str, object]] = []
    for epoch in run_epochs(learner, order_sentences, options.epochs):
        figures = {"updates": epoch.updates, "loss": epoch.loss, "score": epoch.score}
        history.append(figures | report_spreads(epoch.spreads))
        progress(len(history), options.epochs, "epochs")
        if best is None or epoch.score > best.score:
            best = epoch
    if best is None:
        raise OptimizerError("epochs must be at least 1")
    active = learner.settings.active
    initial[active] = best.average[active]
    if not initial.any():
        raise OptimizerError("the weights became all zero; start from other weights")
    return score_solution(problem, initial, tuple(history))


def _make_learner(
    problem: Problem, initial: Weights, options: KbmiraOptions
) -> MiraLearner | ShardedMiraLearner:
    """Return the learner of a problem and weights that were checked."""
    metric, candidates = problem.metric, problem.candidates
    settings = make_settings(options, problem.active_mask, problem.bounds)
    state = start_state(_single_weights(problem, initial), metric.n_statistics)
    if "lists" not in candidates.answers:
        if not metric.has_bleu_statistics:
            raise OptimizerError(
                f"hope and fear are searched for by BLEU only, not by {metric.name}: learn from"
                " lists"
            )
        if options.graph_beam > 1:
            candidates = candidates.widen(options.graph_beam)
        n_dense = problem.tuning_set.space.n_dense
        return MiraLearner(GraphHypotheses(candidates, n_dense), settings, state)
    return ShardedMiraLearner(candidates.shards, metric, settings, state)


ALGORITHMS = (
    Algorithm(
        name="kbmira",
        summary="Learn a margin between hope and fear (batch MIRA).",
        source="Cherry & Foster 2012",
        family="Moses",
        options=KbmiraOptions,
        optimize=kbmira,
        asks=frozenset({"updates"}),
        order_matters=True,
        keeps_bounds=True,
        weighs_sentences=True,
    ),
)
