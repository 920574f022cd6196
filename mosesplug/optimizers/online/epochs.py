"""Epochs of an online learner: every sentence once, in random mini-batches.

The order of an epoch depends only on the seed and the epoch; the random numbers of a step depend
only on seed, epoch and batch number. An interrupted epoch can therefore be resumed from its last
state and yields the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Statistics
from mosesplug.errors import OptimizerError
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.online.learner import (
    BatchSource,
    Change,
    Learner,
    LearnerState,
    Step,
    grow_state,
)
from mosesplug.tuning_set import Batch, TuningSet


@dataclass(frozen=True)
class Plan:
    """The settings that all epochs of a learner share.

    Attributes:
        seed: the seed of the orders and of the steps' random numbers.
        batch: number of sentences per mini-batch.
        active: weights that may change. Features found later are active.
        uses_stored_lists: whether the n-best lists are those of earlier decodings, which many
            epochs visit.
        source_lengths: words of each source sentence, by sentence id; None: unknown.
    """

    seed: int
    batch: int
    metric: Metric
    active: FeatureMask
    uses_stored_lists: bool = False
    source_lengths: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Tally:
    """Sums over the batches of an epoch.

    Attributes:
        totals: weighted sum of the statistics of the first hypothesis of each
            n-best list, the decoder's 1-best.
        sums: the learner's reports, summed over the batches.
    """

    batches: int
    totals: Statistics
    sums: Mapping[str, float] = field(default_factory=dict)

    def with_batch(self, batch: Batch, report: Mapping[str, float]) -> Tally:
        """Return the tally with one more batch."""
        firsts = batch.offsets[:-1][np.diff(batch.offsets) > 0]
        sums = {name: self.sums.get(name, 0.0) + value for name, value in report.items()}
        return Tally(
            self.batches + 1,
            self.totals + batch.weighted_stats[firsts].sum(axis=0, dtype=np.float64),
            {**self.sums, **sums},
        )

    @property
    def means(self) -> dict[str, float]:
        """Return means of the learner's reports over batches, but sums of ``violations``."""
        divisors = {name: 1 if name == "violations" else self.batches for name in self.sums}
        return {name: value / divisors[name] for name, value in self.sums.items()}


@dataclass(frozen=True)
class BatchProgress:
    """The progress of an epoch after a batch.

    Attributes:
        epoch: the epoch, from 1.
        place: number of the batch in its epoch, from 0; ``of`` is the number of batches.
        sentences: int64; the sentences of the batch.
        state: the state after the update. The next update overwrites it; copy it to keep it.
        tally: the sums over the epoch so far.
    """

    epoch: int
    place: int
    of: int
    sentences: NDArray[np.int64]
    state: LearnerState
    tally: Tally


@dataclass(frozen=True)
class EpochReport:
    """The result of an epoch of one learner, of a shard, or of all shards together.

    Attributes:
        states: the state of the learner after the epoch; for several shards, one state each.
        tally: the sums over the whole epoch.
        features: names of new sparse features in the order of their columns, if a shard decodes.
        counts: int64 ``[n_sparse]``, sentences that have each sparse feature; None: not counted.
        sentences: number of sentences with an n-best list, if a shard decodes.
        hypotheses: number of hypotheses in these lists.
        new_hypotheses: number of hypotheses that no earlier epoch of the shard had.
        seconds: time spent on decoding them.
    """

    states: tuple[LearnerState, ...]
    tally: Tally
    features: tuple[str, ...] = ()
    counts: NDArray[np.int64] | None = None
    sentences: int = 0
    hypotheses: int = 0
    new_hypotheses: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> LearnerState:
        """The state of the only learner."""
        (state,) = self.states
        return state

    @property
    def updates(self) -> int:
        """Number of batches applied to the states in all epochs."""
        return sum(state.updates for state in self.states)


