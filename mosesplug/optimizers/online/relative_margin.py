"""Relative margin (Eidelman et al. 2013): large margin, small spread of scores.

The surrogate reference ``y+`` of a sentence has a high model score and a high metric. ``d(y)`` is
its model score minus that of ``y``. The new weights are those nearest to the old ones that satisfy,
up to slacks with the weights ``C`` and ``D`` (equation 4),

    d(y-) >= cost(y-) - cost(y+)    and    -B <= d(y) <= B

Hypotheses far below the reference are pulled up, those far above it down. The survey (Neubig &
Watanabe 2016, eq. 32) bounds the hypothesis of the largest cost only (``bounded=worst``).
``rm-pa`` takes one step for the most violated constraint of each kind; ``rm-cp`` collects violated
constraints in working sets and solves the dual of equation 5 on them (Algorithm 1).

Algorithm 2 updates the upper bound with ``max(0, B - d)`` and without ``D``, which would move
weights if the bound holds. Here it is ``max(0, d - B)``, and the multipliers of a sentence's bounds
sum to at most ``D``, because they share their slack in equation 4. The sentences of a batch are
processed in turn, each at the weights after the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import inlined_kernel, kernel
from mosesplug.optimizers.lists.rows import (
    CompactArrays,
    add_difference,
    compact_rows,
    difference,
    drop_empty_sentences,
    given_oracles,
    row_scores,
    squared_norm,
)
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.learner import (
    Change,
    Learner,
    LearnerState,
    Step,
    additive_learner,
)
from mosesplug.optimizers.online.options import GraphCostOptions
from mosesplug.optimizers.online.working_sets import Walk, empty_set, join, solve, with_room
from mosesplug.optimizers.options import option
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "RelativeMarginOptions", "RmCpOptions", "rm_cp_learner", "rm_pa_learner"]

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
        by_error: whether only the hypothesis of the least gain is bounded, or all are.
        oracles: int64 ``[n_sentences]``; the row of the reference where it is given, or -1.
    """

    offsets: NDArray[np.int64]
    gains: NDArray[np.float64]
    slack: float
    bound_slack: float
    bound: float
    tolerance: float
    iterations: int
    by_error: bool
    oracles: NDArray[np.int64]


