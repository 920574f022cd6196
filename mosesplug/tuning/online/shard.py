"""A shard that decodes: its own sentences, its own decoder, and its own store.

A shard lies in a directory of its own, where its store keeps the lists of its sentences, epoch by
epoch. What it does in an epoch is a pure function of what it is sent and of the stored lists: a
task whose worker died, or a run that was killed, learns what is stored again, decodes the rest,
and ends with the same bytes. All workers see that directory, and the system to tune, under the
same names.

Shards meet sparse features on their own: each numbers those that all knew before the epoch as they
did, and new ones as they come, and names these with its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric, Prepared
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import BatchDone, Plan, Tally, run_epoch
from mosesplug.optimizers.online.learner import State, grown
from mosesplug.store import NBestStore
from mosesplug.tuning.online.numbering import Numbering
from mosesplug.tuning.online.source import EpochLists, OnlineSource, model_weights, weights_of
from mosesplug.tuning.online.state import same_start
from mosesplug.tuning.parallel.executors import Ending
from mosesplug.tuning.parallel.sharding import copied
from mosesplug.tuning.parallel.stored_shard import SharedShard
from mosesplug.tuning.resources import give_back
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import Batch

__all__ = [
    "LineScores",
    "OnlineShard",
    "OpenShard",
    "ShardEpoch",
    "learn_shard",
    "line_scores",
]


@dataclass(frozen=True)
class OnlineShard:
    """A ``Shard`` for one epoch; it can be sent to any worker.

    Attributes:
        number: from 1.
        directory: of its store.
        texts: its sentences by number.
        decoder: how to make its decoder.
        show: the decoder's features.
        weights: at which the epoch begins.
        start: the record of that beginning, with the epoch's number as ``epoch``.
        sparse: names of the sparse features that all shards know.
        active: names of the weights that may change; None for all.
        fingerprints: what the store must have been made from.
        metric: what is optimised.
        references: of all sentences of the run.
        threads: for counting statistics.
    """

    number: int
    directory: Path
    texts: Mapping[int, bytes]
    decoder: DecoderRecipe
    show: ShowWeights
    weights: Weights
    start: Mapping[str, Any]
    sparse: tuple[str, ...]
    active: tuple[str, ...] | None
    fingerprints: Mapping[str, str]
    metric: Metric
    references: Prepared
    threads: int

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending."""
        return np.array(sorted(self.texts), dtype=np.int64)

    @property
    def store(self) -> Path:
        """Its lists."""
        return self.directory / "nbests.lmdb"

    @property
    def progress(self) -> Path:
        """Where it leaves word of how far it is, while it learns in another process."""
        return self.directory / "progress"

    @contextmanager
    def open(self, ending: Ending | None = None) -> Iterator[OpenShard]:
        """The source, with the decoder and the store behind it.

        Args:
            ending: of this thread, which also ends the decoder.

        Raises:
            DataError: this worker does not see the working directory.
            StoreError: another worker has the store open, or it is not of this run.
        """
        try:
            self.directory.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise DataError(
                f"a worker does not see {self.directory.parent}: shards that decode keep their"
                " lists in the working directory, which all workers must see under that name"
            ) from error
        notes: list[str] = []
        beat = None if ending is None else ending.check
        ending = ending or Ending()

        def note(text: str) -> None:
            # A server that is lost is told of before it is started again: not at the end.
            ending.check()
            notes.append(text)

        with NBestStore.open(self.store, writable=True) as store:
            store.require(self.fingerprints)
            with self.decoder.make(f"shard{self.number}", note, beat) as decoder:
                ending.closes(decoder.close)
                yield OpenShard(self, store, decoder, notes)


