"""One epoch of shards that decode, and the mixing of their weights.

A shard has its own sentences, its own decoder, and its own store in ``shard.1``, ``shard.2``, ...
of the working directory, which keeps its lists, epoch by epoch. An epoch of a shard is a pure
function of its arguments and of the stored lists: a worker that replaces a dead one, or a resumed
run, replays the stored batches, decodes the rest, and ends with the same bytes. All workers see
that directory, and the system to tune, under the same names. The run's own store has an iteration
without lists for each epoch, with its weights, scores and the state of each shard's learner; it is
written when the epoch is mixed. A run that is interrupted before that is resumed by the shards,
each from its own stored batches; those that were done repeat their reports.

Shards meet sparse features independently: each keeps the columns of those that were known before
the epoch, appends new ones as they come, and names these in its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.batch import DecoderRecipe
from mosesplug.errors import DataError
from mosesplug.events import Clock, Note, PhaseStarted
from mosesplug.features import FeatureSpace
from mosesplug.large_arrays import release_memory
from mosesplug.optimizers.online.mixing import MixResult
from mosesplug.settings.sharding import Sharding
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.guarding import guard_decoded, guard_weights
from mosesplug.tuning.online.epoch import Epoch, make_result, mean_of_epochs, report_epoch
from mosesplug.tuning.online.numbering import FeatureNumbering, SentenceCounts
from mosesplug.tuning.online.source import EpochLists, EpochSetup, is_same_start
from mosesplug.tuning.online.state import (
    averages_weights,
    encode_counts,
    encode_state,
    find_mean,
)
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.mixing import LineScores, search_line
from mosesplug.tuning.parallel.progress import ShardProgress
from mosesplug.tuning.parallel.shards import run_sharded_epoch
from mosesplug.tuning.workdir.records import IterationResult, ListFigures


@dataclass(frozen=True)
class DecodedShard:
    """A ``Shard`` for one epoch; any worker can open it.

    Attributes:
        number: from 1.
        directory: the directory of its store.
        setup: the setup of the epoch, with the shard's sentences; its start record has the epoch's
            number as ``epoch``.
        fingerprints: the fingerprints of the files that the store must have been made from.
    """

    number: int
    directory: Path
    setup: EpochSetup
    decoder: DecoderRecipe
    fingerprints: Mapping[str, str]

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending."""
        return self.setup.sentences

    @property
    def store(self) -> Path:
        """Its lists."""
        return self.directory / "nbests.lmdb"

    @contextmanager
    def open(self, stop: StopSignal | None = None) -> Iterator[EpochLists]:
        """Open the store, make the decoder, and find out how far the epoch is.

        Args:
            stop: the stop signal of this thread, which also ends the decoder.

        Raises:
            DataError: this worker does not see the working directory.
            StoreError: another worker has the store open, or it is not of this run.
        """
        release_memory()  # memory of the previous epoch, if this is not the run's process
        try:
            self.directory.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise DataError(
                f"{self.directory.parent}: a worker does not find this directory. Shards that"
                " decode keep their lists in the working directory: choose one that all workers"
                " see under this name."
            ) from error
        notes: list[str] = []
        signal = stop or StopSignal()

        def note(text: str) -> None:
            signal.check()  # a lost server announces its restart here: not while stopping
            notes.append(f"shard {self.number}: {text}")

        beat = None if stop is None else stop.check
        with NBestStore.open(self.store, writable=True) as store:
            store.require(self.fingerprints)
            if self.setup.sentence_weights is not None:
                store.keep_sentence_weights(self.setup.sentence_weights.values)
            with self.decoder.make(f"shard{self.number}", note, beat) as decoder:
                signal.on_stop(decoder.close)
                yield EpochLists(
                    store,
                    self.setup,
                    self._complete(store),
                    lambda message: note(message.text),
                    decoder=decoder,
                    notes=notes,
                )

    def _complete(self, store: NBestStore) -> IterationRecord | None:
        """Return the store's iteration of this epoch, if all its lists are stored.

        A store numbers by itself: it may hold epochs that were started again with other settings.
        """
        records = store.iterations()
        is_this = records and is_same_start(self.setup.start, records[-1].record)
        return records[-1] if is_this else None

    def line_scores(
        self, sparse: Sequence[str], old: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> LineScores:
        """Compute the model scores of the lists of the finished epoch; runs in a worker.

        Args:
            sparse: names of the sparse features that any shard knows after the epoch.
            old: float64 ``[n_dense + len(sparse)]``, the start of the line.
        """
        setup = self.setup
        with NBestStore.open(self.store) as store:
            lists = store.iteration_set(
                store.iterations()[-1].iteration, metric=setup.metric, references=setup.references
            ).tuning_set
        lists = lists.take_sentences(np.flatnonzero(np.diff(lists.offsets) > 0))
        n_dense = lists.space.n_dense
        places = {name: place for place, name in enumerate(sparse, start=n_dense)}
        # The store may have features of dropped epochs, which no list of this one has.
        known = np.array([places.get(name, -1) for name in lists.space.sparse], dtype=np.int64)
        wanted = np.append(np.arange(n_dense), known)
        scores = [
            lists.model_scores(np.where(wanted < 0, 0.0, vector[wanted]))
            for vector in (old, direction)
        ]
        return LineScores(lists.offsets, np.stack(scores, axis=1), lists.weighted_stats)


@dataclass(frozen=True)
class DecodedCorpus:
    """A ``Corpus`` of lists that stay in the shards.

    Attributes:
        shards: whose epoch is finished when weights are mixed.
    """

    executor: Executor
    shards: Sequence[DecodedShard]

    @property
    def space(self) -> FeatureSpace:
        """The features that all shards know before the epoch."""
        return self.shards[0].setup.numbering().space

    def active(self, space: FeatureSpace, counts: SentenceCounts | None) -> NDArray[np.bool_]:
        """bool ``[len(space)]``: the weights that may change."""
        return self.number(space, counts).active

    def number(self, space: FeatureSpace, counts: SentenceCounts | None) -> FeatureNumbering:
        """Number the features of all shards after the epoch, with their counts."""
        setup = self.shards[0].setup
        dense = FeatureSpace.of_names(setup.show.names)
        numbering = FeatureNumbering(dense, space.sparse, setup.selection, setup.counts_before)
        numbering.counts = counts
        return numbering

    def score(self, weights: NDArray[np.float64]) -> float:
        """Return NaN: only a line search looks at the lists."""
        return float("nan")

    def search(
        self, space: FeatureSpace, old: NDArray[np.float64], mixed: NDArray[np.float64]
    ) -> MixResult:
        """Find the best point on the line from the old to the mixed weights.

        Weights that are all zero do not end a line: the other end is the result then, and its
        score is NaN.
        """
        if not old.any():
            return MixResult(mixed, 1.0, np.nan)
        if not mixed.any():
            return MixResult(old, 0.0, np.nan)
        futures = [
            self.executor.submit(DecodedShard.line_scores, shard, space.sparse, old, mixed - old)
            for shard in self.shards
        ]
        scores = [future.result() for future in futures]
        return search_line(scores, self.shards[0].setup.metric, old, mixed)


@dataclass(frozen=True)
class ShardWorkers:
    """Workers that run shards.

    Attributes:
        sharding: how to mix, and where workers are.
        parts: int64 each, the sentences of each shard.
        sent_notes: notes of shards that the user has seen; it grows.
    """

    sharding: Sharding
    parts: Sequence[NDArray[np.int64]]
    executor: Executor
    decoder: DecoderRecipe
    sent_notes: set[str] = field(default_factory=set)


def run_shards(
    epoch: Epoch, workers: ShardWorkers, last: IterationResult | None
) -> IterationResult:
    """Run an epoch of shards, mix it and store its iteration, which has no lists."""
    context, iteration = epoch.context, epoch.iteration
    configuration, store = context.configuration, context.store
    evaluations = []
    if new := epoch.new_sets:  # the start of the epoch is evaluated, too
        before = find_mean(last, context.optimizer)
        updates = sum(state.updates for state in epoch.states)
        evaluations = epoch.evaluate(before or epoch.record.weights, updates, names=new)
    release_memory()  # leave memory to the decoders' models
    context.watch(PhaseStarted(iteration, "decode"))
    clock = Clock()
    shards = [
        DecodedShard(
            number,
            context.workspace.shard(number),
            epoch.setup(part.tolist(), epoch=iteration),
            workers.decoder,
            store.fingerprints,
        )
        for number, part in enumerate(workers.parts, start=1)
    ]
    corpus = DecodedCorpus(workers.executor, shards)
    files = [shard.directory / "progress" for shard in shards if workers.sharding.elsewhere]
    report, mix = run_sharded_epoch(
        workers.executor,
        context.optimizer,
        epoch.states,
        shards,
        epoch.plan,
        iteration,
        sharding=workers.sharding,
        corpus=corpus,
        old=epoch.learner.weights_before(epoch.states[0], epoch.plan.active),
        progress=ShardProgress(context.watch, configuration.metric, iteration, files),
    )
    for note in report.notes:
        if note not in workers.sent_notes:  # each epoch has new decoders, which repeat their notes
            workers.sent_notes.add(note)
            context.watch(Note(note))
    seconds = max(0.0, clock.seconds() - report.seconds)
    space = FeatureSpace(corpus.space.groups, (*corpus.space.sparse, *report.features))
    facts = {"rho": mix.rho} if np.isnan(mix.score) else {"rho": mix.rho, "mixed": mix.score}
    counts = corpus.number(space, report.counts).reset_infrequent(
        epoch.learner, report.states, epoch.record.weights
    )
    # The mixed weights, which all states have, with infrequent features reset.
    vector = report.states[0].vectors["weights"]
    result = make_result(epoch, report, space, vector, seconds, facts)
    if averages_weights(configuration, context.optimizer):
        result = replace(result, average=mean_of_epochs(result, last, iteration))
    guard_decoded(context, result.optimum, epoch.record.as_record())
    guard_weights(context, result.weights)
    mean = find_mean(result, context.optimizer)
    evaluations += epoch.evaluate(mean or result.weights, report.updates, evaluations)
    report_epoch(epoch, result)
    # Last of all: killed before this, the epoch is repeated, and shards replay their stored
    # batches.
    store.add_iteration(
        iteration,
        (),
        metric=configuration.metric,
        references=context.references,
        n_sentences=len(epoch.texts),
        record=replace(epoch.record, seconds_decoding=report.seconds).as_record(),
    )
    return replace(
        result,
        heldout=tuple(evaluations),
        learner={
            "shards": [encode_state(state, space, epoch.learner.fills) for state in report.states],
            "sparse": list(space.sparse),
            **encode_counts(counts),
        },
        elsewhere=ListFigures(
            result.optimum, report.sentences, report.hypotheses, report.new_hypotheses
        ),
    )
