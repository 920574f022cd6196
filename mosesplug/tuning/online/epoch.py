"""One iteration of an online run: every mini-batch decoded, stored, and learnt from at once.

The lists of a batch and the number of batches are committed together. A run that was killed learns
the stored batches of its epoch again, from the state that the epoch began with, without decoding
them, and goes on; what it leaves is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.epochs import (
    AVERAGE,
    BatchDone,
    EpochResult,
    Plan,
    mean_weights,
    run_epoch,
)
from mosesplug.optimizers.online.learner import Learner, State
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Learning, Learnt, Note, PhaseStarted
from mosesplug.tuning.guarding import FirstLook, guard_decoded, guard_weights
from mosesplug.tuning.heldout import Judge, since_best
from mosesplug.tuning.iteration import before_decoding, write_after
from mosesplug.tuning.online.source import EpochLists, OnlineSource, model_weights, weights_of
from mosesplug.tuning.online.state import (
    Beginning,
    beginning,
    encode_state,
    forget_earlier_states,
    online_start,
    same_start,
)
from mosesplug.tuning.online.workers import DecodingWorkers, StaleSource
from mosesplug.tuning.resources import Clock, give_back
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    Evaluation,
    IterationResult,
    IterationStart,
    evaluations_of,
    result_of,
)
from mosesplug.tuning_set import Batch

__all__ = ["online_iteration"]


@dataclass(frozen=True)
class _Online:
    """What stays the same during an epoch.

    Attributes:
        context: of the run.
        texts: the sentences.
        decoder: of the batches, or several that work at once.
        judge: of held-out text, or None.
        iteration: from 1; the epoch's number, too.
        start: of the iteration.
        begin: of the epoch.
        before: evaluations of earlier iterations.
    """

    context: Context
    texts: Sequence[bytes]
    decoder: BatchDecoder | DecodingWorkers
    judge: Judge | None
    iteration: int
    start: IterationStart
    begin: Beginning
    before: tuple[Evaluation, ...]

    def weights(self, vector: NDArray[np.float64]) -> Weights:
        """Weights by name, from a vector of the learner's."""
        return weights_of(self.begin.numbering, vector, self.start.weights)


class _Enough(Exception):
    """Held-out translations do not get better: the epoch ends early."""

    def __init__(self, result: EpochResult) -> None:
        super().__init__()
        self.result = result


def online_iteration(
    context: Context,
    texts: Sequence[bytes],
    decoder: BatchDecoder | DecodingWorkers,
    judge: Judge | None,
) -> None:
    """Do what is left of the current iteration, or the whole of the next.

    Raises:
        DecoderError: the decoder failed; what is stored is gone on with later.
        OptimizerError: the weights are no longer usable.
        DataError: something looks wrong, and ``strict`` refuses it.
    """
    store = context.files.store
    records = store.iterations()
    current = records[-1] if records and records[-1].result is None else None
    done = records[:-1] if current else records
    last = result_of(done[-1]) if done else None
    iteration = len(done) + 1
    weights = last.weights if last else online_start(context)
    if last:
        # A kill may have come between the result and its files.
        write_after(context, iteration - 1, last)
    before_decoding(context, iteration, weights, last.optimum if last else None)
    before = evaluations_of(done)
    start = IterationStart(weights, context.data.seed, context.settings, (), 0.0)
    begin = beginning(context, weights, last)
    online = _Online(context, texts, decoder, judge, iteration, start, begin, before)
    give_back()  # the decoder's models want all the room that there is
    context.files.watch(PhaseStarted(iteration, "decode"))
    result = _learn(online, current)
    guard_decoded(context)
    guard_weights(context, result.weights)
    store.record_result(iteration, result.as_record())
    forget_earlier_states(store)
    write_after(context, iteration, result)


