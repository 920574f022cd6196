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

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.costs import CostOptions, Remembered
from mosesplug.optimizers.online.differences import Difference, difference, of_sentence, spans
from mosesplug.optimizers.online.learner import Change, Learner, State, Step
from mosesplug.optimizers.online.rows import Rows, compact
from mosesplug.optimizers.online.working_sets import (
    MARGIN,
    Constraint,
    WorkingSets,
    most_violated,
)
from mosesplug.tuning_set import Batch

__all__ = ["RelativeMarginOptions", "RmCpOptions", "rm_cp_learner", "rm_pa_learner"]


@dataclass(frozen=True)
class RelativeMarginOptions(CostOptions):
    """Settings of relative margin, passive-aggressive."""

    averaging: Literal["last", "all", "best"] = field(
        default="all",
        metadata={
            "help": "which weights are the result: the last ones, the average of those after every "
            "update, or those of the epoch that scored best",
            "source": "kbest_cut_mira of cdec, the program of Eidelman et al. 2013",
        },
    )
    remember: Remembered = field(
        default="one-best",
        metadata={
            "help": "whose statistics pseudo-corpus and background keep",
            "source": "Eidelman et al. 2013, section 4.1",
        },
    )
    slack: float = field(
        default=0.01,
        metadata={
            "help": "C: how much losses count; the largest step for a margin",
            "source": "Eidelman et al. 2013, section 4.1",
            "minimum": 0.0,
        },
    )
    margin_bound: float = field(
        default=1.0,
        metadata={
            "help": "B: how far apart in model score the reference and others should be at most",
            "source": "Eidelman et al. 2013, section 4.1",
            "minimum": 0.0,
        },
    )
    bound_slack: float = field(
        default=0.0,
        metadata={
            "help": "D: the largest step for a bound; 0: 0.01, or 0.1 where there are sparse "
            "features",
            "source": "Eidelman et al. 2013, section 4.1",
            "minimum": 0.0,
        },
    )


@dataclass(frozen=True)
class RmCpOptions(RelativeMarginOptions):
    """Settings of relative margin with a cutting plane."""

    solver_iterations: int = field(
        default=100,
        metadata={
            "help": "exchanges of two multipliers after each new constraint, and constraints of a "
            "sentence, at most",
            "source": "Eidelman et al. 2013, section 4.1, MaxIter",
            "minimum": 1,
        },
    )
    solver_tolerance: float = field(
        default=0.001,
        metadata={
            "help": "epsilon: constraints that are violated by less are let be",
            "source": "Eidelman et al. 2013, Algorithm 1, which has no value",
            "minimum": 0.0,
        },
    )


@dataclass(frozen=True)
class _Sentence:
    """A sentence of a batch, and weights on their way, which are written in place.

    Attributes:
        rows: its hypotheses.
        gains: float64 ``[n_rows]``, what each is worth.
        active: bool ``[n_columns]``.
        weights: float64 ``[n_columns]``, now.
        moved: float64 ``[n_columns]``, the steps of the batch so far.
        bound_slack: ``D``.
    """

    rows: Rows
    gains: NDArray[np.float64]
    active: NDArray[np.bool_]
    weights: NDArray[np.float64]
    moved: NDArray[np.float64]
    bound_slack: float

    def lead(self, reference: int, other: int) -> float:
        """What the reference scores more than another hypothesis, now."""
        return self._score(reference) - self._score(other)

    def _score(self, row: int) -> float:
        entries = slice(int(self.rows.indptr[row]), int(self.rows.indptr[row + 1]))
        return float(self.rows.data[entries] @ self.weights[self.rows.indices[entries]])

    def go(self, along: Difference, size: float) -> None:
        """Move the weights by ``size`` times a difference."""
        self.weights[along.places] += size * along.values
        self.moved[along.places] += size * along.values


_Update = Callable[[_Sentence, int, NDArray[np.float64]], int]
"""``(sentence, reference, scores) -> number of constraints that asked for an update``."""


def rm_pa_learner(options: RelativeMarginOptions) -> Learner:
    """Relative margin by passive-aggressive steps: Algorithm 2, a constraint of each kind."""

    def update(sentence: _Sentence, reference: int, scores: NDArray[np.float64]) -> int:
        gains, bound = sentence.gains, options.margin_bound
        worst, rival = int(np.argmin(scores)), int(np.argmax(scores - gains))
        cost = float(gains[reference] - gains[rival])
        wide = _step(sentence, reference, rival, 1.0, cost, options.slack)
        down = _step(sentence, reference, worst, -1.0, -bound, sentence.bound_slack)
        left = sentence.bound_slack - down
        up = _step(sentence, reference, int(np.argmax(scores)), 1.0, -bound, left)
        return sum(size > 0.0 for size in (wide, down, up))

    return _learner(options, update)


