"""One iteration of an online run: an epoch that decodes, learns, and is recorded.

The batches are decoded in turn with learning, by several decoders at once, or in shards. With
shards, lists stay in the stores of the shards, in ``shard.1``, ``shard.2``, ... of the working
directory, which all workers must see. The run's own store then has an iteration without lists for
each epoch, with its weights, scores and the state of each shard's learner; it is written when the
epoch is mixed. A run that is interrupted before that is resumed by the shards, each from its own
stored batches; those that were done repeat their reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.text import read_lines
from mosesplug.decoders.batch import BatchDecoder
from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import (
    AVERAGE,
    BatchDone,
    EpochReport,
    Plan,
    batches_of,
    mean_weights,
    require_finite_weights,
    run_epoch,
)
from mosesplug.optimizers.online.learner import State
from mosesplug.settings.sharding import Sharding
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import EpochLearned, EpochProgress, Note, PhaseStarted
from mosesplug.tuning.guarding import FirstLook, guard_decoded, guard_weights
from mosesplug.tuning.heldout import HeldOutScorer, count_since_best
from mosesplug.tuning.iteration import write_decoding_files, write_result_files
from mosesplug.tuning.online.numbering import model_weights, named_weights
from mosesplug.tuning.online.shard import DecodedCorpus, DecodedShard
from mosesplug.tuning.online.source import DecodingSource, EpochLists, EpochSetup
from mosesplug.tuning.online.state import (
    EpochStart,
    averages_weights,
    encode_state,
    forget_earlier_states,
    online_start,
    start_epoch,
)
from mosesplug.tuning.online.workers import (
    DecodingWorkers,
    StaleDecodingSource,
    open_decoding_workers,
)
from mosesplug.tuning.parallel.executors import open_executor
from mosesplug.tuning.parallel.progress import ShardProgress
from mosesplug.tuning.parallel.shards import (
    plan_of_shard,
    run_sharded_epoch,
    split_into_shards,
)
from mosesplug.tuning.parallel.stale import run_stale_epoch
from mosesplug.tuning.resources import Clock, give_back
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    Evaluation,
    IterationResult,
    IterationStart,
    ShardLists,
    read_evaluations,
    read_result,
)

__all__ = ["OnlineRun", "open_online_run", "run_online_iteration"]


@dataclass(frozen=True)
class _ShardWorkers:
    """Workers that run shards.

    Attributes:
        sharding: how to mix, and where workers are.
        parts: int64 each, the sentences of each shard.
        executor: runs them.
        decoder: makes a shard's decoder.
    """

    sharding: Sharding
    parts: Sequence[NDArray[np.int64]]
    executor: Executor
    decoder: DecoderRecipe


@dataclass(frozen=True)
class OnlineRun:
    """What all iterations share.

    Attributes:
        context: of the run.
        texts: the source sentences.
        workers: one decoder, several that work at once, or shards.
        judge: of the held-out set, or None.
        shard_notes: notes of shards that the user has seen; it grows.
    """

    context: Context
    texts: Sequence[bytes]
    workers: BatchDecoder | DecodingWorkers | _ShardWorkers
    judge: HeldOutScorer | None
    shard_notes: set[str] = field(default_factory=set)


@contextmanager
def open_online_run(context: Context, judge: HeldOutScorer | None) -> Iterator[OnlineRun]:
    """Start the decoders and workers of an online run; they end with the block.

    Raises:
        UsageError: a server is requested, and this decoder cannot be one.
        DecoderError: a server is requested and does not start; or it is not exact, and must be.
        DataError: a cluster does not answer.
    """
    texts = read_lines(context.data.configuration.input)
    sharding = context.data.configuration.optimising.sharding
    workers: BatchDecoder | DecodingWorkers | _ShardWorkers
    with ExitStack() as stack:
        decoding = context.decoder.serve(
            texts, model_weights(context.data.show, context.data.start)
        )
        if sharding is None:
            workers = stack.enter_context(decoding)
        else:
            # This decoder shows what decoders can do; each shard or worker has one of its own.
            with decoding as decoder:
                recipe = context.decoder.recipe(decoder, sharding.shards)
            if sharding.asynchronous:
                workers = stack.enter_context(
                    open_decoding_workers(recipe, sharding, context.files.watch)
                )
            else:
                parts = split_into_shards(np.arange(len(texts)), sharding.shards, context.data.seed)
                executor = stack.enter_context(
                    open_executor(sharding.workers, sharding.shards, sharding.scheduler)
                )
                workers = _ShardWorkers(sharding, parts, executor, recipe)
        yield OnlineRun(context, texts, workers, judge)


@dataclass(frozen=True)
class _Epoch:
    """What stays the same during an iteration.

    Attributes:
        run: of which it is part.
        iteration: from 1; the epoch's number, too.
        record: of its start.
        start: of the learner.
        before: evaluations of earlier iterations.
    """

    run: OnlineRun
    iteration: int
    record: IterationStart
    start: EpochStart
    before: tuple[Evaluation, ...]

    @property
    def plan(self) -> Plan:
        """Seed, batches, metric and active weights."""
        context = self.run.context
        metric = context.data.configuration.metric
        return Plan(
            context.data.seed, context.optimizer.online.batch, metric, self.start.numbering.active
        )

    def setup(self, sentences: Iterable[int], **more: Any) -> EpochSetup:
        """Return the setup of some sentences; ``more`` goes into the start record."""
        context, configuration = self.run.context, self.run.context.data.configuration
        return EpochSetup(
            texts={sentence: self.run.texts[sentence] for sentence in sentences},
            show=context.data.show,
            weights=self.record.weights,
            start={**self.record.as_record(), **more},
            sparse=self.start.numbering.space.sparse,
            active=configuration.optimising.active,
            metric=configuration.metric,
            references=context.data.references,
            threads=configuration.optimising.threads,
        )

    def evaluate(self, weights: Weights, updates: int, *found: Evaluation) -> list[Evaluation]:
        """Translate the held-out set, if there is one; ``found`` are earlier evaluations."""
        if self.run.judge is None:
            return []
        before = (*self.before, *found)
        return [self.run.judge.evaluated(self.iteration, updates, weights, before)]


def run_online_iteration(run: OnlineRun) -> None:
    """Finish the interrupted iteration, or run the next one.

    Raises:
        DecoderError: a decoder failed; the next run resumes from what is stored.
        OptimizerError: the weights are no longer usable.
        DataError: workers died; or a check failed, and ``strict`` is set.
    """
    context, store = run.context, run.context.files.store
    shards = len(run.workers.parts) if isinstance(run.workers, _ShardWorkers) else None
    if shards is not None:
        _drop_unsharded_epoch(context)
    records = store.iterations()
    current = records[-1] if records and records[-1].result is None else None
    done = records[:-1] if current else records
    last = read_result(done[-1]) if done else None
    iteration = len(done) + 1
    weights = last.weights if last else online_start(context)
    if last:
        # A kill may have come between the result and its files.
        write_result_files(context, iteration - 1, last)
    write_decoding_files(context, iteration, weights, last.optimum if last else None)
    record = IterationStart(weights, context.data.seed, context.settings, (), 0.0)
    start = start_epoch(context, weights, last, shards)
    epoch = _Epoch(run, iteration, record, start, read_evaluations(done))
    if isinstance(run.workers, _ShardWorkers):
        result = _run_shards(epoch, run.workers, last)
    else:
        result = _run_batches(epoch, run.workers, current)
    store.record_result(iteration, result.as_record())
    forget_earlier_states(store)
    write_result_files(context, iteration, result)


def _run_batches(
    epoch: _Epoch, workers: BatchDecoder | DecodingWorkers, current: IterationRecord | None
) -> IterationResult:
    """Run an epoch of one learner, stored batches first.

    Args:
        epoch: to be run.
        workers: one decoder, which waits while the learner learns, or several.
        current: the iteration, if all its lists are stored.
    """
    run, iteration, start = epoch.run, epoch.iteration, epoch.start
    context, metric = run.context, run.context.data.configuration.metric
    give_back()  # leave memory to the decoder's models
    context.files.watch(PhaseStarted(iteration, "decode"))
    evaluations: list[Evaluation] = []
    lists = EpochLists(
        run.context.files.store,
        epoch.setup(range(len(run.texts))),
        current,
        context.files.watch,
        progress=lambda: {"heldout": [evaluation.as_record() for evaluation in evaluations]},
        inspect=FirstLook(context),
    )
    learner = lists.numbering.restrict(start.learner)
    decoded_before, clock = lists.seconds, Clock()
    scores = _HeldOutScores(epoch, lists, evaluations)

    def after_batch(done: BatchDone) -> bool:
        score, seconds = float(metric.score(done.tally.totals)), clock.seconds()
        context.files.watch(
            EpochProgress(iteration, done.place + 1, done.of, metric.name, score, seconds)
        )
        return scores.after_batch(done)

    # The held-out set may be new in this epoch: then its start is evaluated, too.
    if not epoch.before:
        scores.add(start.states[0])
    (state,) = start.states
    if isinstance(workers, DecodingWorkers):
        stale = StaleDecodingSource(lists, workers, learner)
        if iteration == 1:
            _note_staleness(epoch, workers.count)
        report = run_stale_epoch(
            learner,
            state,
            stale,
            epoch.plan,
            iteration,
            workers=workers.count,
            order=workers.order,
            replay=stale.replay,
            on_batch=after_batch,
        )
        order = stale.order
    else:
        source = DecodingSource(lists, workers)
        report = run_epoch(learner, state, source, epoch.plan, iteration, on_batch=after_batch)
        order = None
    seconds = clock.seconds() - (lists.seconds - decoded_before) - scores.seconds
    vector = learner.weights(report.state)
    result = _epoch_result(epoch, report, lists.numbering.space, vector, seconds)
    _send_learnt(epoch, result)
    if not scores.is_exhausted:
        scores.add(report.state)
    lists.finish(order)
    require_finite_weights(vector, context.optimizer.name, iteration)
    average = None
    if AVERAGE in learner.fills:
        mean = mean_weights(learner, report.state)
        average = named_weights(lists.numbering.space, mean, epoch.record.weights)
    result = replace(
        result,
        heldout=tuple(evaluations),
        average=average,
        learner=encode_state(report.state, lists.numbering.space, learner),
    )
    guard_decoded(context)
    guard_weights(context, result.weights)
    return result


def _note_staleness(epoch: _Epoch, workers: int) -> None:
    """Tell the user if weights are never stale, or never fresh."""
    watch, batches = epoch.run.context.files.watch, -(-len(epoch.run.texts) // epoch.plan.batch)
    if workers == 1:
        watch(Note("--async with one worker learns as without it: --shards sets their number"))
    elif workers >= batches > 1:
        note = (
            f"all {batches} mini-batches of an epoch are decoded with the weights before it. Use"
            " fewer --shards, or smaller mini-batches"
        )
        watch(Note(note, warning=True))


class _HeldOutScores:
    """Evaluations on the held-out set within an epoch; stored ones are not repeated.

    Attributes:
        seconds: spent on them.
        is_exhausted: whether they have not improved for too long.
    """

    def __init__(self, epoch: _Epoch, lists: EpochLists, evaluations: list[Evaluation]) -> None:
        self.seconds = 0.0
        self.is_exhausted = False
        self._epoch, self._lists, self._evaluations = epoch, lists, evaluations
        self._stored = [Evaluation.of_record(each) for each in lists.stored.get("heldout", ())]

    def add(self, state: State) -> None:
        """Evaluate the weights of a state, if there is a held-out set."""
        epoch, found = self._epoch, self._evaluations
        if epoch.run.judge is None:
            return
        if len(found) < len(self._stored):
            found.append(self._stored[len(found)])
            return
        clock = Clock()
        mean = mean_weights(epoch.start.learner, state)
        weights = named_weights(self._lists.numbering.space, mean, epoch.record.weights)
        found += epoch.evaluate(weights, state.updates, *found)
        self.seconds += clock.seconds()

    def after_batch(self, done: BatchDone) -> bool:
        """Evaluate if it is time, but not after the last batch; return whether to stop."""
        held_out = self._epoch.run.context.data.configuration.held_out
        number = done.place + 1
        if held_out is None or not held_out.every or number % held_out.every or number == done.of:
            return False
        self.add(done.state)
        stale = count_since_best((*self._epoch.before, *self._evaluations))
        self.is_exhausted = bool(held_out.patience and stale >= held_out.patience)
        return self.is_exhausted


def _run_shards(
    epoch: _Epoch, workers: _ShardWorkers, last: IterationResult | None
) -> IterationResult:
    """Run an epoch of shards, mix it and store its iteration, which has no lists."""
    run, iteration, start = epoch.run, epoch.iteration, epoch.start
    context, configuration = run.context, run.context.data.configuration
    evaluations = epoch.evaluate(epoch.record.weights, 0) if iteration == 1 else []
    give_back()  # leave memory to the decoders' models
    context.files.watch(PhaseStarted(iteration, "decode"))
    clock = Clock()
    shards = [
        DecodedShard(
            number,
            context.files.workspace.shard(number),
            epoch.setup(part.tolist(), epoch=iteration),
            workers.decoder,
            run.context.files.store.fingerprints,
        )
        for number, part in enumerate(workers.parts, start=1)
    ]
    plans = [plan_of_shard(epoch.plan, number) for number in range(len(shards))]
    total = sum(
        len(batches_of(shard.sentences, plan, iteration))
        for shard, plan in zip(shards, plans, strict=True)
    )
    corpus = DecodedCorpus(workers.executor, shards)
    files = [shard.directory / "progress" for shard in shards if workers.sharding.elsewhere]
    report, mix = run_sharded_epoch(
        workers.executor,
        context.optimizer,
        start.states,
        shards,
        epoch.plan,
        iteration,
        sharding=workers.sharding,
        corpus=corpus,
        old=start.vector,
        progress=ShardProgress(context.files.watch, configuration.metric, iteration, total, files),
    )
    for note in report.notes:
        if note not in run.shard_notes:  # each epoch has new decoders, which repeat their notes
            run.shard_notes.add(note)
            context.files.watch(Note(note))
    seconds = max(0.0, clock.seconds() - report.seconds)
    space = FeatureSpace(corpus.space.groups, (*corpus.space.sparse, *report.features))
    facts = {"rho": mix.rho} if np.isnan(mix.score) else {"rho": mix.rho, "mixed": mix.score}
    result = _epoch_result(epoch, report, space, mix.weights, seconds, facts)
    average = None
    if averages_weights(configuration, context.optimizer):
        average = result.weights
        if last is not None and last.average is not None:
            average = result.weights.mixed(last.average, 1.0 / iteration)
    guard_decoded(context, result.optimum, epoch.record.as_record())
    guard_weights(context, result.weights)
    evaluations += epoch.evaluate(average or result.weights, report.updates, *evaluations)
    _send_learnt(epoch, result)
    run.context.files.store.add_iteration(
        iteration,
        (),
        metric=configuration.metric,
        references=context.data.references,
        n_sentences=len(run.texts),
        record=replace(epoch.record, seconds_decoding=report.seconds).as_record(),
    )
    return replace(
        result,
        heldout=tuple(evaluations),
        average=average,
        learner={
            "shards": [encode_state(state, space, start.learner) for state in report.states],
            "sparse": list(space.sparse),
        },
        shards=ShardLists(
            result.optimum, report.sentences, report.hypotheses, report.new_hypotheses
        ),
    )


def _drop_unsharded_epoch(context: Context) -> None:
    """Drop the lists of an interrupted epoch without shards: shards cannot use them."""
    store = context.files.store
    records = store.iterations()
    opened = store.open_iteration()
    unfinished = bool(records) and records[-1].result is None
    if opened is not None:
        store.drop_open()
    elif unfinished:
        store.drop_last(records[-1].iteration)
    if opened is not None or (unfinished and records[-1].n_lists):
        note = "the interrupted epoch starts again: it was started without shards"
        context.files.watch(Note(note, warning=True))


def _epoch_result(
    epoch: _Epoch,
    report: EpochReport,
    space: FeatureSpace,
    vector: NDArray[np.float64],
    seconds: float,
    facts: Mapping[str, float] | None = None,
) -> IterationResult:
    """Return what every epoch records; ``facts`` are further values for the curve."""
    score = float(epoch.run.context.data.configuration.metric.score(report.totals))
    weights = named_weights(space, vector, epoch.record.weights)
    point = {
        "epoch": epoch.iteration,
        "score": score,
        **report.means,
        **(facts or {}),
        "norm": float(np.linalg.norm(vector)),
        "active": int(np.count_nonzero(vector)),
        "updates": report.updates,
    }
    return IterationResult(
        weights=weights,
        optimum=score,
        largest_change=weights.largest_change(epoch.record.weights),
        seconds_optimising=seconds,
        curve=(point,),
    )


def _send_learnt(epoch: _Epoch, result: IterationResult) -> None:
    """Tell the user that an epoch is done."""
    (point,) = result.curve
    report = {name: value for name, value in point.items() if name not in ("epoch", "score")}
    epoch.run.context.files.watch(
        EpochLearned(
            epoch.iteration,
            epoch.run.context.data.configuration.metric.name,
            result.optimum,
            report,
            result.seconds_optimising,
        )
    )
