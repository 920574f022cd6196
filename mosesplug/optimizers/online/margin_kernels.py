"""Kernels of margin learners: steps, alone and in working sets.

A constraint is a lower or upper bound on the difference of two model scores:
``sign w . (h(reference) - h(other)) >= least``. The sentences of a batch are processed in turn,
each at the weights after the previous one, unless a quadratic program spans several of them.

Cutting planes (Eidelman et al. 2013, Algorithm 1) collect violated constraints in a working set.
The constraints of a group share their slack, and ``qp`` finds their multipliers. A set has spare
room, so that adding a constraint rarely copies it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Choice, ColumnValues, Offsets, Scores, SentenceValues
from mosesplug.kernels import inlined_kernel, kernel
from mosesplug.optimizers.lists.rows import (
    MaskedRows,
    add_difference,
    difference,
    difference_product,
    row_scores,
    squared_norm,
)
from mosesplug.optimizers.solvers.qp import EXCHANGES, solve_groups

_MARGIN, _BOUND = 0, 1
"""Kinds of constraints of a sentence with a relative margin; each is a group."""


class MarginTask(NamedTuple):
    """A batch without empty sentences, and what is asked of its margins.

    Attributes:
        gains: the gain of each hypothesis.
        oracles: the row of the surrogate reference of each sentence where it is given, or -1.
        sentence_weights: factors of both slacks; 1 without weights.
        slack: ``C``, the largest step for a margin.
        tolerance: smaller violations are ignored.
        hopes: whether the surrogate reference is the hope instead of the oracle.
        bound_slack: ``D``, the largest step for a bound.
        bound: ``B``, the largest difference of model scores.
        by_error: whether only the hypothesis of the least gain is bounded, or all are.
        iterations: most constraints of a sentence, and exchanges for each of them.
    """

    offsets: Offsets
    gains: Scores
    oracles: Choice
    sentence_weights: SentenceValues
    slack: float
    tolerance: float
    hopes: bool = True
    bound_slack: float = 0.0
    bound: float = 0.0
    by_error: bool = False
    iterations: int = 0


class Walk(NamedTuple):
    """The weights within a batch; the arrays are outputs of the kernels.

    Attributes:
        weights: the current weights of the batch's features.
        total_step: sum of the steps so far, exactly 0 if they cancel out.
        scores: model scores when the sentence was processed.
        losses: the loss of the sentence's worst constraint at that time.
        spreads: the model score of its reference minus the lowest one, at that time.
    """

    weights: ColumnValues
    total_step: ColumnValues
    scores: Scores
    losses: SentenceValues
    spreads: SentenceValues

    @classmethod
    def start(cls, weights: ColumnValues, n_hyps: int, n_sentences: int) -> Walk:
        """Return the walk before its first sentence."""
        zeros = np.zeros(n_sentences)
        return cls(weights, np.zeros(len(weights)), np.zeros(n_hyps), zeros, zeros.copy())


@kernel
def _begin(features: MaskedRows, task: MarginTask, walk: Walk, sentence: int) -> int:
    """Score a sentence; return the row of its reference.

    It is the one that the task gives, the hope, or the oracle with the highest model score. Writes
    scores and spread to ``walk``.
    """
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features.rows, walk.weights, start, end)
    walk.scores[start:end] = scores
    place = task.oracles[sentence] - start
    if place < 0:
        best_score, best_gain = -np.inf, -np.inf
        for row in range(len(scores)):
            gain = task.gains[start + row]
            if task.hopes:
                better = scores[row] + gain > best_score
            else:
                better = gain > best_gain or (gain == best_gain and scores[row] > best_score)
            if better:
                place, best_gain = row, gain
                best_score = scores[row] + gain if task.hopes else scores[row]
        # NaN compares greater than nothing: without a maximum, take the first hypothesis.
        place = max(place, 0)
    walk.spreads[sentence] = scores[place] - scores.min()
    return int(start + place)


@kernel
def _step(
    features: MaskedRows,
    walk: Walk,
    reference: int,
    other: int,
    sign: float,
    least: float,
    most: float,
) -> float:
    """Step towards ``sign d(other) >= least`` by at most ``most``; return the size."""
    along = difference(features, reference, other)
    # At the weights now: an earlier step for this sentence may have changed both scores.
    lead = (
        row_scores(features.rows, walk.weights, reference, reference + 1)[0]
        - row_scores(features.rows, walk.weights, other, other + 1)[0]
    )
    missing, length = least - sign * lead, squared_norm(along)
    if not (missing > 0.0 and length > 0.0):
        return 0.0
    size = min(most, missing / length)
    add_difference(walk.weights, along, sign * size)
    add_difference(walk.total_step, along, sign * size)
    return float(size)


@kernel
def step_to_margins(features: MaskedRows, task: MarginTask, walk: Walk) -> int:
    """Apply equations 61 and 62 of the survey; count sentences with a loss."""
    for sentence in range(len(walk.losses)):
        reference = _begin(features, task, walk, sentence)
        start, end = task.offsets[sentence], task.offsets[sentence + 1]
        scores = walk.scores[start:end]
        if task.hopes:
            other = start + int(np.argmax(scores - task.gains[start:end]))
        else:
            other = start + int(np.argmax(scores))
        cost = task.gains[reference] - task.gains[other]
        walk.losses[sentence] = max(0.0, cost - (walk.scores[reference] - walk.scores[other]))
        slack = task.sentence_weights[sentence] * task.slack
        _step(features, walk, reference, other, 1.0, cost, slack)
    return int(np.count_nonzero(walk.losses))


@kernel
def step_to_relative_margins(features: MaskedRows, task: MarginTask, walk: Walk) -> int:
    """Take a step for the most violated constraint of each kind (Algorithm 2).

    Returns:
        The number of violated constraints.
    """
    violations = 0
    for sentence in range(len(walk.losses)):
        reference = _begin_bounded(features, task, walk, sentence)
        start, end = task.offsets[sentence], task.offsets[sentence + 1]
        scores = walk.scores[start:end]
        rival = start + int(np.argmax(scores - task.gains[start:end]))
        worst, best = start + int(np.argmin(scores)), start + int(np.argmax(scores))
        if task.by_error:
            worst = best = start + int(np.argmin(task.gains[start:end]))
        cost = task.gains[reference] - task.gains[rival]
        # One after the other: each step sees the weights after the one before.
        slack = task.sentence_weights[sentence] * task.slack
        bound_slack = task.sentence_weights[sentence] * task.bound_slack
        wide = _step(features, walk, reference, rival, 1.0, cost, slack)
        down = _step(features, walk, reference, worst, -1.0, -task.bound, bound_slack)
        # Both bounds share their slack in equation 4.
        left = bound_slack - down
        up = _step(features, walk, reference, best, 1.0, -task.bound, left)
        violations += int(wide > 0.0) + int(down > 0.0) + int(up > 0.0)
    return violations


@kernel
def _begin_bounded(features: MaskedRows, task: MarginTask, walk: Walk, sentence: int) -> int:
    """Score a sentence and its loss; return the row of its reference."""
    reference = _begin(features, task, walk, sentence)
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    fears = walk.scores[start:end] - task.gains[start:end]
    walk.losses[sentence] = fears.max() - fears[reference - start]
    return reference


@kernel
def solve_margins(features: MaskedRows, task: MarginTask, walk: Walk, together: int) -> int:
    """Use all hypotheses as constraints, ``together`` sentences per quadratic program.

    Returns:
        The number of sentences with a loss.
    """
    for first in range(0, len(walk.losses), max(1, together)):
        last = min(first + together, len(walk.losses))
        references = np.empty(last - first, dtype=np.int64)
        for sentence in range(first, last):
            references[sentence - first] = _begin(features, task, walk, sentence)
        _cut_margins(features, task, walk, first, references)
    return int(np.count_nonzero(walk.losses))


@inlined_kernel
def _cut_margins(
    features: MaskedRows, task: MarginTask, walk: Walk, first: int, references: Choice
) -> None:
    """Solve for several sentences, adding each one's worst constraint in each pass.

    Args:
        references: the row of each sentence that should outscore the others.
    """
    size, working = 0, empty_set(8 * len(references))
    # The inner solver must be exacter than the outer test, or that might never be met.
    caps = task.slack * task.sentence_weights[first : first + len(references)]
    tolerance = max(0.1 * task.tolerance, 1e-12)
    weights, moved = walk.weights.copy(), walk.total_step.copy()
    while True:
        known = size
        working = with_room(working, size, len(references))
        for group in range(len(references)):
            reference, start = references[group], task.offsets[first + group]
            missing = _measure_violations(features, task, walk, first + group, reference)
            slack = 0.0
            for i in range(known):
                if working.groups[i] == group:
                    slack = max(slack, missing[working.others[i] - start])
            worst = int(np.argmax(missing))
            if known == 0:
                # The loss is that before any step of this set.
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
def _measure_violations(
    features: MaskedRows, task: MarginTask, walk: Walk, sentence: int, reference: int
) -> Scores:
    """Return each hypothesis' violation of its margin, negative if satisfied."""
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features.rows, walk.weights, start, end)
    missing = np.empty(end - start)
    for place in range(end - start):
        margin = task.gains[reference] - task.gains[start + place]
        missing[place] = margin - (scores[reference - start] - scores[place])
    return missing


