"""Batches that are decoded on request, stored, and read back from the store.

The lists of a batch are committed to the store together with the number of batches, before anything
is learned from them. An interrupted epoch is resumed by replaying the stored batches from the state
before the epoch: that costs the updates only, and no copy of the learner's state per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import DecoderError
from mosesplug.events import Clock, Note
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.optimizers.online.epochs import EpochReport
from mosesplug.optimizers.online.learner import Learner, grow_state
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.settings.sentences.weights import SentenceWeights
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.online.numbering import FeatureNumbering, SentenceCounts, name_weights
from mosesplug.tuning.weights import Weights, to_model_weights
from mosesplug.tuning_set import Batch

_START_FIELDS = ("dense", "sparse", "seed", "settings", "epoch")
"""The fields of an epoch's start record on which its lists depend."""


def is_same_start(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two start records of an epoch lead to the same lists."""
    return all(one.get(name) == other.get(name) for name in _START_FIELDS)


@dataclass(frozen=True)
class EpochSetup:
    """What an epoch, or a shard's part of it, starts from; it can be pickled.

    Attributes:
        texts: source sentences by sentence id.
        start: the record of the epoch's start.
        sparse: names of the sparse features known before the epoch.
        selection: the weights that may change.
        counts_before: see ``FeatureNumbering``.
        references: the references of all sentences of the run.
        sentence_weights: the weight of each sentence of the run; None: 1 each.
    """

    texts: Mapping[int, bytes]
    show: ShowWeights
    weights: Weights
    start: Mapping[str, Any]
    sparse: tuple[str, ...]
    selection: FeatureSelection
    metric: Metric
    references: PreparedReferences
    threads: int
    sentence_weights: SentenceWeights | None = None
    counts_before: SentenceCounts | None = None

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending."""
        return np.array(sorted(self.texts), dtype=np.int64)

    def numbering(self) -> FeatureNumbering:
        """Number the features that are known before the epoch."""
        space = FeatureSpace.of_names(self.show.names)
        return FeatureNumbering(space, self.sparse, self.selection, self.counts_before)


class EpochLists:
    """The lists of one epoch in a store; stored batches are replayed, new ones added.

    A ``ShardSource`` for ``run_epoch``, if it has a decoder.

    Attributes:
        iteration: the iteration of the store, to which the lists belong.
        numbering: the numbering of the features; it grows.
        is_complete: whether the lists of the whole epoch were stored before.
        stored: the progress that was stored with the last batch: ``batches``, the number of
            stored batches (absent if ``is_complete``); ``order`` of an asynchronous epoch, place
            and version of each batch as they were applied; and what ``progress`` returned.
        seconds: spent on decoding, also by interrupted runs.
    """

    def __init__(
        self,
        store: NBestStore,
        setup: EpochSetup,
        complete: IterationRecord | None,
        note: Callable[[Note], None],
        *,
        decoder: BatchDecoder | None = None,
        notes: Sequence[str] = (),
        progress: Callable[[], Mapping[str, Any]] = dict,
        inspect: Callable[[Sequence[NBestList]], None] = lambda lists: None,
    ) -> None:
        """Find out how far the epoch is.

        Args:
            store: open for writing. An interrupted epoch in it with another start is dropped.
            complete: the store's iteration of this epoch, if all its lists are stored.
            decoder: decodes new batches in turn; None if workers do.
            notes: messages for the user, to be reported at the end; more may come.
            progress: returns what else to store with each batch.
            inspect: receives new lists as soon as they are stored; its exceptions end the epoch.
        """
        self.setup, self.numbering = setup, setup.numbering()
        self._store, self._progress, self._inspect = store, progress, inspect
        self._decoder, self._notes, self._place = decoder, notes, 0
        self._read: Callable[[NDArray[np.int64]], Batch] = store.open_batch
        self._n_known = self.numbering.space.n_sparse
        self.is_complete = False
        self.iteration = len(store.iterations()) + 1
        self.stored: Mapping[str, Any] = {"batches": 0}
        opened = store.open_iteration()
        if opened is not None and is_same_start(setup.start, opened.progress["start"]):
            self.stored = opened.progress
            note(
                Note(
                    f"resuming epoch {setup.start.get('epoch', opened.iteration)}:"
                    f" {len(opened.sentences)} of {len(setup.texts)} sentences are decoded"
                )
            )
        else:
            if opened is not None:
                note(drop_open_epoch(store))
            if complete is not None:
                self._replay_all(complete)
        self.seconds = float(self.stored.get("seconds", 0.0))

    def _replay_all(self, complete: IterationRecord) -> None:
        setup, record = self.setup, complete.record
        self.is_complete, self.iteration = True, complete.iteration
        self._read = self._store.iteration_set(
            complete.iteration, metric=setup.metric, references=setup.references
        ).tuning_set.take_sentences
        # Other settings may give other mini-batches, to which the order does not apply.
        order = record.get("order", ()) if is_same_start(setup.start, record) else ()
        self.stored = {"order": order, "seconds": record["seconds_decoding"]}

    def model_weights(self, vector: NDArray[np.float64]) -> ModelWeights:
        """Return the decoder's weights, from float64 ``[n]`` over the columns so far."""
        setup = self.setup
        weights = name_weights(self.numbering.space, vector, setup.weights)
        return to_model_weights(setup.show, weights)

    def add(
        self, lists: Sequence[NBestList], batches: int, order: NDArray[np.int32] | None = None
    ) -> None:
        """Commit the lists of a batch, and how far the epoch is with them.

        Args:
            batches: the number of batches that are stored with it.

        Raises:
            DecoderError: the lists cannot be used.
        """
        setup = self.setup
        progress = {"start": dict(setup.start), **self._progress(), "seconds": self.seconds}
        if order is not None:
            progress["order"] = order
        try:
            self._store.add_part(
                self.iteration,
                lists,
                metric=setup.metric,
                references=setup.references,
                n_sentences=setup.references.n_sentences,
                progress={**progress, "batches": batches},
                threads=setup.threads,
            )
        except FormatError as error:
            raise DecoderError(
                f"the decoder's n-best list cannot be used: {error.template}"
            ) from error
        # After the commit: an exception costs no lists.
        self._inspect(lists)

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending."""
        return self.setup.sentences

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """Return the next batch, decoded with these weights unless it is stored.

        Raises:
            DecoderError: the decoder failed, or its lists cannot be used.
        """
        is_stored = self.is_complete or self._place < self.stored["batches"]
        self._place += 1
        if self._decoder is not None and not is_stored:
            clock = Clock()
            texts = [(number, self.setup.texts[number]) for number in sentences.tolist()]
            lists = self._decoder.decode(texts, self.model_weights(weights()))
            self.seconds += clock.seconds()
            # Stored before it is learned from: a killed run decodes no batch again.
            self.add(lists, self._place)
        return self.take(sentences)

    def take(self, sentences: NDArray[np.int64]) -> Batch:
        """Return a stored batch to learn from next, and count its features."""
        # Read back, not taken from the decoder, so that new and replayed batches have the same
        # bytes.
        batch = self.read(sentences)
        self.numbering.count(batch)
        return batch

    def read(self, sentences: NDArray[np.int64]) -> Batch:
        """Return a stored batch over the columns of the epoch."""
        return self.numbering.renumber(self._read(sentences))

    def restrict(self, learner: Learner) -> Learner:
        """Return the learner that changes active weights only."""
        return self.numbering.restrict(learner)

    def close(self, order: NDArray[np.int32] | None = None) -> None:
        """Finish the store's iteration, unless it is."""
        if not self.is_complete:
            record = {**self.setup.start, "seconds_decoding": self.seconds}
            if order is not None:
                record["order"] = order
            self._store.finish_iteration(self.iteration, record)

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        """Finish the store's iteration; add facts about features and lists to the report."""
        self.close()
        space, record = self.numbering.space, self._store.iterations()[-1]
        return replace(
            report,
            states=tuple(grow_state(state, len(space), learner.fills) for state in report.states),
            features=space.sparse[self._n_known :],
            counts=self.numbering.counts,
            sentences=record.n_lists,
            hypotheses=record.hypotheses,
            new_hypotheses=record.new_hypotheses,
            seconds=self.seconds,
            notes=tuple(self._notes),
        )


def drop_open_epoch(store: NBestStore) -> Note:
    """Drop an interrupted epoch that cannot be resumed and return a note about it."""
    opened = store.open_iteration()
    store.drop_open()
    return Note(
        "the interrupted epoch starts again: its settings or weights have changed. The lists of"
        f" {0 if opened is None else len(opened.sentences)} sentences are dropped",
        is_warning=True,
    )
