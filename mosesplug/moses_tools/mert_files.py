"""Build the tuning problem of Moses' ``mert`` from its files, whole or in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.text import StrPath, read_bytes
from formats.weights.files import read_sparse
from mosesplug.errors import DataError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, Solution
from mosesplug.optimizers.problem import normalize
from mosesplug.tuning_set import TuningSet

FACTOR = "SparseFactor"
"""The dense feature that holds the score of the sparse features."""


def remove_sparse(tuning_set: TuningSet, sparse_weights: StrPath | None) -> TuningSet:
    """Remove the sparse features, or replace them by their score.

    Args:
        sparse_weights: a file of ``name value`` weights. The sparse model score at these weights
            becomes the last dense column. None removes the sparse features.

    Raises:
        FormatError: the file cannot be read.
    """
    space = tuning_set.space
    if sparse_weights is None:
        return replace(tuning_set, space=FeatureSpace(space.groups), sparse=None)
    known = read_sparse(sparse_weights)
    weights = np.zeros(len(space))
    weights[space.n_dense :] = [known.get(name, 0.0) for name in space.sparse]
    scores = tuning_set.model_scores(weights).astype(np.float32)
    return replace(
        tuning_set,
        space=FeatureSpace((*space.groups, (FACTOR, 1))),
        dense=np.column_stack([tuning_set.dense, scores]),
        sparse=None,
    )


def read_starts(
    files: Sequence[StrPath], space: FeatureSpace
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64], NDArray[np.float64]]:
    """Read the starting points and the box of random starts.

    Args:
        files: at least one file in the format of ``init.opt``. The minima and maxima of the first
            file define the box; those of the other files are optional and ignored.

    Returns:
        The starts, each float64 ``[n_features]``; minima; maxima.

    Raises:
        FormatError: a file is malformed or has another number of weights.
    """
    points = [_numbers(path, space, box=number == 0) for number, path in enumerate(files)]
    _, minima, maxima = points[0]
    return [point[0] for point in points], minima, maxima


def _numbers(path: StrPath, space: FeatureSpace, *, box: bool) -> NDArray[np.float64]:
    """Read the rows of a file: starting weights, and minima and maxima if present."""
    words = read_bytes(path).split()
    numbers = np.array([parse_number(word) for word in words])
    if np.isnan(numbers).any():
        word = words[int(np.argmax(np.isnan(numbers)))].decode(errors="replace")
        raise FormatError(
            f"'{word}' is not a finite number",
            path=path,
            remedy="The file must contain starting weights, minima and maxima",
        )
    n = len(space)
    if len(numbers) != 3 * n and (box or len(numbers) != n):
        raise FormatError(
            f"{len(numbers)} numbers",
            path=path,
            remedy=f"Expected {n} starting weights, {n} minima and {n} maxima, for"
            f" {', '.join(space.names)}",
        )
    return numbers.reshape(-1, n)


def select_weights(
    wanted: Sequence[str], names: Sequence[str], n_features: int, option: str
) -> NDArray[np.bool_]:
    """Return the mask of the named weights, bool ``[n_features]``.

    Args:
        names: names of the first columns, as in the files.

    Raises:
        DataError: there is no such feature.
    """
    mask = np.zeros(n_features, dtype=np.bool_)
    for name in wanted:
        if name not in names:
            raise DataError(f"{option}: {explain_unknown_feature(name, names)}")
        mask[names.index(name)] = True
    return mask


def split_problem(
    problem: Problem, count: int, size: float, rng: np.random.Generator
) -> list[Problem]:
    """Split a problem into shards of its sentences.

    Args:
        count: number of shards; 0 returns the problem itself.
        size: size of each shard as a share of the sentences, drawn with replacement; 0 to divide
            the sentences among the shards.

    Raises:
        DataError: there are more shards than sentences.
    """
    if count == 0:
        return [problem]
    n = problem.tuning_set.n_sentences
    if size > 0.0:
        drawn = max(1, int(size * n + 0.5))
        parts = [rng.integers(0, n, drawn) for _ in range(count)]
    elif count > n:
        raise DataError(f"{count} shards of {n} sentences: use fewer")
    else:
        parts = np.array_split(np.arange(n), count)
    return [replace(problem, tuning_set=problem.tuning_set.take_sentences(part)) for part in parts]


def average_solutions(
    problem: Problem, solutions: Sequence[Solution]
) -> tuple[NDArray[np.float64], float]:
    """Return the normalized mean of the shards' weights, and the mean of their scores.

    Raises:
        DataError: the mean of the weights is zero.
    """
    if len(solutions) == 1:
        return solutions[0].weights, solutions[0].score
    weights = np.mean([solution.weights for solution in solutions], axis=0)
    if not weights.any():
        raise DataError("the average of the shards' weights is zero: use fewer shards")
    score = np.mean([solution.score for solution in solutions])
    return normalize(problem, weights), float(score)
