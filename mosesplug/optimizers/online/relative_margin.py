"""Relative margin (Eidelman et al. 2013): a large margin, and a small spread of the scores.

Of each sentence, the surrogate reference ``y+`` is high in score and good. With ``d(y)`` its lead
in model score over ``y``, the new weights are those nearest to the old ones for which, as far as
``C`` and ``D`` make it worth while (equation 4),

    d(y-) >= cost(y-) - cost(y+)    and    -B <= d(y) <= B

Hypotheses far below the reference are pulled up, those far above it down. ``rm-pa`` takes one step
for the most violated constraint of each kind; ``rm-cp`` gathers violated constraints in working
sets and solves the dual of equation 5 on them (Algorithm 1).

The update of the upper bound in Algorithm 2 has ``max(0, B - d)``, and no ``D``: that would move
weights where the bound holds. Here it is ``max(0, d - B)``, and all of a sentence's multipliers of
bounds together are at most ``D``, as equation 4 has it, where they share their slack. Sentences of
a batch come one after another, each at the weights that the last one left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.costs import Remembered
from mosesplug.optimizers.lists.rows import compact_rows, filled_offsets
from mosesplug.optimizers.online.costs import CostOptions
from mosesplug.optimizers.online.epochs import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.relative_margin_steps import (
    RelativeMarginTask,
    cutting_planes,
    passive_aggressive,
)
from mosesplug.optimizers.online.working_sets import Walk
from mosesplug.optimizers.options import option
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "RelativeMarginOptions", "RmCpOptions", "rm_cp_learner", "rm_pa_learner"]


@dataclass(frozen=True)
class RelativeMarginOptions(CostOptions):
    """Settings of relative margin, passive-aggressive."""

    averaging: Literal["last", "all", "best"] = option(
        "all",
        help="which weights are the result: the last ones, the average of those after every "
        "update, or those of the epoch that scored best",
        source="kbest_cut_mira of cdec, the program of Eidelman et al. 2013",
    )
    remember: Remembered = option(
        "one-best",
        help="hypothesis whose statistics pseudo-corpus and background keep",
        source="Eidelman et al. 2013, section 4.1",
        only_with="cost=pseudo-corpus|background",
    )
    slack: float = option(
        0.01,
        help="C: weight of losses; the largest step for a margin",
        source="Eidelman et al. 2013, section 4.1",
        minimum=0.0,
    )
    margin_bound: float = option(
        1.0,
        help="B: largest difference in model score between the reference and others",
        source="Eidelman et al. 2013, section 4.1",
        minimum=0.0,
    )
    bound_slack: float = option(
        0.0,
        help="D: the largest step for a bound; 0: 0.01, or 0.1 where there are sparse features",
        source="Eidelman et al. 2013, section 4.1",
        minimum=0.0,
    )


@dataclass(frozen=True)
class RmCpOptions(RelativeMarginOptions):
    """Settings of relative margin with a cutting plane."""

    solver_iterations: int = option(
        100,
        help="exchanges of two multipliers after each new constraint, and constraints of a "
        "sentence, at most",
        source="Eidelman et al. 2013, section 4.1, MaxIter",
        minimum=1,
    )
    solver_tolerance: float = option(
        0.001,
        help="epsilon: smaller violations are ignored",
        source="Eidelman et al. 2013, Algorithm 1, which has no value",
        minimum=0.0,
    )


def rm_pa_learner(options: RelativeMarginOptions) -> Learner:
    """Relative margin by passive-aggressive steps: Algorithm 2, a constraint of each kind."""
    return _learner(options, solver_tolerance=0.0, solver_iterations=0)


def rm_cp_learner(options: RmCpOptions) -> Learner:
    """Relative margin over working sets: Algorithm 1, with the dual of equation 5 on them."""
    return _learner(options, options.solver_tolerance, options.solver_iterations)


def _learner(
    options: RelativeMarginOptions, solver_tolerance: float, solver_iterations: int
) -> Learner:
    """Return the learner for the given solver.

    Its reports have ``spread``, the lead of the reference over the worst hypothesis before the
    update, a mean over sentences, and ``squared_spread``, the mean of the squares.

    Args:
        options: of both learners.
        solver_tolerance, solver_iterations: of a cutting plane; 0 iterations: no cutting plane.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        rows = compact_rows(batch, np.arange(batch.n_hyps))
        task = RelativeMarginTask(
            filled_offsets(batch.offsets),
            gains,
            options.slack,
            options.bound_slack or _default_bound_slack(batch),
            options.margin_bound,
            solver_tolerance,
            solver_iterations,
        )
        n_columns, n_sentences = len(rows.columns), len(task.offsets) - 1
        walk = Walk(
            state.vectors["weights"][rows.columns],
            np.zeros(n_columns),
            np.zeros(batch.n_hyps),
            np.zeros(n_sentences),
        )
        features = rows.arrays(step.active)
        found = cutting_planes if solver_iterations else passive_aggressive
        spreads, violations = found(features, task, walk)
        touched = np.flatnonzero(walk.moved)
        divisor = max(1, n_sentences)
        return Change(
            columns=rows.columns[touched],
            values=walk.moved[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, walk.scores, gains)),
            report={
                "loss": float(walk.losses.sum()) / divisor,
                "violations": float(violations),
                "spread": float(spreads.sum()) / divisor,
                "squared_spread": float(spreads @ spreads) / divisor,
            },
        )

    return Learner(
        fills={"weights": 0.0},
        init=lambda initial: LearnerState({"weights": np.array(initial, dtype=np.float64)}),
        change=change,
        apply=_apply,
        weights=lambda state: state.vectors["weights"].copy(),
    )


def _default_bound_slack(batch: Batch) -> float:
    """``D`` of Eidelman et al. (2013), section 4.1, for small and for large sets of features."""
    return 0.1 if len(batch.space) > batch.space.n_dense else 0.01


def _apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
    weights = state.vectors["weights"]
    with np.errstate(over="ignore", invalid="ignore"):
        moved = weights[change.columns] + change.values
    if not np.isfinite(moved).all():
        raise OptimizerError(
            "the weights overflow. Choose a lower slack or smaller feature values."
        )
    weights[change.columns] = moved
    memory = {**state.memory, **change.memory}
    return replace(state, memory=memory, updates=state.updates + 1)


ALGORITHMS = (
    online_algorithm(
        name="rm-pa",
        summary="Keep every hypothesis near the hope (relative margin).",
        source="Eidelman et al. 2013",
        options=RelativeMarginOptions,
        learner=rm_pa_learner,
    ),
    online_algorithm(
        name="rm-cp",
        summary="Solve `rm-pa` over working sets of constraints.",
        source="Eidelman et al. 2013",
        options=RmCpOptions,
        learner=rm_cp_learner,
    ),
)