def _step(
    sentence: _Sentence, reference: int, other: int, sign: float, least: float, most: float
) -> float:
    """Make ``sign d(other)`` at least ``least``, as far as a step of ``most`` can: its size."""
    along = difference(sentence.rows, reference, other, sentence.active)
    missing = least - sign * sentence.lead(reference, other)
    if not (missing > 0.0 and along.square > 0.0):
        return 0.0
    size = min(most, missing / along.square)
    sentence.go(along, sign * size)
    return size


def rm_cp_learner(options: RmCpOptions) -> Learner:
    """Relative margin over working sets: Algorithm 1, with the dual of equation 5 on them."""

    def update(sentence: _Sentence, reference: int, scores: NDArray[np.float64]) -> int:
        costs = sentence.gains[reference] - sentence.gains
        first = scores[reference] - scores
        leads, sets = first, WorkingSets((options.slack, sentence.bound_slack))
        for _ in range(options.solver_iterations):
            excess, kind, other, sign = most_violated(sets, leads, costs, options.margin_bound)
            if not excess > options.solver_tolerance:
                break
            least = float(costs[other]) if kind == MARGIN else -options.margin_bound
            along = difference(sentence.rows, reference, other, sentence.active)
            sets = sets.with_constraint(
                Constraint(kind, sign, along, least - sign * float(first[other]))
            )
            before = sets.multipliers
            sets = sets.solved(options.solver_iterations, 0.1 * options.solver_tolerance)
            steps = (sets.multipliers - before).tolist()
            for constraint, size in zip(sets.constraints, steps, strict=True):
                sentence.go(constraint.along, constraint.sign * size)
            scores = sentence.rows.scores(sentence.weights)
            leads = scores[reference] - scores
        return int(np.count_nonzero(sets.multipliers))

    return _learner(options, update)


def _learner(options: RelativeMarginOptions, update: _Update) -> Learner:
    """A learner that does something about the constraints of each sentence.

    Its reports have ``spread``, the lead of the reference over the worst hypothesis before the
    update, a mean over sentences, and ``squared_spread``, the mean of the squares.
    """
    costs = options.costs()

    def change(state: State, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        rows = compact(batch, np.arange(batch.n_hyps))
        active = step.active[rows.columns]
        weights = state.vectors["weights"][rows.columns]
        moved, scores = np.zeros(len(weights)), np.zeros(batch.n_hyps)
        losses, spreads, violations = [], [], 0
        for start, end in spans(batch.offsets):
            own = slice(start, end)
            sentence = _Sentence(
                of_sentence(rows, start, end),
                gains[own],
                active,
                weights,
                moved,
                options.bound_slack or _default_bound_slack(batch),
            )
            now = scores[own] = sentence.rows.scores(weights)
            reference = int(np.argmax(now + gains[own]))
            losses.append(float((now - gains[own]).max() - (now - gains[own])[reference]))
            spreads.append(float(now[reference] - now.min()))
            violations += update(sentence, reference, now)
        touched = np.flatnonzero(moved)
        return Change(
            columns=rows.columns[touched],
            values=moved[touched],
            memory=costs.remembered(batch, memory, costs.chosen(batch, scores, gains)),
            report={
                "loss": float(np.mean(losses or [0.0])),
                "violations": float(violations),
                "spread": float(np.mean(spreads or [0.0])),
                "squared_spread": float(np.mean(np.square(spreads or [0.0]))),
            },
        )

    return Learner(
        fills={"weights": 0.0},
        init=lambda initial: State({"weights": np.array(initial, dtype=np.float64)}),
        change=change,
        apply=_apply,
        weights=lambda state: state.vectors["weights"].copy(),
    )


def _default_bound_slack(batch: Batch) -> float:
    """``D`` of Eidelman et al. (2013), section 4.1, for small and for large sets of features."""
    return 0.1 if len(batch.space) > batch.space.n_dense else 0.01


def _apply(state: State, change: Change, step: Step) -> State:
    weights = state.vectors["weights"]
    with np.errstate(over="ignore", invalid="ignore"):
        moved = weights[change.columns] + change.values
    if not np.isfinite(moved).all():
        raise OptimizerError("the weights overflow; give smaller features, or a lower slack")
    weights[change.columns] = moved
    memory = {**state.memory, **change.memory}
    return replace(state, memory=memory, updates=state.updates + 1)
