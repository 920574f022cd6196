"""Read a store: merged lists, lists as the decoder gave them, batches, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.store import statistics
from mosesplug.store.batches import MergedBatches
from mosesplug.store.checksums import Checked, check_iteration
from mosesplug.store.environment import Environment
from mosesplug.store.inventory import faults, stored_bytes
from mosesplug.store.merge import (
    Reader,
    assemble,
    list_scores,
    read_texts,
    select_list,
    select_merged,
)
from mosesplug.store.records import report_damage
from mosesplug.store.snapshot import Snapshot
from mosesplug.store.state import IterationRecord, StatisticsKind, StoreState, load_state
from mosesplug.store.views import IterationList, IterationLists, OpenIteration
from mosesplug.tuning_set import Batch, TuningSet

if TYPE_CHECKING:
    # At run time it would bring Numba, which reading a store does not need.
    from mosesplug.metrics.protocol import Metric, Prepared
    from mosesplug.store.graph_records import StoredGraphs

__all__ = ["Iterations", "StoreReader"]

Iterations = int | Iterable[int] | None
"""One iteration, some, or all that the store has (None)."""


class StoreReader:
    """The reading half of ``NBestStore``.

    Statistics belong to a metric's signature and a fingerprint of the references. Methods that
    give statistics take ``metric`` and ``references`` (as ``metric.prepare`` made them) and
    compute what is missing from the stored text; without them they give those that the newest
    iteration was scored with.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._state = StoreState()
        self._state_id = -1

    @property
    def is_open(self) -> bool:
        """Whether the store can be used: not closed, not opened before a fork."""
        return self._environment.is_open

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprints of the input, references and configuration."""
        return self._load().fingerprints

    @property
    def space(self) -> FeatureSpace | None:
        """The columns; None as long as no list had a hypothesis. The sparse tail may grow."""
        return self._load().space

    @property
    def n_sentences(self) -> int:
        """Sentences of the input; 0 before the first iteration."""
        return self._load().n_sentences

    def iterations(self) -> tuple[IterationRecord, ...]:
        """Return the finished iterations, the first one first."""
        return self._load().iterations

    def tuning_set(
        self,
        iterations: Iterations = None,
        *,
        metric: Metric | None = None,
        references: Prepared | None = None,
        threads: int = 1,
    ) -> TuningSet:
        """Return the lists of some iterations of every sentence, merged, without duplicates.

        Hypotheses of a sentence stand in the order of their first appearance. Arrays are copies.

        Raises:
            StoreError: one of the iterations is not in the store, or its statistics are missing
                and cannot be computed.
        """
        return self.batch(
            np.arange(self.n_sentences),
            iterations,
            metric=metric,
            references=references,
            threads=threads,
        )

    def batch(
        self,
        sentence_ids: ArrayLike,
        iterations: Iterations = None,
        *,
        metric: Metric | None = None,
        references: Prepared | None = None,
        threads: int = 1,
    ) -> Batch:
        """Like ``tuning_set``, of the given sentences in the given order.

        Time and memory grow with the batch and the number of iterations asked for, and with
        nothing else.

        Raises:
            DataError: there is no such sentence.
        """
        wanted = self._wanted(iterations, metric, references, threads)
        with wanted as (reader, state, kind, selected):
            sentences = _sentences(sentence_ids, state.n_sentences)
            selections = [select_merged(reader, s, selected) for s in sentences.tolist()]
            return assemble(reader, _space(state), kind, sentences, selections)

    def merge_batches(
        self,
        iterations: Iterations = None,
        *,
        metric: Metric | None = None,
        references: Prepared | None = None,
        memory: int = 1 << 30,
        threads: int = 1,
    ) -> MergedBatches:
        """Return a fast source of random batches of some iterations, merged; see ``batch``.

        Args:
            iterations: as for ``batch``; None is all that the store has now.
            metric: as for ``batch``.
            references: as for ``batch``.
            memory: bytes of merged sentences to keep at most.
            threads: for the metric, where statistics are missing.

        Raises:
            StoreError: as ``tuning_set``.
        """
        wanted = self._wanted(iterations, metric, references, threads)
        with wanted as (_, now, kind, selected):
            space, n_sentences = _space(now), now.n_sentences

        def read(sentence_ids: NDArray[np.int64]) -> Batch:
            with self._reading() as (reader, state):
                state.select(selected, self._environment.path)
                sentences = _sentences(sentence_ids, n_sentences)
                selections = [select_merged(reader, s, selected) for s in sentences.tolist()]
                return assemble(reader, space, kind, sentences, selections)

        return MergedBatches(read, n_sentences, space, memory)

    def hypotheses(self, sentence: int, iterations: Iterations = None) -> tuple[bytes, ...]:
        """Texts of one sentence, byte for byte, in the order of the rows of ``batch``.

        Raises:
            DataError: there is no such sentence.
            StoreError: one of the iterations is not in the store.
        """
        with self._reading() as (reader, state):
            selected = state.select(iterations, self._environment.path)
            (sentence,) = _sentences([sentence], state.n_sentences).tolist()
            return read_texts(select_merged(reader, sentence, selected), sentence)

    def iteration_set(
        self,
        iteration: int,
        *,
        metric: Metric | None = None,
        references: Prepared | None = None,
        threads: int = 1,
    ) -> IterationLists:
        """Return all lists of one iteration as the decoder gave them, repeated hypotheses included.

        Raises:
            StoreError: it is not in the store.
        """
        wanted = self._wanted(iteration, metric, references, threads)
        with wanted as (reader, state, kind, _):
            sentences = np.arange(state.n_sentences)
            selections = [select_list(reader, s, iteration) for s in sentences.tolist()]
            tuning_set = assemble(reader, _space(state), kind, sentences, selections)
            return IterationLists(tuning_set, *list_scores(reader, iteration, sentences))

    def iteration_list(
        self,
        iteration: int,
        sentence: int,
        *,
        metric: Metric | None = None,
        references: Prepared | None = None,
    ) -> IterationList:
        """Return one sentence's list of one iteration as the decoder gave it, with its text.

        Raises:
            StoreError: the iteration is not in the store.
            DataError: there is no such sentence.
        """
        wanted = self._wanted(iteration, metric, references, threads=1)
        with wanted as (reader, state, kind, _):
            sentences = _sentences([sentence], state.n_sentences)
            selection = select_list(reader, int(sentence), iteration)
            rows = assemble(reader, _space(state), kind, sentences, [selection])
            scores, homes, home_rows = list_scores(reader, iteration, sentences)
            record = reader.record(iteration, int(sentence))
            with report_damage(iteration, int(sentence)):
                extras = () if record is None else record.list_extras()
            return IterationList(
                sentence=int(sentence),
                texts=read_texts(selection, int(sentence)),
                dense=rows.dense,
                sparse=rows.sparse,
                stats=rows.stats,
                lengths=rows.lengths,
                scores=scores,
                home_iterations=homes,
                home_rows=home_rows,
                extras=extras,
            )

    def open_iteration(self) -> OpenIteration | None:
        """Return the open iteration with its progress, or None.

        Time grows with the number of its sentences, and the size of its progress.
        """
        with self._reading() as (reader, state):
            if state.growing is None:
                return None
            iteration = state.growing.iteration
            return OpenIteration(iteration, reader.sentences(iteration), reader.progress(iteration))

    def open_batch(self, sentence_ids: ArrayLike) -> Batch:
        """Lists of the open iteration as the decoder gave them, repeated hypotheses included.

        Sentences stand in the given order; one that has no list (yet) is empty. Columns are those
        of the store with what this iteration brought, statistics those of its metric.

        Raises:
            StoreError: no iteration is open.
            DataError: there is no such sentence.
        """
        with self._reading() as (reader, state):
            growing = state.growing
            if growing is None:
                raise StoreError(
                    f"no iteration of the n-best store at {self._environment.path} is open"
                )
            sentences = _sentences(sentence_ids, growing.n_sentences)
            selections = [select_list(reader, s, growing.iteration) for s in sentences.tolist()]
            kind = state.kinds[growing.kind]
            return assemble(reader, growing.space, kind, sentences, selections)

    def graphs(self, iterations: Iterations = None, *, unfinished: bool = False) -> StoredGraphs:
        """Return the search graphs of some iterations as they are now, to be read without a copy.

        Args:
            iterations: as for ``batch``.
            unfinished: those of the iteration that is not finished, too, once all are there.

        Raises:
            StoreError: one of the iterations is not in the store.
        """
        from mosesplug.store.graph_records import StoredGraphs

        pinned = self._environment.pin()
        state = load_state(pinned.transaction, self._environment)
        selected = state.select(iterations, self._environment.path)
        opened = state.growing or state.graphed if unfinished else None
        return StoredGraphs(self._environment, pinned, state, selected, opened)

    def stored_bytes(self, iteration: int) -> int:
        """Return bytes of all records of an iteration.

        Raises:
            StoreError: it is not in the store.
        """
        with self._environment.reading() as transaction:
            state = load_state(transaction, self._environment)
            state.select(iteration, self._environment.path)
            return stored_bytes(transaction, self._environment, state, iteration)

    def faults(self, iteration: int, sentence: int) -> list[str]:
        """Return what is wrong with one list, in words; see ``inventory.faults``.

        Raises:
            StoreError: the iteration is not in the store.
        """
        with self._reading() as (reader, state):
            state.select(iteration, self._environment.path)
            return faults(reader, state, iteration, sentence)

    def verify_iteration(self, iteration: int) -> Checked:
        """Return every record of an iteration against the checksum that it was written with.

        Raises:
            StoreError: it is not in the store.
        """
        with self._environment.reading() as transaction:
            state = load_state(transaction, self._environment)
            state.select(iteration, self._environment.path)
            return check_iteration(transaction, self._environment, iteration, len(state.kinds))

    def snapshot(self) -> Snapshot:
        """Return what is committed now, for reading records without a copy; a context manager."""
        return Snapshot(self._environment)

    @contextmanager
    def _reading(self) -> Iterator[tuple[Reader, StoreState]]:
        with self._environment.reading() as transaction:
            if (identifier := transaction.id()) != self._state_id:
                self._state = load_state(transaction, self._environment)
                self._state_id = identifier
            yield Reader(transaction, self._environment), self._state

    def _load(self) -> StoreState:
        with self._reading() as (_, state):
            return state

    @contextmanager
    def _wanted(
        self,
        iterations: Iterations,
        metric: Metric | None,
        references: Prepared | None,
        threads: int,
    ) -> Iterator[tuple[Reader, StoreState, StatisticsKind, tuple[int, ...]]]:
        selected = self._load().select(iterations, self._environment.path)
        kind = self._ensure(metric, references, selected, threads)
        with self._reading() as (reader, state):
            # Another process may have dropped one since.
            yield reader, state, kind, state.select(selected, self._environment.path)

    def _ensure(
        self,
        metric: Metric | None,
        references: Prepared | None,
        iterations: tuple[int, ...],
        threads: int,
    ) -> StatisticsKind:
        """Return the kind of statistics wanted, complete for those iterations."""
        state = self._load()
        if metric is None and references is None:
            return statistics.find_newest_kind(state, self._environment)
        if metric is None or references is None:
            raise UsageError("statistics need a metric and its references, or neither")
        return statistics.ensure_statistics(
            self._environment, state, metric, references, iterations, threads
        )


def _space(state: StoreState) -> FeatureSpace:
    return state.space or FeatureSpace(())


def _sentences(sentence_ids: ArrayLike, n_sentences: int) -> NDArray[np.int64]:
    """Return sentence numbers as an array."""
    sentences = np.atleast_1d(np.asarray(sentence_ids, dtype=np.int64))
    outside = sentences[(sentences < 0) | (sentences >= n_sentences)]
    if len(outside):
        raise DataError(f"there is no sentence {outside[0]}: the input has {n_sentences} sentences")
    return sentences
