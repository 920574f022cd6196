"""Kernels for the steps of relative margin on the sentences of a batch.

The docstring of ``relative_margin`` states the optimization problems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.differences import add_difference, difference, squared_norm
from mosesplug.optimizers.lists.rows import CompactArrays, row_scores
from mosesplug.optimizers.online.working_sets import Walk, empty_set, join, solve, with_room

__all__ = ["RelativeMarginTask", "solve_cutting_planes", "step_once"]

_MARGIN, _BOUND = 0, 1
"""Kinds of constraints; each kind is a group of a working set."""


class RelativeMarginTask(NamedTuple):
    """A batch, for kernels.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``; row offsets of the sentences.
        gains: float64 ``[n_hyps]``.
        slack: ``C``.
        bound_slack: ``D``.
        bound: ``B``.
        tolerance: see ``RmCpOptions.solver_tolerance``.
        iterations: see ``RmCpOptions.solver_iterations``.
    """

    offsets: NDArray[np.int64]
    gains: NDArray[np.float64]
    slack: float
    bound_slack: float
    bound: float
    tolerance: float
    iterations: int


@kernel
def step_once(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk
) -> tuple[NDArray[np.float64], int]:
    """Take a step for the most violated constraint of each kind (Algorithm 2); update ``walk``.

    Returns:
        The model score of each reference minus that of its lowest hypothesis, float64
        ``[n_sentences]``, and the number of violated constraints.
    """
    spreads, violations = np.zeros(len(walk.losses)), 0
    for sentence in range(len(walk.losses)):
        reference, spreads[sentence] = _begin(features, task, walk, sentence)
        start, end = task.offsets[sentence], task.offsets[sentence + 1]
        scores = walk.scores[start:end]
        rival = start + int(np.argmax(scores - task.gains[start:end]))
        worst, best = start + int(np.argmin(scores)), start + int(np.argmax(scores))
        cost = task.gains[reference] - task.gains[rival]
        wide = _step(features, walk, reference, rival, 1.0, cost, task.slack)
        down = _step(features, walk, reference, worst, -1.0, -task.bound, task.bound_slack)
        left = task.bound_slack - down
        up = _step(features, walk, reference, best, 1.0, -task.bound, left)
        violations += int(wide > 0.0) + int(down > 0.0) + int(up > 0.0)
    return spreads, violations


@kernel
def _begin(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk, sentence: int
) -> tuple[int, float]:
    """Score a sentence; return the row of its reference and the spread of its scores.

    Writes the scores and the loss of the sentence to ``walk``.
    """
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features, walk.weights, start, end)
    walk.scores[start:end] = scores
    place = int(np.argmax(scores + task.gains[start:end]))
    fears = scores - task.gains[start:end]
    walk.losses[sentence] = fears.max() - fears[place]
    return start + place, scores[place] - scores.min()


@kernel
def _step(
    features: CompactArrays,
    walk: Walk,
    reference: int,
    other: int,
    sign: float,
    least: float,
    most: float,
) -> float:
    """Take a step towards ``sign d(other) >= least``, at most ``most``; return its size."""
    along = difference(features, reference, other)
    lead = (
        row_scores(features, walk.weights, reference, reference + 1)[0]
        - row_scores(features, walk.weights, other, other + 1)[0]
    )
    missing, length = least - sign * lead, squared_norm(along)
    if not (missing > 0.0 and length > 0.0):
        return 0.0
    size = min(most, missing / length)
    add_difference(walk.weights, along, sign * size)
    add_difference(walk.moved, along, sign * size)
    return float(size)


@kernel
def solve_cutting_planes(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk
) -> tuple[NDArray[np.float64], int]:
    """Add constraints to working sets until no violation exceeds the slack (Algorithm 1).

    Updates ``walk``; returns the same as ``step_once``.
    """
    spreads, violations = np.zeros(len(walk.losses)), 0
    for sentence in range(len(walk.losses)):
        reference, spreads[sentence] = _begin(features, task, walk, sentence)
        violations += _cut(features, task, walk, sentence, reference)
    return spreads, violations


@kernel
def _cut(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk, sentence: int, reference: int
) -> int:
    """Add a sentence's most violated constraint and solve the set again until convergence.

    Algorithm 1 subtracts the slack from the violations of margins only. It would then end as soon
    as the most violated constraint is a bound that ``D`` does not allow to satisfy, even if margins
    are violated. Here the slack is subtracted from both.

    Returns:
        The number of constraints with a multiplier.
    """
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    costs = task.gains[reference] - task.gains[start:end]
    first = walk.scores[reference] - walk.scores[start:end]
    leads, slacks = first, np.zeros(2)
    size, working = 0, empty_set(8)
    caps = np.array([task.slack, task.bound_slack])
    weights, moved = walk.weights.copy(), walk.moved.copy()
    while size < task.iterations:
        slacks[:] = 0.0
        for i in range(size):
            kind, place = working.groups[i], working.others[i] - start
            least = costs[place] if kind == _MARGIN else -task.bound
            slacks[kind] = max(slacks[kind], least - working.signs[i] * leads[place])
        margins, lowest, highest = costs - leads, int(np.argmax(leads)), int(np.argmin(leads))
        place, kind, sign = int(np.argmax(margins)), _MARGIN, 1.0
        excess = margins[place] - slacks[_MARGIN]
        if leads[lowest] - task.bound - slacks[_BOUND] >= excess:
            place, kind, sign = lowest, _BOUND, -1.0
            excess = leads[lowest] - task.bound - slacks[_BOUND]
        if -leads[highest] - task.bound - slacks[_BOUND] >= excess:
            place, kind, sign = highest, _BOUND, 1.0
            excess = -leads[highest] - task.bound - slacks[_BOUND]
        if not excess > task.tolerance:
            break
        least = costs[place] if kind == _MARGIN else -task.bound
        goal = least - sign * first[place]
        working = with_room(working, size, 1)
        join(features, working, size, kind, reference, start + place, sign, goal)
        size += 1
        tolerance = 0.1 * task.tolerance
        solve(features, working, size, caps, tolerance, task.iterations, walk, weights, moved)
        scores = row_scores(features, walk.weights, start, end)
        leads = scores[reference - start] - scores
    return int(np.count_nonzero(working.multipliers[:size]))