def _learn(online: _Online, finished: IterationRecord | None) -> IterationResult:
    """Go through the epoch, the store's part of it first.

    Args:
        online: of the epoch.
        finished: the iteration, where all of its lists are stored already.
    """
    context, iteration, begin = online.context, online.iteration, online.begin
    read, progress = _stored(online, finished)
    earlier = float(progress.get("seconds", 0.0))
    scores = _HeldOutScores(online, map(Evaluation.of_record, progress.get("heldout", ())))
    metric = context.data.configuration.metric
    plan = Plan(context.data.seed, context.optimizer.online.batch, metric, begin.numbering.active)
    lists = EpochLists(
        online.context.files.store,
        iteration,
        begin.numbering,
        read,
        metric,
        context.data.references,
        context.data.configuration.optimising.threads,
        FirstLook(context),
    )

    def far() -> dict[str, Any]:
        return {
            "start": online.start.as_record(),
            "heldout": [evaluation.as_record() for evaluation in scores.found],
            "seconds": earlier + source.seconds,
        }

    source = _source(online, lists, plan, progress, far, is_finished=finished is not None)
    clock = Clock()

    def after(done: BatchDone) -> None:
        score = float(metric.score(done.tally.totals))
        seconds = clock.seconds()
        context.files.watch(
            Learning(iteration, done.place + 1, done.of, metric.name, score, seconds)
        )
        scores.after(done)

    # Held-out text may have come with this epoch only: what it begins with is a result then, too.
    if not online.before:
        scores.add(begin.state)
    ended = False
    try:
        epoch = source.learn(begin.state, iteration, after)
    except _Enough as enough:
        epoch, ended = enough.result, True
    seconds = clock.seconds() - source.seconds - scores.seconds
    _tell(online, epoch, seconds)
    if not ended:
        scores.add(epoch.state)
    if finished is None:
        start = replace(online.start, seconds_decoding=earlier + source.seconds)
        online.context.files.store.finish_iteration(
            iteration, {**start.as_record(), **source.record}
        )
    return _result(online, epoch, scores.found, seconds)


@dataclass(frozen=True)
class _InTurn:
    """One decoder, which waits while the learner learns; as ``StaleSource``."""

    source: OnlineSource
    learner: Learner
    plan: Plan

    @property
    def seconds(self) -> float:
        """Spent on decoding."""
        return self.source.seconds

    @property
    def record(self) -> dict[str, Any]:
        """To be kept with the lists."""
        return {}

    def learn(self, state: State, epoch: int, on_batch: Callable[[BatchDone], None]) -> EpochResult:
        """Go through the epoch."""
        return run_epoch(self.learner, state, self.source, self.plan, epoch, on_batch=on_batch)


