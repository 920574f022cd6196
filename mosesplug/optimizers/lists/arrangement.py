"""How features lie in memory for line search: sentence by sentence, direction by direction.

One pass over the sentences then serves all directions, while a sentence's model scores stay in
the first cache: the slopes of sentence ``s`` along direction ``k`` are the ``n_s`` values from
``offsets[s] * n_directions + k * n_s`` on. The axes are directions too, and there the slopes are
the feature values themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, kernel

__all__ = ["arrange", "extremes", "model_scores", "project"]


@kernel
def arrange(offsets: NDArray[np.int64], columns: NDArray[Any], slopes: NDArray[Any]) -> None:
    """Write the values of ``columns`` to ``slopes`` in the order described by this module.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
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
def model_scores(
    offsets: NDArray[np.int64],
    slopes: NDArray[np.float64],
    base: NDArray[np.float64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Write ``base + weights . h`` of every hypothesis to ``scores``.

    Summed in the order of the features, so that hypotheses with the same features tie exactly.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        slopes: arranged features, float64 ``[n_hyps * len(weights)]``.
        base: float64 ``[n_hyps]``, the share of the features that stay fixed.
        weights: float64.
        scores: output, float64 ``[n_hyps]``.
    """
    scores[:] = base
    n_features = len(weights)
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        sums = scores[start:end]
        for feature in range(n_features):
            weight = weights[feature]
            place = start * n_features + feature * (end - start)
            values = slopes[place : place + end - start]
            for row in range(end - start):
                sums[row] += weight * values[row]


@kernel
def project(
    offsets: NDArray[np.int64],
    slopes: NDArray[np.float64],
    directions: NDArray[np.float64],
    projected: NDArray[np.float64],
) -> None:
    """Write slopes along any directions, from those along the axes.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        slopes: arranged, along the axes, float64 ``[n_hyps * n_axes]``.
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


@finite_kernel
def extremes(
    offsets: NDArray[np.int64], slopes: NDArray[np.float64], bounds: NDArray[np.float64]
) -> None:
    """Write the least and the greatest slope of each sentence along each direction.

    Args:
        offsets: int64 ``[n_sentences + 1]``; no sentence is empty.
        slopes: arranged, float64 ``[n_hyps * n_directions]``.
        bounds: output, float64 ``[n_sentences, n_directions, 2]``.
    """
    place = 0
    for sentence in range(len(offsets) - 1):
        size = offsets[sentence + 1] - offsets[sentence]
        for direction in range(bounds.shape[1]):
            least = greatest = slopes[place]
            for slope in slopes[place : place + size]:
                least = min(least, slope)
                greatest = max(greatest, slope)
            bounds[sentence, direction, 0] = least
            bounds[sentence, direction, 1] = greatest
            place += size
