"""Hypotheses in the layout of k-best MIRA, which visits sentence after sentence.

No weights can prefer one of several hypotheses with equal features, so the first stands for all.
Features lie as in ``arrangement``, in single precision. Hypotheses of a sentence share many rows of
statistics, so each distinct row is kept and scored once.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets
from mosesplug.large_arrays import allocate, take_rows
from mosesplug.optimizers.lists.rows import drop_empty_sentences, filled_weights
from mosesplug.tuning_set import SparseRows, TuningSet

_CHUNK = 65536
"""About so many hypotheses are converted at a time."""


class MiraLists(NamedTuple):
    """Distinct hypotheses of the sentences that have any.

    Attributes:
        offsets: hypotheses of sentence ``i`` are
            ``offsets[i]:offsets[i + 1]``.
        dense: float32 ``[n_hyps * n_dense]``, arranged.
        indptr: int64 ``[n_hyps + 1]``; sparse values of hypothesis ``i`` are ``indptr[i]:indptr[i +
            1]``.
        columns: int32 ``[nnz]``; counted over all features, ascending within a hypothesis.
        values: float32 ``[nnz]``.
        row_of: int64 ``[n_hyps]``; the hypothesis' statistics in ``rows``.
        row_offsets: statistics of sentence ``i`` are
            ``row_offsets[i]:row_offsets[i + 1]``.
        rows: float32 ``[n_rows, n_statistics]``.
        sentence_weights: float32 ``[n_sentences]``; 1 without weights.
    """

    n_dense: int
    offsets: Offsets
    dense: NDArray[np.float32]
    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    row_of: NDArray[np.int64]
    row_offsets: Offsets
    rows: NDArray[np.float32]
    sentence_weights: NDArray[np.float32]


def mira_lists(tuning_set: TuningSet) -> tuple[MiraLists, NDArray[np.int64]]:
    """Return the distinct hypotheses, arranged, and their rows of the tuning set."""
    offsets = drop_empty_sentences(tuning_set.offsets)
    sparse = _sort_columns(tuning_set.sparse, tuning_set.n_hyps)
    kept, _ = _find_distinct(offsets, tuning_set.dense, sparse)
    offsets, sparse = np.searchsorted(kept, offsets).astype(np.int64), sparse.take(kept)

    stats = _single_statistics(tuning_set, kept)
    rows, row_of = _find_distinct(offsets, stats, _sort_columns(None, len(stats)))

    n_dense = tuning_set.dense.shape[1]
    lists = MiraLists(
        n_dense=n_dense,
        offsets=offsets,
        dense=_arrange(offsets, tuning_set.dense, kept),
        indptr=sparse.indptr,
        columns=(sparse.indices + n_dense).astype(np.int32),
        values=sparse.data,
        row_of=row_of,
        row_offsets=np.searchsorted(rows, offsets).astype(np.int64),
        rows=take_rows(stats, rows),
        sentence_weights=filled_weights(tuning_set).astype(np.float32),
    )
    return lists, kept


def _single_statistics(tuning_set: TuningSet, kept: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the statistics of some hypotheses, float32 ``[len(kept), n_statistics]``."""
    stats = allocate((len(kept), tuning_set.stats.shape[1]), np.float32)
    for start in range(0, len(kept), _CHUNK):
        chunk = kept[start : start + _CHUNK]
        stats[start : start + len(chunk)] = tuning_set.stats[chunk]
    return stats


