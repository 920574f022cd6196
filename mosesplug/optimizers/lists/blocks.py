"""The model's distribution over the hypotheses of each list, and its gradients.

The probability of a hypothesis is in proportion to ``exp(w . h)`` within its sentence (survey,
equation 19). The features stay row-major as they are stored. Threads work on blocks of sentences
that are the same for any number of threads, and sums over blocks are taken in their order, so that
results do not depend on the threads.

A kernel works on the sentences ``first`` to ``last - 1``, or on the rows ``start`` to ``end - 1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import (
    Floats,
    Offsets,
    Scores,
    SentenceValues,
    Statistics,
    StatisticsTable,
    Weights,
)
from mosesplug.kernels import kernel, read_only
from mosesplug.optimizers.lists.shards import ListShard
from mosesplug.tuning_set import SparseRows


@dataclass(frozen=True)
class Distribution:
    """The probabilities of each sentence's hypotheses at some weights.

    Attributes:
        scores: the model scores, with what was added to them.
        shares: probabilities; 1 in sum over each sentence.
        logs: ``log sum exp`` of the scores; 0 without hypotheses.
    """

    scores: Scores
    shares: Scores
    logs: SentenceValues


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
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, or None.
        blocks: int64 ``[n_blocks + 1]``, sentences where blocks begin and the last one ends.
        sentence_weights: float64 ``[n_sentences]``, factors of the losses; None: 1 each.
        row_weights: the same of each hypothesis.
    """

    offsets: Offsets
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    n_sparse: int
    blocks: NDArray[np.int64]
    threads: int
    sentence_weights: SentenceValues | None = None
    row_weights: Scores | None = None

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
            lists.sentence_weights,
            lists.row_weights,
        )

    @property
    def n_hyps(self) -> int:
        """Number of hypotheses."""
        return len(self.dense)

    @property
    def n_sentences(self) -> int:
        """Number of sentences, empty ones included."""
        return len(self.offsets) - 1

    def distribution(self, weights: Weights, added: Scores | None = None) -> Distribution:
        """Return the distribution of each sentence's hypotheses.

        Args:
            weights: of all features.
            added: what is added to the scores, such as costs.
        """
        n_dense = self.dense.shape[1]
        # Copies, so that kernels are compiled for one kind of array.
        dense, tail = weights[:n_dense].copy(), weights[n_dense:].copy()
        scores = np.zeros(self.n_hyps) if added is None else added.copy()
        shares, logs = np.empty(self.n_hyps), np.empty(self.n_sentences)

        def work(first: int, last: int) -> None:
            if self.sparse is not None:
                rows = self.sparse
                _add_sparse_scores(
                    *self.rows(first, last), rows.indptr, rows.indices, rows.data, tail, scores
                )
            _compute_distributions(
                self.offsets, first, last, self.dense, dense, scores, shares, logs
            )

        self.for_each_block(work)
        return Distribution(scores, shares, logs)

    def gradient_parts(self, coefficients: Scores) -> GradientParts:
        """Return ``sum c h`` over hypotheses, in parts; ``c`` are derivatives by scores."""
        dense = self.block_sums(
            self.dense.shape[1],
            lambda first, last, own: _add_features(
                *self.rows(first, last), self.dense, coefficients, own
            ),
        )
        tail = np.zeros(self.n_sparse)
        if self.sparse is not None:
            # In one thread: a sum for each thread would be too large with a million features.
            _add_sparse_features(
                self.sparse.indptr, self.sparse.indices, self.sparse.data, coefficients, tail
            )
        return GradientParts(dense, tail)

    def expectations(
        self, distribution: Distribution, values: Scores
    ) -> tuple[SentenceValues, Scores]:
        """Return expected ``values`` of sentences, and derivatives by the scores."""
        values = read_only(values)
        means, coefficients = np.empty(self.n_sentences), np.empty(self.n_hyps)
        self.for_each_block(
            lambda first, last: _compute_expectations(
                self.offsets, first, last, distribution.shares, values, means, coefficients
            )
        )
        return means, coefficients

    def weigh(self, losses: SentenceValues, coefficients: Scores) -> tuple[SentenceValues, Scores]:
        """Return losses of sentences, and derivatives by the scores, times the weights."""
        if self.sentence_weights is None or self.row_weights is None:
            return losses, coefficients
        return self.sentence_weights * losses, self.row_weights * coefficients

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
        # A row for each block, added in order later: threads change no bit of the sum.
        parts = np.zeros((len(self.blocks) - 1, size))

        def on_own(first: int, last: int) -> None:
            # A block without sentences begins where the next one does.
            if first < last:
                work(first, last, parts[np.searchsorted(self.blocks, first, side="right") - 1])

        self.for_each_block(on_own)
        return parts


def add_parts(parts: Sequence[Floats]) -> Floats:
    """Return the sum of ``[n_blocks, size]`` of all shards, in their order."""
    return np.asarray(np.concatenate([np.zeros((1, parts[0].shape[1])), *parts]).sum(axis=0))