@kernel
def step_once(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk
) -> tuple[NDArray[np.float64], int]:
    """Take a step for the most violated constraint of each kind (Algorithm 2).

    ``walk`` is updated.

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
        if task.by_error:
            worst = best = start + int(np.argmin(task.gains[start:end]))
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
    place = task.oracles[sentence] - start
    if task.oracles[sentence] < 0:
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
    """Step towards ``sign d(other) >= least`` by at most ``most``; return the size."""
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
    add_difference(walk.total_step, along, sign * size)
    return float(size)


@kernel
def solve_cutting_planes(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk
) -> tuple[NDArray[np.float64], int]:
    """Collect constraints until no violation exceeds the slack (Algorithm 1).

    Updates ``walk``; returns the same as ``step_once``.
    """
    spreads, violations = np.zeros(len(walk.losses)), 0
    for sentence in range(len(walk.losses)):
        reference, spreads[sentence] = _begin(features, task, walk, sentence)
        violations += _cut(features, task, walk, sentence, reference)
    return spreads, violations


@inlined_kernel
def _cut(
    features: CompactArrays, task: RelativeMarginTask, walk: Walk, sentence: int, reference: int
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
    caps = np.array([task.slack, task.bound_slack])
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
        scores = row_scores(features, walk.weights, start, end)
        leads = scores[reference - start] - scores
    return int(np.count_nonzero(working.multipliers[:size]))


@dataclass(frozen=True)
class RelativeMarginOptions(GraphCostOptions):
    """Settings of passive-aggressive relative margin."""

    averaging: Literal["last", "all", "best"] = option(
        "all",
        help="result: last weights, mean over all updates, or best epoch",
        details="The mean is over the weights after every update.",
        source="kbest_cut_mira of cdec, the program of Eidelman et al. 2013",
    )
    slack: float = option(
        0.0,
        help="C: weight of losses, and largest step for a margin",
        details="0 stands for 0.01 on stored lists, and for 0.001 while decoding.",
        source="0.01: Eidelman et al. 2013, section 4.1; 0.001: found on halves of a tuning set",
        minimum=0.0,
    )
    margin_bound: float = option(
        1.0,
        help="B: largest difference in model score between the reference and others",
        source="Eidelman et al. 2013, section 4.1",
        minimum=0.0,
    )
    bounded: Literal["all", "worst"] = option(
        "all",
        help="hypotheses that the bound holds for: all, or the worst",
        details="The worst hypothesis of a sentence is that of the largest cost.",
        source="all: Eidelman et al. 2013, eq. 4; worst: Neubig & Watanabe 2016, eq. 32",
    )
    bound_slack: float = option(
        0.0,
        help="D: largest step for a bound",
        details="0 stands for the default of slack, or with sparse features for ten times that.",
        source="Eidelman et al. 2013, section 4.1",
        minimum=0.0,
    )


@dataclass(frozen=True)
class RmCpOptions(RelativeMarginOptions):
    """Settings of relative margin with a cutting plane."""

    solver_iterations: int = option(
        100,
        help="maximum exchanges per new constraint, and constraints per sentence",
        source="Eidelman et al. 2013, section 4.1, MaxIter",
        minimum=1,
    )
    solver_tolerance: float = option(
        0.001,
        help="epsilon: smaller violations are ignored",
        source="Eidelman et al. 2013, Algorithm 1, without a value",
        minimum=0.0,
    )


def rm_pa_learner(options: RelativeMarginOptions) -> Learner:
    """Return relative margin with passive-aggressive steps (Algorithm 2)."""
    return _learner(options, solver_tolerance=0.0, solver_iterations=0)


def rm_cp_learner(options: RmCpOptions) -> Learner:
    """Return relative margin with working sets (Algorithm 1, equation 5)."""
    return _learner(options, options.solver_tolerance, options.solver_iterations)


def _learner(
    options: RelativeMarginOptions, solver_tolerance: float, solver_iterations: int
) -> Learner:
    """Return the learner for the given solver.

    Its reports have ``spread``, the mean difference in model score between the reference and the
    lowest hypothesis before the update, and ``squared_spread``, the mean of the squares.

    Args:
        options: the options of both learners.
        solver_tolerance, solver_iterations: see ``RmCpOptions``; 0 iterations for ``rm-pa``.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        rows = compact_rows(batch, np.arange(batch.n_hyps))
        default = step.choose(stored=0.01, decoding=0.001)  # D, too, without sparse features
        task = RelativeMarginTask(
            drop_empty_sentences(batch.offsets),
            gains,
            options.slack or default,
            options.bound_slack or default * _bound_factor(batch),
            options.margin_bound,
            solver_tolerance,
            solver_iterations,
            options.bounded == "worst",
            given_oracles(batch),
        )
        n_sentences = len(task.offsets) - 1
        walk = Walk.start(state.vectors["weights"][rows.columns], batch.n_hyps, n_sentences)
        features = rows.arrays(step.active)
        solve = solve_cutting_planes if solver_iterations else step_once
        spreads, violations = solve(features, task, walk)
        touched = np.flatnonzero(walk.total_step)
        divisor = max(1, n_sentences)
        return Change(
            columns=rows.columns[touched],
            values=walk.total_step[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, walk.scores, gains)),
            report={
                "loss": float(walk.losses.sum()) / divisor,
                "violations": float(violations),
                "spread": float(spreads.sum()) / divisor,
                "squared_spread": float(spreads @ spreads) / divisor,
            },
        )

    return additive_learner(change, costs.memory)


def _bound_factor(batch: Batch) -> float:
    """Return ``D / C`` for few or many features (Eidelman et al. 2013, sec. 4.1)."""
    return 10.0 if len(batch.space) > batch.space.n_dense else 1.0


ALGORITHMS = (
    online_algorithm(
        name="rm-pa",
        summary="Keep every hypothesis near the hope (relative margin).",
        source="Eidelman et al. 2013",
        options=RelativeMarginOptions,
        learner=rm_pa_learner,
        graphs="derivations",
    ),
    online_algorithm(
        name="rm-cp",
        summary="Solve `rm-pa` over working sets of constraints.",
        source="Eidelman et al. 2013",
        options=RmCpOptions,
        learner=rm_cp_learner,
        graphs="derivations",
    ),
)