def _source(
    online: _Online,
    lists: EpochLists,
    plan: Plan,
    progress: Mapping[str, Any],
    far: Callable[[], Mapping[str, Any]],
    *,
    is_finished: bool,
) -> _InTurn | StaleSource:
    """What goes through the epoch: one decoder in turn with learning, or several at once.

    Args:
        online: of the epoch.
        lists: in the store.
        plan: of the epoch.
        progress: how far it is.
        far: what to store with the next part.
        is_finished: whether all of its lists are stored already.
    """
    context, learner = online.context, online.begin.learner

    def to_weights(vector: NDArray[np.float64]) -> ModelWeights:
        return model_weights(context.data.show, online.weights(vector))

    if not isinstance(online.decoder, DecodingWorkers):
        source = OnlineSource(
            lists,
            dict(enumerate(online.texts)),
            online.decoder,
            stored=int(progress["batches"]),
            to_weights=to_weights,
            progress=far,
        )
        return _InTurn(source, learner, plan)
    if online.iteration == 1:
        _tell_staleness(online, online.decoder.count, -(-len(online.texts) // plan.batch))
    order = [(int(place), int(version)) for place, version in progress.get("order", ())]
    places = {place for place, _ in order}
    return StaleSource(
        lists,
        online.texts,
        online.decoder,
        learner,
        plan,
        stored=lambda place: is_finished or place in places,
        replayed=order,
        to_weights=to_weights,
        progress=far,
    )


def _tell_staleness(online: _Online, workers: int, batches: int) -> None:
    """Say it where weights are never stale, or never fresh."""
    if workers == 1:
        note = "--async with one worker learns as without it: --shards says how many there are"
        online.context.files.watch(Note(note))
    elif workers >= batches > 1:
        note = (
            f"all {batches} mini-batches of an epoch are decoded with the weights that it begins"
            " with: take fewer --shards, or smaller mini-batches"
        )
        online.context.files.watch(Note(note, warning=True))


class _HeldOutScores:
    """Translations of the held-out text in one epoch; those that are known are not made again.

    Attributes:
        found: evaluations of the epoch.
        seconds: spent on them.
    """

    def __init__(self, online: _Online, known: Iterable[Evaluation]) -> None:
        self.found: list[Evaluation] = []
        self.seconds = 0.0
        self._online = online
        self._known = list(known)

    def add(self, state: State) -> None:
        """Translate with the weights of a state, if there is held-out text."""
        online = self._online
        if online.judge is None:
            return
        if len(self.found) < len(self._known):
            self.found.append(self._known[len(self.found)])
            return
        clock = Clock()
        candidate = online.weights(mean_weights(online.begin.learner, state))
        before = (*online.before, *self.found)
        found = online.judge.evaluated(online.iteration, state.updates, candidate, before)
        self.found.append(found)
        self.seconds += clock.seconds()

    def after(self, done: BatchDone) -> None:
        """Translate after every so many batches; the end of the epoch is another matter.

        Raises:
            _Enough: it was in vain too often.
        """
        held_out = self._online.context.data.configuration.held_out
        place = done.place + 1
        if held_out is None or not held_out.every or place % held_out.every or place == done.of:
            return
        self.add(done.state)
        stale = since_best((*self._online.before, *self.found))
        if held_out.patience and stale >= held_out.patience:
            raise _Enough(EpochResult(done.state, done.tally))


def _stored(
    online: _Online, finished: IterationRecord | None
) -> tuple[Callable[[NDArray[np.int64]], Batch], Mapping[str, Any]]:
    """What reads stored batches, and the progress of the epoch; another beginning is dropped."""
    context, store = online.context, online.context.files.store
    if finished is not None:
        metric, references = context.data.configuration.metric, context.data.references
        lists = store.iteration_set(finished.iteration, metric=metric, references=references)
        order = finished.record.get("order", ())
        return lists.tuning_set.take_sentences, {"batches": len(online.texts), "order": order}
    opened = store.open_iteration()
    if opened is None:
        return store.open_batch, {"batches": 0}
    if not same_start(online.start.as_record(), opened.progress["start"]):
        context.files.watch(
            Note(
                f"the epoch that was cut off, with lists of {len(opened.sentences)} sentences, was"
                " begun with other settings or weights: it is begun anew",
                warning=True,
            )
        )
        store.drop_open()
        return store.open_batch, {"batches": 0}
    context.files.watch(
        Note(
            f"going on inside epoch {online.iteration}: {len(opened.sentences)} of"
            f" {len(online.texts)} sentences are decoded"
        )
    )
    return store.open_batch, opened.progress


def _result(
    online: _Online, epoch: EpochResult, found: Sequence[Evaluation], seconds: float
) -> IterationResult:
    """What the epoch led to."""
    context, learner, state = online.context, online.begin.learner, epoch.state
    vector = learner.weights(state)
    if not np.isfinite(vector).all():
        raise OptimizerError(
            f"the weights of {context.optimizer.name} became too large in epoch {online.iteration};"
            " begin anew with a lower learning rate"
        )
    weights = online.weights(vector)
    average = online.weights(mean_weights(learner, state)) if AVERAGE in learner.fills else None
    score = float(context.data.configuration.metric.score(epoch.totals))
    return IterationResult(
        weights=weights,
        optimum=score,
        largest_change=weights.largest_change(online.start.weights),
        seconds_optimising=seconds,
        curve=({"epoch": online.iteration, "score": score, **_report(online, epoch)},),
        heldout=tuple(found),
        average=average,
        learner=encode_state(state, online.begin.numbering.space, learner),
    )


def _report(online: _Online, epoch: EpochResult) -> dict[str, float]:
    """What the learner reports of an epoch, and how large its weights are."""
    vector = online.begin.learner.weights(epoch.state)
    return {
        **epoch.report,
        "norm": float(np.linalg.norm(vector)),
        "active": int(np.count_nonzero(vector)),
        "updates": epoch.state.updates,
    }


def _tell(online: _Online, epoch: EpochResult, seconds: float) -> None:
    """Tell those who watch that an epoch is over."""
    metric = online.context.data.configuration.metric
    score = float(metric.score(epoch.totals))
    report = _report(online, epoch)
    online.context.files.watch(Learnt(online.iteration, metric.name, score, report, seconds))
