"""The model's distribution over the hypotheses of each list, and its gradients.

The probability of a hypothesis is in proportion to ``exp(w . h)`` within its sentence (survey,
equation 19). Threads work on blocks of sentences that are the same for any number of threads, and
sums over blocks are taken in their order, so that results do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import read_only
from mosesplug.optimizers.lists import block_kernels as kernels
from mosesplug.optimizers.lists.shards import ListShard
from mosesplug.tuning_set import SparseRows

Floats = NDArray[np.float64]


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
class GradientParts:
    """The sums of a gradient.

    Attributes:
        dense: float64 ``[n_blocks, n_dense]``, of each block.
        sparse: float64 ``[n_sparse]``, of all blocks: a sum for each would be too large.
    """

    dense: Floats
    sparse: Floats


@dataclass(frozen=True)
class BlockedLists:
    """Row-major features in blocks of sentences.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``.
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, or None.
        blocks: int64 ``[n_blocks + 1]``, sentences where blocks begin and the last one ends.
    """

    offsets: NDArray[np.int64]
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    n_sparse: int
    blocks: NDArray[np.int64]
    threads: int

    @classmethod
    def of(cls, shard: ListShard) -> BlockedLists:
        """Return the hypotheses of a shard, copied only where arrays are not aligned."""
        lists = shard.lists
        sparse = lists.sparse
        if sparse is not None:
            sparse = SparseRows(
                read_only(sparse.indptr, np.int64),
                read_only(sparse.indices, np.int32),
                read_only(sparse.data, np.float32),
            )
        return cls(
            read_only(lists.offsets, np.int64),
            read_only(lists.dense, np.float32),
            sparse,
            lists.space.n_sparse,
            shard.blocks,
            shard.threads,
        )

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

    def gradient_parts(self, coefficients: Floats) -> GradientParts:
        """Return ``sum c h`` over hypotheses, in parts.

        Args:
            coefficients: float64 ``[n_hyps]``, derivatives by scores.
        """
        dense = self.block_sums(
            self.dense.shape[1],
            lambda first, last, own: kernels.add_features(
                *self.rows(first, last), self.dense, coefficients, own
            ),
        )
        tail = np.zeros(self.n_sparse)
        if self.sparse is not None:
            kernels.add_sparse_features(
                self.sparse.indptr, self.sparse.indices, self.sparse.data, coefficients, tail
            )
        return GradientParts(dense, tail)

    def expectations(self, found: Distribution, values: Floats) -> tuple[Floats, Floats]:
        """Return each sentence's expected ``values``, and derivatives of their sum.

        Args:
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

    def block_sums(self, size: int, work: Callable[[int, int, Floats], None]) -> Floats:
        """Return the sums of ``work`` in each block, float64 ``[n_blocks, size]``.

        ``work(first, last, own)`` adds those of its sentences to ``own``, float64 ``[size]``.
        """
        parts = np.zeros((len(self.blocks) - 1, size))

        def on_own(first: int, last: int) -> None:
            # A block without sentences begins where the next one does.
            if first < last:
                work(first, last, parts[np.searchsorted(self.blocks, first, side="right") - 1])

        self.for_each_block(on_own)
        return parts


def add_parts(parts: Sequence[Floats]) -> Floats:
    """Return the sum of all blocks in their order, float64 ``[size]``.

    Args:
        parts: the parts of each shard, float64 ``[n_blocks, size]``.
    """
    return np.asarray(np.concatenate([np.zeros((1, parts[0].shape[1])), *parts]).sum(axis=0))


def add_gradients(parts: Sequence[GradientParts]) -> Floats:
    """Return the gradient of all shards, float64 ``[n_features]``."""
    sparse = parts[0].sparse
    for part in parts[1:]:
        sparse = sparse + part.sparse
    return np.concatenate([add_parts([part.dense for part in parts]), sparse])
