"""Asynchronous learning: many look at batches with weights of some time ago, one applies.

Green et al. (2013), Algorithm 2: workers compute changes on mini-batches, each on the weights that
were there when it began; a writer applies what comes, in the order in which it comes, and nobody
waits for a batch that takes long. In the fixed order the writer waits for the oldest batch: the
change of batch ``b`` is then always that on the state after batch ``b - workers``, whatever the
timing, and with one worker this is ordinary learning.

Workers see copies of the state that nobody writes; a copy is made where the state was written
since the last one, so about once a batch. A change is the features that a batch touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.epochs import (
    BatchDone,
    EpochResult,
    Plan,
    Tally,
    averaged,
    batches_of,
    step_of,
)
from mosesplug.optimizers.online.learner import Change, State, grown
from mosesplug.tuning.sharding import AsyncOrder, Recipe, Shard, copied, joined

__all__ = ["asynchronous_epoch"]


@dataclass(frozen=True)
class _Seen:
    """What a worker found in a batch.

    Attributes:
        change: on the state it was given.
        tally: of this batch alone.
        n_features: of the batch's space.
    """

    change: Change
    tally: Tally
    n_features: int


@dataclass(frozen=True)
class _Sent:
    """A batch that is with a worker.

    Attributes:
        sentences: int64; those of the batch.
        state: what the worker sees.
        future: what it will have found.
    """

    sentences: NDArray[np.int64]
    state: State
    future: Future[_Seen]


def asynchronous_epoch(
    executor: Executor,
    recipe: Recipe,
    state: State,
    shard: Shard,
    plan: Plan,
    epoch: int,
    *,
    workers: int,
    order: AsyncOrder,
    averaging: bool = False,
    on_batch: Callable[[BatchDone], None] = lambda done: None,
) -> EpochResult:
    """One epoch with stale changes (Green et al. 2013, Algorithm 2).

    A change is applied as the step that it is in the order of application, so that learning rates
    fall, and an epoch ends, as they would in serial.

    Args:
        executor: where the workers are.
        recipe: the learner.
        state: where the epoch begins; it is spent. Workers are sent copies of it, through memory
            to threads, and by message to others: 24 MB for AdaGrad on 1,000,000 features.
        shard: all sentences of the epoch; opened for every batch, in the worker.
        plan: seed, batches, metric.
        epoch: from 1.
        workers: batches under way at once.
        order: ``arrival`` or ``fixed``.
        averaging: the state is that of ``averaged(learner)``.
        on_batch: told of every batch, in the order of application.

    Raises:
        OptimizerError: the weights are no longer finite numbers.
    """
    batches = batches_of(shard.sentences, plan, epoch)
    writer = _Writer(recipe, state, plan, epoch, len(batches), averaging)
    under_way: list[_Sent] = []

    def apply_next() -> None:
        sent = under_way.pop(_next(under_way, order))
        writer.apply(sent.future.result(), sent.state)
        place = writer.tally.batches - 1
        done = BatchDone(epoch, place, len(batches), sent.sentences, writer.state, writer.tally)
        on_batch(done)

    for place, sentences in enumerate(batches):
        if len(under_way) == workers:
            apply_next()
        seen = writer.snapshot()
        where = (plan, epoch, place, len(batches))
        future = executor.submit(_look, recipe, shard, seen, sentences, where)
        under_way.append(_Sent(sentences, seen, future))
    while under_way:
        apply_next()
    return EpochResult(writer.state, writer.tally)


def _next(under_way: list[_Sent], order: AsyncOrder) -> int:
    """Place in the list of the batch to apply now."""
    if order == "arrival":
        done, _ = wait([sent.future for sent in under_way], return_when=FIRST_COMPLETED)
        return next(place for place, sent in enumerate(under_way) if sent.future in done)
    return 0


def _look(
    recipe: Recipe,
    shard: Shard,
    state: State,
    sentences: NDArray[np.int64],
    where: tuple[Plan, int, int, int],
) -> _Seen:
    """In a worker: the change of one batch, at ``where`` as ``step_of`` has it."""
    learner = recipe.learner()
    with shard.open() as source:
        batch = source.batch(sentences, lambda: learner.weights(state))
        n_features = len(batch.space)
        step = step_of(*where, n_features)
        change = learner.change(grown(state, n_features, learner.fills), batch, step)
        nothing = Tally(0, np.zeros(step.metric.n_statistics))
        return _Seen(change, nothing.with_batch(batch, change.report), n_features)


class _Writer:
    """Has the state of an epoch, and is alone in writing it.

    Attributes:
        state: after the changes that were applied.
        tally: of their batches.
    """

    def __init__(
        self,
        recipe: Recipe,
        state: State,
        plan: Plan,
        epoch: int,
        per_epoch: int,
        averaging: bool,
    ) -> None:
        self.state = state
        self.tally = Tally(0, np.zeros(plan.metric.n_statistics))
        self._where = (plan, epoch, per_epoch)
        plain = recipe.learner()
        self._seen_vectors = tuple(plain.fills)
        self._learner = averaged(plain) if averaging else plain
        self._snapshot: State | None = None

    def snapshot(self) -> State:
        """The state as workers may see it, and nobody may write it."""
        if self._snapshot is None:
            vectors = {name: self.state.vectors[name] for name in self._seen_vectors}
            self._snapshot = copied(replace(self.state, vectors=vectors))
        return self._snapshot

    def apply(self, seen: _Seen, at: State) -> None:
        """Apply what was found in a batch when the state was ``at``."""
        plan, epoch, per_epoch = self._where
        change = seen.change
        if not np.isfinite(change.values).all():
            raise OptimizerError(
                f"an update in epoch {epoch} is no finite number; give a lower learning rate, or "
                "look for enormous feature values in the n-best lists"
            )
        if at is not self._snapshot:
            memory = _reconciled(self.state.memory, at.memory, change.memory)
            change = replace(change, memory=memory)
        state = grown(self.state, seen.n_features, self._learner.fills)
        n_features = len(state.vectors["weights"])
        step = step_of(plan, epoch, self.tally.batches, per_epoch, n_features)
        self.state, self._snapshot = self._learner.apply(state, change, step), None
        self.tally = joined([self.tally, seen.tally])


def _reconciled(
    now: Mapping[str, NDArray[np.float64]],
    seen: Mapping[str, NDArray[np.float64]],
    after: Mapping[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """What a change makes of the memory, where others were applied since it was looked at.

    Memories are sums of statistics: what a batch adds to what it saw is added to what is there.
    """
    return {
        name: _plus(now.get(name, array), array, seen.get(name, np.zeros_like(array)))
        for name, array in after.items()
    }


def _plus(
    now: NDArray[np.float64], after: NDArray[np.float64], seen: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``now + (after - seen)``; arrays may have grown, by rows of zeros."""
    if now.shape == after.shape == seen.shape:
        return np.asarray(now + (after - seen))
    total = np.zeros((max(len(now), len(after), len(seen)), *after.shape[1:]))
    total[: len(after)] += after
    total[: len(seen)] -= seen
    total[: len(now)] += now
    return total