def _find_distinct(
    offsets: NDArray[np.int64], dense: NDArray[Any], sparse: SparseRows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of each sentence, and each row's equal among them.

    Of equal rows, the first is returned. Some sentences at a time, so that copies are small.

    Returns:
        int64 ``[n_distinct]``, rows; int64 ``[n_rows]``, for each row the place of its equal there.
    """
    kept, places = allocate((len(dense),), np.int64), allocate((len(dense),), np.int64)
    count = 0
    steps = np.arange(0, len(dense), _CHUNK)
    bounds = np.unique(np.append(np.searchsorted(offsets, steps), len(offsets) - 1))
    for first, last in itertools.pairwise(bounds.tolist()):
        start, end = int(offsets[first]), int(offsets[last])
        part = np.array(dense[start:end], dtype=np.float32, order="C")
        own = offsets[first : last + 1] - start
        alike = _first_alike(own, part, sparse.view(start, end))
        is_first = alike == np.arange(end - start)
        distinct = np.flatnonzero(is_first)
        kept[count : count + len(distinct)] = start + distinct
        places[start:end] = count + (np.cumsum(is_first) - 1)[alike]
        count += len(distinct)
    return kept[:count], places


def _sort_columns(sparse: SparseRows | None, n_hyps: int) -> SparseRows:
    """Return a copy with ascending columns in each row; empty rows for None."""
    if sparse is None:
        return SparseRows.empty(n_hyps)
    owner = np.repeat(np.arange(n_hyps), np.diff(sparse.indptr))
    order = np.lexsort((sparse.indices, owner))
    return SparseRows(
        np.array(sparse.indptr, dtype=np.int64),
        np.array(sparse.indices[order], dtype=np.int32),
        np.array(sparse.data[order], dtype=np.float32),
    )


def _first_alike(
    offsets: Offsets, dense: NDArray[np.float32], sparse: SparseRows
) -> NDArray[np.int64]:
    """Return for each row the first equal one of its sentence, int64 ``[n_rows]``.

    Args:
        dense: float32 ``[n_rows, n_dense]``.
        sparse: values beside the dense ones, ascending columns in each row.
    """
    n_rows = len(dense)
    if not n_rows:
        return np.zeros(0, dtype=np.int64)
    codes = _hash_rows(offsets, dense, sparse)
    order = np.argsort(codes)
    is_new = np.append(True, np.diff(codes[order]) != 0)
    first = np.empty(n_rows, dtype=np.int64)
    first[order] = np.minimum.reduceat(order, np.flatnonzero(is_new))[np.cumsum(is_new) - 1]
    if not _are_alike(offsets, dense, sparse, first):  # different rows of one code
        return _first_equal_bytes(offsets, dense, sparse)
    return first


def _hash_rows(
    offsets: NDArray[np.int64], dense: NDArray[np.float32], sparse: SparseRows
) -> NDArray[np.uint64]:
    """Return a code of each row and its sentence, uint64 ``[n_rows]``."""
    sentences = np.arange(len(offsets) - 1)
    codes = np.repeat(_mix(np.zeros(len(sentences), dtype=np.uint64), sentences), np.diff(offsets))
    # Zero has two signs, which compare equal.
    for column in (dense + np.float32(0.0)).T:
        codes = _mix(codes, np.ascontiguousarray(column).view(np.uint32))
    bits = (sparse.data + np.float32(0.0)).view(np.uint32)
    entries = _mix(_mix(np.zeros(len(bits), dtype=np.uint64), sparse.indices), bits)
    owners = np.flatnonzero(np.diff(sparse.indptr))
    if len(owners):
        codes[owners] ^= np.add.reduceat(entries, sparse.indptr[owners])
    return codes


def _mix(codes: NDArray[np.uint64], words: NDArray[Any]) -> NDArray[np.uint64]:
    """Return codes that also depend on words of 32 bits."""
    mixed = (codes ^ words.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _are_alike(
    offsets: NDArray[np.int64],
    dense: NDArray[np.float32],
    sparse: SparseRows,
    first: NDArray[np.int64],
) -> bool:
    """Return whether each row is equal to its first one, and of the same sentence."""
    repeats = np.flatnonzero(first != np.arange(len(first)))
    origins = first[repeats]
    sentences = np.searchsorted(offsets, repeats, side="right")
    a, b = sparse.take(repeats), sparse.take(origins)
    return (
        np.array_equal(sentences, np.searchsorted(offsets, origins, side="right"))
        and np.array_equal(dense[repeats], dense[origins])
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


def _first_equal_bytes(
    offsets: NDArray[np.int64], dense: NDArray[np.float32], sparse: SparseRows
) -> NDArray[np.int64]:
    """Return what ``_first_alike`` does, by comparing the bytes of rows."""
    dense, data = dense + np.float32(0.0), sparse.data + np.float32(0.0)
    first = np.arange(len(dense))
    for start, end in itertools.pairwise(offsets.tolist()):
        rows: dict[tuple[bytes, ...], int] = {}
        for row in range(start, end):
            entries = slice(sparse.indptr[row], sparse.indptr[row + 1])
            values = dense[row], sparse.indices[entries], data[entries]
            first[row] = rows.setdefault(tuple(array.tobytes() for array in values), row)
    return first


def _arrange(offsets: Offsets, dense: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return values of rows by sentence, then feature, as ``arrangement.arrange``.

    Args:
        offsets: of ``rows``.
        dense: ``[n, n_dense]``.
    """
    n_dense = dense.shape[1]
    arranged = allocate((len(rows) * n_dense,), np.float32)
    for start, end in itertools.pairwise(offsets.tolist()):
        part = arranged[start * n_dense : end * n_dense]
        part.reshape(n_dense, end - start)[:] = dense[rows[start:end]].T
    return arranged
