"""Run an optimizer on existing lists, in shards or asynchronously.

Batch optimizers map functions over shards (``list_shards``); the rest of this page is about online
learners.

One shard that is averaged, and one asynchronous worker in the fixed order, give the result of
learning without shards, to the last bit.

Threads share the lists in memory. For other processes the lists are written once, as plain arrays,
to a directory that all workers see. A worker maps the files and reads only the data of its batches.
So an epoch sends no lists, and a worker that replaces a dead one finds them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.errors import UsageError
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.list_candidates import Sharded
from mosesplug.optimizers.online.algorithms import (
    EpochOutcome,
    plan_epochs,
    solve_in_epochs,
    weight_facts,
)
from mosesplug.optimizers.online.epochs import (
    EpochReport,
    Plan,
    StoredSource,
    require_finite_weights,
)
from mosesplug.optimizers.online.learner import (
    BatchSource,
    Learner,
    add_averaging,
    keep_zeros,
    mean_weights,
)
from mosesplug.optimizers.online.starting import count_epochs, start_states
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
from mosesplug.tuning.parallel.executors import StopSignal, open_executor
from mosesplug.tuning.parallel.list_files import open_lists, read_lists
from mosesplug.tuning.parallel.list_shards import open_list_shards
from mosesplug.tuning.parallel.mixing import StoredCorpus
from mosesplug.tuning.parallel.shards import (
    Shard,
    ShardSource,
    run_sharded_epoch,
    split_into_shards,
)
from mosesplug.tuning.parallel.stale import StoredBatches, run_stale_epoch
from mosesplug.tuning_set import Batch, TuningSet


@dataclass(frozen=True)
class _StoredShardSource:
    """The part of a source that belongs to a shard; a ``ShardSource``."""

    source: BatchSource
    sentences: NDArray[np.int64]

    def batch(self, sentences: NDArray[np.int64], weights: Callable[[], Weights]) -> Batch:
        return self.source.batch(sentences, weights)

    def restrict(self, learner: Learner) -> Learner:
        return learner  # no features appear, and the plan says which weights are active

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        return report


@dataclass(frozen=True)
class StoredShard:
    """A ``Shard`` of lists that exist.

    Attributes:
        source: of lists in memory, which all threads share; or the directory into which
            ``write_lists`` has written them, which every worker sees under this name.
        sentences: of this shard.
    """

    source: BatchSource | str
    sentences: NDArray[np.int64]

    @contextmanager
    def open(self, stop: StopSignal | None = None) -> Iterator[ShardSource]:
        """Open the shard's part of the source."""
        source = self.source
        if isinstance(source, str):
            source = StoredSource(read_lists(source))
        yield _StoredShardSource(source, self.sentences)


@dataclass(frozen=True)
class _Run:
    """What all epochs share."""

    executor: Executor
    optimizer: Optimizer
    shards: list[Shard]
    sharding: Sharding
    problem: Problem
    plan: Plan
    initial: Weights


def optimize_sharded(
    problem: Problem,
    optimizer: Optimizer,
    sharding: Sharding,
    initial: Weights,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Solution:
    """Optimize weights on the lists of several shards.

    Online learners learn in epochs, each by all workers at once. The result depends on the seed and
    the number of shards. Unless changes are applied as they arrive, it depends neither on the kind
    nor on the number of the workers.

    Args:
        problem: lists, metric, and how many threads or processes may work at once.
        optimizer: a batch optimizer that maps shards, or an online learner. The latter's
            ``averaging`` ``all`` is the mean of the mixed weights of all epochs (Neubig & Watanabe
            2016, Figure 11), or, asynchronously, of those after every update.
        rng: assigns sentences to shards and seeds all steps.

    Returns:
        Weights, score and history, one mapping per epoch, as without shards; with shards it also
        has ``rho``, how far the mixed weights are from the old ones (0) to the mean (1).

    Raises:
        UsageError: the algorithm cannot be sharded, there are too many shards, or the problem has
            bounds of weights that it cannot keep.
    """
    if problem.tuning_set.sentence_weights is not None:
        optimizer.require_sentence_weights()
        problem = replace(problem, tuning_set=problem.tuning_set.drop_weightless())
    if optimizer.algorithm.maps_shards:
        with open_list_shards(problem, sharding) as list_shards:
            source = Sharded(problem.tuning_set, problem.metric, list_shards)
            problem = replace(problem, source=source)
            return optimizer.optimize(problem, initial, rng, progress)
    optimizer.learner()  # rejects other batch optimizers
    if problem.bounds is not None:
        raise UsageError("bounds of weights cannot be kept by shards: learn without shards")
    options = optimizer.online
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    plan = plan_epochs(problem, options, rng)
    parts = split_into_shards(
        StoredSource(problem.tuning_set).sentences,
        1 if sharding.asynchronous else sharding.shards,
        plan.seed,
    )
    run_epochs = _run_stale_epochs if sharding.asynchronous else _run_sharded_epochs
    with ExitStack() as stack:
        at_once = min(sharding.shards, problem.threads)
        executor = stack.enter_context(open_executor(sharding.workers, at_once, sharding.scheduler))
        lists = stack.enter_context(open_lists(problem.tuning_set, sharding))
        stored = StoredSource(lists) if isinstance(lists, TuningSet) else lists
        shards: list[Shard] = [StoredShard(stored, part) for part in parts]
        run = _Run(executor, optimizer, shards, sharding, problem, plan, initial)
        return solve_in_epochs(problem, options, initial, run_epochs(run), progress)


def _run_sharded_epochs(run: _Run) -> Iterator[EpochOutcome]:
    """Run epochs of shards that are mixed after each."""
    learner, corpus = run.optimizer.learner(), StoredCorpus(run.problem)
    states = start_states(run.problem, run.initial, learner, run.optimizer.online, len(run.shards))
    weights = learner.weights_before(states[0], run.plan.active)
    mean = np.zeros(len(run.initial))
    before = count_epochs(states, len(run.shards[0].sentences), run.plan.batch)
    for number in count(1):
        report, mix = run_sharded_epoch(
            run.executor,
            run.optimizer,
            states,
            run.shards,
            run.plan,
            before + number,
            sharding=run.sharding,
            corpus=corpus,
            old=weights,
        )
        states, weights = list(report.states), mix.weights
        facts = {**report.tally.means, "rho": mix.rho, "updates": report.updates}
        if run.optimizer.online.averaging == "all":
            mean = mean + (weights - mean) / number
            kept = keep_zeros(learner, mean, weights)
            score = corpus_score(run.problem, kept)
            yield EpochOutcome(kept, score, {**facts, **weight_facts(kept)}, report.states)
        else:
            yield EpochOutcome(
                weights, mix.score, {**facts, **weight_facts(weights)}, report.states
            )


def _run_stale_epochs(run: _Run) -> Iterator[EpochOutcome]:
    """Run epochs of one state, to which all workers' changes are applied."""
    learner = run.optimizer.learner()
    if run.optimizer.online.averaging == "all":
        learner = add_averaging(learner)
    (shard,) = run.shards
    (state,) = start_states(run.problem, run.initial, learner, run.optimizer.online)
    before = count_epochs([state], len(shard.sentences), run.plan.batch)
    for epoch in count(before + 1):
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
        facts = {**report.tally.means, "updates": report.updates, **weight_facts(weights)}
        score = corpus_score(run.problem, weights)
        yield EpochOutcome(weights, score, facts, (state,))
