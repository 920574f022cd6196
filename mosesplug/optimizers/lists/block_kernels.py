"""Kernels over lists: weights to distributions, derivatives to features.

Each kernel reads and writes the sentences ``first`` to ``last - 1``, or the rows ``start`` to ``end
- 1``, so that threads can work on different blocks of sentences.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel


@kernel
def compute_distributions(
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    dense: NDArray[np.float32],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    shares: NDArray[np.float64],
    logs: NDArray[np.float64],
) -> None:
    """Compute the scores, and the probability of each hypothesis in its sentence.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        dense: float32 ``[n_hyps, n_dense]``.
        weights: float64 ``[n_dense]``.
        scores: in and output, float64 ``[n_hyps]``; the dense features' share is added.
        shares: output, float64 ``[n_hyps]``; probabilities.
        logs: output, float64 ``[n_sentences]``; ``log sum exp`` of the scores, 0 if empty.
    """
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
            shares[row] = math.exp(scores[row] - top)
            total += shares[row]
        for row in range(start, end):
            shares[row] /= total
        logs[sentence] = top + math.log(total)


@kernel
def add_features(
    start: int,
    end: int,
    dense: NDArray[np.float32],
    coefficients: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add ``coefficients . dense`` of rows to ``gradient``.

    Args:
        dense: float32 ``[n_hyps, n_dense]``.
        coefficients: float64 ``[n_hyps]``.
        gradient: in and output, float64 ``[n_dense]``.
    """
    for row in range(start, end):
        coefficient = coefficients[row]
        for column in range(len(gradient)):
            gradient[column] += coefficient * np.float64(dense[row, column])


@kernel
def add_sparse_scores(
    start: int,
    end: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add the sparse features' share to the scores of rows.

    Args:
        indptr: int64 ``[n_hyps + 1]``.
        indices: int32 ``[nnz]``.
        data: float32 ``[nnz]``.
        weights: float64 ``[n_sparse]``.
        scores: in and output, float64 ``[n_hyps]``.
    """
    for row in range(start, end):
        for entry in range(indptr[row], indptr[row + 1]):
            scores[row] += weights[indices[entry]] * np.float64(data[entry])


@kernel
def add_sparse_features(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    coefficients: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add ``coefficients . sparse`` of all rows to ``gradient``, ``[n_sparse]``.

    It runs in one thread: a sum for each thread would be too large with a million features.
    """
    for row in range(len(coefficients)):
        coefficient = coefficients[row]
        for entry in range(indptr[row], indptr[row + 1]):
            gradient[indices[entry]] += coefficient * np.float64(data[entry])


@kernel
def compute_expectations(
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    shares: NDArray[np.float64],
    values: NDArray[np.float64],
    means: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> None:
    """Compute expectations of ``values``, and their derivatives by the scores.

    The derivative of ``sum p v`` by the score of one hypothesis is ``p (v - sum p v)``.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        shares: float64 ``[n_hyps]``; probabilities.
        values: float64 ``[n_hyps]``.
        means: output, float64 ``[n_sentences]``; 0 without hypotheses.
        coefficients: output, float64 ``[n_hyps]``.
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
    start: int,
    end: int,
    stats: NDArray[np.float64],
    shares: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Add the expected statistics of rows to ``totals``.

    Args:
        stats: float64 ``[n_hyps, n_stats]``.
        shares: float64 ``[n_hyps]``; probabilities.
        totals: in and output, float64 ``[n_stats]``.
    """
    for row in range(start, end):
        share = shares[row]
        for column in range(len(totals)):
            totals[column] += share * stats[row, column]


@kernel
def add_weighted_statistics(
    start: int,
    end: int,
    stats: NDArray[np.float64],
    derivatives: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Add ``stats . derivatives`` to the ``values`` of rows.

    Args:
        stats: float64 ``[n_hyps, n_stats]``.
        derivatives: float64 ``[n_stats]``; by the statistics.
        values: in and output, float64 ``[n_hyps]``.
    """
    for row in range(start, end):
        for column in range(len(derivatives)):
            values[row] += derivatives[column] * stats[row, column]


@kernel
def compute_oracle_losses(
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    scores: NDArray[np.float64],
    logs: NDArray[np.float64],
    shares: NDArray[np.float64],
    is_oracle: NDArray[np.bool_],
    losses: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> None:
    """Compute minus the log-probability of the oracles, and derivatives by scores.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        scores: float64 ``[n_hyps]``.
        logs: float64 ``[n_sentences]``, of all hypotheses.
        shares: float64 ``[n_hyps]``; probabilities.
        is_oracle: bool ``[n_hyps]``; at least one in each sentence that has hypotheses.
        losses: output, float64 ``[n_sentences]``; 0 without hypotheses.
        coefficients: output, float64 ``[n_hyps]``.
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
