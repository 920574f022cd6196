"""Online learning by shards: an epoch of all at once, each decoding as it learns, then mixing.

Weights, what learners remember, statistics and, for a line search, two model scores a hypothesis
travel; lists stay in the stores of the shards. The run's own store has an iteration without lists
for each epoch: its weights, scores and what each shard's learner remembers. It is written when the
epoch is over and mixed. Until then a run that was killed goes on in the shards, each from its own
stored batches; those that were done say so again.

Sparse features get columns by name: those that all knew before the epoch, then those that the
first shard met, those that only the second met, and so on. Where a shard does not know a feature,
its weight there is 0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import BatchDone, Plan, Tally, batches_of
from mosesplug.optimizers.online.learner import Learner, State
from mosesplug.optimizers.online.mixing import MixResult, average, line_search
from mosesplug.optimizers.problem import Problem
from mosesplug.store import NBestStore
from mosesplug.tuning.clock import Clock
from mosesplug.tuning.events import Learning, Learnt, Note, PhaseStarted
from mosesplug.tuning.heldout import Judge
from mosesplug.tuning.online_decoder import DecoderRecipe
from mosesplug.tuning.online_numbering import Numbering
from mosesplug.tuning.online_shard import OnlineShard, ShardEpoch, learn_shard, line_scores
from mosesplug.tuning.online_source import weights_of
from mosesplug.tuning.online_state import (
    decode_state,
    encode_state,
    keeps_mean,
    online_start,
)
from mosesplug.tuning.records import (
    Evaluation,
    IterationResult,
    IterationStart,
    ShardLists,
    evaluations_of,
    result_of,
)
from mosesplug.tuning.sharding import (
    Recipe,
    Sharding,
    continued,
    joined,
    plan_of,
    shared_weights,
)
from mosesplug.tuning.start import columns
from mosesplug.tuning.steps import Context, before_decoding, write_after
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import TuningSet

__all__ = ["Sharded", "sharded_iteration"]


@dataclass(frozen=True)
class Sharded:
    """What stays the same during a run.

    Attributes:
        context: of the run.
        store: the run's own, open to be written.
        texts: the sentences.
        parts: int64 each, the sentences of each shard.
        sharding: how.
        executor: where.
        decoder: how to make a shard's.
        judge: of held-out text, or None.
    """

    context: Context
    store: NBestStore
    texts: Sequence[bytes]
    parts: Sequence[NDArray[np.int64]]
    sharding: Sharding
    executor: Executor
    decoder: DecoderRecipe
    judge: Judge | None

    @property
    def recipe(self) -> Recipe:
        """Of the learner."""
        return Recipe(self.context.algorithm.name, self.context.options)


@dataclass(frozen=True)
class _Beginning:
    """Where an epoch begins.

    Attributes:
        iteration: from 1; the epoch's number, too.
        start: for the record.
        numbering: of the features that all shards know.
        vector: float64 ``[n_features]``, the weights.
        states: of each shard's learner.
    """

    iteration: int
    start: IterationStart
    numbering: Numbering
    vector: NDArray[np.float64]
    states: list[State]


def sharded_iteration(run: Sharded) -> None:
    """Do what is left of the next epoch, or all of it.

    Raises:
        DecoderError: a decoder failed; what is stored is gone on with later.
        OptimizerError: the weights are no longer usable.
        DataError: workers died.
    """
    context, store = run.context, run.store
    _drop_unfinished(context, store)
    records = store.iterations()
    last = result_of(records[-1]) if records else None
    iteration = len(records) + 1
    if last:
        # A kill may have come between the result and its files.
        write_after(context, iteration - 1, last)
    begin = _beginning(run, iteration, last)
    before_decoding(context, iteration, begin.start.weights, last.optimum if last else None)
    before = evaluations_of(records)
    found = []
    if iteration == 1:
        found += _judged(run, begin, begin.start.weights, 0, before)
    context.watch(PhaseStarted(iteration, "decode"))
    clock = Clock()
    shards = _shards(run, begin)
    epochs = _learn(run, begin, shards)
    space = _joined_space(begin.numbering.space, epochs)
    states = [_widened(run, begin, space, epoch) for epoch in epochs]
    mix, states = _mixed(run, begin, shards, space, states)
    seconds = max(epoch.seconds for epoch in epochs)
    result = _result(run, begin, space, epochs, mix, states, max(0.0, clock.seconds() - seconds))
    if last is not None and result.average is not None and last.average is not None:
        result = replace(result, average=result.weights.mixed(last.average, 1.0 / iteration))
    point = result.curve[0]
    found += _judged(
        run, begin, result.average or result.weights, point["updates"], (*before, *found)
    )
    result = replace(result, heldout=tuple(found))
    context.watch(
        Learnt(
            iteration,
            context.configuration.metric.name,
            result.optimum,
            {name: value for name, value in point.items() if name not in ("epoch", "score")},
            result.seconds_optimising,
        )
    )
    _record(run, iteration, replace(begin.start, seconds_decoding=seconds), result, last)
    write_after(context, iteration, result)


def _record(
    run: Sharded,
    iteration: int,
    start: IterationStart,
    result: IterationResult,
    last: IterationResult | None,
) -> None:
    """Store an epoch that is over."""
    context, store = run.context, run.store
    store.add_iteration(
        iteration,
        (),
        metric=context.configuration.metric,
        references=context.references,
        n_sentences=len(run.texts),
        record=start.as_record(),
    )
    store.record_result(iteration, result.as_record())
    if last:
        # One state is enough to go on with, and one may take much room.
        store.record_result(iteration - 1, replace(last, learner=None).as_record())


def _drop_unfinished(context: Context, store: NBestStore) -> None:
    """Lists of an epoch that was begun without shards are of no use to them."""
    records = store.iterations()
    opened = store.open_iteration()
    unfinished = bool(records) and records[-1].result is None
    if opened is not None:
        store.drop_open()
    elif unfinished:
        store.drop_last(records[-1].iteration)
    if opened is not None or (unfinished and records[-1].n_lists):
        context.watch(
            Note(
                "the epoch that was cut off was begun without shards: it is begun anew",
                warning=True,
            )
        )


def _beginning(run: Sharded, iteration: int, last: IterationResult | None) -> _Beginning:
    """Where the next epoch begins: where the last one ended, or at given weights."""
    context = run.context
    weights = last.weights if last else online_start(context)
    learner = run.recipe.learner()
    stored = None if last is None or last.learner is None else last.learner
    shards = [] if stored is None else stored.get("shards", [])
    if len(shards) != run.sharding.shards or any(
        set(state["vectors"]) != set(learner.fills) for state in shards
    ):
        shards, stored = [], None  # another learner's, or number: weights can be gone on with
    names = sorted(weights.sparse) if stored is None else stored["sparse"]
    active = context.configuration.optimising.active
    numbering = Numbering(columns(context.show), names, active)
    vector = weights.vector(numbering.space)
    states = [decode_state(state) for state in shards]
    if not states:
        states = [learner.init(vector) for _ in range(run.sharding.shards)]
    else:
        vector = states[0].vectors["weights"]
    start = IterationStart(weights, context.seed, context.settings, (), 0.0)
    return _Beginning(iteration, start, numbering, vector, states)


def _shards(run: Sharded, begin: _Beginning) -> list[OnlineShard]:
    """The shards, told where the epoch begins."""
    context, configuration = run.context, run.context.configuration
    return [
        OnlineShard(
            number=number,
            directory=context.workspace.shard(number),
            texts={sentence: run.texts[sentence] for sentence in part.tolist()},
            decoder=run.decoder,
            show=context.show,
            weights=begin.start.weights,
            start={**begin.start.as_record(), "epoch": begin.iteration},
            sparse=begin.numbering.space.sparse,
            active=configuration.optimising.active,
            fingerprints=run.store.fingerprints,
            metric=configuration.metric,
            references=context.references,
            threads=configuration.optimising.threads,
        )
        for number, part in enumerate(run.parts, start=1)
    ]


def _learn(run: Sharded, begin: _Beginning, shards: list[OnlineShard]) -> list[ShardEpoch]:
    """All shards at once."""
    options: Any = run.context.options
    plan = Plan(
        run.context.seed,
        options.batch,
        run.context.configuration.metric,
        begin.numbering.active,
    )
    plans = [plan_of(plan, number) for number in range(len(shards))]
    epoch = begin.iteration
    total = sum(
        len(batches_of(shard.sentences, plan, epoch))
        for shard, plan in zip(shards, plans, strict=True)
    )
    counter = _Counter(run.context, epoch, total)
    stopped = threading.Event()
    # Threads can be told to stop, and can tell; what goes elsewhere cannot.
    here: list[tuple[Any, ...]] = [
        () if run.sharding.elsewhere else (stopped, counter.of(number))
        for number in range(len(shards))
    ]
    try:
        under_way = [
            run.executor.submit(learn_shard, shard, run.recipe, state, own, *more)
            for shard, state, own, more in zip(shards, begin.states, plans, here, strict=True)
        ]
        epochs = []
        for number, future in enumerate(under_way):
            epochs.append(future.result())
            counter.add(number, epochs[-1].tally)
    finally:
        stopped.set()
    for found in epochs:
        for note in found.notes:
            run.context.watch(Note(note))
    return epochs


class _Counter:
    """Tells those who watch how far all shards are."""

    def __init__(self, context: Context, epoch: int, total: int) -> None:
        """Begin at nothing, of so many batches."""
        self._context, self._epoch, self._total = context, epoch, total
        self._tallies: dict[int, Tally] = {}
        self._clock = Clock()
        self._lock = threading.Lock()

    def of(self, number: int) -> Callable[[BatchDone], None]:
        """What a thread tells of its shard's batches."""
        return lambda done: self.add(number, done.tally)

    def add(self, number: int, tally: Tally) -> None:
        """A shard has come so far; told of it again, nothing happens."""
        with self._lock:
            if number in self._tallies and self._tallies[number].batches == tally.batches:
                return
            self._tallies[number] = tally
            # In the order of the shards: which thread came first must not show.
            so_far = joined([self._tallies[number] for number in sorted(self._tallies)])
            metric = self._context.configuration.metric
            score = float(metric.score(so_far.totals))
            event = Learning(
                self._epoch,
                so_far.batches,
                self._total,
                metric.name,
                score,
                self._clock.seconds(),
            )
            self._context.watch(event)