@dataclass(frozen=True)
class StoredSource:
    """A batch source of stored n-best lists."""

    tuning_set: TuningSet

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: indices in the tuning set of the sentences that have hypotheses."""
        return np.flatnonzero(np.diff(self.tuning_set.offsets) > 0)

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """Return the n-best lists of the given sentences, in that order."""
        return self.tuning_set.take_sentences(sentences)


def split_into_batches(
    sentences: NDArray[np.int64], plan: Plan, epoch: int
) -> list[NDArray[np.int64]]:
    """Return the mini-batches of an epoch, in order; the last one may be smaller.

    Args:
        epoch: the epoch, from 1.
    """
    order = np.random.default_rng([plan.seed, epoch]).permutation(sentences)
    return [order[first : first + plan.batch] for first in range(0, len(order), plan.batch)]


def make_step(plan: Plan, epoch: int, place: int, per_epoch: int, n_features: int) -> Step:
    """Create the step of an update over ``n_features`` features."""
    active = plan.active
    if len(active) < n_features:
        active = np.append(active, np.ones(n_features - len(active), dtype=np.bool_))
    return Step(
        number=(epoch - 1) * per_epoch + place + 1,
        epoch=epoch,
        per_epoch=per_epoch,
        metric=plan.metric,
        active=active,
        # From 1: a final 0 would repeat the random numbers of the epoch's order.
        rng=np.random.default_rng([plan.seed, epoch, place + 1]),
        uses_stored_lists=plan.uses_stored_lists,
        source_lengths=plan.source_lengths,
    )


def require_finite(change: Change, epoch: int) -> None:
    """Check a change before it is applied.

    Raises:
        OptimizerError: a value is not finite.
    """
    if not np.isfinite(change.values).all():
        raise OptimizerError(
            f"an update in epoch {epoch} is not a finite number. Choose smaller steps, or look for"
            " enormous feature values in the n-best lists."
        )


def require_finite_weights(weights: NDArray[np.float64], name: str, epoch: int) -> None:
    """Check a learner's weights, float64 ``[n_features]``, after an epoch.

    Raises:
        OptimizerError: a weight is not finite.
    """
    if not np.isfinite(weights).all():
        raise OptimizerError(
            f"the weights of {name} became too large in epoch {epoch}. Start again with a lower "
            "learning rate."
        )


def run_epoch(
    learner: Learner,
    state: LearnerState,
    source: BatchSource,
    plan: Plan,
    epoch: int,
    *,
    first: int = 0,
    so_far: Tally | None = None,
    on_batch: Callable[[BatchProgress], bool | None] = lambda done: None,
) -> EpochReport:
    """Learn from every sentence of a source once.

    Args:
        state: the state before the epoch; it is overwritten.
        plan: seed, batch size, metric and active weights.
        epoch: the epoch, from 1.
        first: the batch to start with, from 0, to resume an epoch.
        so_far: the tally of the batches before ``first``.
        on_batch: called after every batch; the epoch ends if it returns True.

    Raises:
        OptimizerError: the weights are no longer finite numbers.
    """
    batches = split_into_batches(source.sentences, plan, epoch)
    tally = so_far or Tally(0, np.zeros(plan.metric.n_statistics))
    for place in range(first, len(batches)):
        sentences = batches[place]
        # The source calls the lambda before the state changes.
        batch = source.batch(sentences, lambda: learner.weights(state))  # noqa: B023
        state = grow_state(state, len(batch.space), learner.fills)
        step = make_step(plan, epoch, place, len(batches), len(batch.space))
        change = learner.change(state, batch, step)
        require_finite(change, epoch)
        state = learner.apply(state, change, step)
        tally = tally.with_batch(batch, change.report)
        if on_batch(BatchProgress(epoch, place, len(batches), sentences, state, tally)):
            break
    return EpochReport((state,), tally)


def is_usable(weights: NDArray[np.float64]) -> bool:
    """Return whether weights, ``[n_features]``, are finite and not all zero."""
    return bool(np.isfinite(weights).all() and weights.any())