def add_gradients(parts: Sequence[GradientParts]) -> Weights:
    """Return the gradient of all shards."""
    # In the order of the shards, of which no number of workers changes the sum.
    sparse = parts[0].sparse
    for part in parts[1:]:
        sparse = sparse + part.sparse
    return np.concatenate([add_parts([part.dense for part in parts]), sparse])


@kernel
def _compute_distributions(
    offsets: Offsets,
    first: int,
    last: int,
    dense: NDArray[np.float32],
    weights: Floats,
    scores: Scores,
    shares: Scores,
    logs: SentenceValues,
) -> None:
    """Add the dense features' part to ``scores``; write ``shares`` and ``logs``."""
    for sentence in range(first, last):
        start, end = offsets[sentence], offsets[sentence + 1]
        logs[sentence] = 0.0
        if start == end:
            continue
        top = -np.inf
        for row in range(start, end):
            score = scores[row]
            for column in range(len(weights)):
                score += weights[column] * np.float64(dense[row, column])
            scores[row] = score
            top = max(top, score)
        total = 0.0
        for row in range(start, end):
            # At most 1: differences from the best score do not overflow.
            shares[row] = math.exp(scores[row] - top)
            total += shares[row]
        for row in range(start, end):
            shares[row] /= total
        logs[sentence] = top + math.log(total)


@kernel
def _add_features(
    start: int, end: int, dense: NDArray[np.float32], coefficients: Scores, gradient: Floats
) -> None:
    """Add ``coefficients . dense`` of rows to ``gradient``, ``[n_dense]``."""
    for row in range(start, end):
        coefficient = coefficients[row]
        for column in range(len(gradient)):
            gradient[column] += coefficient * np.float64(dense[row, column])


@kernel
def _add_sparse_scores(
    start: int,
    end: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    weights: Floats,
    scores: Scores,
) -> None:
    """Add the part of sparse features to scores; ``weights`` is ``[n_sparse]``."""
    for row in range(start, end):
        for entry in range(indptr[row], indptr[row + 1]):
            scores[row] += weights[indices[entry]] * np.float64(data[entry])


@kernel
def _add_sparse_features(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    coefficients: Scores,
    gradient: Floats,
) -> None:
    """Add ``coefficients . sparse`` of all rows to ``gradient``, ``[n_sparse]``."""
    for row in range(len(coefficients)):
        coefficient = coefficients[row]
        for entry in range(indptr[row], indptr[row + 1]):
            gradient[indices[entry]] += coefficient * np.float64(data[entry])


@kernel
def _compute_expectations(
    offsets: Offsets,
    first: int,
    last: int,
    shares: Scores,
    values: Scores,
    means: SentenceValues,
    coefficients: Scores,
) -> None:
    """Write ``means`` of values, 0 without hypotheses, and derivatives by scores.

    The derivative of ``sum p v`` by the score of one hypothesis is ``p (v - sum p v)``.
    """
    for sentence in range(first, last):
        mean = 0.0
        for row in range(offsets[sentence], offsets[sentence + 1]):
            mean += shares[row] * values[row]
        means[sentence] = mean
        for row in range(offsets[sentence], offsets[sentence + 1]):
            coefficients[row] = shares[row] * (values[row] - mean)


@kernel
def add_statistics(
    start: int, end: int, stats: StatisticsTable, shares: Scores, totals: Statistics
) -> None:
    """Add the expected statistics of rows to ``totals``."""
    for row in range(start, end):
        share = shares[row]
        for column in range(len(totals)):
            totals[column] += share * stats[row, column]


@kernel
def add_weighted_statistics(
    start: int, end: int, stats: StatisticsTable, derivatives: Statistics, values: Scores
) -> None:
    """Add ``stats . derivatives`` to the ``values`` of rows."""
    for row in range(start, end):
        for column in range(len(derivatives)):
            values[row] += derivatives[column] * stats[row, column]


@kernel
def compute_oracle_losses(
    offsets: Offsets,
    first: int,
    last: int,
    scores: Scores,
    logs: SentenceValues,
    shares: Scores,
    is_oracle: NDArray[np.bool_],
    losses: SentenceValues,
    coefficients: Scores,
) -> None:
    """Write minus the log-probability of the oracles, and derivatives by scores.

    Args:
        is_oracle: bool ``[n_hyps]``; at least one in each sentence that has hypotheses.
        losses: output; 0 without hypotheses.
        coefficients: output.
    """
    for sentence in range(first, last):
        start, end = offsets[sentence], offsets[sentence + 1]
        losses[sentence] = 0.0
        if start == end:
            continue
        top = -np.inf
        for row in range(start, end):
            if is_oracle[row]:
                top = max(top, scores[row])
        total = 0.0
        for row in range(start, end):
            if is_oracle[row]:
                total += math.exp(scores[row] - top)
        log_total = top + math.log(total)
        losses[sentence] = logs[sentence] - log_total
        for row in range(start, end):
            coefficients[row] = shares[row]
            if is_oracle[row]:
                coefficients[row] -= math.exp(scores[row] - log_total)
