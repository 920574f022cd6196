"""Online learning by shards: an epoch of all at once, each decoding as it learns, then mixing.

Weights, what learners remember, statistics and, for a line search, two model scores a hypothesis
travel. Lists stay in the stores of the shards, in ``shard.1``, ``shard.2``, ... of the working
directory, which all workers must see. The run's own store has an iteration without lists for each
epoch: its weights, its scores and what each shard's learner remembers. It is written when the
epoch is over and mixed. Until then a run that was killed goes on in the shards, each from its own
stored batches; those that were done say so again.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import Plan, batches_of
from mosesplug.optimizers.online.learner import State
from mosesplug.optimizers.online.mixing import MixResult, average
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Learnt, Note, PhaseStarted
from mosesplug.tuning.guarding import guard_decoded, guard_weights
from mosesplug.tuning.heldout import Judge
from mosesplug.tuning.iteration import before_decoding, write_after
from mosesplug.tuning.online.counter import Counter, Word
from mosesplug.tuning.online.joining import joined_space, searched, widened
from mosesplug.tuning.online.numbering import Numbering
from mosesplug.tuning.online.shard import OnlineShard, ShardEpoch, learn_shard
from mosesplug.tuning.online.source import weights_of
from mosesplug.tuning.online.state import (
    decode_state,
    encode_state,
    forget_earlier_states,
    keeps_mean,
    online_start,
)
from mosesplug.tuning.parallel.executors import Ending
from mosesplug.tuning.parallel.sharding import continued, joined, plan_of, shared_weights
from mosesplug.tuning.resources import Clock, give_back
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    Evaluation,
    IterationResult,
    IterationStart,
    ShardLists,
    evaluations_of,
    result_of,
)

__all__ = ["Sharded", "sharded_iteration"]


@dataclass(frozen=True)
class Sharded:
    """What stays the same during a run.

    Attributes:
        context: of the run.
        texts: the sentences.
        parts: int64 each, the sentences of each shard.
        sharding: how.
        executor: where.
        decoder: how to make a shard's.
        judge: of held-out text, or None.
        told: notes of shards that the user knows; it grows.
    """

    context: Context
    texts: Sequence[bytes]
    parts: Sequence[NDArray[np.int64]]
    sharding: Sharding
    executor: Executor
    decoder: DecoderRecipe
    judge: Judge | None
    told: set[str] = field(default_factory=set)


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
        DataError: workers died; or something looks wrong, and ``strict`` refuses it.
    """
    context, store = run.context, run.context.files.store
    _drop_unfinished(context)
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
    give_back()  # the decoders' models want all the room that there is
    context.files.watch(PhaseStarted(iteration, "decode"))
    result, seconds = _epoch(run, begin)
    guard_decoded(context, result.optimum, begin.start.as_record())
    guard_weights(context, result.weights)
    if last is not None and result.average is not None and last.average is not None:
        result = replace(result, average=result.weights.mixed(last.average, 1.0 / iteration))
    point = result.curve[0]
    found += _judged(
        run, begin, result.average or result.weights, point["updates"], (*before, *found)
    )
    result = replace(result, heldout=tuple(found))
    context.files.watch(
        Learnt(
            iteration,
            context.data.configuration.metric.name,
            result.optimum,
            {name: value for name, value in point.items() if name not in ("epoch", "score")},
            result.seconds_optimising,
        )
    )
    _record(run, iteration, replace(begin.start, seconds_decoding=seconds), result)
    write_after(context, iteration, result)


def _epoch(run: Sharded, begin: _Beginning) -> tuple[IterationResult, float]:
    """What the epoch led to, and the seconds that the slowest shard was decoding."""
    clock = Clock()
    shards = _shards(run, begin)
    epochs = _learn(run, begin, shards)
    space = joined_space(begin.numbering.space, epochs)
    fills = run.context.optimizer.learner().fills
    states = [widened(epoch, len(begin.numbering.space), space, fills) for epoch in epochs]
    mix = _mixed(run, begin, shards, space, states)
    states = [continued(state, mix.weights) for state in states]
    decoding = max(epoch.seconds for epoch in epochs)
    learning = max(0.0, clock.seconds() - decoding)
    return _result(run, begin, space, epochs, mix, states, learning), decoding


def _record(
    run: Sharded,
    iteration: int,
    start: IterationStart,
    result: IterationResult,
) -> None:
    """Store an epoch that is over."""
    context, store = run.context, run.context.files.store
    store.add_iteration(
        iteration,
        (),
        metric=context.data.configuration.metric,
        references=context.data.references,
        n_sentences=len(run.texts),
        record=start.as_record(),
    )
    store.record_result(iteration, result.as_record())
    forget_earlier_states(store)


def _drop_unfinished(context: Context) -> None:
    """Lists of an epoch that was begun without shards are of no use to them."""
    store = context.files.store
    records = store.iterations()
    opened = store.open_iteration()
    unfinished = bool(records) and records[-1].result is None
    if opened is not None:
        store.drop_open()
    elif unfinished:
        store.drop_last(records[-1].iteration)
    if opened is not None or (unfinished and records[-1].n_lists):
        context.files.watch(
            Note(
                "the epoch that was cut off was begun without shards: it is begun anew",
                warning=True,
            )
        )


