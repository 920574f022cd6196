"""Hypotheses in the layout of k-best MIRA, which visits sentence after sentence.

No weights can prefer one of several hypotheses with equal features, so the first stands for all.
Features lie as in ``arrangement``, in single precision. Hypotheses of a sentence share many rows of
statistics, so each distinct row is kept and scored once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.arrangement import arrange
from mosesplug.optimizers.lists.rows import drop_empty_sentences
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["MiraLists", "mira_lists"]


class MiraLists(NamedTuple):
    """Distinct hypotheses of the sentences that have any.

    Attributes:
        n_dense: number of dense features.
        offsets: int64 ``[n_sentences + 1]``; hypotheses of sentence ``i`` are
            ``offsets[i]:offsets[i + 1]``.
        dense: float32 ``[n_hyps * n_dense]``, arranged.
        indptr: int64 ``[n_hyps + 1]``; sparse values of hypothesis ``i`` are ``indptr[i]:indptr[i +
            1]``.
        columns: int32 ``[nnz]``; counted over all features, ascending within a hypothesis.
        values: float32 ``[nnz]``.
        row_of: int64 ``[n_hyps]``; the hypothesis' statistics in ``rows``.
        row_offsets: int64 ``[n_sentences + 1]``; statistics of sentence ``i`` are
            ``row_offsets[i]:row_offsets[i + 1]``.
        rows: float32 ``[n_rows, n_statistics]``.
    """

    n_dense: int
    offsets: NDArray[np.int64]
    dense: NDArray[np.float32]
    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    row_of: NDArray[np.int64]
    row_offsets: NDArray[np.int64]
    rows: NDArray[np.float32]


def mira_lists(tuning_set: TuningSet) -> tuple[MiraLists, NDArray[np.int64]]:
    """Return the distinct hypotheses, arranged, and their rows of the tuning set."""
    # Copies of any array (read-only, unaligned, integers), so that kernels compile for one type.
    offsets = drop_empty_sentences(tuning_set.offsets)
    dense = np.array(tuning_set.dense, dtype=np.float32, order="C")
    sparse = _sort_columns(tuning_set.sparse, len(dense))
    first = _first_alike(offsets, dense, sparse.indptr, sparse.indices, sparse.data)
    kept = np.flatnonzero(first == np.arange(len(first)))
    offsets = np.searchsorted(kept, offsets).astype(np.int64)
    dense, sparse = dense[kept], sparse.take(kept)

    stats = np.array(tuning_set.stats[kept], dtype=np.float32, order="C")
    none = _sort_columns(None, len(stats))
    alike = _first_alike(offsets, stats, none.indptr, none.indices, none.data)
    is_first = alike == np.arange(len(alike))
    rows = np.flatnonzero(is_first)

    arranged = np.empty(dense.size, dtype=np.float32)
    arrange(offsets, dense, arranged)
    n_dense = dense.shape[1]
    lists = MiraLists(
        n_dense=n_dense,
        offsets=offsets,
        dense=arranged,
        indptr=sparse.indptr,
        columns=(sparse.indices + n_dense).astype(np.int32),
        values=sparse.data,
        row_of=(np.cumsum(is_first) - 1)[alike],
        row_offsets=np.searchsorted(rows, offsets).astype(np.int64),
        rows=stats[rows],
    )
    return lists, kept


def _sort_columns(sparse: SparseRows | None, n_hyps: int) -> SparseRows:
    """Return a copy with ascending columns in each row; empty rows for None."""
    if sparse is None:
        return SparseRows(
            np.zeros(n_hyps + 1, dtype=np.int64),
            np.empty(0, dtype=np.int32),
            np.empty(0, dtype=np.float32),
        )
    owner = np.repeat(np.arange(n_hyps), np.diff(sparse.indptr))
    order = np.lexsort((sparse.indices, owner))
    return SparseRows(
        np.array(sparse.indptr, dtype=np.int64),
        np.array(sparse.indices[order], dtype=np.int32),
        np.array(sparse.data[order], dtype=np.float32),
    )


@kernel
def _first_alike(
    offsets: NDArray[np.int64],
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
) -> NDArray[np.int64]:
    """Return for each row the first equal one of its sentence, int64 ``[n_rows]``.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        dense: float32 ``[n_rows, n_dense]``.
        indptr, indices, data: sparse values beside the dense ones, ascending in each row.
    """
    n_rows = len(dense)
    first = np.arange(n_rows)
    bits = dense.view(np.uint32)
    sparse_bits = data.view(np.uint32)
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        size = 4
        while size < 2 * (end - start):
            size *= 2
        table = np.full(size, -1, dtype=np.int64)
        for row in range(start, end):
            code = np.uint64(14695981039346656037)
            for column in range(dense.shape[1]):
                # Zero has two signs, which compare equal.
                word = bits[row, column] if dense[row, column] != 0.0 else np.uint32(0)
                code = (code ^ np.uint64(word)) * np.uint64(1099511628211)
            for entry in range(indptr[row], indptr[row + 1]):
                code = (code ^ np.uint64(indices[entry])) * np.uint64(1099511628211)
                code = (code ^ np.uint64(sparse_bits[entry])) * np.uint64(1099511628211)
            place = np.int64((code ^ (code >> np.uint64(32))) & np.uint64(size - 1))
            while table[place] >= 0 and not _alike(dense, indptr, indices, data, row, table[place]):
                place = (place + 1) & (size - 1)
            if table[place] >= 0:
                first[row] = table[place]
            else:
                table[place] = row
    return first


@kernel
def _alike(
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    one: int,
    other: int,
) -> bool:
    """Return whether two rows have the same values."""
    for column in range(dense.shape[1]):
        if dense[one, column] != dense[other, column]:
            return False
    width = indptr[one + 1] - indptr[one]
    if indptr[other + 1] - indptr[other] != width:
        return False
    for entry in range(width):
        a, b = indptr[one] + entry, indptr[other] + entry
        if indices[a] != indices[b] or data[a] != data[b]:
            return False
    return True
