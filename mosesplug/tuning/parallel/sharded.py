"""An online learner on lists that are there already, by shards or asynchronously.

Where one shard learns alone and is mixed by averaging, or one worker in the fixed order, the
result is that of learning without shards, to the last bit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import (
    Plan,
    StoredSource,
    averaged,
    mean_weights,
    usable,
)
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    corpus_score,
    no_progress,
    normalise,
)
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.asynchronous import asynchronous_epoch
from mosesplug.tuning.parallel.executors import workers
from mosesplug.tuning.parallel.sharding import (
    Shard,
    continued,
    dealt,
    epoch_of_shards,
    joined,
    mixed,
)
from mosesplug.tuning.parallel.stored_shard import FiledShard, SharedShard, write_lists
from mosesplug.tuning_set import TuningSet

__all__ = ["optimize_sharded"]


@dataclass(frozen=True)
class _Passed:
    """What an epoch led to.

    Attributes:
        weights: float64 ``[n_features]``, to decode with.
        score: the metric of decoding all lists there.
        facts: for the history.
    """

    weights: NDArray[np.float64]
    score: float
    facts: Mapping[str, Any]


def optimize_sharded(
    problem: Problem,
    optimizer: Optimizer,
    sharding: Sharding,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Solution:
    """Learn in epochs, each by all workers at once.

    The result depends on the seed and the number of shards, and, but for changes applied as they
    arrive, neither on the kind nor on the number of the workers.

    Args:
        problem: lists, metric, and how many threads or processes may work at once.
        optimizer: an online learner. Its ``averaging`` ``all`` is the mean of the mixed weights of
            all epochs (Neubig & Watanabe 2016, Figure 11), or, asynchronously, of those after
            every update.
        sharding: how.
        initial: float64 ``[n_features]``.
        rng: of the deal and of all steps.
        progress: told of every epoch.

    Returns:
        Weights, score and history, one mapping an epoch, as without shards; with shards it has
        ``rho`` too, how far the mixed weights went from the old ones (0) to the mean (1).

    Raises:
        UsageError: the algorithm does not learn online, or there are too many shards.
        DataError: workers died, or a cluster does not answer.
        OptimizerError: no usable weights came of it.
    """
    optimizer.learner()  # rejects batch optimizers
    options = optimizer.online
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    plan = Plan(int(rng.integers(1 << 62)), options.batch, problem.metric, problem.active_mask)
    parts = dealt(
        StoredSource(problem.tuning_set).sentences,
        1 if sharding.asynchronous else sharding.shards,
        plan.seed,
    )
    passes = _asynchronous if sharding.asynchronous else _synchronous
    best: tuple[float, NDArray[np.float64]] | None = None
    history = []
    with ExitStack() as stack:
        at_once = min(sharding.shards, problem.threads)
        executor = stack.enter_context(workers(sharding.workers, at_once, sharding.scheduler))
        shards = stack.enter_context(_shards(problem.tuning_set, parts, sharding))
        run = _Run(executor, optimizer, shards, sharding, problem, plan, initial)
        for epoch, passed in enumerate(islice(passes(run), options.epochs), start=1):
            found = usable(passed.weights)
            if found and (best is None or passed.score > best[0] or options.averaging != "best"):
                best = passed.score, passed.weights
            history.append(
                {
                    "epoch": epoch,
                    "score": passed.score if found else -np.inf,
                    **passed.facts,
                    "norm": float(np.linalg.norm(passed.weights)),
                    "active": int(np.count_nonzero(passed.weights)),
                }
            )
            progress(epoch, options.epochs, "epochs")
    if best is None:
        raise OptimizerError(
            "the weights became all zero; give less regularisation, a lower learning rate, or "
            "other starting weights"
        )
    weights = normalise(problem, best[1])
    return Solution(weights, corpus_score(problem, weights), tuple(history))


@dataclass(frozen=True)
class _Run:
    """What all epochs have in common."""

    executor: Executor
    optimizer: Optimizer
    shards: list[Shard]
    sharding: Sharding
    problem: Problem
    plan: Plan
    initial: NDArray[np.float64]


def _synchronous(run: _Run) -> Iterator[_Passed]:
    """Epochs of shards, mixed after each."""
    learner = run.optimizer.learner()
    weights, mean = run.initial, np.zeros(len(run.initial))
    states = [learner.init(weights) for _ in run.shards]
    for epoch in count(1):
        before = [state.updates for state in states]
        results = epoch_of_shards(run.executor, run.optimizer, states, run.shards, run.plan, epoch)
        states = [result.state for result in results]
        updates = [state.updates for state in states]
        gained = [now - then for now, then in zip(updates, before, strict=True)]
        vectors = [_finite(learner.weights(state)) for state in states]
        mix = mixed(run.sharding, run.problem, weights, vectors, gained)
        weights, score = mix.weights, mix.score
        states = [continued(state, weights) for state in states]
        tally = joined([result.tally for result in results])
        facts = {**tally.report, "rho": mix.rho, "updates": sum(updates)}
        if run.optimizer.online.averaging == "all":
            mean = mean + (weights - mean) / epoch
            yield _Passed(mean, corpus_score(run.problem, mean), facts)
        else:
            yield _Passed(weights, score, facts)


def _asynchronous(run: _Run) -> Iterator[_Passed]:
    """Epochs of one state that all workers look at."""
    averaging = run.optimizer.online.averaging == "all"
    learner = run.optimizer.learner()
    if averaging:
        learner = averaged(learner)
    state = learner.init(run.initial)
    (everything,) = run.shards
    for epoch in count(1):
        result = asynchronous_epoch(
            run.executor,
            run.optimizer,
            state,
            everything,
            run.plan,
            epoch,
            workers=run.sharding.shards,
            order=run.sharding.async_order,
            averaging=averaging,
        )
        state = result.state
        weights = _finite(mean_weights(learner, state))
        facts = {**result.report, "updates": state.updates}
        yield _Passed(weights, corpus_score(run.problem, weights), facts)


def _finite(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights.

    Raises:
        OptimizerError: one is not finite.
    """
    if not np.isfinite(weights).all():
        raise OptimizerError("the weights became too large; give a lower learning rate")
    return weights


@contextmanager
def _shards(
    tuning_set: TuningSet, parts: list[NDArray[np.int64]], sharding: Sharding
) -> Iterator[list[Shard]]:
    """The shards, with their lists where the workers see them."""
    if not sharding.elsewhere:
        source, stopped = StoredSource(tuning_set), Event()
        try:
            yield [SharedShard(source, part, stopped) for part in parts]
        finally:
            stopped.set()  # threads cannot be ended: after a failure they would learn on
        return
    with tempfile.TemporaryDirectory(prefix="mosesplug-", dir=sharding.directory) as directory:
        write_lists(tuning_set, directory)
        yield [FiledShard(directory, part) for part in parts]
