"""The lists of a run as arrays of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError
from mosesplug.optimizers.line_search.winners import find_winners, rank_hypotheses
from mosesplug.results.report.explorer.packing import PackedArray, pack_arrays
from mosesplug.results.report.explorer.selection import find_needed
from mosesplug.results.views.run import StoredRun
from mosesplug.tuning_set import TuningSet

_SAMPLE = 20_000
"""Approximate number of hypotheses that are compressed to estimate the size of all."""

_FEWEST = 100
"""Number of sentences of this sample, unless there are fewer."""

_ESTIMATES = 3
"""Number of estimates of how many hypotheses fit, each with a selection of the last one's size."""

_MARGIN = 0.96
"""Target share of the allowed size: the size of a selection is an estimate."""

_MEGABYTE = 1_000_000

_MOST_RANK = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class RunLists:
    """The merged lists of some sentences, with the ranks of the hypotheses.

    Attributes:
        run: the run, from which texts are read when they are needed.
        merged: the merged lists; those of other sentences are empty.
        ranks: uint16 ``[n_iterations, n_hyps]``, the rank in each iteration's list from 1; 0 if the
            list does not have the hypothesis.
    """

    run: StoredRun
    merged: TuningSet
    ranks: NDArray[np.uint16]

    @classmethod
    def read(cls, run: StoredRun, sentences: NDArray[np.int64]) -> RunLists:
        """Read the lists of some sentences, int64, ascending.

        Raises:
            StoreError: the store cannot be read.
        """
        merged = run.merged
        if len(sentences) < run.n_sentences:
            rows = [np.arange(*merged.offsets[sentence : sentence + 2]) for sentence in sentences]
            merged = merged.take_hypotheses(np.concatenate(rows))
        return cls(run, merged, _read_ranks(run, merged, sentences))


def spread_sentences(n_sentences: int, most: int | None) -> NDArray[np.int64]:
    """Return sentences evenly spread over a tuning set, ascending, int64; None: all."""
    if most is None or most >= n_sentences:
        return np.arange(n_sentences)
    return np.arange(most) * n_sentences // most


