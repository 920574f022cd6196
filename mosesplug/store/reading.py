"""Read a store: merged lists, lists in the decoder's order, batches, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.store import statistics
from mosesplug.store.batches import MergedBatches
from mosesplug.store.checksums import ChecksumReport, check_iteration
from mosesplug.store.files.environment import Environment
from mosesplug.store.maintenance import count_stored_bytes, list_faults
from mosesplug.store.merge import (
    Reader,
    assemble,
    first_best_statistics,
    list_scores,
    read_texts,
    select_list,
    select_merged,
)
from mosesplug.store.records import report_damage
from mosesplug.store.snapshot import Snapshot
from mosesplug.store.state import StoreState, load_state
from mosesplug.store.stored import IterationRecord, StatisticsKind
from mosesplug.store.views import IterationList, IterationLists, OpenIteration
from mosesplug.tuning_set import Batch, TuningSet

if TYPE_CHECKING:
    # Loads Numba, which reading a store does not need.
    from mosesplug.metrics.protocol import Metric, PreparedReferences
    from mosesplug.store.graph_records import StoredGraphs


Iterations = int | Iterable[int] | None
"""One iteration, several, or all in the store (None)."""


_FIRST = 1000
"""Sentences that are enough to see what texts are like."""


class StoreReader:
    """The methods of ``NBestStore`` that read.

    Statistics belong to a metric's signature and a fingerprint of the references. Methods that
    return statistics take ``metric`` and ``references`` (from ``metric.prepare``) and compute
    missing statistics from the stored text. Without these arguments, they return the statistics of
    the newest iteration's metric.
    """

    def __init__(self, environment: Environment, *, compare: bool = True) -> None:
        self._environment = environment
        self._compare = compare
        self._state = StoreState()
        self._state_id = -1

    @property
    def is_open(self) -> bool:
        """Whether the store can be read: not after ``close``, nor in a forked process."""
        return self._environment.is_open

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprints of the input, references and configuration."""
        return self._load().fingerprints

    @property
    def sentence_ids(self) -> tuple[str, ...]:
        """Sentence ids that are texts, by their numbers; empty if ids are numbers."""
        return self._load().sentence_ids

    @property
    def sentence_weights(self) -> NDArray[np.float64] | None:
        """The weight of each sentence, float64 ``[n_sentences]``; None: 1 each."""
        return self._load().sentence_weights

    @property
    def space(self) -> FeatureSpace | None:
        """The columns, or None before the first hypothesis. Sparse columns may be added."""
        return self._load().space

    @property
    def n_sentences(self) -> int:
        """Sentences of the input; 0 before the first iteration."""
        return self._load().n_sentences

    def iterations(self) -> tuple[IterationRecord, ...]:
        """Return the finished iterations, in order."""
        return self._load().iterations

    def tuning_set(
        self,
        iterations: Iterations = None,
        *,
        metric: Metric | None = None,
        references: PreparedReferences | None = None,
        threads: int = 1,
    ) -> TuningSet:
        """Return merged lists of some iterations, all sentences, without duplicates.

        Hypotheses of a sentence are in the order of their first appearance. Arrays are copies.

        Raises:
            StoreError: an iteration is not in the store, or its statistics are missing and cannot
                be computed.
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
        references: PreparedReferences | None = None,
        threads: int = 1,
    ) -> Batch:
        """Return the same as ``tuning_set`` for the given sentences, in the given order.

        Time and memory depend only on the batch and the number of requested iterations.

        Raises:
            DataError: the sentence does not exist.
        """
        wanted = self._wanted(iterations, metric, references, threads)
        with wanted as (reader, state, kind, selected):
            sentences = _sentences(sentence_ids, state.n_sentences)
            selections = [select_merged(reader, s, selected) for s in sentences.tolist()]
            return _weigh(state, assemble(reader, _space(state), kind, sentences, selections))

    def merge_batches(
        self,
        iterations: Iterations = None,
        *,
        metric: Metric | None = None,
        references: PreparedReferences | None = None,
        memory: int = 1 << 30,
        threads: int = 1,
    ) -> MergedBatches:
        """Return a fast source of random merged batches of iterations; see ``batch``.

        Args:
            iterations: as for ``batch``; None selects all iterations that exist now.
            metric: as for ``batch``.
            references: as for ``batch``.
            memory: maximum number of bytes of merged sentences to cache.
            threads: threads of the metric, if statistics are missing.

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
                return _weigh(state, assemble(reader, space, kind, sentences, selections))

        return MergedBatches(read, n_sentences, space, memory)

    def hypotheses(self, sentence: int, iterations: Iterations = None) -> tuple[bytes, ...]:
        """Return the texts of one sentence, in the order of the rows of ``batch``.

        Texts are stored byte for byte.

        Raises:
            DataError: the sentence does not exist.
            StoreError: an iteration is not in the store.
        """
        with self._reading() as (reader, state):
            selected = state.select(iterations, self._environment.path)
            (sentence,) = _sentences([sentence], state.n_sentences).tolist()
            return read_texts(select_merged(reader, sentence, selected), sentence)

    def first_hypotheses(self) -> Iterator[bytes]:
        """Yield the texts of the first sentences.

        Raises:
            StoreError: a record cannot be read.
        """
        with self._reading() as (_, state):
            count = min(state.n_sentences, _FIRST)
        for sentence in range(count):
            yield from self.hypotheses(sentence)

    def iteration_set(
        self,
        iteration: int,
        *,
        metric: Metric | None = None,
        references: PreparedReferences | None = None,
        threads: int = 1,
    ) -> IterationLists:
        """Return all lists of one iteration in the decoder's order.

        Repeated hypotheses are included.

        Raises:
            StoreError: the iteration is not in the store.
        """
        wanted = self._wanted(iteration, metric, references, threads)
        with wanted as (reader, state, kind, _):
            sentences = np.arange(state.n_sentences)
            selections = [select_list(reader, s, iteration) for s in sentences.tolist()]
            lists = assemble(reader, _space(state), kind, sentences, selections)
            return IterationLists(_weigh(state, lists), *list_scores(reader, iteration, sentences))

    def first_best_statistics(
        self,
        iteration: int,
        *,
        metric: Metric | None = None,
        references: PreparedReferences | None = None,
    ) -> NDArray[Any]:
        """Return statistics of each list's first hypothesis, ``[n_sentences, n_stats]``.

        Rows of sentences without a list are 0.

        Raises:
            StoreError: the iteration is not in the store.
        """
        wanted = self._wanted(iteration, metric, references, threads=1)
        with wanted as (reader, state, kind, _):
            return first_best_statistics(reader, kind, state.n_sentences, iteration)

    def iteration_list(
        self,
        iteration: int,
        sentence: int,
        *,
        metric: Metric | None = None,
        references: PreparedReferences | None = None,
    ) -> IterationList:
        """Return a sentence's list of one iteration in the decoder's order, with text.

        Raises:
            StoreError: the iteration is not in the store.
            DataError: the sentence does not exist.
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

        Time depends on the number of its sentences and the size of its progress.
        """
        with self._reading() as (reader, state):
            if state.open_lists is None:
                return None
            iteration = state.open_lists.iteration
            return OpenIteration(iteration, reader.sentences(iteration), reader.progress(iteration))

    def open_batch(self, sentence_ids: ArrayLike) -> Batch:
        """Return lists of the open iteration in the decoder's order.

        Repeated hypotheses are included. Sentences are in the given order; a sentence without a
        list is empty. Columns include the features that this iteration added. Statistics are those
        of its metric.

        Raises:
            StoreError: no iteration is open.
            DataError: the sentence does not exist.
        """
        with self._reading() as (reader, state):
            open_lists = state.open_lists
            if open_lists is None:
                raise StoreError(
                    f"no iteration of the n-best store at {self._environment.path} is open"
                )
            sentences = _sentences(sentence_ids, open_lists.n_sentences)
            selections = [select_list(reader, s, open_lists.iteration) for s in sentences.tolist()]
            kind = state.kinds[open_lists.kind]
            lists = assemble(reader, open_lists.space, kind, sentences, selections)
            return _weigh(state, lists)

    def graphs(self, iterations: Iterations = None, *, unfinished: bool = False) -> StoredGraphs:
        """Return the current search graphs of some iterations.

        They are read without copies.

        Args:
            iterations: as for ``batch``.
            unfinished: whether to include those of an unfinished iteration if they are complete.

        Raises:
            StoreError: an iteration is not in the store.
        """
        from mosesplug.store.graph_records import StoredGraphs

        pinned = self._environment.pin()
        state = load_state(pinned.transaction, self._environment)
        selected = state.select(iterations, self._environment.path)
        opened = state.open_lists or state.open_graphs if unfinished else None
        return StoredGraphs(self._environment, pinned, state, selected, opened)

    def stored_bytes(self, iteration: int) -> int:
        """Return the number of bytes of all records of an iteration.

        Raises:
            StoreError: the iteration is not in the store.
        """
        with self._environment.reading() as transaction:
            state = load_state(transaction, self._environment)
            state.select(iteration, self._environment.path)
            return count_stored_bytes(transaction, self._environment, state, iteration)

    def faults(self, iteration: int, sentence: int) -> list[str]:
        """Return descriptions of all errors of one list; see ``inventory.list_faults``.

        Raises:
            StoreError: the iteration is not in the store.
        """
        with self._reading() as (reader, state):
            state.select(iteration, self._environment.path)
            return list_faults(reader, state, iteration, sentence)

    def verify_pages(self) -> None:
        """Check all pages of the data file.

        Raises:
            StoreError: a page is damaged or missing.
        """
        self._environment.check_pages(large=True)

    def verify_iteration(self, iteration: int) -> ChecksumReport:
        """Compare every record of an iteration with its stored checksum.

        Raises:
            StoreError: the iteration is not in the store.
        """
        with self._environment.reading() as transaction:
            state = load_state(transaction, self._environment, compare=self._compare)
            state.select(iteration, self._environment.path)
            return check_iteration(transaction, self._environment, iteration, len(state.kinds))

    def snapshot(self) -> Snapshot:
        """Return a context manager that reads what is committed, without copies."""
        return Snapshot(self._environment)

    @contextmanager
    def _reading(self) -> Iterator[tuple[Reader, StoreState]]:
        with self._environment.reading() as transaction:
            if (identifier := transaction.id()) != self._state_id:
                # Nobody else writes what this process has open for writing.
                known = self._state if self._environment.writable else None
                self._state = load_state(
                    transaction, self._environment, known, compare=self._compare
                )
                self._state_id = identifier
            yield Reader(transaction, self._environment, compare=self._compare), self._state

    def _forget_state(self) -> None:
        """Read all iterations again, since one before the last has changed."""
        self._state, self._state_id = StoreState(), -1

    def _load(self) -> StoreState:
        with self._reading() as (_, state):
            return state

    @contextmanager
    def _wanted(
        self,
        iterations: Iterations,
        metric: Metric | None,
        references: PreparedReferences | None,
        threads: int,
    ) -> Iterator[tuple[Reader, StoreState, StatisticsKind, tuple[int, ...]]]:
        selected = self._load().select(iterations, self._environment.path)
        kind = self._ensure(metric, references, selected, threads)
        with self._reading() as (reader, state):
            # Another process may have dropped an iteration since.
            yield reader, state, kind, state.select(selected, self._environment.path)

    def _ensure(
        self,
        metric: Metric | None,
        references: PreparedReferences | None,
        iterations: tuple[int, ...],
        threads: int,
    ) -> StatisticsKind:
        """Return the requested kind of statistics, complete for those iterations."""
        state = self._load()
        if metric is None and references is None:
            return statistics.find_newest_kind(state, self._environment)
        if metric is None or references is None:
            raise UsageError("give both metric and references, or neither")
        return statistics.ensure_statistics(
            self._environment, state, metric, references, iterations, threads
        )


def _space(state: StoreState) -> FeatureSpace:
    return state.space or FeatureSpace(())


def _weigh(state: StoreState, lists: TuningSet) -> TuningSet:
    if state.sentence_weights is None:
        return lists
    return lists.weigh(state.sentence_weights[lists.sentence_ids])


def _sentences(sentence_ids: ArrayLike, n_sentences: int) -> NDArray[np.int64]:
    """Return sentence numbers as an array."""
    sentences = np.atleast_1d(np.asarray(sentence_ids, dtype=np.int64))
    outside = sentences[(sentences < 0) | (sentences >= n_sentences)]
    if len(outside):
        raise DataError(f"there is no sentence {outside[0]}: the input has {n_sentences} sentences")
    return sentences
