"""The best corpus score that any weights reach, for small problems.

Weights that choose the same hypotheses are a cone, bounded by hyperplanes on which two hypotheses
of a sentence tie (Galley & Quirk 2011). In ``d`` dimensions, every cone has a face of two
dimensions, on which ``d - 2`` hyperplanes meet. So exact line searches around all such planes,
beside each, on every side of its hyperplanes, pass through every cone, but for those narrower than
the distance from the plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.line_search.space import IntervalChoice, best_point
from mosesplug.optimizers.problem import Problem
from tests.optimizers.problems import space_of

__all__ = ["best_score_of_all", "decode"]

Vector = NDArray[np.float64]

BESIDE = 1e-5
"""Distance of a line from its plane, relative to the length of the vectors that span it."""


def best_score_of_all(problem: Problem) -> float:
    """Return the highest corpus score of any weights of all dense features, two at least."""
    dense, offsets = problem.tuning_set.dense.astype(np.float64), problem.tuning_set.offsets
    space = space_of(problem, np.zeros(dense.shape[1]))
    best = -np.inf
    for start, direction in _lines(dense, offsets):
        ((thresholds, scores),) = space.along(direction[None], space.at(start))
        point = best_point(thresholds, scores, IntervalChoice(), 1e6)
        if point is not None and point.value > best:
            # Rounding may promise too much beside thresholds: decoding has the last word.
            best = max(best, space.decode(space.at(start + point.step * direction)))
    return best


def decode(problem: Problem, points: Vector) -> Vector:
    """Return the accuracy of the 1-best hypotheses at each of the points, ``[n_points]``."""
    lists = problem.tuning_set
    (size,) = set(np.diff(lists.offsets).tolist())
    scores = lists.dense.astype(np.float64) @ points.T
    best = scores.reshape(-1, size, len(points)).argmax(axis=1)
    won, possible = (column.reshape(-1, size, 1) for column in lists.stats.T)
    chosen = (np.take_along_axis(each, best[:, np.newaxis], axis=1) for each in (won, possible))
    return np.asarray(np.divide(*(each.sum(axis=(0, 1)) for each in chosen)))


def _lines(dense: Vector, offsets: NDArray[np.int64]) -> Iterator[tuple[Vector, Vector]]:
    """Yield start and direction of lines through all cones."""
    n_features = dense.shape[1]
    normals = [dense[a] - dense[b] for a, b in _pairs(offsets)]
    normals = [normal / np.linalg.norm(normal) for normal in normals if normal.any()]
    for chosen in combinations(normals, n_features - 2):
        matrix = np.array(chosen).reshape(n_features - 2, n_features)
        _, values, rows = np.linalg.svd(matrix)
        if (values < 1e-9).any():
            continue  # hyperplanes that meet in more than a plane
        first, second = rows[-2:]
        for signs in product((-1.0, 1.0), repeat=n_features - 2):
            aside = np.zeros(n_features)
            if signs:
                aside = np.linalg.lstsq(matrix, np.array(signs), rcond=None)[0]
                aside *= BESIDE / np.linalg.norm(aside)
            yield first + aside, second
            yield aside - first, second


def _pairs(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield all pairs of hypotheses of one sentence."""
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield from combinations(range(start, end), 2)
