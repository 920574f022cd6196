"""Asynchronous learning: workers compute stale changes, one writer applies them.

Green et al. (2013), Algorithm 2: each idle worker gets the next mini-batch and the current weights.
A writer applies the changes in the order of their arrival, without waiting for slow batches. In
the fixed order the writer waits for the oldest batch: the change of batch ``b`` is then always
computed on the state after batch ``b - workers``, independent of timing, and one worker is ordinary
learning.

Workers get private copies of the state. A copy is made if the state has changed
since the last one, so about once per batch. A change covers the features of its batch only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.events import Clock
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    EpochReport,
    Plan,
    Tally,
    make_step,
    require_finite,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import AVERAGE, Change, Learner, LearnerState, grow_state
from mosesplug.optimizers.online.starting import copy_state
from mosesplug.settings.sharding import AsyncOrder
from mosesplug.tuning.parallel.mixing import add_tallies
from mosesplug.tuning.parallel.shards import Shard
from mosesplug.tuning_set import Batch


@dataclass(frozen=True)
class BatchJob:
    """A batch for a worker.

    Attributes:
        place: the place of the batch in its epoch, from 0.
        state: on which the change is computed; read-only.
        version: how many changes of the epoch the state includes.
        epoch: from 1.
    """

    sentences: NDArray[np.int64]
    place: int
    state: LearnerState
    version: int
    plan: Plan
    epoch: int
    per_epoch: int


@dataclass(frozen=True)
class BatchChange:
    """What a learner computes from a batch.

    Attributes:
        change: the change of the state that the job has.
        tally: the tally of this batch alone.
        n_features: the size of the batch's feature space.
    """

    change: Change
    tally: Tally
    n_features: int


def compute_change(batch: Batch, learner: Learner, job: BatchJob) -> BatchChange:
    """Compute a batch's change of the state that the job has."""
    n_features = len(batch.space)
    step = make_step(job.plan, job.epoch, job.place, job.per_epoch, n_features)
    change = learner.change(grow_state(job.state, n_features, learner.fills), batch, step)
    nothing = Tally(0, np.zeros(step.metric.n_statistics))
    return BatchChange(change, nothing.with_batch(batch, change.report), n_features)


class StaleSource(Protocol):
    """Where batches come from, and the workers that prepare their changes."""

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: the sentences of the epoch, each once."""

    def submit(self, job: BatchJob) -> Future[Any]:
        """Let a worker do its part of a batch."""

    def change(self, job: BatchJob, result: Any, seconds: float) -> BatchChange:
        """Return the batch's change; called in the writer, in the order of application."""


@dataclass(frozen=True)
class StoredBatches:
    """A ``StaleSource`` of lists that exist: workers compute the changes.

    Attributes:
        executor: the executor of the workers. Threads get states through memory, others by message:
            24 MB for AdaGrad on 1,000,000 features.
        shard: all sentences of the epoch; a worker opens it for each batch.
    """

    executor: Executor
    optimizer: Optimizer
    shard: Shard

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: the sentences of the shard."""
        return self.shard.sentences

    def submit(self, job: BatchJob) -> Future[BatchChange]:
        """Let a worker compute a change."""
        return self.executor.submit(_change_from_shard, self.optimizer, self.shard, job)

    def change(self, job: BatchJob, result: BatchChange, seconds: float) -> BatchChange:
        """Return the worker's change."""
        return result


def _change_from_shard(optimizer: Optimizer, shard: Shard, job: BatchJob) -> BatchChange:
    learner = optimizer.learner()
    with shard.open() as source:
        batch = source.batch(job.sentences, lambda: learner.weights(job.state))
        return compute_change(batch, learner, job)


