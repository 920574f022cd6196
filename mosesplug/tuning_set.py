"""The input arrays of optimizers: the hypotheses of many sentences.

A ``TuningSet`` is immutable, and its arrays may be read-only views on a memory map. A batch is a
``TuningSet`` over some of the sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets, Scores
from mosesplug.features import FeatureSpace
from mosesplug.kernels import lean_kernel, read_only
from mosesplug.large_arrays import allocate, concatenate, take_rows, take_runs

__all__ = ["Batch", "SparseRows", "TuningSet", "find_highest", "linear_scores"]

_CHUNK = 16384
"""Hypotheses whose features are converted to float64 at a time; a full float64 copy would be the
largest array of a tuning run."""

_COMPILED = 1 << 16
"""Number of sparse values from which a kernel is used: fewer do not repay the import of Numba."""


@dataclass(frozen=True)
class SparseRows:
    """Sparse feature values by hypothesis, compressed by row (CSR).

    Attributes:
        indptr: int64 ``[n_hyps + 1]``; row ``i`` is ``indptr[i]:indptr[i + 1]`` of both arrays.
        indices: int32 ``[nnz]``; the sparse feature, counted from 0 within the sparse tail.
        data: float32 ``[nnz]``.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]

    @classmethod
    def empty(cls, n_hyps: int) -> SparseRows:
        """Return rows without values."""
        indptr = np.zeros(n_hyps + 1, dtype=np.int64)
        return cls(indptr, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    @classmethod
    def concatenate(cls, parts: Sequence[SparseRows]) -> SparseRows:
        """Return the rows of all parts, one part after the other; arrays are copied."""
        if not parts:
            return cls.empty(0)
        ends = np.cumsum([0, *(len(part.data) for part in parts)])
        firsts = [part.indptr[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            np.append(np.concatenate(firsts), ends[-1]),
            concatenate([part.indices for part in parts], np.int32),
            concatenate([part.data for part in parts], np.float32),
        )

    def move(self, columns: NDArray[np.int32]) -> SparseRows:
        """Return the rows with feature ``j`` as ``columns[j]``; negative ones are removed."""
        moved = columns[self.indices]
        kept = moved >= 0
        if kept.all():
            return replace(self, indices=moved)
        before = np.concatenate([[0], np.cumsum(kept)])
        return SparseRows(before[self.indptr], moved[kept], self.data[kept])

    def take(self, rows: NDArray[np.int64]) -> SparseRows:
        """Return the given rows, in that order."""
        widths = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(widths, out=indptr[1:])
        entries = np.repeat(self.indptr[rows] - indptr[:-1], widths) + np.arange(indptr[-1])
        return SparseRows(indptr, self.indices[entries], self.data[entries])

    def take_runs(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> SparseRows:
        """Return rows ``starts[i]`` to ``stops[i] - 1`` of each run, in that order."""
        firsts, ends = self.indptr[starts], self.indptr[stops]
        widths = take_runs(self.indptr, starts + 1, stops + 1)
        widths -= take_runs(self.indptr, starts, stops)
        return SparseRows(
            np.concatenate([[0], np.cumsum(widths)]),
            take_runs(self.indices, firsts, ends),
            take_runs(self.data, firsts, ends),
        )

    def view(self, start: int, stop: int) -> SparseRows:
        """Return rows ``start`` to ``stop - 1``, whose indices and values are views."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - first
        return SparseRows(indptr, self.indices[first:last], self.data[first:last])

    def scores(self, start: int, stop: int, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w . h`` of rows ``start`` to ``stop - 1``, float64 ``[stop - start]``.

        ``weights`` are those of the sparse tail.
        """
        indptr = self.indptr[start : stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        products = self.data[entries] * weights[self.indices[entries]]
        owner = np.repeat(np.arange(stop - start), np.diff(indptr))
        return np.bincount(owner, products, stop - start).astype(np.float64)


@lean_kernel
def _score_rows(
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Write ``linear_scores``, with the sums in the same order."""
    n_dense = dense.shape[1]
    for row in range(len(scores)):
        total, tail = 0.0, 0.0
        for column in range(n_dense):
            total += weights[column] * dense[row, column]
        for entry in range(indptr[row], indptr[row + 1]):
            tail += data[entry] * weights[n_dense + indices[entry]]
        scores[row] = total + tail


def linear_scores(
    dense: NDArray[np.float32], sparse: SparseRows | None, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``w . h`` of every hypothesis, float64 ``[n_hyps]``.

    The sum runs in feature order on every machine. Hypotheses with the same features therefore tie
    exactly, which a matrix product does not guarantee, and all callers break ties the same way.

    Args:
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail of as many hypotheses, or None.
        weights: float64; first those of the dense features, then those of the sparse ones.
    """
    n_dense = dense.shape[1]
    scores = allocate((len(dense),), np.float64)
    if sparse is not None and len(sparse.data) >= _COMPILED:
        _score_rows(
            read_only(dense),
            read_only(sparse.indptr),
            read_only(sparse.indices),
            read_only(sparse.data),
            read_only(weights),
            scores,
        )
        return scores
    scores[:] = 0.0
    for start in range(0, len(dense), _CHUNK):
        sums = scores[start : start + _CHUNK]
        columns = dense[start : start + _CHUNK].T.astype(np.float64, order="C")
        for column, weight in zip(columns, weights[:n_dense], strict=True):
            sums += weight * column
        if sparse is not None and len(sparse.data):
            sums += sparse.scores(start, start + len(sums), weights[n_dense:])
    return scores


def find_highest(offsets: Offsets, scores: Scores) -> NDArray[np.int64]:
    """Return the row of each sentence's highest score; the first wins ties.

    Returns int64 ``[number of non-empty sentences]``.
    """
    widths = np.diff(offsets)
    starts, widths = offsets[:-1][widths > 0], widths[widths > 0]
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    rows = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts), widths))
    # Each sentence has such a row: the first one at or after its start is its own.
    return rows[np.searchsorted(rows, starts)].astype(np.int64)


@dataclass(frozen=True)
class TuningSet:
    """Hypotheses with their features and their metric's sufficient statistics.

    Attributes:
        space: names of the columns.
        sentence_ids: int64 ``[n_sentences]``; the input line of each sentence, from 0.
        offsets: int64 ``[n_sentences + 1]``; hypotheses of sentence ``i`` are rows
            ``offsets[i]:offsets[i + 1]``; a sentence may have none.
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse features, or None if the space has none.
        stats: int32, float32 or float64 ``[n_hyps, n_stats]``; the metric's sufficient statistics.
        lengths: int32 ``[n_hyps]``; tokens of each hypothesis.
        oracles: int64 ``[n_sentences]``; the row that learners take as the oracle or hope of each
            sentence, -1 where they choose it themselves; None: everywhere.
        sentence_weights: float64 ``[n_sentences]``, the weight of each sentence in sums of
            statistics and of losses, as if it stood there so many times; None: 1 each.
    """

    space: FeatureSpace
    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    stats: NDArray[np.int32] | NDArray[np.float32] | NDArray[np.float64]
    lengths: NDArray[np.int32]
    oracles: NDArray[np.int64] | None = None
    sentence_weights: NDArray[np.float64] | None = None

    @property
    def n_sentences(self) -> int:
        """Number of sentences, empty ones included."""
        return len(self.offsets) - 1

    @property
    def n_hyps(self) -> int:
        """Number of hypotheses."""
        return int(self.offsets[-1])

    @property
    def total_weight(self) -> float:
        """Sum of the weights of non-empty sentences; without weights, their number."""
        filled = np.diff(self.offsets) > 0
        if self.sentence_weights is None:
            return float(np.count_nonzero(filled))
        return float(self.sentence_weights[filled].sum())

    @property
    def row_weights(self) -> NDArray[np.float64] | None:
        """Weight of each row's sentence, float64 ``[n_hyps]``; None without weights."""
        if self.sentence_weights is None:
            return None
        return np.repeat(self.sentence_weights, np.diff(self.offsets))

    @cached_property
    def weighted_stats(self) -> NDArray[Any]:
        """The statistics times the weights of their sentences, to be summed.

        They stay int32 if weights and statistics are integers; otherwise they are float64, because
        differences of them are summed by the thousand.
        """
        weights = self.row_weights
        if weights is None:
            return self.stats
        products = self.stats * weights[:, None]
        is_integral = self.stats.dtype.kind == "i" and bool((weights % 1.0 == 0.0).all())
        if is_integral and np.abs(products).max(initial=0.0) <= np.iinfo(np.int32).max:
            return products.astype(np.int32)
        return products

    def weigh(self, sentence_weights: NDArray[np.float64] | None) -> TuningSet:
        """Return the lists with a weight for each sentence, ``[n_sentences]``.

        Weights that are all 1 are the same as none.
        """
        if sentence_weights is not None and (sentence_weights == 1.0).all():
            sentence_weights = None
        return replace(self, sentence_weights=sentence_weights)

    def drop_weightless(self) -> TuningSet:
        """Return the lists without the sentences of weight 0."""
        if self.sentence_weights is None or (self.sentence_weights > 0.0).all():
            return self
        lists = self.take_sentences(np.flatnonzero(self.sentence_weights > 0.0))
        return lists.weigh(lists.sentence_weights)

    def model_scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w . h`` of every hypothesis; see ``linear_scores``."""
        return linear_scores(self.dense, self.sparse, weights)

    def first_best(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row of each non-empty sentence's 1-best; the first row wins ties.

        Returns int64 ``[number of non-empty sentences]``.
        """
        return find_highest(self.offsets, self.model_scores(weights))

    def view_sentences(self, start: int, stop: int) -> TuningSet:
        """Return sentences at positions ``start`` to ``stop - 1``, as views of the arrays."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return TuningSet(
            space=self.space,
            sentence_ids=self.sentence_ids[start:stop],
            offsets=self.offsets[start : stop + 1] - first,
            dense=self.dense[first:last],
            sparse=None if self.sparse is None else self.sparse.view(first, last),
            stats=self.stats[first:last],
            lengths=self.lengths[first:last],
            oracles=self._move_oracles(slice(start, stop), -first),
            sentence_weights=(
                None if self.sentence_weights is None else self.sentence_weights[start:stop]
            ),
        )

    def take_sentences(self, sentences: NDArray[np.int64]) -> TuningSet:
        """Return the sentences at the given positions, in that order; arrays are copied."""
        starts, stops = self.offsets[sentences], self.offsets[sentences + 1]
        offsets = np.zeros(len(sentences) + 1, dtype=np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        return TuningSet(
            space=self.space,
            sentence_ids=self.sentence_ids[sentences],
            offsets=offsets,
            dense=take_runs(self.dense, starts, stops),
            sparse=None if self.sparse is None else self.sparse.take_runs(starts, stops),
            stats=take_runs(self.stats, starts, stops),
            lengths=take_runs(self.lengths, starts, stops),
            oracles=self._move_oracles(sentences, offsets[:-1] - self.offsets[sentences]),
            sentence_weights=(
                None if self.sentence_weights is None else self.sentence_weights[sentences]
            ),
        )

    def take_hypotheses(self, rows: NDArray[np.int64]) -> TuningSet:
        """Return the lists with some of their hypotheses; arrays are copied.

        Args:
            rows: int64 ``[n]``, ascending.

        Raises:
            ValueError: the lists have oracles, which may not be among the rows.
        """
        if self.oracles is not None:
            raise ValueError("lists with oracles keep all hypotheses")
        return replace(
            self,
            offsets=np.searchsorted(rows, self.offsets),
            dense=take_rows(self.dense, rows),
            sparse=None if self.sparse is None else self.sparse.take(rows),
            stats=take_rows(self.stats, rows),
            lengths=take_rows(self.lengths, rows),
        )

    def _move_oracles(
        self, sentences: NDArray[np.int64] | slice, by: NDArray[np.int64] | int
    ) -> NDArray[np.int64] | None:
        """Return the oracles of some sentences, whose rows move."""
        if self.oracles is None:
            return None
        return np.where(self.oracles[sentences] >= 0, self.oracles[sentences] + by, -1)


Batch = TuningSet
"""A ``TuningSet`` over some of the sentences; the same type, so that learners take either."""
