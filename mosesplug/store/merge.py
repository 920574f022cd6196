"""Merge any iterations of any sentences without duplicates.

The result is a ``TuningSet``. A record holds only hypotheses that no earlier record of its sentence
has, so a range of iterations from the first is merged by concatenating records. For other choices
of iterations, the references of their lists are followed to the records that hold the hypotheses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError
from mosesplug.features import FeatureSpace
from mosesplug.large_arrays import concatenate, take_rows
from mosesplug.store.checksums import compare_record
from mosesplug.store.encoding import decode_value
from mosesplug.store.files.environment import Environment
from mosesplug.store.records import KbestRecord, corruption_error, read_record, report_damage
from mosesplug.store.state import PROGRESS, has_prefix, iteration_key, kbest_key, statistics_key
from mosesplug.store.stored import StatisticsKind
from mosesplug.tuning_set import SparseRows, TuningSet


class Reader:
    """Records of a read transaction; their arrays are valid until it ends.

    Args:
        compare: whether to compare records with their checksums when they are first read.
    """

    def __init__(self, transaction: Any, environment: Environment, *, compare: bool = True) -> None:
        self.transaction = transaction
        self._environment = environment if compare else None
        self._get = transaction.get
        self._cursor = transaction.cursor
        self._iterations = environment["iterations"]
        self._kbest = environment["kbest"]
        self._statistics = environment["statistics"]
        self._forest = environment["forest"]

    def record(self, iteration: int, sentence: int) -> KbestRecord | None:
        """Return one sentence's list of one iteration, or None if there is none.

        Raises:
            StoreError: the record is damaged.
        """
        buffer = self.list_bytes(iteration, sentence)
        return None if buffer is None else read_record(buffer, iteration, sentence)

    def list_bytes(self, iteration: int, sentence: int) -> NDArray[np.uint8] | None:
        """Return the bytes of a sentence's list of an iteration, or None without one.

        Raises:
            StoreError: its checksum differs.
        """
        value = self._get(kbest_key(iteration, sentence), db=self._kbest)
        self._compare(("kbest", 0), iteration, sentence, value)
        return None if value is None else np.frombuffer(value, np.uint8)

    def graph(self, iteration: int, sentence: int) -> NDArray[np.uint8] | None:
        """Return the bytes of one sentence's search graph of one iteration, or None.

        Raises:
            StoreError: its checksum differs.
        """
        value = self._get(kbest_key(iteration, sentence), db=self._forest)
        self._compare(("forest", 0), iteration, sentence, value)
        return None if value is None else np.frombuffer(value, np.uint8)

    def _compare(self, place: tuple[str, int], iteration: int, sentence: int, value: Any) -> None:
        if self._environment is not None:
            compare_record(self.transaction, self._environment, place, iteration, sentence, value)

    def has(self, iteration: int, sentence: int) -> bool:
        """Return whether an iteration has a list of that sentence."""
        return self._get(kbest_key(iteration, sentence), db=self._kbest) is not None

    def has_lists(self, iteration: int) -> bool:
        """Return whether an iteration, finished or not, has lists."""
        return has_prefix(self.transaction, self._kbest, kbest_key(iteration, 0)[:4])

    def sentences(self, iteration: int) -> NDArray[np.int64]:
        """Return the sentences that have a list in an iteration, int64, ascending.

        Raises:
            StoreError: a key is damaged.
        """
        first, end = kbest_key(iteration, 0), kbest_key(iteration + 1, 0)
        cursor = self._cursor(self._kbest)
        numbers: list[int] = []
        if cursor.set_range(first):
            keys = map(bytes, cursor.iternext(values=False))
            for key in itertools.takewhile(end.__gt__, keys):
                if len(key) != len(first):
                    raise StoreError(
                        f"the n-best store is damaged: a key of iteration {iteration} is invalid. "
                        "Use a copy, or start in an empty directory"
                    )
                numbers.append(int.from_bytes(key[4:]))
        return np.array(numbers, dtype=np.int64)

    def progress(self, iteration: int) -> dict[str, Any]:
        """Return the progress that the last part of an open iteration stored.

        Raises:
            StoreError: the progress is damaged or missing.
        """
        value = self._get(iteration_key(iteration, PROGRESS), db=self._iterations)
        try:
            return dict(decode_value(value))
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"the n-best store is damaged: the progress of iteration {iteration} cannot be "
                f"read ({error}). Use a copy, or start in an empty directory"
            ) from None

    def statistics(self, kind: StatisticsKind, iteration: int, sentence: int) -> NDArray[Any]:
        """Return the statistics ``[n_new, width]`` of the hypotheses in a record.

        Raises:
            StoreError: statistics are missing or damaged.
        """
        value = self._get(statistics_key(kind.number, iteration, sentence), db=self._statistics)
        self._compare(("statistics", kind.number), iteration, sentence, value)
        if value is None:
            raise StoreError(
                f"the n-best store has no statistics of {kind.signature} for sentence {sentence} "
                f"of iteration {iteration}: the store was changed during the read. Read it again"
            )
        with report_damage(iteration, sentence):
            return np.frombuffer(value, kind.dtype).reshape(-1, kind.width)


@dataclass(frozen=True)
class Selection:
    """Hypotheses of one sentence: rows of the records that hold them.

    Attributes:
        pieces: for each record its iteration, the record, and its wanted rows, or None for all.
        order: int64; the wanted order of the rows of all pieces; None: as concatenated.
    """

    pieces: tuple[tuple[int, KbestRecord, NDArray[np.int64] | None], ...]
    order: NDArray[np.int64] | None

    @property
    def n_hyps(self) -> int:
        """Number of hypotheses."""
        return sum(r.n_new if rows is None else len(rows) for _, r, rows in self.pieces)


def select_merged(reader: Reader, sentence: int, iterations: Sequence[int]) -> Selection:
    """Select the union of the lists of some iterations, in order of first appearance."""
    if not iterations:
        return Selection((), None)
    records = [(iteration, reader.record(iteration, sentence)) for iteration in iterations]
    # From the first iteration on, every home is in one of these records: nothing repeats.
    if iterations[-1] == len(iterations):
        return Selection(
            tuple((iteration, record, None) for iteration, record in records if record), None
        )
    held = [record for _, record in records if record]
    if not held:
        return Selection((), None)
    homes = np.concatenate([_homes(record) for record in held])
    # Of a later range, lists refer to earlier iterations, several to one hypothesis.
    _, first = np.unique(homes, return_index=True)
    return _gather(reader, sentence, homes[np.sort(first)])


def select_list(reader: Reader, sentence: int, iteration: int) -> Selection:
    """Select an iteration's list in the decoder's order, repeated hypotheses too."""
    record = reader.record(iteration, sentence)
    return Selection((), None) if record is None else _gather(reader, sentence, _homes(record))


def _homes(record: KbestRecord) -> NDArray[np.int64]:
    """Return iteration and row of each position of the list, packed in one number."""
    homes: NDArray[np.int64] = (record.home_iterations.astype(np.int64) << 32) | record.home_rows
    return homes


def _gather(reader: Reader, sentence: int, homes: NDArray[np.int64]) -> Selection:
    """Return the hypotheses at ``homes``, in that order."""
    # Each record is read once, wherever its rows go.
    by_iteration = np.argsort(homes >> 32, kind="stable")
    order = np.empty_like(by_iteration)
    order[by_iteration] = np.arange(len(homes))
    grouped = homes[by_iteration]
    cuts = np.flatnonzero(np.diff(grouped >> 32, prepend=-1))
    pieces = []
    for rows in np.split(grouped, cuts[1:]):
        if len(rows):
            iteration = int(rows[0] >> 32)
            record = _read_home(reader, iteration, sentence)
            pieces.append((iteration, record, rows & 0xFFFFFFFF))
    return Selection(tuple(pieces), order)


def _read_home(reader: Reader, iteration: int, sentence: int) -> KbestRecord:
    """Return the record of an iteration that a list refers to."""
    # Any other number is not an iteration and would not be a valid key.
    record = reader.record(iteration, sentence) if 0 < iteration < 1 << 31 else None
    if record is None:
        raise StoreError(
            f"the n-best store is damaged: a list of sentence {sentence} refers to "
            f"iteration {iteration}, which has none. Start in an empty directory"
        )
    return record


def assemble(
    reader: Reader,
    space: FeatureSpace,
    kind: StatisticsKind,
    sentences: NDArray[np.int64],
    selections: Sequence[Selection],
) -> TuningSet:
    """Copy the selected hypotheses of each sentence into one ``TuningSet``."""
    dense, lengths, stats, sparse = [], [], [], []
    for sentence, selection in zip(sentences.tolist(), selections, strict=True):
        for iteration, record, rows in selection.pieces:
            statistics = reader.statistics(kind, iteration, sentence)
            every = rows is None
            if record.n_dense != space.n_dense or len(statistics) != record.n_new:
                why = "its features or statistics differ from those of the store"
                raise corruption_error(iteration, sentence, why)
            with report_damage(iteration, sentence):
                dense.append(record.dense if every else record.dense[rows])
                lengths.append(record.lengths if every else record.lengths[rows])
                stats.append(statistics if every else statistics[rows])
                if space.n_sparse:
                    held = _check_columns(record.sparse(), space.n_sparse)
                    sparse.append(held if rows is None else held.take(rows))
    offsets = np.zeros(len(sentences) + 1, dtype=np.int64)
    np.cumsum([selection.n_hyps for selection in selections], out=offsets[1:])
    merged = TuningSet(
        space=space,
        sentence_ids=sentences,
        offsets=offsets,
        dense=_concatenate(dense, (0, space.n_dense), np.float32),
        sparse=SparseRows.concatenate(sparse) if space.n_sparse else None,
        stats=_concatenate(stats, (0, kind.width), np.dtype(kind.dtype)),
        lengths=_concatenate(lengths, (0,), np.int32),
    )
    if all(selection.order is None for selection in selections):
        return merged
    orders = [
        np.arange(begin, begin + selection.n_hyps)
        if selection.order is None
        else begin + selection.order
        for begin, selection in zip(offsets.tolist(), selections, strict=False)
    ]
    return _reorder(merged, np.concatenate(orders))


def _check_columns(rows: SparseRows, n_sparse: int) -> SparseRows:
    """Return ``rows`` if each feature has a column: kernels do not check bounds."""
    # As unsigned numbers, negative ones are the largest.
    if len(rows.indices) and rows.indices.view(np.uint32).max() >= n_sparse:
        raise ValueError("a sparse feature has no name")
    return rows


def read_texts(selection: Selection, sentence: int) -> tuple[bytes, ...]:
    """Return the texts of the selected hypotheses, in order."""
    texts: list[bytes] = []
    for iteration, record, rows in selection.pieces:
        with report_damage(iteration, sentence):
            held = record.hypotheses()
            texts += held if rows is None else [held[row] for row in rows.tolist()]
    order = range(len(texts)) if selection.order is None else selection.order.tolist()
    return tuple(texts[position] for position in order)


def first_best_statistics(
    reader: Reader, kind: StatisticsKind, n_sentences: int, iteration: int
) -> NDArray[Any]:
    """Return the statistics of the first hypothesis of each list of one iteration.

    Returns:
        ``[n_sentences, width]``; 0 for a sentence without a list.
    """
    statistics = np.zeros((n_sentences, kind.width), dtype=kind.dtype)
    for sentence in reader.sentences(iteration).tolist():
        record = reader.record(iteration, sentence)
        if record is None or not record.n_list:
            continue
        home, row = int(record.home_iterations[0]), int(record.home_rows[0])
        if home != iteration:
            _read_home(reader, home, sentence)
        with report_damage(iteration, sentence):
            # As unsigned numbers, negative ones are beyond the last row.
            statistics[sentence] = reader.statistics(kind, home, sentence)[row & 0xFFFFFFFF]
    return statistics


def list_scores(
    reader: Reader, iteration: int, sentences: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Return model scores of an iteration's lists, and the hypotheses' places.

    Returns:
        float64 scores, NaN if a list has none; int32 iterations; int32 rows.
    """
    records = [reader.record(iteration, sentence) for sentence in sentences.tolist()]
    held = [record for record in records if record is not None]
    scores = [r.scores if len(r.scores) else np.full(r.n_list, np.nan) for r in held]
    return (
        _concatenate(scores, (0,), np.float64),
        _concatenate([record.home_iterations for record in held], (0,), np.int32),
        _concatenate([record.home_rows for record in held], (0,), np.int32),
    )


def _concatenate(arrays: list[NDArray[Any]], shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    return concatenate(arrays, dtype) if arrays else np.zeros(shape, dtype)


def _reorder(merged: TuningSet, rows: NDArray[np.int64]) -> TuningSet:
    return replace(
        merged,
        dense=take_rows(merged.dense, rows),
        sparse=None if merged.sparse is None else merged.sparse.take(rows),
        stats=take_rows(merged.stats, rows),
        lengths=take_rows(merged.lengths, rows),
    )
