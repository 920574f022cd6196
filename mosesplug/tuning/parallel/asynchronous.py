"""Asynchronous learning: many look at batches with weights of some time ago, one applies.

Green et al. (2013), Algorithm 2: workers are given mini-batches and the weights of that moment; a
writer applies the changes that follow from these weights, in the order in which batches come back,
and nobody waits for a batch that takes long. In the fixed order the writer waits for the oldest
batch: the change of batch ``b`` is then always that on the state after batch ``b - workers``,
whatever the timing, and with one worker this is ordinary learning.

Workers see copies of the state that nobody writes; a copy is made where the state was written
since the last one, so about once a batch. A change is the features that a batch touches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import (
    AVERAGE,
    BatchDone,
    EpochResult,
    Plan,
    Tally,
    averaged,
    batches_of,
    step_of,
)
from mosesplug.optimizers.online.learner import Change, Learner, State, grown
from mosesplug.settings.sharding import AsyncOrder
from mosesplug.tuning.parallel.sharding import Shard, copied, joined
from mosesplug.tuning.resources import Clock
from mosesplug.tuning_set import Batch

__all__ = ["Crew", "Found", "Task", "Writer", "asynchronous_epoch", "found_in", "stale_epoch"]


@dataclass(frozen=True)
class Found:
    """What was found in a batch.

    Attributes:
        change: on the state that was looked at.
        tally: of this batch alone.
        n_features: of the batch's space.
    """

    change: Change
    tally: Tally
    n_features: int


@dataclass(frozen=True)
class Task:
    """A batch for a worker.

    Attributes:
        place: of the batch in its epoch, from 0.
        sentences: int64; those of the batch.
        state: what the worker sees; nobody writes it.
        version: changes of the epoch that the state has seen.
    """

    place: int
    sentences: NDArray[np.int64]
    state: State
    version: int


class Crew(Protocol):
    """The workers, and what becomes of their work."""

    def send(self, task: Task) -> Future[Any]:
        """Let a worker do its part."""

    def found(self, task: Task, result: Any) -> Found:
        """In the writer, when it is the batch's turn: what the worker's part comes to."""


def asynchronous_epoch(
    executor: Executor,
    optimizer: Optimizer,
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
    """One epoch with stale changes, which workers compute on lists that are there.

    Args:
        executor: where the workers are.
        optimizer: an online learner.
        state: where the epoch begins; it is spent. Workers are sent copies of it, through memory
            to threads, and by message to others: 24 MB for AdaGrad on 1,000,000 features.
        shard: all sentences of the epoch; opened for every batch, in the worker.
        plan: seed, batches, metric.
        epoch: from 1.
        workers, order, on_batch: as ``stale_epoch``.
        averaging: the state is that of ``averaged(learner)``.

    Raises:
        OptimizerError: the weights are no longer finite numbers.
    """
    learner = optimizer.learner()
    batches = batches_of(shard.sentences, plan, epoch)
    writer = Writer(averaged(learner) if averaging else learner, state, plan, epoch, len(batches))
    crew = _OnStoredLists(executor, optimizer, shard, plan, epoch, len(batches))
    return stale_epoch(writer, batches, crew, workers=workers, order=order, on_batch=on_batch)


def stale_epoch(
    writer: Writer,
    batches: Sequence[NDArray[np.int64]],
    crew: Crew,
    *,
    workers: int,
    order: AsyncOrder,
    replayed: Sequence[tuple[int, int]] = (),
    on_batch: Callable[[BatchDone], None] = lambda done: None,
) -> EpochResult:
    """One epoch with stale changes (Green et al. 2013, Algorithm 2).

    A change is applied as the step that it is in the order of application, so that learning rates
    fall, and an epoch ends, as they would in serial.

    Args:
        writer: has the state; of an epoch that begins.
        batches: int64 each, the sentences.
        crew: those who look at them.
        workers: batches under way at once.
        order: ``arrival`` or ``fixed``.
        replayed: of an epoch in order of arrival that was cut off: the place and the version of
            the batches that were applied, in that order. They are so again, and then the others
            follow. The fixed order needs none of it.
        on_batch: told of every batch, in the order of application.

    Raises:
        OptimizerError: the weights are no longer finite numbers.
    """
    script = tuple(replayed) if order == "arrival" else ()
    due: dict[int, list[int]] = {}
    for place, version in script:
        due.setdefault(version, []).append(place)
    scripted = {place for place, _ in script}
    waiting = deque(place for place in range(len(batches)) if place not in scripted)
    under_way: list[_Sent] = []
    while True:
        version = writer.tally.batches
        replaying = version < len(script)
        idle = 0 if replaying else min(len(waiting), workers - len(under_way))
        for place in (*due.pop(version, ()), *(waiting.popleft() for _ in range(idle))):
            task = Task(place, batches[place], writer.snapshot(), version)
            under_way.append(_Sent(task, crew.send(task)))
        if not under_way:
            return EpochResult(writer.state, writer.tally)
        clock = Clock()
        if replaying:
            places = [sent.task.place for sent in under_way]
            sent = under_way.pop(places.index(script[version][0]))
        else:
            sent = under_way.pop(_first_done(under_way) if order == "arrival" else 0)
        result = sent.future.result()
        writer.seconds_waiting += clock.seconds()
        writer.apply(crew.found(sent.task, result), sent.task.state)
        on_batch(writer.done(sent.task.sentences))


@dataclass(frozen=True)
class _Sent:
    """A batch that is with a worker."""

    task: Task
    future: Future[Any]


def _first_done(under_way: Sequence[_Sent]) -> int:
    """Place in the list of a batch that is done; waits for one."""
    done, _ = wait([sent.future for sent in under_way], return_when=FIRST_COMPLETED)
    return next(place for place, sent in enumerate(under_way) if sent.future in done)


@dataclass(frozen=True)
class _OnStoredLists:
    """A ``Crew`` that computes changes on lists that are there."""

    executor: Executor
    optimizer: Optimizer
    shard: Shard
    plan: Plan
    epoch: int
    per_epoch: int

    def send(self, task: Task) -> Future[Found]:
        where = (self.plan, self.epoch, task.place, self.per_epoch)
        return self.executor.submit(
            _look, self.optimizer, self.shard, task.state, task.sentences, where
        )

    def found(self, task: Task, result: Found) -> Found:
        return result


def _look(
    optimizer: Optimizer,
    shard: Shard,
    state: State,
    sentences: NDArray[np.int64],
    where: tuple[Plan, int, int, int],
) -> Found:
    """In a worker: open the shard, and look at one batch of it."""
    learner = optimizer.learner()
    with shard.open() as source:
        batch = source.batch(sentences, lambda: learner.weights(state))
        return found_in(batch, learner, state, where)


def found_in(
    batch: Batch, learner: Learner, state: State, where: tuple[Plan, int, int, int]
) -> Found:
    """What a learner finds in a batch.

    Args:
        batch: its lists.
        learner: only looks.
        state: what it sees; only read.
        where: plan, epoch, place of the batch, and batches an epoch, as ``step_of`` has them.
    """
    n_features = len(batch.space)
    step = step_of(*where, n_features)
    change = learner.change(grown(state, n_features, learner.fills), batch, step)
    nothing = Tally(0, np.zeros(step.metric.n_statistics))
    return Found(change, nothing.with_batch(batch, change.report), n_features)


class Writer:
    """Has the state of an epoch, and is alone in writing it.

    Attributes:
        state: after the changes that were applied.
        tally: of their batches.
        seconds_waiting: for workers.
    """

    def __init__(
        self, learner: Learner, state: State, plan: Plan, epoch: int, per_epoch: int
    ) -> None:
        """Begin an epoch.

        Args:
            learner: applies; ``averaged``, if the state is.
            state: where it begins; it is spent.
            plan: seed, batches, metric.
            epoch: from 1.
            per_epoch: batches of an epoch.
        """
        self.state = state
        self.tally = Tally(0, np.zeros(plan.metric.n_statistics))
        self.seconds_waiting = 0.0
        self._where = (plan, epoch, per_epoch)
        self._learner = learner
        self._snapshot: State | None = None

    def snapshot(self) -> State:
        """The state as workers may see it, and nobody may write it; without the sum for a mean."""
        if self._snapshot is None:
            vectors = {name: v for name, v in self.state.vectors.items() if name != AVERAGE}
            self._snapshot = copied(replace(self.state, vectors=vectors))
        return self._snapshot

    def apply(self, found: Found, at: State) -> None:
        """Apply what was found in a batch when the state was ``at``.

        Raises:
            OptimizerError: it is no finite number.
        """
        plan, epoch, per_epoch = self._where
        change = found.change
        if not np.isfinite(change.values).all():
            raise OptimizerError(
                f"an update in epoch {epoch} is no finite number; give a lower learning rate, or "
                "look for enormous feature values in the n-best lists"
            )
        if at is not self._snapshot:
            memory = _reconciled(self.state.memory, at.memory, change.memory)
            change = replace(change, memory=memory)
        state = grown(self.state, found.n_features, self._learner.fills)
        n_features = len(state.vectors["weights"])
        step = step_of(plan, epoch, self.tally.batches, per_epoch, n_features)
        self.state, self._snapshot = self._learner.apply(state, change, step), None
        self.tally = joined([self.tally, found.tally])

    def done(self, sentences: NDArray[np.int64]) -> BatchDone:
        """What to tell of the batch that was applied last."""
        _, epoch, per_epoch = self._where
        return BatchDone(
            epoch, self.tally.batches - 1, per_epoch, sentences, self.state, self.tally
        )


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
