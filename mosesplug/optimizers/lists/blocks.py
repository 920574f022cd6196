"""The model's distribution over the hypotheses of each list, and the way back to its features.

A hypothesis is as likely as ``exp(w . h)`` among those of its sentence (survey, equation 19). Work
is shared out to threads in blocks of sentences that are the same for any number of threads, and
sums over blocks are taken in their order: so are results.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.hypotheses import read_only
from mosesplug.optimizers.lists import block_kernels as kernels
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["BlockedLists", "Distribution"]

Floats = NDArray[np.float64]

BLOCKS = 16
"""At most so many; more threads than this have nothing to do."""

SMALLEST_BLOCK = 4096
"""Hypotheses; for fewer, a call takes longer than the work."""


@dataclass(frozen=True)
class Distribution:
    """Of the hypotheses of each sentence, under some weights.

    Attributes:
        scores: float64 ``[n_hyps]``, with what was added to them.
        shares: float64 ``[n_hyps]``; probabilities, which add up to 1 in each sentence.
        logs: float64 ``[n_sentences]``; ``log sum exp`` of the scores, 0 of no hypotheses.
    """

    scores: Floats
    shares: Floats
    logs: Floats


@dataclass(frozen=True)
class BlockedLists:
    """Hypotheses as kernels take them.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``.
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, or None.
        n_features: dense and sparse ones.
        blocks: int64 ``[n_blocks + 1]``; sentences where blocks begin, and the last one ends.
        n_filled: sentences that have hypotheses.
        threads: how many threads may work.
    """

    offsets: NDArray[np.int64]
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    n_features: int
    blocks: NDArray[np.int64]
    n_filled: int
    threads: int

    @classmethod
    def of(cls, tuning_set: TuningSet, threads: int = 1) -> BlockedLists:
        """The hypotheses of a tuning set, copied only where arrays are not aligned."""
        offsets = read_only(tuning_set.offsets, np.int64)
        sparse = tuning_set.sparse
        if sparse is not None:
            sparse = SparseRows(
                read_only(sparse.indptr, np.int64),
                read_only(sparse.indices, np.int32),
                read_only(sparse.data, np.float32),
            )
        n_blocks = max(1, min(BLOCKS, tuning_set.n_hyps // SMALLEST_BLOCK))
        rows = np.linspace(0, tuning_set.n_hyps, n_blocks + 1)
        blocks = np.searchsorted(offsets[:-1], rows).astype(np.int64)
        blocks[0], blocks[-1] = 0, tuning_set.n_sentences
        n_filled = int(np.count_nonzero(np.diff(offsets)))
        dense = read_only(tuning_set.dense, np.float32)
        return cls(offsets, dense, sparse, len(tuning_set.space), blocks, n_filled, threads)

    @property
    def n_hyps(self) -> int:
        """Number of hypotheses."""
        return len(self.dense)

    @property
    def n_sentences(self) -> int:
        """Number of sentences, empty ones included."""
        return len(self.offsets) - 1

    def distribution(self, weights: Floats, added: Floats | None = None) -> Distribution:
        """Of each sentence's hypotheses.

        Args:
            weights: float64 ``[n_features]``.
            added: float64 ``[n_hyps]``; to the scores, such as costs.
        """
        n_dense = self.dense.shape[1]
        dense, tail = weights[:n_dense].copy(), weights[n_dense:].copy()
        scores = np.zeros(self.n_hyps) if added is None else added.copy()
        found = Distribution(scores, np.empty(self.n_hyps), np.empty(self.n_sentences))

        def work(first: int, last: int) -> None:
            if self.sparse is not None:
                kernels.add_sparse_scores(
                    *self.rows(first, last),
                    self.sparse.indptr,
                    self.sparse.indices,
                    self.sparse.data,
                    tail,
                    scores,
                )
            kernels.compute_distributions(
                self.offsets, first, last, self.dense, dense, scores, found.shares, found.logs
            )

        self.each_block(work)
        return found

    def gradient(self, coefficients: Floats) -> Floats:
        """``sum c h`` over hypotheses: derivatives by scores to derivatives by weights.

        Args:
            coefficients: float64 ``[n_hyps]``.

        Returns:
            float64 ``[n_features]``.
        """
        n_dense = self.dense.shape[1]
        gradient = np.zeros(self.n_features)
        gradient[:n_dense] = self.summed(
            n_dense,
            lambda first, last, own: kernels.add_features(
                *self.rows(first, last), self.dense, coefficients, own
            ),
        )
        if self.sparse is not None:
            kernels.add_sparse_features(
                self.sparse.indptr,
                self.sparse.indices,
                self.sparse.data,
                coefficients,
                gradient[n_dense:],
            )
        return gradient

    def expectations(self, found: Distribution, values: Floats) -> tuple[Floats, Floats]:
        """Expected ``values`` of each sentence, and derivatives of their sum by the scores.

        Args:
            found: the distribution.
            values: float64 ``[n_hyps]``.

        Returns:
            float64 ``[n_sentences]``, 0 of no hypotheses, and float64 ``[n_hyps]``.
        """
        means, coefficients = np.empty(self.n_sentences), np.empty(self.n_hyps)
        self.each_block(
            lambda first, last: kernels.compute_expectations(
                self.offsets, first, last, found.shares, values, means, coefficients
            )
        )
        return means, coefficients

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """Where the hypotheses of the sentences ``first`` to ``last - 1`` begin and end."""
        return int(self.offsets[first]), int(self.offsets[last])

    def each_block(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(first, last)`` on the blocks of sentences, in threads."""
        firsts, lasts = self.blocks[:-1].tolist(), self.blocks[1:].tolist()
        if self.threads == 1 or len(firsts) == 1:
            for first, last in zip(firsts, lasts, strict=True):
                work(first, last)
            return
        with ThreadPoolExecutor(min(self.threads, len(firsts))) as pool:
            # The list is what raises an exception of a thread here.
            list(pool.map(work, firsts, lasts))

    def summed(self, size: int, work: Callable[[int, int, Floats], None]) -> Floats:
        """What ``work(first, last, own)`` adds to ``own``, float64 ``[size]``, in all blocks."""
        parts = np.zeros((len(self.blocks), size))

        def on_own(first: int, last: int) -> None:
            # Blocks without sentences begin where the next one does, and add nothing.
            if first < last:
                work(first, last, parts[np.searchsorted(self.blocks, first, side="right")])

        self.each_block(on_own)
        return np.asarray(parts.sum(axis=0))
