"""The model's distribution over the hypotheses of each list, and its gradients.

The probability of a hypothesis is in proportion to ``exp(w . h)`` within its sentence (survey,
equation 19). Threads work on blocks of sentences that are the same for any number of threads, and
sums over blocks are taken in their order, so that results do not depend on the threads.
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
"""Maximum number of blocks; more threads than this are idle."""

SMALLEST_BLOCK = 4096
"""Least hypotheses of a block; with fewer, a call takes longer than its work."""


@dataclass(frozen=True)
class Distribution:
    """The probabilities of each sentence's hypotheses at some weights.

    Attributes:
        scores: float64 ``[n_hyps]``, with what was added to them.
        shares: float64 ``[n_hyps]``, probabilities; 1 in sum over each sentence.
        logs: float64 ``[n_sentences]``, ``log sum exp`` of the scores; 0 without hypotheses.
    """

    scores: Floats
    shares: Floats
    logs: Floats


@dataclass(frozen=True)
class BlockedLists:
    """Row-major features in blocks of sentences.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``.
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, or None.
        n_features: dense and sparse ones.
        blocks: int64 ``[n_blocks + 1]``, sentences where blocks begin and the last one ends.
        n_filled: number of sentences that have hypotheses.
        threads: number of threads.
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
        """Return the hypotheses of a tuning set, copied only where arrays are not aligned."""
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
        """Return the distribution of each sentence's hypotheses.

        Args:
            weights: float64 ``[n_features]``.
            added: float64 ``[n_hyps]``, added to the scores, such as costs.
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

        self.for_each_block(work)
        return found

    def gradient(self, coefficients: Floats) -> Floats:
        """Return ``sum c h`` over hypotheses, float64 ``[n_features]``.

        Args:
            coefficients: float64 ``[n_hyps]``, derivatives by scores.
        """
        n_dense = self.dense.shape[1]
        gradient = np.zeros(self.n_features)
        gradient[:n_dense] = self.sum_blocks(
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
        """Return each sentence's expected ``values``, and derivatives of their sum.

        Args:
            found: the distribution.
            values: float64 ``[n_hyps]``.

        Returns:
            float64 ``[n_sentences]``, 0 without hypotheses, and float64 ``[n_hyps]``.
        """
        means, coefficients = np.empty(self.n_sentences), np.empty(self.n_hyps)
        self.for_each_block(
            lambda first, last: kernels.compute_expectations(
                self.offsets, first, last, found.shares, values, means, coefficients
            )
        )
        return means, coefficients

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """Return the first row and the end row of the sentences ``first`` to ``last - 1``."""
        return int(self.offsets[first]), int(self.offsets[last])

    def for_each_block(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(first, last)`` on the blocks of sentences, in threads."""
        firsts, lasts = self.blocks[:-1].tolist(), self.blocks[1:].tolist()
        if self.threads == 1 or len(firsts) == 1:
            for first, last in zip(firsts, lasts, strict=True):
                work(first, last)
            return
        with ThreadPoolExecutor(min(self.threads, len(firsts))) as pool:
            # list() raises the exceptions of the threads.
            list(pool.map(work, firsts, lasts))

    def sum_blocks(self, size: int, work: Callable[[int, int, Floats], None]) -> Floats:
        """Return the sum over blocks of what ``work(first, last, own)`` adds to ``own``."""
        parts = np.zeros((len(self.blocks), size))

        def on_own(first: int, last: int) -> None:
            # A block without sentences begins where the next one does.
            if first < last:
                work(first, last, parts[np.searchsorted(self.blocks, first, side="right")])

        self.for_each_block(on_own)
        return np.asarray(parts.sum(axis=0))