def _beginning(run: Sharded, iteration: int, last: IterationResult | None) -> _Beginning:
    """Where the next epoch begins: where the last one ended, or at given weights."""
    context = run.context
    weights = last.weights if last else online_start(context)
    learner = run.context.optimizer.learner()
    stored = None if last is None or last.learner is None else last.learner
    shards = [] if stored is None else stored.get("shards", [])
    if len(shards) != run.sharding.shards or any(
        set(state["vectors"]) != set(learner.fills) for state in shards
    ):
        shards, stored = [], None  # another learner's, or number: weights can be gone on with
    names = sorted(weights.sparse) if stored is None else stored["sparse"]
    active = context.data.configuration.optimising.active
    numbering = Numbering(context.data.space, names, active)
    vector = weights.vector(numbering.space)
    states = [decode_state(state) for state in shards]
    if not states:
        states = [learner.init(vector) for _ in range(run.sharding.shards)]
    else:
        vector = states[0].vectors["weights"]
    start = IterationStart(weights, context.data.seed, context.settings, (), 0.0)
    return _Beginning(iteration, start, numbering, vector, states)


def _shards(run: Sharded, begin: _Beginning) -> list[OnlineShard]:
    """The shards, told where the epoch begins."""
    context, configuration = run.context, run.context.data.configuration
    return [
        OnlineShard(
            number=number,
            directory=context.files.workspace.shard(number),
            texts={sentence: run.texts[sentence] for sentence in part.tolist()},
            decoder=run.decoder,
            show=context.data.show,
            weights=begin.start.weights,
            start={**begin.start.as_record(), "epoch": begin.iteration},
            sparse=begin.numbering.space.sparse,
            active=configuration.optimising.active,
            fingerprints=context.files.store.fingerprints,
            metric=configuration.metric,
            references=context.data.references,
            threads=configuration.optimising.threads,
        )
        for number, part in enumerate(run.parts, start=1)
    ]


def _learn(run: Sharded, begin: _Beginning, shards: list[OnlineShard]) -> list[ShardEpoch]:
    """All shards at once."""
    metric = run.context.data.configuration.metric
    plan = Plan(
        run.context.data.seed, run.context.optimizer.online.batch, metric, begin.numbering.active
    )
    plans = [plan_of(plan, number) for number in range(len(shards))]
    epoch = begin.iteration
    total = sum(
        len(batches_of(shard.sentences, plan, epoch))
        for shard, plan in zip(shards, plans, strict=True)
    )
    counter = Counter(run.context.files.watch, plan.metric, epoch, total)
    ending = Ending()
    elsewhere = run.sharding.elsewhere
    for shard in shards:  # of a run that was killed
        shard.progress.unlink(missing_ok=True)
    # Threads can be told to end; what goes elsewhere cannot.
    telling: list[tuple[Any, ...]] = [
        (None, Word(shard.progress)) if elsewhere else (ending, counter.of(number))
        for number, shard in enumerate(shards)
    ]
    try:
        under_way = [
            run.executor.submit(learn_shard, shard, run.context.optimizer, state, own, *more)
            for shard, state, own, more in zip(shards, begin.states, plans, telling, strict=True)
        ]
        counter.wait(under_way, [shard.progress for shard in shards] if elsewhere else [])
    except KeyboardInterrupt:
        ending.now()  # of one that fails, the others finish their batches
        raise
    finally:
        ending.soon.set()
    for shard in shards:
        shard.progress.unlink(missing_ok=True)
    epochs = [future.result() for future in under_way]
    for note in (note for found in epochs for note in found.notes):
        if note not in run.told:  # each epoch has decoders of its own, which say the same again
            run.told.add(note)
            run.context.files.watch(Note(note))
    return epochs


def _mixed(
    run: Sharded,
    begin: _Beginning,
    shards: list[OnlineShard],
    space: FeatureSpace,
    states: list[State],
) -> MixResult:
    """The weights after the epoch; their score is that of a line search, else not a number.

    Raises:
        OptimizerError: the weights of a shard are not finite.
    """
    context, sharding = run.context, run.sharding
    learner = run.context.optimizer.learner()
    vectors = [learner.weights(state) for state in states]
    if not all(np.isfinite(vector).all() for vector in vectors):
        raise OptimizerError(
            f"the weights of {context.optimizer.name} became too large in epoch {begin.iteration};"
            " begin anew with a lower learning rate"
        )
    old = np.append(begin.vector, np.zeros(len(space) - len(begin.vector)))
    if sharding.mixing == "line-search":
        metric = context.data.configuration.metric
        return searched(run.executor, shards, space, metric, old, average(vectors))
    pairs = zip(states, begin.states, strict=True)
    gained = [now.updates - then.updates for now, then in pairs]
    active = Numbering(
        context.data.space, space.sparse, context.data.configuration.optimising.active
    ).active
    weights = shared_weights(sharding, old, vectors, gained, active, space.n_dense)
    return MixResult(weights, 1.0, np.nan)


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
    context, learner = run.context, run.context.optimizer.learner()
    tally = joined([epoch.tally for epoch in epochs])
    score = float(context.data.configuration.metric.score(tally.totals))
    numbering = Numbering(space, space.sparse, None)
    weights = weights_of(numbering, mix.weights, begin.start.weights)
    mean = keeps_mean(context.data.configuration, context.optimizer)
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
