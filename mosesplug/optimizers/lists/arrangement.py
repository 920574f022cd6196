"""Features arranged for line search: sentence by sentence, direction by direction.

One pass over the sentences then serves all directions, while a sentence's model scores stay in the
first cache: the slopes of sentence ``s`` along direction ``k`` are the ``n_s`` values from
``offsets[s] * n_directions + k * n_s`` on. The axes are directions too, whose slopes are the
feature values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets, Scores
from mosesplug.kernels import kernel, lean_kernel


@kernel
def longest_sentence(offsets: NDArray[np.int64]) -> int:
    """Return the most rows of a sentence, from ``offsets``, ``[n_sentences + 1]``."""
    longest = 0
    for sentence in range(len(offsets) - 1):
        longest = max(longest, offsets[sentence + 1] - offsets[sentence])
    return longest


@kernel
def arrange(offsets: Offsets, columns: NDArray[Any], slopes: NDArray[Any]) -> None:
    """Write the values of ``columns`` to ``slopes`` in the order of this module.

    Args:
        columns: ``[n_hyps, n_directions]``.
        slopes: output, float32 or float64 ``[n_hyps * n_directions]``.
    """
    n_directions = columns.shape[1]
    place = 0
    for sentence in range(len(offsets) - 1):
        for direction in range(n_directions):
            for row in range(offsets[sentence], offsets[sentence + 1]):
                slopes[place] = columns[row, direction]
                place += 1


@kernel
def add_scores(
    slopes: NDArray[Any], start: int, weights: NDArray[Any], n_features: int, scores: NDArray[Any]
) -> None:
    """Add ``weights . h`` of one sentence's hypotheses to ``scores``.

    Summed in the order of the features, so that hypotheses with the same features tie exactly.

    Args:
        slopes: arranged features, ``[n_hyps * n_features]``.
        weights: the first ``n_features`` are used.
        scores: in and output, ``[hypotheses of the sentence]``; its type is that of the sums.
    """
    size = len(scores)
    for feature in range(n_features):
        weight = weights[feature]
        place = start * n_features + feature * size
        values = slopes[place : place + size]
        for row in range(size):
            scores[row] += weight * values[row]


@lean_kernel
def model_scores(
    offsets: Offsets,
    slopes: NDArray[Any],
    base: Scores,
    weights: NDArray[np.float64],
    scores: Scores,
) -> None:
    """Write ``base + weights . h`` of every hypothesis to ``scores``.

    Args:
        slopes: arranged features, float32 ``[n_hyps * len(weights)]``.
        base: the share of the inactive features.
        scores: output.
    """
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        sums, shares = scores[start:end], base[start:end]
        # An assignment of slices would compile its error message, too, for two seconds.
        for row in range(len(sums)):
            sums[row] = shares[row]
        add_scores(slopes, start, weights, len(weights), sums)


@kernel
def project_slopes(
    offsets: Offsets,
    slopes: NDArray[Any],
    directions: NDArray[np.float64],
    projected: NDArray[np.float64],
) -> None:
    """Write slopes along any directions, given those along the axes.

    Args:
        slopes: arranged, along the axes, float32 ``[n_hyps * n_axes]``.
        directions: float64 ``[n_directions, n_axes]``.
        projected: output, arranged, float64 ``[n_hyps * n_directions]``.
    """
    n_directions, n_axes = directions.shape
    projected[:] = 0.0
    for sentence in range(len(offsets) - 1):
        start, size = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        for direction in range(n_directions):
            to = start * n_directions + direction * size
            for axis in range(n_axes):
                share = directions[direction, axis]
                origin = start * n_axes + axis * size
                if share != 0.0:
                    for row in range(size):
                        projected[to + row] += share * slopes[origin + row]