class OpenShard:
    """A ``Source``: a shard where it learns.

    Attributes:
        numbering: of its features.
    """

    def __init__(
        self, shard: OnlineShard, store: NBestStore, decoder: BatchDecoder, notes: list[str]
    ) -> None:
        """Find out how far the epoch is.

        Args:
            shard: which.
            store: its own, open to be written.
            decoder: its own.
            notes: for the user; more may come.
        """
        self.numbering = Numbering(
            FeatureSpace.of_names(shard.show.names), shard.sparse, shard.active
        )
        self._shard, self._store, self._notes = shard, store, notes
        self._iteration, self._progress, read = self._stored()
        lists = EpochLists(
            store,
            self._iteration,
            self.numbering,
            read,
            shard.metric,
            shard.references,
            shard.threads,
        )
        self._source = OnlineSource(
            lists,
            shard.texts,
            decoder,
            stored=self._progress["batches"],
            to_weights=self._model_weights,
            progress=lambda: {"start": dict(shard.start), "seconds": self._seconds},
        )

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending: those of the shard."""
        return self._source.sentences

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """As ``OnlineSource.batch``."""
        return self._source.batch(sentences, weights)

    def finish(self, state: State, tally: Tally) -> ShardEpoch:
        """Finish the store's iteration after all batches, and say what the epoch led to."""
        shard, store = self._shard, self._store
        if len(store.iterations()) < self._iteration:
            store.finish_iteration(
                self._iteration, {**shard.start, "seconds_decoding": self._seconds}
            )
        record = store.iterations()[-1]
        return ShardEpoch(
            state=state,
            tally=tally,
            new=self.numbering.space.sparse[len(shard.sparse) :],
            sentences=record.n_lists,
            hypotheses=record.hypotheses,
            new_hypotheses=record.new_hypotheses,
            seconds=self._seconds,
            notes=tuple(f"shard {shard.number}: {note}" for note in self._notes),
        )

    @property
    def _seconds(self) -> float:
        """Spent on decoding in this epoch, also by those who were cut off."""
        return float(self._progress.get("seconds", 0.0)) + self._source.seconds

    def _model_weights(self, vector: NDArray[np.float64]) -> ModelWeights:
        shard = self._shard
        return model_weights(shard.show, weights_of(self.numbering, vector, shard.weights))

    def _stored(self) -> tuple[int, Mapping[str, Any], Callable[[NDArray[np.int64]], Batch]]:
        """The store's iteration of this epoch, its progress, and what reads stored batches.

        A store counts by itself: it may hold epochs that were begun anew with other settings.
        """
        shard, store = self._shard, self._store
        opened = store.open_iteration()
        if opened is not None and same_start(shard.start, opened.progress["start"]):
            self._notes.append(
                f"going on inside epoch {shard.start['epoch']}: {len(opened.sentences)} of"
                f" {len(shard.texts)} sentences are decoded"
            )
            return opened.iteration, opened.progress, store.open_batch
        if opened is not None:
            self._notes.append(
                f"the epoch that was cut off, with lists of {len(opened.sentences)} sentences, was"
                " begun with other settings or weights: it is begun anew"
            )
            store.drop_open()
        records = store.iterations()
        if not records or not same_start(shard.start, records[-1].record):
            return len(records) + 1, {"batches": 0}, store.open_batch
        iteration, record = records[-1].iteration, records[-1].record
        lists = store.iteration_set(iteration, metric=shard.metric, references=shard.references)
        progress = {"batches": len(shard.texts), "seconds": record["seconds_decoding"]}
        return iteration, progress, lists.tuning_set.take_sentences


@dataclass(frozen=True)
class ShardEpoch:
    """What an epoch led to in a shard.

    Attributes:
        state: of the learner, over the features that all knew, and the new ones.
        tally: of the epoch.
        new: names of the sparse features that the shard met first in this epoch.
        sentences: that have a list.
        hypotheses: of its lists; ``new_hypotheses`` no earlier epoch of the shard had.
        seconds: spent on decoding.
        notes: for the user.
    """

    state: State
    tally: Tally
    new: tuple[str, ...]
    sentences: int
    hypotheses: int
    new_hypotheses: int
    seconds: float
    notes: tuple[str, ...]


def learn_shard(
    shard: OnlineShard,
    optimizer: Optimizer,
    state: State,
    plan: Plan,
    ending: Ending | None = None,
    on_batch: Callable[[BatchDone], None] = lambda done: None,
) -> ShardEpoch:
    """In a worker: one epoch of one shard.

    Args:
        shard: with the epoch's beginning.
        optimizer: an online learner.
        state: over the features that all shards know; only read.
        plan: the shard's own.
        ending: of threads, which end before the next batch, or there and then.
        on_batch: told of every batch.

    Raises:
        DecoderError: the decoder failed.
        OptimizerError: the weights are no longer finite numbers.
        CancelledError: it was stopped.
    """
    give_back()  # what the epoch before needed, where this is another process than the run's
    with shard.open(ending) as opened:
        learner = opened.numbering.restricted(optimizer.learner())
        part = SharedShard(opened, opened.sentences, (ending or Ending()).soon)
        with part.open() as source:
            epoch: int = shard.start["epoch"]
            result = run_epoch(learner, copied(state), source, plan, epoch, on_batch=on_batch)
        n_features = len(opened.numbering.space)
        return opened.finish(grown(result.state, n_features, learner.fills), result.tally)


@dataclass(frozen=True)
class LineScores:
    """What a line search between two points needs of a shard's lists.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``, of the shard's sentences that have a list.
        scores: float64 ``[n_hyps, 2]``: of each hypothesis the model score at the one point, and
            what it gains on the way to the other.
        stats: ``[n_hyps, n_stats]``.
    """

    offsets: NDArray[np.int64]
    scores: NDArray[np.float64]
    stats: NDArray[np.int32] | NDArray[np.float32]


def line_scores(
    shard: OnlineShard,
    sparse: Sequence[str],
    old: NDArray[np.float64],
    direction: NDArray[np.float64],
) -> LineScores:
    """In a worker: the model scores of the lists of an epoch that is finished.

    Args:
        shard: with the epoch's beginning.
        sparse: names of the sparse features that any shard knows after the epoch.
        old: float64 ``[n_dense + len(sparse)]``, the one point.
        direction: float64, from there to the other.
    """
    with NBestStore.open(shard.store) as store:
        lists = store.iteration_set(
            store.iterations()[-1].iteration, metric=shard.metric, references=shard.references
        ).tuning_set
    filled = np.diff(lists.offsets) > 0
    lists = lists.take_sentences(np.flatnonzero(filled))
    n_dense = lists.space.n_dense
    places = {name: place for place, name in enumerate(sparse, start=n_dense)}
    # The store may know features of epochs that were begun anew; no list of this one has them.
    known = np.array([places.get(name, -1) for name in lists.space.sparse], dtype=np.int64)
    wanted = np.append(np.arange(n_dense), known)
    scores = [
        lists.model_scores(np.where(wanted < 0, 0.0, vector[wanted])) for vector in (old, direction)
    ]
    return LineScores(lists.offsets, np.stack(scores, axis=1), lists.stats)
