"""Kernels for the steps of MIRA on the sentences of a batch: closed form and working sets.

The docstring of ``mira`` states the optimization problems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.differences import add_difference, difference, squared_norm
from mosesplug.optimizers.lists.rows import CompactArrays, row_scores
from mosesplug.optimizers.online.working_sets import Walk, empty_set, join, solve, with_room
from mosesplug.optimizers.solvers.qp import EXCHANGES

__all__ = ["MiraTask", "solve_each_sentence", "with_working_sets"]


class MiraTask(NamedTuple):
    """A batch, for kernels.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``; row offsets of the sentences.
        gains: float64 ``[n_hyps]``.
        slack: ``C``.
        tolerance: see ``MiraOptions.solver_tolerance``.
        hopes: whether the surrogate reference is the hope instead of the oracle.
    """

    offsets: NDArray[np.int64]
    gains: NDArray[np.float64]
    slack: float
    tolerance: float
    hopes: bool


@kernel
def _reference(task: MiraTask, scores: NDArray[np.float64], start: int) -> int:
    """Return the row of a sentence's hope, or of its oracle with the highest model score.

    Args:
        task: the batch, with gains and ``hopes``.
        scores: float64; model scores of the rows of this sentence.
        start: the sentence's first row.
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
def solve_each_sentence(features: CompactArrays, task: MiraTask, walk: Walk) -> None:
    """Apply equations 61 and 62 to each sentence in turn; ``walk`` is the output."""
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
        along = difference(features, reference, other)
        length = squared_norm(along)
        if length > 0.0:
            size = min(task.slack, loss / length)
            add_difference(walk.weights, along, size)
            add_difference(walk.moved, along, size)


@kernel
def with_working_sets(features: CompactArrays, task: MiraTask, walk: Walk, together: int) -> None:
    """Use all hypotheses as constraints, with one quadratic program per ``together`` sentences.

    ``walk`` is the output.
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
    features: CompactArrays, task: MiraTask, walk: Walk, first: int, references: NDArray[np.int64]
) -> None:
    """Solve for several sentences at once; each pass adds the worst constraint of each sentence.

    Args:
        features: the features of the batch.
        task: the batch.
        walk: output.
        first: the first of these sentences.
        references: int64 ``[n]``; the row of each sentence that should outscore the others.
    """
    size, working = 0, empty_set(8 * len(references))
    caps, tolerance = np.full(len(references), task.slack), max(0.1 * task.tolerance, 1e-12)
    weights, moved = walk.weights.copy(), walk.moved.copy()
    while True:
        known = size
        working = with_room(working, size, len(references))
        for group in range(len(references)):
            reference, start = references[group], task.offsets[first + group]
            missing = _missing(features, task, walk, first + group, reference)
            slack = 0.0
            for i in range(known):
                if working.groups[i] == group:
                    slack = max(slack, missing[working.others[i] - start])
            worst = int(np.argmax(missing))
            if known == 0:
                walk.losses[first + group] = max(0.0, missing[worst])
            if missing[worst] > slack + task.tolerance:
                other = start + worst
                lead = walk.scores[reference] - walk.scores[other]
                goal = task.gains[reference] - task.gains[other] - lead
                join(features, working, size, group, reference, other, 1.0, goal)
                size += 1
        if size == known:
            return
        solve(features, working, size, caps, tolerance, EXCHANGES, walk, weights, moved)


@kernel
def _missing(
    features: CompactArrays, task: MiraTask, walk: Walk, sentence: int, reference: int
) -> NDArray[np.float64]:
    """Return by how much each hypothesis violates its margin, float64; negative if satisfied."""
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features, walk.weights, start, end)
    missing = np.empty(end - start)
    for place in range(end - start):
        margin = task.gains[reference] - task.gains[start + place]
        missing[place] = margin - (scores[reference - start] - scores[place])
    return missing
