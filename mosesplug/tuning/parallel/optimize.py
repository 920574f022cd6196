"""Run an online learner on existing lists, in shards or asynchronously.

One shard that is averaged, and one asynchronous worker in the fixed order, give the result of
learning without shards, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import (
    EpochOutcome,
    Plan,
    StoredSource,
    add_averaging,
    mean_weights,
    require_finite_weights,
    solve_in_epochs,
    weight_facts,
)
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    corpus_score,
    no_progress,
)
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.executors import open_executor
from mosesplug.tuning.parallel.mixing import StoredCorpus
from mosesplug.tuning.parallel.shards import (
    Shard,
    run_sharded_epoch,
    split_into_shards,
)
from mosesplug.tuning.parallel.stale import StoredBatches, run_stale_epoch
from mosesplug.tuning.parallel.stored_lists import open_shards

__all__ = ["optimize_sharded"]


@dataclass(frozen=True)
class _Run:
    """What all epochs share."""

    executor: Executor
    optimizer: Optimizer
    shards: list[Shard]
    sharding: Sharding
    problem: Problem
    plan: Plan
    initial: NDArray[np.float64]


def optimize_sharded(
    problem: Problem,
    optimizer: Optimizer,
    sharding: Sharding,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Solution:
    """Learn in epochs, each by all workers at once.

    The result depends on the seed and the number of shards. Unless changes are applied as they
    arrive, it depends neither on the kind nor on the number of the workers.

    Args:
        problem: lists, metric, and how many threads or processes may work at once.
        optimizer: an online learner. Its ``averaging`` ``all`` is the mean of the mixed weights of
            all epochs (Neubig & Watanabe 2016, Figure 11), or, asynchronously, of those after
            every update.
        sharding: how to split, mix and run.
        initial: float64 ``[n_features]``.
        rng: assigns sentences to shards and seeds all steps.
        progress: told of every epoch.

    Returns:
        Weights, score and history, one mapping per epoch, as without shards; with shards it also
        has ``rho``, how far the mixed weights are from the old ones (0) to the mean (1).

    Raises:
        UsageError: the algorithm does not learn online, or there are too many shards.
        DataError: workers died, or a cluster does not answer.
        OptimizerError: no epoch ended with usable weights.
    """
    optimizer.learner()  # rejects batch optimizers
    options = optimizer.online
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    plan = Plan(int(rng.integers(1 << 62)), options.batch, problem.metric, problem.active_mask)
    parts = split_into_shards(
        StoredSource(problem.tuning_set).sentences,
        1 if sharding.asynchronous else sharding.shards,
        plan.seed,
    )
    run_epochs = _run_stale_epochs if sharding.asynchronous else _run_sharded_epochs
    with ExitStack() as stack:
        at_once = min(sharding.shards, problem.threads)
        executor = stack.enter_context(open_executor(sharding.workers, at_once, sharding.scheduler))
        shards = stack.enter_context(open_shards(problem.tuning_set, parts, sharding))
        run = _Run(executor, optimizer, shards, sharding, problem, plan, initial)
        return solve_in_epochs(problem, options, run_epochs(run), progress)


def _run_sharded_epochs(run: _Run) -> Iterator[EpochOutcome]:
    """Run epochs of shards that are mixed after each."""
    learner, corpus = run.optimizer.learner(), StoredCorpus(run.problem)
    weights, mean = run.initial, np.zeros(len(run.initial))
    states = [learner.init(weights) for _ in run.shards]
    for epoch in count(1):
        report, mix = run_sharded_epoch(
            run.executor,
            run.optimizer,
            states,
            run.shards,
            run.plan,
            epoch,
            sharding=run.sharding,
            corpus=corpus,
            old=weights,
        )
        states, weights = list(report.states), mix.weights
        facts = {**report.means, "rho": mix.rho, "updates": report.updates}
        if run.optimizer.online.averaging == "all":
            mean = mean + (weights - mean) / epoch
            yield mean, corpus_score(run.problem, mean), {**facts, **weight_facts(mean)}
        else:
            yield weights, mix.score, {**facts, **weight_facts(weights)}


def _run_stale_epochs(run: _Run) -> Iterator[EpochOutcome]:
    """Run epochs of one state, to which all workers' changes are applied."""
    learner = run.optimizer.learner()
    if run.optimizer.online.averaging == "all":
        learner = add_averaging(learner)
    state = learner.init(run.initial)
    (shard,) = run.shards
    for epoch in count(1):
        report = run_stale_epoch(
            learner,
            state,
            StoredBatches(run.executor, run.optimizer, shard),
            run.plan,
            epoch,
            workers=run.sharding.shards,
            order=run.sharding.async_order,
        )
        state = report.state
        weights = mean_weights(learner, state)
        require_finite_weights(weights, run.optimizer.name, epoch)
        facts = {**report.means, "updates": report.updates, **weight_facts(weights)}
        yield weights, corpus_score(run.problem, weights), facts
