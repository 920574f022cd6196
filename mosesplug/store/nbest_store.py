"""``NBestStore``: every n-best list of a tuning run, added by iterations, read in any mixture."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from formats.nbest import NBestList
from mosesplug.errors import DataError, StoreError, StoreMismatch
from mosesplug.store.environment import Environment
from mosesplug.store.fingerprints import checked
from mosesplug.store.merge import Reader
from mosesplug.store.reading import StoreReader
from mosesplug.store.records import encode_value
from mosesplug.store.state import (
    COMMIT,
    RECORD,
    RESULT,
    SPARSE,
    State,
    delete_iteration,
    iteration_key,
    put_meta,
    put_sorted,
)
from mosesplug.store.views import IngestReport

if TYPE_CHECKING:
    from mosesplug.metrics.protocol import Metric, Prepared
    from mosesplug.store.ingest import Ingest

__all__ = ["NBestStore"]

_MAP_SIZE = 1 << 30


class NBestStore(StoreReader):
    """n-best lists of a tuning run on LMDB; open it with ``NBestStore.open``.

    Iterations count from 1 and are added whole: one that is not finished does not exist. What one
    process writes, any number of others may read meanwhile; within a process, one thread at a
    time uses a store. Methods raise ``StoreError`` where the store is closed, was opened before a
    fork, or cannot be read.
    """

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, writable: bool = False, map_size: int = _MAP_SIZE
    ) -> Self:
        """Open the store in a directory; create it if it is to be written and absent.

        Args:
            path: the directory.
            writable: whether to write; one process at a time may.
            map_size: bytes of address space to begin with (no disk space); it grows by itself.

        Raises:
            StoreError: there is none, it is damaged, of a newer version, open already in this
                process, or being written by another.
            StoreFull: the disk has no room.
        """
        environment = Environment(path, writable=writable, map_size=map_size)
        store = cls(environment)
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
        """Refuse to go on with other input, references or configuration.

        Names that the store lacks are added to it if it is writable. Those in ``replace`` are
        overwritten: references may change, for example, since statistics are recomputed.

        Raises:
            StoreMismatch: a fingerprint differs; the message names each, and the remedy.
        """
        stored = self._load().fingerprints
        wanted = checked(stored, fingerprints, replace=replace, path=self._environment.path)
        if wanted != stored and self._environment.writable:
            self._environment.write(
                lambda transaction: put_meta(transaction, self._environment, fingerprints=wanted)
            )

    def add_iteration(
        self,
        iteration: int,
        n_best: Iterable[NBestList],
        *,
        metric: Metric,
        references: Prepared,
        n_sentences: int,
        record: Mapping[str, Any],
        threads: int = 1,
    ) -> IngestReport:
        """Store one iteration: its lists, the statistics of what is new, and ``record``.

        All of it is committed in one transaction at the end. Before that, nothing is written but
        what this metric and these references lack of earlier iterations' statistics.

        Args:
            iteration: its number, the next one of the store.
            n_best: its lists in blocks, all lines of a sentence in one of them.
            metric: scores the hypotheses that no earlier iteration had.
            references: as ``metric.prepare`` made them.
            n_sentences: sentences of the input, the same in every iteration. A sentence may
                have no list.
            record: anything to keep with it (weights, decoder command, timings): plain data and
                arrays.
            threads: more than one also reads the next block while one is at work.

        Raises:
            StoreError: it is not the next iteration, or the store is open to read only.
            StoreMismatch: the features or the number of sentences are not those of the store.
            DataError: the references have another number of sentences.
            FormatError: a list is no list, or does not come from this input; with file and line.
            StoreFull: the disk has no room; finished iterations are kept.
            TypeError: ``record`` holds something that cannot be stored.
        """
        from mosesplug.store.ingest import Ingest, read_ahead  # Numba: not needed to read a store

        began = time.perf_counter()
        encoded_record = encode_value(dict(record))
        state = self._load()
        self._check_next(state, iteration, n_sentences, references)
        kind = self._ensure(metric, references, tuple(range(1, iteration)), threads)
        state = self._load()
        ingest = Ingest(
            iteration=iteration,
            n_sentences=n_sentences,
            metric=metric,
            references=references,
            kind=kind,
            groups=state.groups,
            sparse={name: column for column, name in enumerate(state.sparse)},
            path=self._environment.path,
            threads=threads,
        )
        seconds_adding = 0.0
        with self._environment.reading() as transaction:
            reader = Reader(transaction, self._environment)
            for block in read_ahead(n_best) if threads > 1 else n_best:
                started = time.perf_counter()
                ingest.add(block, reader)
                seconds_adding += time.perf_counter() - started
        seconds_waiting = time.perf_counter() - began - seconds_adding
        first_best_score = float(metric.score(ingest.totals))
        started = time.perf_counter()
        self._commit(ingest, state, first_best_score, encoded_record)
        ended = time.perf_counter()
        return IngestReport(
            iteration=iteration,
            sentences=len(ingest.kbest),
            hypotheses=ingest.hypotheses,
            new_hypotheses=ingest.new_hypotheses,
            first_best_score=first_best_score,
            seconds=ended - began,
            seconds_waiting=seconds_waiting,
            seconds_scoring=ingest.seconds_scoring,
            seconds_writing=ended - started,
        )

    def _commit(self, ingest: Ingest, state: State, first_best_score: float, record: bytes) -> None:
        """Store a finished iteration in one transaction."""
        commit = {
            "kind": ingest.kind.number,
            "groups": ingest.groups,
            "n_sentences": ingest.n_sentences,
            "n_lists": len(ingest.kbest),
            "hypotheses": ingest.hypotheses,
            "new_hypotheses": ingest.new_hypotheses,
            "first_best_score": first_best_score,
        }
        parts = {
            COMMIT: encode_value(commit),
            RECORD: record,
            SPARSE: encode_value(list(ingest.sparse)[len(state.sparse) :]),
        }
        databases = {
            "kbest": ingest.kbest,
            "statistics": ingest.statistics,
            "iterations": {
                iteration_key(ingest.iteration, part): value for part, value in parts.items()
            },
        }

        def write(transaction: Any) -> None:
            for name, items in databases.items():
                put_sorted(transaction, self._environment[name], items)

        self._environment.write(write)

    def _check_next(
        self, state: State, iteration: int, n_sentences: int, references: Prepared
    ) -> None:
        if not self._environment.writable:
            raise StoreError(
                f"the n-best store at {self._environment.path} was opened to read only"
            )
        if iteration != len(state.iterations) + 1:
            raise StoreError(
                f"iteration {iteration} cannot be added to the n-best store at "
                f"{self._environment.path}: the next one is {len(state.iterations) + 1}"
            )
        if state.iterations and n_sentences != state.n_sentences:
            raise StoreMismatch(
                f"the input has {n_sentences} sentences, but the n-best store at "
                f"{self._environment.path} was made from one of {state.n_sentences}. Give that "
                "input, or begin in an empty directory"
            )
        if references.n_sentences != n_sentences:
            raise DataError(
                f"the references have {references.n_sentences} sentences, the input has "
                f"{n_sentences}"
            )

    def record_result(self, iteration: int, result: Mapping[str, Any]) -> None:
        """Add what the optimizer made of an iteration to its record, in a transaction of its own.

        Raises:
            StoreError: there is no such iteration.
            TypeError: ``result`` holds something that cannot be stored.
        """
        self._load().select(iteration, self._environment.path)
        value = encode_value(dict(result))
        self._environment.write(
            lambda transaction: transaction.put(
                iteration_key(iteration, RESULT), value, db=self._environment["iterations"]
            )
        )

    def drop_last(self, iteration: int) -> None:
        """Remove the newest iteration, its lists and its record.

        Raises:
            StoreError: it is not the newest: later ones refer to its hypotheses.
        """
        state = self._load()
        if not state.iterations or iteration != len(state.iterations):
            newest = f"the newest is {len(state.iterations)}" if state.iterations else "it is empty"
            raise StoreError(
                f"iteration {iteration} cannot be dropped from the n-best store at "
                f"{self._environment.path}: {newest}"
            )
        self._environment.write(
            lambda transaction: delete_iteration(
                transaction, self._environment, iteration, len(state.kinds)
            )
        )
