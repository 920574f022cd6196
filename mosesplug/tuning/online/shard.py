"""A shard that decodes: its own sentences, its own decoder, and its own store.

A shard has a directory of its own, where its store keeps the lists of its sentences, epoch by
epoch. An epoch of it is a pure function of its arguments and of the stored lists: a worker that
replaces a dead one, or a resumed run, replays what is stored, decodes the rest, and ends with the
same bytes. All workers see that directory, and the system to tune, under the same names.

Shards meet sparse features independently: each keeps the columns of those that were known before
the epoch, appends new ones as they come, and names these in its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.mixing import MixResult
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.online.numbering import FeatureNumbering
from mosesplug.tuning.online.source import DecodingSource, EpochLists, EpochSetup, is_same_start
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.mixing import LineScores, search_line
from mosesplug.tuning.resources import release_memory

__all__ = ["DecodedCorpus", "DecodedShard"]


@dataclass(frozen=True)
class DecodedShard:
    """A ``Shard`` for one epoch; any worker can open it.

    Attributes:
        number: from 1.
        directory: of its store.
        setup: of the epoch, with the shard's sentences; its start record has the epoch's number
            as ``epoch``.
        decoder: makes its decoder.
        fingerprints: of the files that the store must have been made from.
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
    def open(self, stop: StopSignal | None = None) -> Iterator[DecodingSource]:
        """Open the store, make the decoder, and find out how far the epoch is.

        Args:
            stop: of this thread, which also ends the decoder.

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
            with self.decoder.make(f"shard{self.number}", note, beat) as decoder:
                signal.on_stop(decoder.close)
                lists = EpochLists(
                    store, self.setup, self._complete(store), lambda told: note(told.text)
                )
                yield DecodingSource(lists, decoder, notes)

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
            direction: float64, from there to its end.
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
        return LineScores(lists.offsets, np.stack(scores, axis=1), lists.stats)


@dataclass(frozen=True)
class DecodedCorpus:
    """A ``Corpus`` of lists that stay in the shards.

    Attributes:
        executor: reads the lists.
        shards: whose epoch is finished when weights are mixed.
    """

    executor: Executor
    shards: Sequence[DecodedShard]

    @property
    def space(self) -> FeatureSpace:
        """The features that all shards know before the epoch."""
        return self.shards[0].setup.numbering().space

    def active(self, space: FeatureSpace) -> NDArray[np.bool_]:
        """bool ``[len(space)]``: the weights that may change."""
        setup = self.shards[0].setup
        return FeatureNumbering(
            FeatureSpace.of_names(setup.show.names), space.sparse, setup.active
        ).active

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
