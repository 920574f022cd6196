"""From the files of Moses' ``mert`` to a tuning problem, whole or in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.text import read_bytes
from formats.weights.files import read_sparse
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, Solution
from mosesplug.optimizers.problem import normalise
from mosesplug.tuning_set import TuningSet

__all__ = ["averaged", "dense_only", "read_starts", "selected", "shards"]

StrPath = str | PathLike[str]

FACTOR = "SparseFactor"
"""The dense feature that the score of the sparse ones becomes."""


def dense_only(tuning_set: TuningSet, sparse_weights: StrPath | None) -> TuningSet:
    """The hypotheses without their sparse features, or with the score of these as a dense one.

    Args:
        tuning_set: hypotheses.
        sparse_weights: a file of weights, ``name value``, at which the sparse features are
            summed up in one more dense column, the last. None to leave them out.

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
    """Starting points, and the box of random starts.

    Args:
        files: at least one, as ``init.opt``. The first one's minima and maxima make the box;
            others may have none, and theirs do not matter.
        space: the weights, all of them dense.

    Returns:
        The starts, each float64 ``[n_features]``; minima; maxima.

    Raises:
        FormatError: a file holds something else, or another number of weights.
    """
    points = [_numbers(path, space, box=number == 0) for number, path in enumerate(files)]
    _, minima, maxima = points[0]
    return [point[0] for point in points], minima, maxima


def _numbers(path: StrPath, space: FeatureSpace, *, box: bool) -> NDArray[np.float64]:
    """Return the rows of a file: starting weights, and minima and maxima if it has them."""
    words = read_bytes(path).split()
    numbers = np.array([parse_number(word) for word in words])
    if np.isnan(numbers).any():
        word = words[int(np.argmax(np.isnan(numbers)))].decode(errors="replace")
        raise FormatError(
            f"'{word}' is no finite number",
            path=path,
            remedy="It holds starting weights, minima and maxima",
        )
    n = len(space)
    if len(numbers) != 3 * n and (box or len(numbers) != n):
        raise FormatError(
            f"{len(numbers)} numbers",
            path=path,
            remedy=f"It takes {n} starting weights, {n} minima and {n} maxima: one each for"
            f" {', '.join(space.names)}",
        )
    return numbers.reshape(-1, n)


def selected(
    wanted: Sequence[str], names: Sequence[str], n_features: int, option: str
) -> NDArray[np.bool_]:
    """Mask, bool ``[n_features]``, of the named weights.

    Args:
        wanted: names.
        names: of the first columns, as the files spell them.
        n_features: how many columns there are.
        option: that named them, for messages.

    Raises:
        DataError: there is no such feature.
    """
    mask = np.zeros(n_features, dtype=np.bool_)
    for name in wanted:
        if name not in names:
            raise DataError(f"{option}: there is no feature {name}; there are {', '.join(names)}")
        mask[names.index(name)] = True
    return mask


def shards(problem: Problem, count: int, size: float, rng: np.random.Generator) -> list[Problem]:
    """Return the problem on parts of the sentences.

    Args:
        problem: the whole.
        count: of parts; 0 for the whole itself.
        size: of each part, as a share of the sentences, drawn with repetition; 0 to divide them.
        rng: draws them.

    Raises:
        DataError: more parts than sentences.
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


def averaged(problem: Problem, solutions: Sequence[Solution]) -> tuple[NDArray[np.float64], float]:
    """Mean of the weights that shards led to, normalised, and of their scores.

    Raises:
        DataError: the mean is zero.
    """
    if len(solutions) == 1:
        return solutions[0].weights, solutions[0].score
    weights = np.mean([solution.weights for solution in solutions], axis=0)
    if not weights.any():
        raise DataError("the average of the shards' weights is zero: use fewer shards")
    score = np.mean([solution.score for solution in solutions])
    return normalise(problem, weights), float(score)
