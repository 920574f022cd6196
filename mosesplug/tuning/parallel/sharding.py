"""Shards: parts of the sentences on which copies of a learner learn at once, and are then mixed.

An epoch is one task a shard: from a state and the shard's own lists to the next state (Neubig &
Watanabe 2016, Figure 11). A task only reads what it is given, so it may run in any thread, process
or machine, and again if a worker died, with the same result. What travels are states, statistics
and reports; lists stay where the shard has them.

After mixing, every shard goes on from the mixed weights. The rest of its state stays its own:
AdaGrad's sums of squares, AROW's variances or decayed statistics say how much a shard has seen of
each feature and what its own sentences looked like. A mean of them would describe no shard, and a
sum would make each shard's steps as small as if it had seen all sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import EpochResult, Plan, Tally, run_epoch
from mosesplug.optimizers.online.learner import Source, State
from mosesplug.optimizers.online.mixing import MixResult, average, line_search, select_features
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.settings.sharding import Sharding

__all__ = [
    "Shard",
    "continued",
    "copied",
    "dealt",
    "epoch_of_shards",
    "joined",
    "mixed",
    "plan_of",
    "shared_weights",
]


class Shard(Protocol):
    """Some sentences and where their lists come from; it can be pickled, the source need not be.

    All shards of a run number their features alike.
    """

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: the sentences that it has, each once."""

    def open(self) -> AbstractContextManager[Source]:
        """The source, opened where it is used: there it has its decoder and its store."""


def dealt(sentences: NDArray[np.int64], shards: int, seed: int) -> list[NDArray[np.int64]]:
    """Deal sentences to shards at random, as evenly as can be; each ascending.

    Args:
        sentences: int64, each once.
        shards: how many.
        seed: of the deal; the same seed gives the same shards.

    Raises:
        UsageError: there are more shards than sentences.
    """
    if shards > len(sentences):
        raise UsageError(f"{shards} shards for {len(sentences)} sentences; take fewer (--shards)")
    if shards == 1:
        return [np.sort(sentences)]
    # Not [seed, shards], which gives the order of an epoch of that number.
    sequence = np.random.SeedSequence(seed, spawn_key=(shards,))
    order = np.random.default_rng(sequence).permutation(sentences)
    return [np.sort(part) for part in np.array_split(order, shards)]


def epoch_of_shards(
    executor: Executor,
    optimizer: Optimizer,
    states: Sequence[State],
    shards: Sequence[Shard],
    plan: Plan,
    epoch: int,
) -> list[EpochResult]:
    """Each shard learns on its own sentences for an epoch; results in the order of the shards.

    The first shard draws from the plan's seed, so that one shard is no sharding at all; the
    others from seeds that follow from it.

    Args:
        executor: where.
        optimizer: an online learner.
        states: one a shard; only read.
        shards: as dealt.
        plan: how; of ``seed`` each shard has its own.
        epoch: from 1.
    """
    under_way = [
        executor.submit(_learn, optimizer, shard, state, plan_of(plan, number), epoch)
        for number, (state, shard) in enumerate(zip(states, shards, strict=True))
    ]
    return [future.result() for future in under_way]


def plan_of(plan: Plan, number: int) -> Plan:
    """The plan with the seed of one shard; the first one draws from the plan's own."""
    if number == 0:
        return plan
    sequence = np.random.SeedSequence([plan.seed, number])
    return replace(plan, seed=int(sequence.generate_state(1)[0]))


def _learn(optimizer: Optimizer, shard: Shard, state: State, plan: Plan, epoch: int) -> EpochResult:
    """In a worker: one epoch of one shard."""
    with shard.open() as source:
        return run_epoch(optimizer.learner(), copied(state), source, plan, epoch)


def copied(state: State) -> State:
    """A state with arrays of its own, which an update may write."""
    return replace(
        state,
        vectors={name: vector.copy() for name, vector in state.vectors.items()},
        memory={name: array.copy() for name, array in state.memory.items()},
    )


def mixed(
    sharding: Sharding,
    problem: Problem,
    old: NDArray[np.float64],
    vectors: Sequence[NDArray[np.float64]],
    counts: Sequence[int],
) -> MixResult:
    """One weight vector from those of the shards.

    Args:
        sharding: says how.
        problem: the lists of this epoch, and the metric.
        old: float64 ``[n_features]``, before the epoch.
        vectors: float64 ``[n_features]`` each, of every shard after it.
        counts: updates of each shard in the epoch.

    Returns:
        The weights, their score on the lists, and how far they go from the old weights (0) to the
        mean (1).
    """
    if sharding.mixing == "line-search":
        return line_search(problem, old, average(vectors))
    n_dense = problem.tuning_set.space.n_dense
    weights = shared_weights(sharding, old, vectors, counts, problem.active_mask, n_dense)
    return MixResult(weights, 1.0, corpus_score(problem, weights))


def shared_weights(
    sharding: Sharding,
    old: NDArray[np.float64],
    vectors: Sequence[NDArray[np.float64]],
    counts: Sequence[int],
    active: NDArray[np.bool_],
    n_dense: int,
) -> NDArray[np.float64]:
    """What shards' weights come to before any line search.

    Args:
        sharding: says how.
        old, vectors, counts: as ``mixed``.
        active: bool ``[n_features]``; the others keep their old weights.
        n_dense: the first so many features are dense.
    """
    if sharding.mixing == "weighted":
        return average(vectors, counts)
    if sharding.mixing == "select":
        learnt = [np.where(active, vector, 0.0) for vector in vectors]
        return np.where(active, select_features(learnt, sharding.keep, n_dense), old)
    return average(vectors)


def continued(state: State, weights: NDArray[np.float64]) -> State:
    """The state at the end of an epoch, going on from other weights."""
    return replace(state, vectors={**state.vectors, "weights": weights.copy()})


def joined(tallies: Sequence[Tally]) -> Tally:
    """The tally of all batches of one or more tallies."""
    sums: dict[str, float] = {}
    for tally in tallies:
        for name, value in tally.sums.items():
            sums[name] = sums.get(name, 0.0) + value
    totals = np.sum([tally.totals for tally in tallies], axis=0)
    return Tally(sum(tally.batches for tally in tallies), totals, sums)
