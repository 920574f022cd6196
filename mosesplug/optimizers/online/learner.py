"""Online learners: a state, and how a mini-batch of hypotheses changes it.

A learner has two parts: ``change`` computes from a batch how the weights should change, and
``apply`` changes them. An ordinary update runs both in turn. With stale weights (Green et al. 2013,
Algorithm 2), several ``change`` calls run in parallel on earlier weights, and one writer applies
the changes in the order of their arrival. The same learner therefore serves the stored, online,
sharded and asynchronous modes.

Learners have no random generator and no hidden state. All memory is in ``LearnerState``, whose
plain arrays can be stored, sent, mixed and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Weights
from mosesplug.errors import OptimizerError
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.bounds import Bounds
from mosesplug.tuning_set import Batch


@dataclass(frozen=True)
class LearnerState:
    """The complete memory of a learner.

    Attributes:
        vectors: float64 ``[n_features]`` each, by name. ``weights`` always exists, but may lack
            regularization that is still due: ``Learner.weights`` returns the complete ones.
        memory: float64 arrays of any shape that do not belong to features, such as the decayed
            statistics of earlier output.
    """

    vectors: Mapping[str, NDArray[np.float64]]
    memory: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    updates: int = 0


@dataclass(frozen=True)
class Step:
    """The position of an update in a run, and its inputs.

    Attributes:
        number: ``k`` of the papers: the number of the batch over all epochs, from 1.
        epoch: the epoch, from 1.
        per_epoch: ``K`` of the papers: number of batches per epoch.
        metric: the metric; it maps summed statistics to a score, and larger is better.
        active: weights that may change.
        rng: the random generator of this step; it depends only on seed, epoch and batch number.
        uses_stored_lists: whether the n-best lists are those of earlier decodings.
        source_lengths: words of each source sentence, by sentence id; None: unknown.
    """

    number: int
    epoch: int
    per_epoch: int
    metric: Metric
    active: FeatureMask
    rng: np.random.Generator
    uses_stored_lists: bool = False
    source_lengths: NDArray[np.int64] | None = None

    def choose(self, *, stored: float, decoding: float) -> float:
        """Return the value of a setting that differs between stored lists and decoding."""
        return stored if self.uses_stored_lists else decoding

    @property
    def ends_epoch(self) -> bool:
        """Whether this is the last update of an epoch, before weights may be mixed."""
        return self.number % self.per_epoch == 0


@dataclass(frozen=True)
class Change:
    """How a batch changes the weights of its features.

    Attributes:
        columns: int64 ``[n]``; the features, ascending and distinct.
        values: float64 ``[n]``; a step to add, or a gradient to descend, depending on the learner.
        more: float64 ``[n]`` by name: further values of those features, such as the decrease of
            AROW's variances.
        memory: the new ``LearnerState.memory``, if the learner has one.
        report: named numbers for the user, including ``loss`` (of the batch, before the update)
            and ``violations`` (number of constraints or pairs that caused an update).
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    more: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    memory: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    report: Mapping[str, float] = field(default_factory=dict)


def _project_changed(
    state: LearnerState, change: Change, step: Step, bounds: Bounds
) -> LearnerState:
    """Move weights that an update changed into bounds; all at the end of an epoch."""
    weights = state.vectors["weights"]
    if step.ends_epoch:
        weights[:] = bounds.project(weights)
    else:
        columns = change.columns
        weights[columns] = bounds.take(columns).project(weights[columns])
    return state


def _no_memory(metric: Metric) -> Mapping[str, NDArray[np.float64]]:
    return {}


@dataclass(frozen=True)
class Learner:
    """An online learner with its options bound: four functions.

    Attributes:
        fills: the value of each of the state's vectors for an unseen feature, by name.
        init: ``(weights float64 [n_features]) -> LearnerState``.
        change: ``(state, batch, step) -> Change``; writes neither the state nor the batch.
        apply: ``(state, change, step) -> LearnerState``. It may overwrite the given state's
            arrays and return them, so that the cost of an update depends on the features of the
            batch, not on all features.
        weights: ``(state) -> float64 [n_features]``: the weights to decode with, a new array, with
            all regularization that is due; the state is only read.
        project: ``(state, change, step, bounds) -> LearnerState``: moves weights of the state into
            bounds after an update; it may overwrite the state.
        initial_memory: ``(metric) -> memory``: what ``change`` takes for memory that the state
            lacks. Stale changes need it: each contains the memory that it began with.
        line_search: whether each epoch ends at the best corpus score on the line through the
            weights before and after it (Watanabe 2012, Algorithm 3), if there are no shards.
        makes_zeros: whether the regularizer makes weights exactly 0 (L1). Means keep these zeros.
        zero_start: whether active weights are 0 before the first update, whatever the state has.
    """

    fills: Mapping[str, float]
    init: Callable[[NDArray[np.float64]], LearnerState]
    change: Callable[[LearnerState, Batch, Step], Change]
    apply: Callable[[LearnerState, Change, Step], LearnerState]
    weights: Callable[[LearnerState], NDArray[np.float64]]
    project: Callable[[LearnerState, Change, Step, Bounds], LearnerState] = _project_changed
    initial_memory: Callable[[Metric], Mapping[str, NDArray[np.float64]]] = _no_memory
    line_search: bool = False
    makes_zeros: bool = False
    zero_start: bool = False

    def weights_before(self, state: LearnerState, active: FeatureMask) -> NDArray[np.float64]:
        """Return the weights that the next update starts from, float64 ``[n_features]``.

        Args:
            active: weights that may change.
        """
        weights = self.weights(state)
        if self.zero_start and state.updates == 0:
            weights[active] = 0.0
        return weights

    def update(self, state: LearnerState, batch: Batch, step: Step) -> LearnerState:
        """Compute a change and apply it; the state may be overwritten."""
        return self.apply(state, self.change(state, batch, step), step)