def _joined_space(before: FeatureSpace, epochs: Sequence[ShardEpoch]) -> FeatureSpace:
    """The features that all knew, and then those that the shards met, in their order."""
    met = dict.fromkeys(name for epoch in epochs for name in epoch.new)
    return FeatureSpace(before.groups, (*before.sparse, *met))


def _widened(run: Sharded, begin: _Beginning, space: FeatureSpace, epoch: ShardEpoch) -> State:
    """A shard's state over the features of all."""
    fills = run.recipe.learner().fills
    n_before = len(begin.numbering.space)
    places = {
        name: column
        for column, name in enumerate(space.sparse[n_before - space.n_dense :], start=n_before)
    }
    own = np.array([places[name] for name in epoch.new], dtype=np.int64)

    def widened(name: str, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        wide = np.full(len(space), fills[name])
        wide[:n_before] = vector[:n_before]
        wide[own] = vector[n_before:]
        return wide

    state = epoch.state
    vectors = {name: widened(name, vector) for name, vector in state.vectors.items()}
    return replace(state, vectors=vectors)


def _mixed(
    run: Sharded,
    begin: _Beginning,
    shards: list[OnlineShard],
    space: FeatureSpace,
    states: list[State],
) -> tuple[MixResult, list[State]]:
    """The weights after the epoch, and the states to go on from there.

    The score is that of a line search, else not a number: lists stay where they are.
    """
    context, sharding = run.context, run.sharding
    learner = run.recipe.learner()
    old = np.append(begin.vector, np.zeros(len(space) - len(begin.vector)))
    vectors = [_finite(context, begin.iteration, learner, state) for state in states]
    if sharding.mixing == "line-search":
        mix = _searched(run, shards, space, old, average(vectors))
    else:
        pairs = zip(states, begin.states, strict=True)
        gained = [now.updates - then.updates for now, then in pairs]
        numbering = Numbering(
            columns(context.show), space.sparse, context.configuration.optimising.active
        )
        weights = shared_weights(sharding, old, vectors, gained, numbering.active, space.n_dense)
        mix = MixResult(weights, 1.0, np.nan)
    return mix, [continued(state, mix.weights) for state in states]


def _finite(context: Context, epoch: int, learner: Learner, state: State) -> NDArray[np.float64]:
    """A shard's weights.

    Raises:
        OptimizerError: one is not finite.
    """
    vector = learner.weights(state)
    if not np.isfinite(vector).all():
        raise OptimizerError(
            f"the weights of {context.algorithm.name} became too large in epoch {epoch};"
            " begin anew with a lower learning rate"
        )
    return vector


def _searched(
    run: Sharded,
    shards: list[OnlineShard],
    space: FeatureSpace,
    old: NDArray[np.float64],
    mean: NDArray[np.float64],
) -> MixResult:
    """The best point on the line through the old weights and the mean (Watanabe 2012, Alg. 3).

    Each shard gives two model scores a hypothesis. To the search these are the features: it goes
    from the weights (1, 0) to (1, 1).
    """
    direction = mean - old
    if not old.any():
        return MixResult(mean, 1.0, np.nan)
    if not mean.any():
        return MixResult(old, 0.0, np.nan)
    under_way = [
        run.executor.submit(line_scores, shard, space.sparse, old, direction) for shard in shards
    ]
    found = [future.result() for future in under_way]
    sizes = np.concatenate([np.diff(scores.offsets) for scores in found])
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    stats = np.concatenate([scores.stats for scores in found])
    lists = TuningSet(
        space=FeatureSpace((("old", 1), ("direction", 1))),
        sentence_ids=np.arange(len(sizes)),
        offsets=offsets,
        # All their digits: as many as scores of features have that are added up here.
        dense=cast(Any, np.concatenate([scores.scores for scores in found])),
        sparse=None,
        stats=stats,
        lengths=np.ones(len(stats), dtype=np.int32),
    )
    problem = Problem(lists, run.context.configuration.metric)
    mix = line_search(problem, np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    weights = mean if mix.rho == 1.0 else old + mix.rho * direction
    return replace(mix, weights=weights)


def _result(
    run: Sharded,
    begin: _Beginning,
    space: FeatureSpace,
    epochs: Sequence[ShardEpoch],
    mix: MixResult,
    states: Sequence[State],
    seconds: float,
) -> IterationResult:
    """What the epoch led to."""
    context, learner = run.context, run.recipe.learner()
    tally = joined([epoch.tally for epoch in epochs])
    score = float(context.configuration.metric.score(tally.totals))
    numbering = Numbering(space, space.sparse, None)
    weights = weights_of(numbering, mix.weights, begin.start.weights)
    options: Any = context.options
    mean = keeps_mean(context.configuration, options.averaging)
    searched = {} if np.isnan(mix.score) else {"mixed": mix.score}
    point = {
        "epoch": begin.iteration,
        "score": score,
        **tally.report,
        "rho": mix.rho,
        **searched,
        "norm": float(np.linalg.norm(mix.weights)),
        "active": int(np.count_nonzero(mix.weights)),
        "updates": sum(state.updates for state in states),
    }
    return IterationResult(
        weights=weights,
        optimum=score,
        largest_change=weights.largest_change(begin.start.weights),
        seconds_optimising=seconds,
        curve=(point,),
        average=weights if mean else None,
        learner={
            "shards": [encode_state(state, space, learner) for state in states],
            "sparse": list(space.sparse),
        },
        shards=ShardLists(
            score,
            sum(epoch.sentences for epoch in epochs),
            sum(epoch.hypotheses for epoch in epochs),
            sum(epoch.new_hypotheses for epoch in epochs),
        ),
    )


def _judged(
    run: Sharded,
    begin: _Beginning,
    weights: Weights,
    updates: int,
    before: Sequence[Evaluation],
) -> list[Evaluation]:
    """A translation of the held-out text, if there is any."""
    if run.judge is None:
        return []
    return [run.judge.evaluated(begin.iteration, updates, weights, before)]
