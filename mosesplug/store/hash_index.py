"""Index hashes of hypotheses: which earlier iterations may have one.

Without it, each list would be compared with the records of all earlier iterations of its sentence.
The index consists of runs. A run lists, for each sentence, the sorted hashes of the hypotheses of
``16 * 2 ** level`` iterations. Two runs of a level are merged into one of the next, so that a store
of ``n`` finished iterations has at most ``log2(n / 16) + 1`` runs, and a hash is written as often.
The newest iterations, fewer than 16, are in no run.

The database ``homes``, which the first run creates, is derived from the others. Software that does
not know it may drop and add iterations; so a run records the checksum of its newest iteration's own
records, and counts only if these are still the same::

    level, number, sentence      CRC-32 of the arrays u64, hashes u64, their iterations i32
    level, number, 0xFFFFFFFF    the checksum, written with the last sentence
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.store.files.environment import Environment
from mosesplug.store.files.handles import delete_prefix
from mosesplug.store.merge import Reader
from mosesplug.store.state import COMMIT, RECORD, iteration_key, put_sorted

INDEX = "homes"
UNIT = 16
"""Iterations of the shortest runs."""

_TRANSACTION_BYTES = 8 << 20
_key = struct.Struct(">BII").pack
_MARK = 0xFFFFFFFF
_CHECKSUM = struct.Struct("<Q")  # of 64 bits, so that the arrays are aligned
_ENTRY_BYTES = 12


class HashRun(NamedTuple):
    """A range of iterations.

    Attributes:
        level: it has ``16 * 2 ** level`` iterations.
        number: its place among those of its level, from 0.
    """

    level: int
    number: int

    @property
    def iterations(self) -> range:
        """The iterations, from 1."""
        size = UNIT << self.level
        return range(self.number * size + 1, (self.number + 1) * size + 1)

    @property
    def halves(self) -> tuple[HashRun, ...]:
        """The runs of the next lower level that it is merged of."""
        if not self.level:
            return ()
        return HashRun(self.level - 1, 2 * self.number), HashRun(
            self.level - 1, 2 * self.number + 1
        )


@dataclass
class HashIndex:
    """The index while lists of one iteration are added.

    Attributes:
        database: its handle; None while the store has no run.
        runs: the runs, which cover the first iterations.
        checked: keys whose values this process has compared with their checksum.
    """

    database: Any = None
    runs: tuple[HashRun, ...] = ()
    checked: set[bytes] = field(default_factory=set)

    def select(
        self, transaction: Any, sentence: int, hashes: NDArray[np.uint64], end: int
    ) -> list[int]:
        """Return the iterations before ``end`` whose records may have one of these hashes.

        Args:
            hashes: uint64, of its list.
            end: the iteration of the list.
        """
        candidates: list[int] = []
        begin = 1
        for run in self.runs:
            begin = run.iterations.stop
            entries = self._read(transaction, run, sentence)
            if entries is None:
                candidates += run.iterations  # damaged: the records themselves tell
                continue
            stored, iterations = entries
            # One hash may be in several iterations: other hypotheses can share it.
            first, last = np.searchsorted(stored, hashes), np.searchsorted(stored, hashes, "right")
            matches = np.flatnonzero(first < last)
            for match in matches.tolist():
                candidates += iterations[first[match] : last[match]].tolist()
        # Iterations after the last whole run have no index: their records are looked up one by one.
        return [*sorted(set(candidates)), *range(begin, end)]

    def _read(
        self, transaction: Any, run: HashRun, sentence: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]] | None:
        """Return sorted hashes and their iterations, or None if they are damaged."""
        key = _key(*run, sentence)
        value = transaction.get(key, db=self.database)
        if value is None:
            return np.zeros(0, np.uint64), np.zeros(0, np.int32)
        count, rest = divmod(len(value) - _CHECKSUM.size, _ENTRY_BYTES)
        if rest or count < 0:
            return None
        if key not in self.checked:
            if _CHECKSUM.unpack_from(value)[0] != zlib.crc32(value[_CHECKSUM.size :]):
                return None
            self.checked.add(key)
        return (
            np.frombuffer(value, "<u8", count, _CHECKSUM.size),
            np.frombuffer(value, "<i4", count, _CHECKSUM.size + 8 * count),
        )


def prepare_index(
    environment: Environment, index: HashIndex, n_finished: int, n_sentences: int
) -> HashIndex:
    """Return the index of the finished iterations; write the runs that are missing.

    Args:
        index: the index of an earlier call, or an empty one; not one of iterations that were
            dropped since.
        n_finished: number of finished iterations.

    Raises:
        StoreError, StoreFull: as ``Environment.write``.
    """
    wanted = _divide(n_finished // UNIT)
    if index.runs == wanted:
        return index
    database = environment.make_database(INDEX)
    with environment.reading() as transaction:
        valid = frozenset(
            run
            for run in _list_runs(transaction, database)
            if _is_current(transaction, environment, database, run)
        )
    new = HashIndex(database, wanted, index.checked)
    missing = [run for run in wanted if run not in valid]
    for run in missing:
        _write_run(environment, new, run, valid, n_sentences)
    if missing:
        environment.write(partial(_delete_others, database=database, kept=frozenset(wanted)))
    # Values of other runs are not read again.
    prefixes = {_key(*run, 0)[:5] for run in wanted}
    return replace(new, checked={key for key in new.checked if key[:5] in prefixes})


def _divide(units: int) -> tuple[HashRun, ...]:
    """Return the longest runs of so many units of iterations, in order."""
    runs = []
    begin = 0
    for level in reversed(range(units.bit_length())):
        if units >> level & 1:
            runs.append(HashRun(level, begin >> level))
            begin += 1 << level
    return tuple(runs)


def _list_runs(transaction: Any, database: Any) -> list[HashRun]:
    """Return the runs that were written as a whole."""
    runs = []
    cursor = transaction.cursor(database)
    is_there = cursor.first()
    while is_there:
        level, number, _ = struct.unpack(">BII", cursor.key())
        if transaction.get(_key(level, number, _MARK), db=database) is not None:
            runs.append(HashRun(level, number))
        is_there = cursor.set_range(_key(level, number, _MARK)) and (
            bytes(cursor.key()) != _key(level, number, _MARK) or cursor.next()
        )
    return runs


def _fingerprint(transaction: Any, environment: Environment, run: HashRun) -> bytes:
    """Return a checksum of the newest iteration of a run; empty if it is not finished."""
    newest, checksum = run.iterations[-1], 0
    for part in (COMMIT, RECORD):
        value = transaction.get(iteration_key(newest, part), db=environment["iterations"])
        if value is None:
            return b""
        checksum = zlib.crc32(value, checksum)
    return _CHECKSUM.pack(checksum)


def _is_current(transaction: Any, environment: Environment, database: Any, run: HashRun) -> bool:
    stored = bytes(transaction.get(_key(*run, _MARK), db=database))
    return stored == _fingerprint(transaction, environment, run)


def _write_run(
    environment: Environment,
    index: HashIndex,
    run: HashRun,
    valid: frozenset[HashRun],
    n_sentences: int,
) -> None:
    database = index.database
    prefix = _key(*run, 0)[:5]
    environment.write(lambda transaction: delete_prefix(transaction, database, prefix))
    sentences = iter(range(n_sentences))
    is_last = False
    while not is_last:
        values: dict[bytes, bytes] = {}
        size = 0
        with environment.reading() as transaction:
            reader = Reader(transaction, environment)
            for sentence in sentences:
                pieces = list(_pieces(transaction, reader, index, run, valid, sentence))
                if pieces:
                    value = _merge(pieces)
                    values[_key(*run, sentence)] = value
                    size += len(value)
                if size >= _TRANSACTION_BYTES:
                    break
            else:
                is_last = True
                # The mark is written last: a run without it was cut off, and counts as missing.
                mark = _fingerprint(transaction, environment, run)
                values[_key(*run, _MARK)] = mark
        environment.write(partial(put_sorted, database=database, items=values))


Piece = tuple[NDArray[np.uint64], NDArray[np.int32]]


def _pieces(
    transaction: Any,
    reader: Reader,
    index: HashIndex,
    run: HashRun,
    valid: frozenset[HashRun],
    sentence: int,
) -> Iterator[Piece]:
    """Yield the hashes of a sentence, from shorter runs or from records."""
    for half in run.halves:
        entries = index._read(transaction, half, sentence) if half in valid else None
        if entries is None:
            yield from _pieces(transaction, reader, index, half, valid, sentence)
        elif len(entries[0]):
            yield entries
    if not run.level:
        for iteration in run.iterations:
            record = reader.record(iteration, sentence)
            if record is not None and record.n_new:
                yield record.hashes, np.full(record.n_new, iteration, np.int32)


def _merge(pieces: list[Piece]) -> bytes:
    hashes = np.concatenate([hashes for hashes, _ in pieces])
    order = np.argsort(hashes, kind="stable")
    iterations = np.concatenate([iterations for _, iterations in pieces])[order]
    data = hashes[order].astype("<u8").tobytes() + iterations.astype("<i4").tobytes()
    return _CHECKSUM.pack(zlib.crc32(data)) + data


def _delete_others(transaction: Any, database: Any, kept: frozenset[HashRun]) -> None:
    for run in _list_runs(transaction, database):
        if run not in kept:
            delete_prefix(transaction, database, _key(*run, 0)[:5])