class BatchSource(Protocol):
    """The source of mini-batches: stored lists, or a decoder."""

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64; the sentence ids of the source, distinct."""

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """Return the n-best lists of the given sentences, in that order.

        Args:
            sentences: int64; a subset of the source's ``sentences``.
            weights: returns the current weights; called only if lists are decoded.

        The feature space of later batches may have a longer sparse tail than that of earlier ones.
        """


def grow_state(state: LearnerState, n_features: int, fills: Mapping[str, float]) -> LearnerState:
    """Extend the state to a feature space whose sparse tail may have grown."""
    have = len(state.vectors["weights"])
    if have == n_features:
        return state
    vectors = {
        name: np.concatenate([vector, np.full(n_features - have, fills[name])])
        for name, vector in state.vectors.items()
    }
    return replace(state, vectors=vectors)


def apply_sum(state: LearnerState, change: Change, step: Step) -> LearnerState:
    """Add a change to the weights.

    Raises:
        OptimizerError: a weight overflows.
    """
    weights = state.vectors["weights"]
    with np.errstate(over="ignore", invalid="ignore"):
        # Checked before it is written: an overflow leaves the state usable.
        moved = weights[change.columns] + change.values
    if not np.isfinite(moved).all():
        raise OptimizerError(
            "the weights overflow. Choose smaller steps or smaller feature values."
        )
    weights[change.columns] = moved
    return replace(state, memory={**state.memory, **change.memory}, updates=state.updates + 1)


def additive_learner(
    change: Callable[[LearnerState, Batch, Step], Change],
    initial_memory: Callable[[Metric], Mapping[str, NDArray[np.float64]]],
) -> Learner:
    """Return a learner whose state is its weights, to which changes are added.

    Args:
        change, initial_memory: see ``Learner``.
    """
    return Learner(
        fills={"weights": 0.0},
        init=lambda weights: LearnerState({"weights": np.array(weights, dtype=np.float64)}),
        change=change,
        apply=apply_sum,
        weights=lambda state: state.vectors["weights"].copy(),
        initial_memory=initial_memory,
    )


def keep_bounds(learner: Learner, bounds: Bounds) -> Learner:
    """Return a learner that projects its weights into bounds after each update.

    Regularization that is due is applied when weights are read, and moves them towards 0. So
    they are projected there, too.
    """

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        return learner.project(learner.apply(state, change, step), change, step, bounds)

    return replace(
        learner,
        init=lambda weights: learner.init(bounds.project(weights)),
        apply=apply,
        weights=lambda state: bounds.project(learner.weights(state)),
    )


AVERAGE = "sum of weights"
"""Name of the state vector that sums the weights of all updates."""

_AVERAGED_FROM = "averaged from"
"""Name of the array in the memory with the number of updates before the first in that sum."""


def add_averaging(learner: Learner) -> Learner:
    """Return a learner that also sums its weights after every update, for averaging.

    (Neubig & Watanabe 2016, section 6.2, averaged perceptron.) The sum is an additional vector of
    the state. It costs a pass over all weights per update, because regularization and scaling
    change all weights.
    """

    def init(weights: NDArray[np.float64]) -> LearnerState:
        state = learner.init(weights)
        return replace(state, vectors={**state.vectors, AVERAGE: np.zeros(len(weights))})

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        total = state.vectors[AVERAGE]
        vectors = {name: vector for name, vector in state.vectors.items() if name != AVERAGE}
        state = learner.apply(replace(state, vectors=vectors), change, step)
        # After the update, with all regularization that is due: the weights that would decode.
        total += learner.weights(state)
        return replace(state, vectors={**state.vectors, AVERAGE: total})

    return replace(learner, fills={**learner.fills, AVERAGE: 0.0}, init=init, apply=apply)


def mean_weights(learner: Learner, state: LearnerState) -> NDArray[np.float64]:
    """Return the weights to decode with.

    They are the mean over updates if the state has their sum, and the current weights otherwise.
    Weights that L1 has made 0 are 0 in the mean, too.
    """
    updates = state.updates - int(state.memory.get(_AVERAGED_FROM, 0))
    if AVERAGE in state.vectors and updates:
        return keep_zeros(learner, state.vectors[AVERAGE] / updates, learner.weights(state))
    return learner.weights(state)


def keep_zeros(
    learner: Learner, mean: NDArray[np.float64], weights: Weights
) -> NDArray[np.float64]:
    """Return a mean of weights without those that L1 has made 0.

    A weight that was ever different from 0 has a mean different from 0, which would undo the
    selection of features.

    Args:
        learner: the learner; its mean is returned unchanged if its regularizer makes no zeros.
        weights: after the last update.
    """
    return np.where(weights != 0.0, mean, 0.0) if learner.makes_zeros else mean


def restart_averaging(state: LearnerState) -> LearnerState:
    """Return the state with a mean over the updates that follow.

    A sum in the state is set to 0 in place.
    """
    if AVERAGE not in state.vectors:
        return state
    state.vectors[AVERAGE][:] = 0.0
    memory = {**state.memory, _AVERAGED_FROM: np.array(state.updates, dtype=np.float64)}
    return replace(state, memory=memory)
