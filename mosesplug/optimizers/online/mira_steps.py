"""Steps of MIRA on the sentences of a batch, compiled: closed form, and working sets.

What is solved is in the docstring of ``mira``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.online.pairs_of_rows import (
    Features,
    move,
    row_scores,
    square_of_difference,
)
from mosesplug.optimizers.online.qp import solve_groups

__all__ = ["Task", "Walk", "one_by_one", "with_working_sets"]


class Task(NamedTuple):
    """A batch as the kernels see it.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``, of the rows.
        gains: float64 ``[n_hyps]``.
        slack: ``C``.
        tolerance: see ``MiraOptions.solver_tolerance``.
        hopes: the reference is the hope, not the oracle.
    """

    offsets: NDArray[np.int64]
    gains: NDArray[np.float64]
    slack: float
    tolerance: float
    hopes: bool


class Walk(NamedTuple):
    """Where the weights have come to; the arrays are outputs of the kernels.

    Attributes:
        weights: float64 ``[n_columns]``, now.
        moved: float64 ``[n_columns]``, the steps so far; 0 where they cancel out, which the
            difference of two weights would not be.
        scores: float64 ``[n_hyps]``, when the sentence came up.
        losses: float64 ``[n_sentences]``, of the worst constraint of each sentence then.
    """

    weights: NDArray[np.float64]
    moved: NDArray[np.float64]
    scores: NDArray[np.float64]
    losses: NDArray[np.float64]


@kernel
def _reference(task: Task, scores: NDArray[np.float64], start: int) -> int:
    """The hope of the sentence whose rows begin at ``start``, or its best-liked oracle: a row.

    Args:
        task: gains, and which of the two.
        scores: float64, of the rows of this sentence.
        start: its first row.
    """
    best, merit, worth = 0, -np.inf, -np.inf
    for place in range(len(scores)):
        gain = task.gains[start + place]
        if task.hopes:
            better = scores[place] + gain > merit
        else:
            better = gain > worth or (gain == worth and scores[place] > merit)
        if better:
            best, worth = place, gain
            merit = scores[place] + gain if task.hopes else scores[place]
    return start + best


@kernel
def one_by_one(features: Features, task: Task, walk: Walk) -> None:
    """Equations 61 and 62 for each sentence in turn; writes what is in ``walk``."""
    for sentence in range(len(walk.losses)):
        start, end = task.offsets[sentence], task.offsets[sentence + 1]
        scores = row_scores(features, walk.weights, start, end)
        walk.scores[start:end] = scores
        reference = _reference(task, scores, start)
        if task.hopes:
            other = start + int(np.argmax(scores - task.gains[start:end]))
        else:
            other = start + int(np.argmax(scores))
        lead = scores[reference - start] - scores[other - start]
        loss = task.gains[reference] - task.gains[other] - lead
        if loss <= 0.0:
            continue
        walk.losses[sentence] = loss
        square = square_of_difference(features, reference, other)
        if square > 0.0:
            size = min(task.slack, loss / square)
            move(features, walk.weights, reference, other, size)
            move(features, walk.moved, reference, other, size)


@kernel
def with_working_sets(features: Features, task: Task, walk: Walk, together: int) -> None:
    """All hypotheses as constraints; ``together`` sentences have one quadratic program.

    Writes what is in ``walk``.
    """
    for first in range(0, len(walk.losses), max(1, together)):
        last = min(first + together, len(walk.losses))
        references = np.empty(last - first, dtype=np.int64)
        for sentence in range(first, last):
            start, end = task.offsets[sentence], task.offsets[sentence + 1]
            scores = row_scores(features, walk.weights, start, end)
            walk.scores[start:end] = scores
            references[sentence - first] = _reference(task, scores, start)
        _cut(features, task, walk, first, references)


@kernel
def _cut(
    features: Features, task: Task, walk: Walk, first: int, references: NDArray[np.int64]
) -> None:
    """Solve for some sentences at once, the worst constraints of each joining round by round.

    Args:
        features: of the batch.
        task: the batch.
        walk: written.
        first: the first of these sentences.
        references: int64 ``[n]``, the row of each that should outscore the others.
    """
    size, room = 0, 8 * len(references)
    others, groups = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    goals, multipliers, gram = np.empty(room), np.zeros(room), np.empty((room, room))
    weights, moved = walk.weights.copy(), walk.moved.copy()
    while True:
        known = size
        if size + len(references) > room:
            room *= 2
            others, groups = _longer(others, room), _longer(groups, room)
            goals, multipliers = _longer(goals, room), _longer(multipliers, room)
            gram = _wider(gram, size, room)
        for group in range(len(references)):
            missing = _missing(features, task, walk, first + group, references[group])
            start = task.offsets[first + group]
            slack = 0.0
            for i in range(known):
                if groups[i] == group:
                    slack = max(slack, missing[others[i] - start])
            worst = int(np.argmax(missing))
            if known == 0:
                walk.losses[first + group] = max(0.0, missing[worst])
            if missing[worst] > slack + task.tolerance:
                row = start + worst
                lead = walk.scores[references[group]] - walk.scores[row]
                others[size], groups[size] = row, group
                goals[size] = task.gains[references[group]] - task.gains[row] - lead
                size += 1
        if size == known:
            return
        for i in range(known, size):
            multipliers[i] = 0.0
            _products(features, references, groups, others, len(weights), i, gram)
        solve_groups(
            gram,
            goals[:size],
            groups[:size],
            len(references),
            task.slack,
            max(0.1 * task.tolerance, 1e-12),
            multipliers[:size],
        )
        walk.weights[:], walk.moved[:] = weights, moved
        for i in range(size):
            if multipliers[i] > 0.0:
                reference = references[groups[i]]
                move(features, walk.weights, reference, others[i], multipliers[i])
                move(features, walk.moved, reference, others[i], multipliers[i])


@kernel
def _missing(
    features: Features, task: Task, walk: Walk, sentence: int, reference: int
) -> NDArray[np.float64]:
    """How far each hypothesis is from being outscored by its margin, float64, below 0 if it is."""
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features, walk.weights, start, end)
    missing = np.empty(end - start)
    for place in range(end - start):
        margin = task.gains[reference] - task.gains[start + place]
        missing[place] = margin - (scores[reference - start] - scores[place])
    return missing


@kernel
def _products(
    features: Features,
    references: NDArray[np.int64],
    groups: NDArray[np.int64],
    others: NDArray[np.int64],
    n_columns: int,
    last: int,
    gram: NDArray[np.float64],
) -> None:
    """Products of one difference with those before it and itself: a row and a column of ``gram``.

    Args:
        features: the rows.
        references: int64, the reference of each group.
        groups: int64, the group of each constraint.
        others: int64, the row that is taken from the reference in each constraint.
        n_columns: of the rows.
        last: the constraint.
        gram: output, float64.
    """
    along = np.zeros(n_columns)
    move(features, along, references[groups[last]], others[last], 1.0)
    for i in range(last + 1):
        reference, other, product = references[groups[i]], others[i], 0.0
        for entry in range(features.indptr[reference], features.indptr[reference + 1]):
            product += along[features.indices[entry]] * features.data[entry]
        for entry in range(features.indptr[other], features.indptr[other + 1]):
            product -= along[features.indices[entry]] * features.data[entry]
        gram[i, last] = gram[last, i] = product


@kernel
def _longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    """A copy at the beginning of a longer array."""
    longer = np.zeros(room, dtype=array.dtype)
    for i in range(len(array)):
        longer[i] = array[i]
    return longer


@kernel
def _wider(square: NDArray[np.float64], size: int, room: int) -> NDArray[np.float64]:
    """A copy of the first ``size`` rows and columns in a larger array, float64 ``[room, room]``."""
    wider = np.empty((room, room))
    for i in range(size):
        for j in range(size):
            wider[i, j] = square[i, j]
    return wider
