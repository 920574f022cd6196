"""Convert blocks of an n-best list to the records of an iteration or its part.

Checks, hashes, duplicates and statistics are computed for a whole block at once. Per sentence, only
its earlier records are looked up and the bytes of its new record put together.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from mosesplug.errors import StoreError, StoreMismatch
from mosesplug.features import spelled_groups
from mosesplug.kernels import read_only
from mosesplug.metrics.outside import compute_statistics
from mosesplug.metrics.protocol import Metric, PreparedReferences, needs_texts
from mosesplug.store import dedupe
from mosesplug.store.columns import Column, Homes, make_columns
from mosesplug.store.dedupe import Rows
from mosesplug.store.encoding import encode_record
from mosesplug.store.hash_index import HashIndex
from mosesplug.store.merge import Reader
from mosesplug.store.records import corruption_error, report_damage
from mosesplug.store.state import kbest_key, statistics_key
from mosesplug.store.statistics import check_statistics
from mosesplug.store.stored import MOST_SENTENCES, StatisticsKind


@dataclass
class Ingest:
    """The lists of one iteration, on their way to the store.

    ``check`` and ``add`` blocks, then store the records. Records are ``kbest`` and ``statistics``.
    They may be stored between blocks; ``forget_records`` then frees their memory.

    Attributes:
        iteration: its number, from 1; all earlier ones are finished and in the store.
        n_sentences: sentences of the input; None for as many as the lists have.
        metric: the metric that scores new hypotheses.
        references: as ``metric.prepare`` compiled them.
        kind: the kind of these statistics.
        groups: dense groups of the store; None before the first hypothesis.
        sparse: columns of the known sparse features; new ones are added.
        path: the store, for messages.
        index: which earlier iterations may have a hypothesis.
        threads: threads of the metric.
        kbest: key and record of each list that is not stored yet.
        statistics: key and rows of the same lists.
        checksums: checksums of the records of all lists so far, by sentence.
        checksums_of_statistics: the same for their statistics.
        checked_sentences: the sentences of all blocks that were checked.
        bytes_held: bytes of ``kbest`` and ``statistics``.
        has_stored: whether records were stored before the last block.
        sentence_weights: float64, by sentence id, factors in ``totals``; None: 1 each.
        totals: summed statistics of the first hypothesis of each list.
        hypotheses: hypotheses of all lists so far.
        new_hypotheses: hypotheses that no earlier iteration had.
        last_sentence: the highest sentence id with a list, or -1.
    """

    iteration: int
    n_sentences: int | None
    metric: Metric
    references: PreparedReferences
    kind: StatisticsKind
    groups: tuple[tuple[str, int], ...] | None
    sparse: dict[str, int]
    path: object
    index: HashIndex = field(default_factory=HashIndex)
    threads: int = 1
    kbest: dict[bytes, bytes] = field(default_factory=dict)
    statistics: dict[bytes, bytes] = field(default_factory=dict)
    checksums: dict[int, int] = field(default_factory=dict)
    checksums_of_statistics: dict[int, int] = field(default_factory=dict)
    checked_sentences: set[int] = field(default_factory=set)
    bytes_held: int = 0
    has_stored: bool = False
    sentence_weights: NDArray[np.float64] | None = None
    totals: NDArray[Any] = field(init=False)
    hypotheses: int = 0
    new_hypotheses: int = 0
    last_sentence: int = -1

    def __post_init__(self) -> None:
        # Sums over all sentences need more bits than the statistics of one.
        is_integral = self.kind.dtype == "<i4" and self.sentence_weights is None
        wide = np.int64 if is_integral else np.float64
        self.totals = np.zeros(self.kind.width, dtype=wide)

    def check_ahead(self, blocks: Iterable[NBestList], most_bytes: int) -> Iterator[NBestList]:
        """Yield checked blocks; read and check ``most_bytes`` of text ahead.

        So errors in what was read ahead come before any other work.

        Raises:
            FormatError, StoreMismatch: as ``check``.
        """
        iterator = iter(blocks)
        ahead = deque[NBestList]()
        n_bytes = 0
        while n_bytes < most_bytes and (block := next(iterator, None)) is not None:
            self.check(block)
            ahead.append(block)
            n_bytes += len(block.buffer)
        while ahead:
            yield ahead.popleft()
        for block in iterator:
            self.check(block)
            yield block

    def check(self, block: NBestList) -> None:
        """Check a block; all lines of a sentence must be in one block.

        Raises:
            FormatError: a value is not finite, or a sentence is repeated or does not exist.
            StoreMismatch: the features differ from those of the store.
        """
        if len(block.sentence_ids):
            self._check_values(block)
            self._check_sentences(block)

    def add(self, block: NBestList, reader: Reader) -> None:
        """Add a checked block.

        Raises:
            FormatError: a line has a sparse feature twice.
            StoreError: the iteration has a list of a sentence from an earlier part.
        """
        n = len(block.sentence_ids)
        if not n:
            return
        ids = np.ascontiguousarray(block.sentence_ids, dtype=np.int64)
        begins = _find_begins(ids)
        sentences = ids[begins]
        bounds = np.append(begins, n)
        self._check_parts(sentences, reader)
        rows = self._rows(block)
        hashes = dedupe.hash_rows(rows)
        if block.outside is not None:
            hashes = dedupe.mix_scores(hashes, block.outside)
        homes = self._find_homes(rows, hashes, sentences, bounds, reader)
        statistics = self._scored(block, ids, rows, homes.new_rows)
        self._add_totals(sentences, homes, statistics, reader)
        columns = make_columns(block, rows, hashes, homes)
        self._encode(sentences, columns, (statistics, homes.new_bounds.tolist()))
        self.last_sentence = max(self.last_sentence, int(ids[-1]))
        self.hypotheses += n
        self.new_hypotheses += len(homes.new_rows)

    @property
    def n_lists(self) -> int:
        """Number of lists so far."""
        return len(self.checksums)

    def forget_records(self) -> None:
        """Free the memory of records, which are now stored."""
        self.kbest, self.statistics = {}, {}
        self.bytes_held, self.has_stored = 0, True

    def count_sentences(self, stored: int) -> int:
        """Return the number of sentences of the input, if the store had ``stored``."""
        known = max(stored, self.last_sentence + 1)
        return known if self.n_sentences is None else self.n_sentences

    def _find_homes(
        self,
        rows: Rows,
        hashes: NDArray[np.uint64],
        sentences: NDArray[np.int64],
        bounds: NDArray[np.int64],
        reader: Reader,
    ) -> Homes:
        """Look up every hypothesis in its list and in earlier ones of its sentence."""
        first, tables, table_bounds = dedupe.first_occurrences(rows, hashes, bounds)
        iterations = np.zeros(len(hashes), dtype=np.int32)
        home_rows = np.zeros(len(hashes), dtype=np.int32)
        for i, sentence in enumerate(sentences.tolist()):
            table = tables[table_bounds[i] : table_bounds[i + 1]]
            own = hashes[bounds[i] : bounds[i + 1]]
            for earlier in self.index.select(reader.transaction, sentence, own, self.iteration):
                record = reader.record(earlier, sentence)
                if record is None or not record.n_new:
                    continue
                is_sound = record.n_dense == rows.dense.shape[1] and dedupe.find_stored(
                    _stored_rows(record), record.hashes, earlier, rows, hashes,
                    bounds[i], table, iterations, home_rows,
                )  # fmt: skip
                if not is_sound:
                    raise corruption_error(earlier, sentence, "its arrays have inconsistent sizes")
        new_rows, new_bounds = dedupe.resolve(first, bounds, self.iteration, iterations, home_rows)
        return Homes(iterations, home_rows, bounds, new_rows, new_bounds)

    def _check_values(self, block: NBestList) -> None:
        if self.groups is None:
            self.groups = tuple(block.groups)
        elif tuple(block.groups) != self.groups:
            raise StoreMismatch(
                f"the features of {block.path} are {spelled_groups(block.groups)}, but the n-best "
                f"store at {self.path} has {spelled_groups(self.groups)}. Use a separate store for "
                "lists of another configuration"
            )
        if needs_texts(self.metric) and not block.has_texts:
            raise FormatError(
                f"the list has no texts, which {self.metric.name} compares with the references",
                path=block.path,
                line=int(block.lines[0]),
                remedy="Give scores of its hypotheses: {--scores} NAME=FILE",
            )
        # A list without scores has NaN; infinity is invalid.
        finite = np.isfinite(block.dense).all(axis=1) & ~np.isinf(block.scores)
        if not np.isfinite(block.sparse_data).all():
            owner = np.repeat(np.arange(len(finite)), np.diff(block.sparse_indptr))
            finite[owner[~np.isfinite(block.sparse_data)]] = False
        if not finite.all():
            raise FormatError(
                "a feature or score is not finite",
                path=block.path,
                line=int(block.lines[np.argmin(finite)]),
                remedy="Find the decoder's feature that writes it",
            )
        unscored = np.isnan(block.scores)
        if unscored.any() and not unscored.all():
            raise FormatError(
                "some hypotheses have no model score",
                path=block.path,
                line=int(block.lines[np.argmax(unscored != unscored[0])]),
                remedy="Give all lines a model score, or none",
            )

    def _check_sentences(self, block: NBestList) -> None:
        known = MOST_SENTENCES if self.n_sentences is None else self.n_sentences
        begins = _find_begins(np.asarray(block.sentence_ids))
        for begin, sentence in zip(
            begins.tolist(), block.sentence_ids[begins].tolist(), strict=True
        ):
            if not 0 <= sentence < known:
                raise FormatError(
                    f"sentence {sentence} does not exist: the input has {known}, counted from 0",
                    path=block.path,
                    line=int(block.lines[begin]),
                    remedy="Use lists of this input, and references of all its sentences",
                )
            if sentence in self.checked_sentences:
                raise FormatError(
                    f"sentence {sentence} already has a list",
                    path=block.path,
                    line=int(block.lines[begin]),
                    remedy="Put all lines of a sentence together",
                )
            self.checked_sentences.add(sentence)

    def _check_parts(self, sentences: NDArray[np.int64], reader: Reader) -> None:
        for sentence in sentences.tolist():
            if reader.has(self.iteration, sentence):
                raise StoreError(
                    f"iteration {self.iteration} of the n-best store at {self.path} has a list of "
                    f"sentence {sentence} from an earlier part"
                )

    def _rows(self, block: NBestList) -> Rows:
        """Return the block as ``Rows``, with sparse features in the store's columns."""
        columns = np.array(
            [self.sparse.setdefault(name, len(self.sparse)) for name in block.sparse_names],
            dtype=np.int32,
        )
        indptr = np.ascontiguousarray(block.sparse_indptr, dtype=np.int64)
        indices, data, repeated = dedupe.sort_sparse(
            indptr,
            columns[block.sparse_indices],
            np.array(block.sparse_data, dtype=np.float32),
        )
        if repeated >= 0:
            raise FormatError(
                "a sparse feature appears twice",
                path=block.path,
                line=int(block.lines[repeated]),
                remedy="Write each label once per line",
            )
        return Rows(
            buffer=read_only(block.buffer, np.uint8),
            starts=read_only(block.text_starts, np.int64),
            ends=read_only(block.text_ends, np.int64),
            dense=read_only(block.dense, np.float32),
            indptr=read_only(indptr),
            indices=read_only(indices),
            data=read_only(data),
        )

    def _scored(
        self, block: NBestList, ids: NDArray[np.int64], rows: Rows, wanted: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return the statistics of the wanted rows, ``[len(wanted), width]``."""
        statistics = compute_statistics(
            self.metric,
            self.references,
            ids[wanted],
            rows.buffer,
            rows.starts[wanted],
            rows.ends[wanted],
            None if block.outside is None else block.outside[wanted],
            threads=self.threads,
        )
        return check_statistics(statistics, self.kind, self.metric)

    def _add_totals(
        self,
        sentences: NDArray[np.int64],
        homes: Homes,
        statistics: NDArray[Any],
        reader: Reader,
    ) -> None:
        """Sum the statistics of the first hypothesis of each list."""
        iterations = homes.iterations[homes.bounds[:-1]]
        rows = homes.rows[homes.bounds[:-1]]
        here = iterations == self.iteration
        chosen = statistics[(homes.new_bounds[:-1] + rows)[here]]
        if self.sentence_weights is not None:
            chosen = self.sentence_weights[sentences[here], None] * chosen
        self.totals += chosen.sum(axis=0, dtype=self.totals.dtype)
        for sentence, iteration, row in zip(
            sentences[~here].tolist(), iterations[~here].tolist(), rows[~here].tolist(), strict=True
        ):
            with report_damage(iteration, sentence):
                counts = reader.statistics(self.kind, iteration, sentence)[row]
            if self.sentence_weights is not None:
                counts = self.sentence_weights[sentence] * counts
            self.totals += counts

    def _encode(
        self, sentences: NDArray[np.int64], columns: Sequence[Column], statistics: Column
    ) -> None:
        """Encode the records."""
        n_dense = sum(width for _, width in self.groups or ())
        array, bounds_of_rows = statistics
        for i, sentence in enumerate(sentences.tolist()):
            record = encode_record(
                n_dense, [array[bounds[i] : bounds[i + 1]] for array, bounds in columns]
            )
            rows = array[bounds_of_rows[i] : bounds_of_rows[i + 1]].tobytes()
            self.kbest[kbest_key(self.iteration, sentence)] = record
            self.statistics[statistics_key(self.kind.number, self.iteration, sentence)] = rows
            self.checksums[sentence] = zlib.crc32(record)
            self.checksums_of_statistics[sentence] = zlib.crc32(rows)
            self.bytes_held += len(record) + len(rows)


def _find_begins(ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the row where each sentence begins, int64."""
    return np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))


def _stored_rows(record: Any) -> Rows:
    """Return a record as ``Rows``."""
    indptr = record.sparse_indptr
    if not len(indptr):
        indptr = np.zeros(record.n_new + 1, dtype=indptr.dtype)
        indptr.flags.writeable = False  # as in a record: kernels are compiled for one kind
    return Rows(
        buffer=record.text,
        starts=record.text_offsets[:-1],
        ends=record.text_offsets[1:],
        dense=record.dense,
        indptr=indptr,
        indices=record.sparse_indices,
        data=record.sparse_data,
    )