@dataclass(frozen=True)
class PackedLists:
    """The hypotheses that a page holds.

    Attributes:
        rows: int64, ascending: their rows in the merged lists.
        arrays: as ``scripts/data.js`` reads them.
        sparse_columns: int64, the sparse features with a weight other than 0 in some iteration or
            in the result.
    """

    rows: NDArray[np.int64]
    arrays: Mapping[str, PackedArray]
    sparse_columns: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of bytes in the page."""
        return sum(len(array.text) for array in self.arrays.values())


def pack_lists(
    lists: RunLists, vectors: Sequence[NDArray[np.float64]], most: float | None
) -> PackedLists:
    """Pack as many hypotheses as fit; see ``rank_hypotheses`` for their order.

    Args:
        lists: the lists of a run.
        vectors: float64 ``[n_features]`` each, the weights that the run visited, the result last.
        most: largest number of bytes of the packed lists; None: unlimited.

    Raises:
        UsageError: the hypotheses that scores need take more bytes.
        StoreError: the store cannot be read.
    """
    run, merged = lists.run, lists.merged
    weighted = np.any([vector[merged.space.n_dense :] for vector in vectors], axis=0)
    columns = np.flatnonzero(weighted)
    everything = np.arange(merged.n_hyps)
    if most is None or not len(everything):
        return _pack(lists, everything, columns)
    sample, count = _sample_rows(merged), merged.n_hyps
    if len(sample) < count:
        count = _estimate_count(lists, sample, columns, most)
    if count >= merged.n_hyps and (packed := _pack(lists, everything, columns)).size <= most:
        return packed
    needed = find_needed(merged, run.metric, vectors)
    best_ranks = np.where(lists.ranks == 0, _MOST_RANK, lists.ranks).min(axis=0).astype(np.int64)
    wins = find_winners(merged, run.metric, vectors)
    order = rank_hypotheses(needed, wins, best_ranks)
    fewest, places = int(needed.sum()), np.empty_like(order)
    places[order] = everything
    for _ in range(_ESTIMATES):
        # The first hypotheses take more bytes than all: their texts resemble each other less.
        chosen = sample[places[sample] < max(count, fewest)]
        count = min(_estimate_count(lists, chosen, columns, most), merged.n_hyps)
    while True:
        packed = _pack(lists, np.sort(order[: max(count, fewest)]), columns)
        if packed.size <= most:
            return packed
        if count <= fewest:
            raise UsageError(
                f"the page needs {packed.size / _MEGABYTE:.3g} MB for the hypotheses that win at "
                f"the weights of {run.path}: raise {{--max-size}}"
            )
        count = int(count * _MARGIN * most / packed.size)


def _sample_rows(merged: TuningSet) -> NDArray[np.int64]:
    """Return rows of whole sentences: texts of the same sentence compress each other."""
    filled = np.flatnonzero(np.diff(merged.offsets))
    step = min(-(-merged.n_hyps // _SAMPLE), max(len(filled) // _FEWEST, 1))
    return np.concatenate([np.arange(*merged.offsets[i : i + 2]) for i in filled[::step]])


def _estimate_count(
    lists: RunLists, sample: NDArray[np.int64], columns: NDArray[np.int64], most: float
) -> int:
    """Return how many hypotheses like those of a sample take about ``most`` bytes."""
    return int(_MARGIN * most * len(sample) / _pack(lists, sample, columns).size)


def _pack(lists: RunLists, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> PackedLists:
    merged = lists.merged
    offsets = np.searchsorted(rows, merged.offsets)
    stats = merged.stats[rows].T
    arrays: dict[str, NDArray[Any]] = {
        "offsets": offsets.astype(np.uint32),
        "features": merged.dense[rows].T,
        "stats": stats.astype(np.int32 if stats.dtype.kind == "i" else np.float64),
        "lengths": merged.lengths[rows].astype(np.int32),
        "ranks": lists.ranks[:, rows],
        **_join_texts(lists, rows, offsets),
    }
    if merged.sentence_weights is not None:
        arrays["sentenceWeights"] = merged.sentence_weights
    if len(columns) and merged.sparse is not None:
        arrays |= _take_sparse(merged, rows, columns)
    return PackedLists(rows, pack_arrays(arrays, usable_cores()), columns)


def _join_texts(
    lists: RunLists, rows: NDArray[np.int64], offsets: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the texts of each sentence, one a line, and where sentences begin."""
    iterations = [record.iteration for record in lists.run.records]
    blocks = []
    for sentence, start in enumerate(lists.merged.offsets[:-1].tolist()):
        own = (rows[offsets[sentence] : offsets[sentence + 1]] - start).tolist()
        texts = lists.run.store.hypotheses(sentence, iterations) if own else ()
        blocks.append(join_lines([texts[row] for row in own]))
    return {
        "texts": np.frombuffer(b"".join(blocks), dtype=np.uint8),
        "textOffsets": np.cumsum([0, *map(len, blocks)]).astype(np.uint32),
    }


def join_lines(texts: Sequence[bytes]) -> bytes:
    """Join texts, one per line; line feeds of plug-ins become spaces."""
    return b"\n".join(text.strip().replace(b"\n", b" ") for text in texts)


def _take_sparse(
    merged: TuningSet, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the values of the sparse features of ``columns``."""
    assert merged.sparse is not None
    sparse = merged.sparse.take(rows)
    places = np.full(merged.space.n_sparse, -1, dtype=np.int64)
    places[columns] = np.arange(len(columns))
    kept = places[sparse.indices] >= 0
    owners = np.repeat(np.arange(len(rows)), np.diff(sparse.indptr))[kept]
    counts = np.bincount(owners, minlength=len(rows))
    return {
        "sparseOffsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        "sparseColumns": places[sparse.indices[kept]].astype(np.uint32),
        "sparseValues": sparse.data[kept],
    }


def _read_ranks(
    run: StoredRun, merged: TuningSet, sentences: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Return the rank of each merged hypothesis in each iteration's list."""
    ranks = np.zeros((len(run.records), merged.n_hyps), dtype=np.uint16)
    # Where the new hypotheses of each iteration begin among the merged ones of a sentence.
    firsts = np.zeros(len(run.records) + 2, dtype=np.int64)
    with run.store.snapshot() as snapshot:
        for sentence in sentences.tolist():
            end = int(merged.offsets[sentence])
            for place, iteration in enumerate(run.records):
                firsts[iteration.iteration] = end
                record = snapshot.record(iteration.iteration, sentence)
                if record is None:
                    continue
                end += record.n_new
                homes = firsts[record.home_iterations] + record.home_rows
                positions = np.minimum(np.arange(1, record.n_list + 1), _MOST_RANK)
                # A list may repeat a hypothesis: its first position is its rank.
                ranks[place, homes[::-1]] = positions[::-1]
    return ranks
