"""``NBestStore``: all n-best lists of a tuning run.

They are added by iteration, and read in any combination.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import HypergraphFile
from formats.nbest.block import NBestList
from mosesplug.errors import StoreError
from mosesplug.store import writing
from mosesplug.store.checksums import note_written
from mosesplug.store.encoding import encode_value
from mosesplug.store.files.environment import Environment
from mosesplug.store.fingerprints import check_fingerprints
from mosesplug.store.hash_index import HashIndex, prepare_index
from mosesplug.store.reading import StoreReader
from mosesplug.store.state import put_meta
from mosesplug.store.stored import StatisticsKind
from mosesplug.store.views import GraphReport, IngestReport

if TYPE_CHECKING:
    from mosesplug.metrics.protocol import Metric, PreparedReferences
    from mosesplug.store.ingest import Ingest


_MAP_SIZE = 1 << 30


class NBestStore(StoreReader):
    """n-best lists of a tuning run on LMDB; open it with ``NBestStore.open``.

    Iterations count from 1. They are added whole, or in parts and then finished; an unfinished
    iteration can be resumed, but is invisible otherwise. While one process writes, any number of
    others may read; within a process, one thread at a time may use a store. Methods raise
    ``StoreError`` if the store is closed, was opened before a fork, or cannot be read.
    """

    def __init__(self, environment: Environment, *, compare: bool = True) -> None:
        super().__init__(environment, compare=compare)
        # Columns of the sparse features, including the open iteration's; None: to be built from the
        # state. They are cached since there may be a million, and a part adds few.
        self._columns: dict[str, int] | None = None
        self._index = HashIndex()
        self._scored = ("", ""), 1

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        writable: bool = False,
        map_size: int = _MAP_SIZE,
        compare: bool = True,
    ) -> Self:
        """Open the store in a directory; create it if missing and ``writable``.

        Args:
            path: the directory.
            writable: whether to write; one process at a time may.
            map_size: initial address space in bytes (not disk space); it grows.
            compare: whether to compare each record with its checksum when it is first read;
                otherwise, damaged records are read as far as they can be decoded.

        Raises:
            StoreError: there is no store, or it is damaged, of a newer version, already open in
                this process, or being written by another one.
            StoreFull: the disk is full.
        """
        environment = Environment(path, writable=writable, map_size=map_size)
        store = cls(environment, compare=compare)
        try:
            if writable:
                with store._reading() as (_, state):
                    created = bool(state.iterations or state.fingerprints or state.kinds)
                if not created:
                    environment.write(lambda transaction: put_meta(transaction, environment))
            else:
                with store._reading():
                    pass
        except BaseException:
            environment.close()
            raise
        return store

    def close(self) -> None:
        """Close the store; arrays of its snapshots stay valid."""
        self._environment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def require(self, fingerprints: Mapping[str, str], *, replace: Collection[str] = ()) -> None:
        """Check that input, references and configuration are those of the store.

        Names that the store lacks are added if it is writable. Those in ``replace`` are
        overwritten; references, for example, may change, since statistics are recomputed.

        Raises:
            StoreMismatch: fingerprints differ; the message names them and the remedy.
        """
        stored = self._load().fingerprints
        wanted = check_fingerprints(
            stored, fingerprints, replace=replace, path=self._environment.path
        )
        if wanted != stored and self._environment.writable:
            self._environment.write(
                lambda transaction: put_meta(transaction, self._environment, fingerprints=wanted)
            )

    def keep_sentence_ids(self, ids: Sequence[str]) -> None:
        """Store the sentence ids of lists whose ids are texts, by their numbers.

        Other versions of the software read the store without them.
        """
        self._environment.write(
            lambda transaction: put_meta(transaction, self._environment, sentence_ids=list(ids))
        )

    def keep_sentence_weights(self, weights: NDArray[np.float64]) -> None:
        """Store the weight of each sentence. This comes before the first list.

        Lists that are read from the store have these weights, and stored scores of the 1-best are
        weighted by them. Earlier versions of the software read the store as if it had none.

        Args:
            weights: float64 ``[n_sentences]``.
        """
        known = self.sentence_weights
        if known is None or not np.array_equal(weights, known):
            self._environment.write(
                lambda transaction: put_meta(
                    transaction, self._environment, sentence_weights=weights
                )
            )

    def add_iteration(
        self,
        iteration: int,
        n_best: Iterable[NBestList],
        *,
        metric: Metric,
        references: PreparedReferences,
        n_sentences: int | None,
        record: Mapping[str, Any],
        threads: int = 1,
        ahead_bytes: int = 0,
    ) -> IngestReport:
        """Store one iteration: lists, statistics of new hypotheses, and ``record``.

        The last transaction makes it visible as a whole. Missing statistics of earlier iterations
        are written before, and so are most records of large lists: see ``writing``.

        Args:
            iteration: the next number of the store.
            n_best: the lists in blocks; all lines of a sentence must be in one block.
            metric: scores the hypotheses that no earlier iteration had.
            references: as ``metric.prepare`` made them.
            n_sentences: sentences of the input, the same in every iteration. A sentence may
                have no list. None, for a metric without references: as many as the lists of this
                and all earlier iterations have.
            record: plain data and arrays to store with the iteration (weights, decoder command,
                timings). It may be completed while ``n_best`` is read.
            threads: with more than one, the next block is read while one is processed.
            ahead_bytes: bytes of text that are read and checked before the first block is
                processed, so that errors in them are found before kernels compile.

        Raises:
            StoreError: the iteration is not the next one, or the store is open read-only.
            StoreMismatch: the features or the number of sentences differ from the store's.
            DataError: the references have another number of sentences.
            FormatError: a list is invalid or does not belong to this input.
            StoreFull: the disk is full; finished iterations are kept.
            TypeError: ``record`` holds something that cannot be stored.
        """
        encode_value(dict(record))  # an error comes before the lists are read
        writing.reject_open_iteration(
            self._environment, self._load(), f"add iteration {iteration} to"
        )
        most_bytes = writing.TRANSACTION_BYTES
        ingest = self._ingest(
            iteration,
            n_best,
            metric,
            references,
            n_sentences,
            threads,
            most_bytes=most_bytes,
            ahead_bytes=ahead_bytes,
        )
        environment, state = self._environment, self._load()
        whole, encoded_record = writing.enlarge(state, ingest, metric), encode_value(dict(record))

        # It runs again if the map must grow, so it may depend on the transaction only.
        def write(transaction: Any) -> None:
            writing.put_lists(transaction, environment, ingest)
            writing.put_finished(transaction, environment, state, whole, encoded_record)

        try:
            environment.write(write)
        except BaseException:
            writing.remove_lists(environment, ingest)
            raise
        self._columns = ingest.sparse
        return IngestReport(
            iteration=iteration,
            sentences=whole.n_lists,
            hypotheses=whole.hypotheses,
            new_hypotheses=whole.new_hypotheses,
            first_best_score=whole.first_best_score,
        )

    def add_part(
        self,
        iteration: int,
        lists: Iterable[NBestList],
        *,
        metric: Metric,
        references: PreparedReferences,
        n_sentences: int,
        progress: Mapping[str, Any],
        threads: int = 1,
    ) -> IngestReport:
        """Store lists of some sentences of an iteration.

        The first part opens the iteration. Lists and ``progress`` are committed in one transaction,
        so both survive or neither. They are invisible before ``finish_iteration``. The time depends
        on the part, on the earlier lists of its sentences, and on the size of ``progress``.

        Args:
            iteration: the open iteration, or the next of the store if none is open.
            lists: lists in blocks (all lines of a sentence in one block) of sentences that the
                iteration does not have yet. Sparse features may be added.
            metric: as in ``add_iteration``; the same for all parts.
            references: as ``metric.prepare`` made them.
            n_sentences: sentences of the input.
            progress: plain data and arrays that the caller needs to resume after this part; they
                replace those of the part before.
            threads: as in ``add_iteration``.

        Raises:
            StoreError: another iteration is open or next, it already has a list of one of the
                sentences, or the store is open read-only.
            StoreMismatch: features, number of sentences or metric differ from those of the store
                or of earlier parts.
            DataError, FormatError, StoreFull, TypeError: as ``add_iteration``.
        """
        encoded_progress = encode_value(dict(progress))
        ingest = self._ingest(iteration, lists, metric, references, n_sentences, threads)
        environment, state = self._environment, self._load()
        grown = writing.enlarge(state, ingest, metric)

        def write(transaction: Any) -> int:
            writing.put_lists(transaction, environment, ingest)
            writing.put_part(transaction, environment, state, grown, encoded_progress)
            return int(transaction.id())

        identifier = environment.write(write)
        # No other process writes, so this equals what a reader would load; loading it after each
        # part would take time for every iteration and feature of the store.
        self._state, self._state_id = replace(state, open_lists=grown), identifier
        self._columns = ingest.sparse
        note_written(environment, iteration, writing.collect_checksums(ingest))
        return IngestReport(
            iteration=iteration,
            sentences=ingest.n_lists,
            hypotheses=ingest.hypotheses,
            new_hypotheses=ingest.new_hypotheses,
            first_best_score=grown.first_best_score,
        )

    def add_graphs(
        self,
        iteration: int,
        graphs: Iterable[tuple[int, HypergraphFile]],
        *,
        groups: tuple[tuple[str, int], ...] | None = None,
        fixed: Collection[str] = (),
    ) -> GraphReport:
        """Store search graphs of an iteration, before its lists.

        They are written as they arrive, with a few megabytes in memory at a time, and replace those
        that an interrupted run left. They are invisible before the iteration is added or finished.

        Args:
            iteration: the next number of the store.
            graphs: sentences and their graphs, in any order. A sentence may have no graph.
            groups: dense groups that the lists will have, if the store has none yet; default: from
                the names of the first graph. Sparse features may be added.
            fixed: features of the graphs that are not tuned and not in lists, such as Moses'
                ``UnknownWordPenalty0``, or ``TM0_2`` of a group with a component that is not
                tuned; they get sparse columns.

        Raises:
            StoreError: the iteration is not the next one or has lists, or the store is open
                read-only.
            StoreMismatch: a graph has a dense feature that the store lacks.
            FormatError: a graph does not belong to this input, or repeats a sentence.
            StoreFull: the disk is full; finished iterations are kept.
        """
        from mosesplug.store.graph_writing import add_graphs  # Numba comes with it

        self._columns = None
        return add_graphs(self._environment, self._load(), iteration, graphs, groups, fixed)

    def finish_iteration(self, iteration: int, record: Mapping[str, Any]) -> None:
        """Finish the open iteration: from now on it is as if it had been added whole.

        Sparse features, however, are numbered in the order of the parts.

        Raises:
            StoreError: the iteration is not open.
            TypeError: ``record`` holds something that cannot be stored.
        """
        encoded_record = encode_value(dict(record))
        environment, state = self._environment, self._load()
        open_lists = state.open_lists
        if open_lists is None or open_lists.iteration != iteration:
            which = "none is" if open_lists is None else f"iteration {open_lists.iteration} is"
            raise StoreError(
                f"iteration {iteration} of the n-best store at {environment.path} cannot be "
                f"finished: it is not open, {which}"
            )
        environment.write(
            lambda transaction: writing.put_finished(
                transaction, environment, state, open_lists, encoded_record
            )
        )

    def drop_open(self) -> None:
        """Remove the open iteration with its lists, graphs and progress, if there is one."""
        environment, state = self._environment, self._load()
        if (opened := state.open_lists or state.open_graphs) is None:
            return
        self._columns = None
        environment.write(
            lambda transaction: writing.delete_iteration(
                transaction, environment, opened.iteration, len(state.kinds)
            )
        )

    def _ingest(
        self,
        iteration: int,
        lists: Iterable[NBestList],
        metric: Metric,
        references: PreparedReferences,
        n_sentences: int | None,
        threads: int,
        *,
        most_bytes: int | None = None,
        ahead_bytes: int = 0,
    ) -> Ingest:
        """Ingest lists of an iteration.

        Only missing statistics of earlier iterations are written, and records of these lists
        whenever they have ``most_bytes`` bytes (None: not before the end). ``ahead_bytes`` are
        as for ``add_iteration``.
        """
        from mosesplug.ahead import ReadAhead  # threads and Numba: not needed to read a store
        from mosesplug.store.ingest import Ingest

        state = self._load()
        writing.check_next(self._environment, state, iteration, n_sentences, references)
        if state.open_lists is None:
            writing.remove_interrupted_lists(self._environment, iteration, len(state.kinds))
            kind = self._ensure_earlier(iteration, metric, references, threads)
            state = self._load()
        else:
            kind = writing.read_kind_of_parts(
                self._environment, state, state.open_lists, references
            )
        self._index = prepare_index(
            self._environment, self._index, len(state.iterations), state.n_sentences
        )
        space = state.open_lists or state.open_graphs or state
        # An error must not leave columns of features that were not stored.
        columns, self._columns = self._columns, None
        if columns is None:
            columns = {name: column for column, name in enumerate(space.sparse)}
        ingest = Ingest(
            iteration=iteration,
            n_sentences=n_sentences,
            metric=metric,
            references=references,
            kind=kind,
            groups=space.groups,
            sparse=columns,
            path=self._environment.path,
            index=self._index,
            threads=threads,
            sentence_weights=state.sentence_weights,
        )
        with ReadAhead(lists) if threads > 1 else nullcontext(lists) as read:
            blocks = ingest.check_ahead(read, ahead_bytes)
            writing.ingest_blocks(self._environment, ingest, blocks, most_bytes)
        return ingest

    def _ensure_earlier(
        self, iteration: int, metric: Metric, references: PreparedReferences, threads: int
    ) -> StatisticsKind:
        """Return the kind of statistics, complete for all earlier iterations."""
        wanted = (references.signature, references.fingerprint)
        begin = self._scored[1] if self._scored[0] == wanted else 1
        kind = self._ensure(metric, references, tuple(range(begin, iteration)), threads)
        # Iterations are not looked up again, which would take longer with every one.
        self._scored = wanted, iteration
        return kind

    def record_result(self, iteration: int, result: Mapping[str, Any]) -> None:
        """Add the optimizer's result to an iteration's record, in its own transaction.

        Raises:
            StoreError: the iteration does not exist.
            TypeError: ``result`` holds something that cannot be stored.
        """
        state = self._load()
        state.select(iteration, self._environment.path)
        value = encode_value(dict(result))
        # Only the newest iteration is read again; an older one that changes needs all.
        if iteration != len(state.iterations):
            self._forget_state()
        self._environment.write(
            lambda transaction: writing.put_result(transaction, self._environment, iteration, value)
        )

    def discard_lists(self, iteration: int) -> None:
        """Remove the lists of the newest iteration; its record, result and graphs stay.

        Its numbers of lists and hypotheses are 0 then. Its score, and the names of the sparse
        features that it added, stay. The disk space is used by the next lists.

        Raises:
            StoreError: a newer iteration exists or is open, which may refer to its hypotheses.
        """
        state = self._load()
        action = f"discard the lists of iteration {iteration} of"
        writing.reject_open_iteration(self._environment, state, action)
        if iteration != len(state.iterations):
            raise StoreError(
                f"cannot {action} the n-best store at {self._environment.path}: the newest is "
                f"{len(state.iterations)}"
            )
        self._index, self._scored = HashIndex(), (("", ""), 1)
        self._forget_state()
        self._environment.write(
            lambda transaction: writing.delete_lists(
                transaction, self._environment, iteration, len(state.kinds)
            )
        )

    def drop_last(self, iteration: int) -> None:
        """Remove the newest iteration with its lists, graphs and record.

        Graphs that an interrupted run left after it are removed, too.

        Raises:
            StoreError: a newer iteration exists, which may refer to its hypotheses.
        """
        state = self._load()
        writing.reject_open_iteration(self._environment, state, f"drop iteration {iteration} of")
        if not state.iterations or iteration != len(state.iterations):
            newest = f"the newest is {len(state.iterations)}" if state.iterations else "it is empty"
            raise StoreError(
                f"iteration {iteration} cannot be dropped from the n-best store at "
                f"{self._environment.path}: {newest}"
            )
        self._columns, self._index, self._scored = None, HashIndex(), (("", ""), 1)

        def write(transaction: Any) -> None:
            for number in (iteration, iteration + 1):
                writing.delete_iteration(transaction, self._environment, number, len(state.kinds))

        self._forget_state()
        self._environment.write(write)