@kernel
def solve_relative_margins(features: MaskedRows, task: MarginTask, walk: Walk) -> int:
    """Collect constraints until no violation exceeds the slack (Algorithm 1).

    Returns:
        The number of constraints with a multiplier.
    """
    violations = 0
    for sentence in range(len(walk.losses)):
        reference = _begin_bounded(features, task, walk, sentence)
        violations += _cut_bounded(features, task, walk, sentence, reference)
    return violations


@inlined_kernel
def _cut_bounded(
    features: MaskedRows, task: MarginTask, walk: Walk, sentence: int, reference: int
) -> int:
    """Add the most violated constraint and solve the set again until convergence.

    The set is that of one sentence. Algorithm 1 subtracts the slack from the violations of margins
    only. It would then end as soon as the most violated constraint is a bound that ``D`` does not
    allow to satisfy, even if margins are violated. Here the slack is subtracted from both.

    Returns:
        The number of constraints with a multiplier.
    """
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    costs = task.gains[reference] - task.gains[start:end]
    first = walk.scores[reference] - walk.scores[start:end]
    leads, slacks = first, np.zeros(2)
    size, working = 0, empty_set(8)
    caps = task.sentence_weights[sentence] * np.array([task.slack, task.bound_slack])
    weights, moved = walk.weights.copy(), walk.total_step.copy()
    while size < task.iterations:
        slacks[:] = 0.0
        for i in range(size):
            kind, place = working.groups[i], working.others[i] - start
            least = costs[place] if kind == _MARGIN else -task.bound
            slacks[kind] = max(slacks[kind], least - working.signs[i] * leads[place])
        margins, lowest, highest = costs - leads, int(np.argmax(leads)), int(np.argmin(leads))
        if task.by_error:
            lowest = highest = int(np.argmax(costs))
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
        scores = row_scores(features.rows, walk.weights, start, end)
        leads = scores[reference - start] - scores
    return int(np.count_nonzero(working.multipliers[:size]))


