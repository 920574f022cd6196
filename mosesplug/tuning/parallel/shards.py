"""Shards: parts of the sentences from which copies of a learner learn, and mixing.

An epoch is one task per shard: from a state and the shard's own lists to the next state (Neubig &
Watanabe 2016, Figure 11). A task is a pure function of its arguments and the shard's lists, so it
may run in any thread, process or machine, and run again if a worker died. States, statistics and
reports travel; lists stay where the shard keeps them.

After mixing, every shard continues with the mixed weights and keeps the rest of its own state:
AdaGrad's sums of squares, AROW's variances and decayed statistics describe what this shard has
seen. Their mean would describe no shard, and their sum would make each shard's steps as small as if
it had seen all sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    EpochReport,
    Plan,
    require_finite_weights,
    run_epoch,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import BatchSource, Learner, LearnerState
from mosesplug.optimizers.online.mixing import MixResult
from mosesplug.optimizers.online.starting import copy_state
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.mixing import Corpus, merge_reports, mix_weights
from mosesplug.tuning.parallel.progress import ShardProgress


class ShardSource(BatchSource, Protocol):
    """The batch source of a shard, opened in the process of the shard."""

    def restrict(self, learner: Learner) -> Learner:
        """Return the learner that changes active weights only, whichever features appear."""

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        """Finish the epoch after its last batch and complete its report."""


class Shard(Protocol):
    """Some sentences and where their lists come from; other processes pickle it.

    All shards of a run number the features that were known before the epoch alike.
    """

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: the sentences of the shard, each once."""

    def open(self, stop: StopSignal | None = None) -> AbstractContextManager[ShardSource]:
        """Open the source in the process that uses it, with its decoder, store and files.

        Args:
            stop: the stop signal of a thread, which also ends waits; None in other processes.
        """


def split_into_shards(
    sentences: NDArray[np.int64], shards: int, seed: int
) -> list[NDArray[np.int64]]:
    """Assign sentences to shards at random, as evenly as possible.

    Returns:
        int64 each, ascending.
    """
    if shards > len(sentences):
        raise UsageError(f"{shards} shards for {len(sentences)} sentences. Lower {{--shards}}.")
    if shards == 1:
        return [np.sort(sentences)]
    # Not [seed, shards]: that is the order of the epoch with that number.
    sequence = np.random.SeedSequence(seed, spawn_key=(shards,))
    order = np.random.default_rng(sequence).permutation(sentences)
    return [np.sort(part) for part in np.array_split(order, shards)]


def _plan_of_shard(plan: Plan, number: int) -> Plan:
    """Return the plan with a shard's own seed; shard 0 learns as without shards."""
    if number == 0:
        return plan
    sequence = np.random.SeedSequence([plan.seed, number])
    return replace(plan, seed=int(sequence.generate_state(1)[0]))


def run_sharded_epoch(
    executor: Executor,
    optimizer: Optimizer,
    states: Sequence[LearnerState],
    shards: Sequence[Shard],
    plan: Plan,
    epoch: int,
    *,
    sharding: Sharding,
    corpus: Corpus,
    old: NDArray[np.float64],
    progress: ShardProgress | None = None,
) -> tuple[EpochReport, MixResult]:
    """Let each shard learn from its own sentences, then mix their weights.

    Args:
        states: one per shard, over ``corpus.space``; only read.
        plan: seed, batches, metric; each shard derives a seed of its own.
        epoch: from 1.
        sharding: how to mix; whether workers are other processes.
        old: float64 ``[len(corpus.space)]``, the weights before the epoch.

    Returns:
        The report of all shards, whose states continue from the mixed weights and cover the
        features of all; and these weights.
    """
    learner = optimizer.learner()
    stop = None if sharding.elsewhere else StopSignal()
    reports = learn_in_shards(executor, optimizer, states, shards, plan, epoch, stop, progress)
    report, space = merge_reports(reports, corpus.space, learner.fills)
    vectors = [learner.weights(state) for state in report.states]
    for vector in vectors:
        require_finite_weights(vector, optimizer.name, epoch)
    updates = [now.updates - then.updates for now, then in zip(report.states, states, strict=True)]
    # Features that shards met in this epoch had no weight before it.
    old = np.append(old, np.zeros(len(space) - len(old)))
    mix = mix_weights(sharding, corpus, space, old, vectors, updates, report.counts)
    states = [
        replace(state, vectors={**state.vectors, "weights": mix.weights.copy()})
        for state in report.states
    ]
    return replace(report, states=tuple(states)), mix


def learn_in_shards(
    executor: Executor,
    optimizer: Optimizer,
    states: Sequence[LearnerState],
    shards: Sequence[Shard],
    plan: Plan,
    epoch: int,
    stop: StopSignal | None = None,
    progress: ShardProgress | None = None,
) -> list[EpochReport]:
    """Let each shard learn for an epoch and return their reports in order.

    The arguments are those of ``run_sharded_epoch``; ``stop`` stops threads if one of them fails or
    the user interrupts, and is None for other processes.
    """
    plans = [_plan_of_shard(plan, number) for number in range(len(shards))]
    if progress is not None:
        pairs = zip(shards, plans, strict=True)
        progress.total = sum(
            len(split_into_batches(shard.sentences, own, epoch)) for shard, own in pairs
        )
    try:
        futures = [
            executor.submit(
                _learn_shard,
                optimizer,
                shard,
                state,
                own,
                epoch,
                stop,
                None if progress is None else progress.callback(number),
            )
            for number, (shard, state, own) in enumerate(zip(shards, states, plans, strict=True))
        ]
        if progress is not None:
            progress.wait(futures)
        return [future.result() for future in futures]
    except KeyboardInterrupt:
        if stop is not None:
            stop.stop_now()  # if a shard fails, the others finish their batches
        raise
    finally:
        if stop is not None:
            stop.soon.set()


def _learn_shard(
    optimizer: Optimizer,
    shard: Shard,
    state: LearnerState,
    plan: Plan,
    epoch: int,
    stop: StopSignal | None,
    on_batch: Callable[[BatchProgress], None] | None,
) -> EpochReport:
    """Run one epoch of one shard in a worker."""

    def after_batch(done: BatchProgress) -> None:
        if on_batch is not None:
            on_batch(done)
        if stop is not None and stop.soon.is_set() and done.place + 1 < done.of:
            raise CancelledError

    with shard.open(stop) as source:
        if stop is not None and stop.soon.is_set():
            raise CancelledError
        learner = source.restrict(optimizer.learner())
        report = run_epoch(learner, copy_state(state), source, plan, epoch, on_batch=after_batch)
        return source.finish(report, learner)