def run_stale_epoch(
    learner: Learner,
    state: LearnerState,
    source: StaleSource,
    plan: Plan,
    epoch: int,
    *,
    workers: int,
    order: AsyncOrder,
    replay: Sequence[tuple[int, int]] = (),
    on_batch: Callable[[BatchProgress], bool | None] = lambda done: None,
) -> EpochReport:
    """Learn from every sentence once, with stale changes (Green et al. 2013).

    The step number of a change is its place in the order of application, so learning rates fall,
    and an epoch ends, as without workers.

    Args:
        learner: applies the changes; ``averaged``, if the state is.
        epoch: from 1.
        order: ``arrival`` or ``fixed``.
        replay: to resume an epoch in order of arrival: place and version of the batches that were
            applied, in order. They are applied again, then the others follow. The fixed order
            needs none.
        on_batch: called after every batch, in the order of application; if it returns True, the
            epoch ends.
    """
    batches = split_into_batches(source.sentences, plan, epoch)
    writer = _StateWriter(learner, state, plan, epoch, len(batches))
    script = tuple(replay) if order == "arrival" else ()
    # A replayed batch learns from the state that it saw then: it is submitted at that version.
    due: dict[int, list[int]] = {}
    for place, version in script:
        due.setdefault(version, []).append(place)
    replayed = {place for place, _ in script}
    waiting = deque(place for place in range(len(batches)) if place not in replayed)
    under_way: list[tuple[BatchJob, Future[Any]]] = []
    while True:
        version = writer.tally.batches
        is_replay = version < len(script)
        # New batches wait for the end of the replay: now they would learn from weights of the past.
        idle = 0 if is_replay else min(len(waiting), workers - len(under_way))
        for place in (*due.pop(version, ()), *(waiting.popleft() for _ in range(idle))):
            snapshot = writer.snapshot()
            job = BatchJob(batches[place], place, snapshot, version, plan, epoch, len(batches))
            under_way.append((job, source.submit(job)))
        if not under_way:
            break
        clock = Clock()
        if is_replay:
            turn = [job.place for job, _ in under_way].index(script[version][0])
        else:
            turn = _wait_for_first(under_way) if order == "arrival" else 0
        job, future = under_way.pop(turn)
        result = future.result()
        writer.apply(source.change(job, result, clock.seconds()), job.state)
        done = BatchProgress(
            epoch, version, len(batches), job.sentences, writer.state, writer.tally
        )
        if on_batch(done):
            break
    return EpochReport((writer.state,), writer.tally)


def _wait_for_first(under_way: Sequence[tuple[BatchJob, Future[Any]]]) -> int:
    """Wait until a batch is done and return its place in the list."""
    done, _ = wait([future for _, future in under_way], return_when=FIRST_COMPLETED)
    return next(place for place, (_, future) in enumerate(under_way) if future in done)


class _StateWriter:
    """Owns the state of an epoch and alone changes it.

    Attributes:
        state: after the changes that were applied.
        tally: the tally of their batches.
    """

    def __init__(
        self, learner: Learner, state: LearnerState, plan: Plan, epoch: int, per_epoch: int
    ) -> None:
        memory = {**learner.initial_memory(plan.metric), **state.memory}
        self.state = replace(state, memory=memory)
        self.tally = Tally(0, np.zeros(plan.metric.n_statistics))
        self._learner, self._plan = learner, plan
        self._epoch, self._per_epoch = epoch, per_epoch
        self._snapshot: LearnerState | None = None

    def snapshot(self) -> LearnerState:
        """Return a copy of the state for workers, without the sum for the mean."""
        if self._snapshot is None:
            vectors = {name: v for name, v in self.state.vectors.items() if name != AVERAGE}
            self._snapshot = copy_state(replace(self.state, vectors=vectors))
        return self._snapshot

    def apply(self, batch: BatchChange, seen: LearnerState) -> None:
        """Apply the change that was computed on the state ``seen``."""
        change = batch.change
        require_finite(change, self._epoch)
        # Other changes were applied meanwhile: only what this batch added may be kept.
        if seen is not self._snapshot:
            memory = _rebase_memory(self.state.memory, seen.memory, change.memory)
            change = replace(change, memory=memory)
        state = grow_state(self.state, batch.n_features, self._learner.fills)
        n_features = len(state.vectors["weights"])
        step = make_step(self._plan, self._epoch, self.tally.batches, self._per_epoch, n_features)
        self.state, self._snapshot = self._learner.apply(state, change, step), None
        self.tally = add_tallies([self.tally, batch.tally])


def _rebase_memory(
    now: Mapping[str, NDArray[np.float64]],
    seen: Mapping[str, NDArray[np.float64]],
    after: Mapping[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Return the memory after a change that was computed on an earlier state.

    Memories are sums of statistics: the difference that the batch made to ``seen`` is added to
    ``now``.
    """
    return {
        name: _add_difference(now.get(name, array), array, seen.get(name, np.zeros_like(array)))
        for name, array in after.items()
    }


def _add_difference(
    now: NDArray[np.float64], after: NDArray[np.float64], seen: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``now + (after - seen)``; arrays may have grown by rows of zeros."""
    if now.shape == after.shape == seen.shape:
        return np.asarray(now + (after - seen))
    total = np.zeros((max(len(now), len(after), len(seen)), *after.shape[1:]))
    total[: len(after)] += after
    total[: len(seen)] -= seen
    total[: len(now)] += now
    return total