class WorkingSet(NamedTuple):
    """Constraints with multipliers, in order of arrival; arrays have spare room.

    Attributes:
        groups: int64 ``[room]``; the groups, which share a slack.
        references: int64 ``[room]``; rows.
        others: int64 ``[room]``; rows.
        signs: float64 ``[room]``, 1 or -1.
        goals: float64 ``[room]``; violation of each constraint before any step.
        multipliers: float64 ``[room]``, at least 0.
        gram: float64 ``[room, room]``, products of the steps ``sign (h(reference) - h(other))``.
    """

    groups: NDArray[np.int64]
    references: NDArray[np.int64]
    others: NDArray[np.int64]
    signs: NDArray[np.float64]
    goals: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    gram: NDArray[np.float64]


@kernel
def empty_set(room: int) -> WorkingSet:
    """Return an empty set with room for ``room`` constraints."""
    return WorkingSet(
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros((room, room)),
    )


@kernel
def with_room(working: WorkingSet, size: int, more: int) -> WorkingSet:
    """Return the first ``size`` constraints with room for ``more``.

    A set that has this room is returned as it is.
    """
    room = len(working.others)
    if size + more <= room:
        return working
    # Twice the room, so that copies cost no more than the constraints themselves.
    wider = empty_set(max(2 * room, size + more))
    wider.groups[:size] = working.groups[:size]
    wider.references[:size] = working.references[:size]
    wider.others[:size] = working.others[:size]
    wider.signs[:size] = working.signs[:size]
    wider.goals[:size] = working.goals[:size]
    wider.multipliers[:size] = working.multipliers[:size]
    wider.gram[:size, :size] = working.gram[:size, :size]
    return wider


@kernel
def join(
    features: MaskedRows,
    working: WorkingSet,
    size: int,
    group: int,
    reference: int,
    other: int,
    sign: float,
    goal: float,
) -> None:
    """Add a constraint with multiplier 0 after the first ``size`` ones.

    Args:
        group, reference, other, sign, goal: of the constraint; see ``WorkingSet``.
    """
    working.groups[size], working.signs[size] = group, sign
    working.references[size], working.others[size] = reference, other
    working.goals[size], working.multipliers[size] = goal, 0.0
    along = difference(features, reference, other)
    for i in range(size + 1):
        earlier = difference(features, working.references[i], working.others[i])
        value = sign * working.signs[i] * difference_product(along, earlier)
        working.gram[i, size] = working.gram[size, i] = value


@kernel
def solve(
    features: MaskedRows,
    working: WorkingSet,
    size: int,
    caps: NDArray[np.float64],
    tolerance: float,
    exchanges: int,
    walk: Walk,
    weights: NDArray[np.float64],
    moved: NDArray[np.float64],
) -> None:
    """Find the multipliers of the first ``size`` constraints and update the weights.

    Args:
        working: the set; its multipliers are the starting point and an output.
        caps, tolerance, exchanges: see ``qp.solve_groups``.
        weights, moved: float64 ``[n_columns]``; their values before any step of this set.
    """
    solve_groups(
        working.gram,
        working.goals[:size],
        working.groups[:size],
        caps,
        tolerance,
        exchanges,
        working.multipliers[:size],
    )
    # From the weights before the set, not by differences: a constraint that leaves it leaves no
    # trace.
    walk.weights[:], walk.total_step[:] = weights, moved
    for i in range(size):
        if working.multipliers[i] > 0.0:
            along = difference(features, working.references[i], working.others[i])
            add_difference(walk.weights, along, working.signs[i] * working.multipliers[i])
            add_difference(walk.total_step, along, working.signs[i] * working.multipliers[i])
