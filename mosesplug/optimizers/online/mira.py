"""Margin-infused relaxed algorithm (MIRA): the smallest step that reaches the margins.

In each sentence, a surrogate reference (the hope or an oracle) should outscore other hypotheses by
at least the difference of their gains (Neubig & Watanabe 2016, section 6.3; footnote 8: this is
PA-I of Crammer et al. 2006). With ``x`` the difference of their features and ``D`` that of their
gains,

    min  1/2 |w - w_t|^2 + C sum over sentences of xi,    w . x >= D - xi for each constraint

With one constraint, the multiplier of ``x`` is ``min(C, (D - w_t . x) / |x|^2)`` (eq. 61-62). With
several constraints, a cutting plane method (Algorithm 1 of Eidelman et al. 2013) adds the most
violated one to a working set and solves the quadratic program of the set again, until no violation
exceeds the slack of its sentence. Equation 60 has ``lambda / K`` for a batch of ``K`` sentences;
here it is ``C``, so that the step of one sentence does not depend on the size of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mosesplug.optimizers.lists.rows import compact_rows, drop_empty_sentences
from mosesplug.optimizers.online.costs import CostOptions
from mosesplug.optimizers.online.epochs import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.mira_steps import MiraTask, solve_each_sentence, with_working_sets
from mosesplug.optimizers.online.working_sets import Walk
from mosesplug.optimizers.options import option
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "MiraOptions", "mira_learner"]


@dataclass(frozen=True)
class MiraOptions(CostOptions):
    """Settings of MIRA."""

    slack: float = option(
        0.01,
        help="C: weight of margin violations",
        details="It limits the sum of a sentence's multipliers.",
        source="Cherry & Foster 2012, as kbmira --cparam",
        minimum=0.0,
    )
    constraints: Literal["one", "working-set", "cutting-plane"] = option(
        "one",
        help="constraints of a step: worst hypothesis, sentence, or whole batch",
        details="one: the worst hypothesis of each sentence, in closed form. working-set: all "
        "hypotheses of one sentence at a time. cutting-plane: all hypotheses of the batch at once.",
        source="Neubig & Watanabe 2016, eq. 60-62; Eidelman et al. 2013, Algorithm 1",
    )
    choice: Literal["hope-fear", "best-oracle"] = option(
        "hope-fear",
        help="hypotheses to separate: hope and fear, or oracle and 1-best",
        details="With several constraints: hope or oracle, and all others.",
        source="Neubig & Watanabe 2016, eq. 28-29 and 35-36",
    )
    solver_tolerance: float = option(
        1e-3,
        help="epsilon: smaller violations are ignored",
        source="mosesplug's: a tenth of a point of BLEU of a sentence",
        only_with="constraints=working-set|cutting-plane",
        minimum=0.0,
    )


def mira_learner(options: MiraOptions) -> Learner:
    """Return MIRA on mini-batches.

    Unless the solver is ``cutting-plane``, sentences are processed in turn, each at the weights
    after the previous sentence. The gains are computed once, at the start of the batch.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        rows = compact_rows(batch, np.arange(batch.n_hyps))
        task = MiraTask(
            drop_empty_sentences(batch.offsets),
            gains,
            options.slack,
            options.solver_tolerance,
            options.choice == "hope-fear",
        )
        n_columns, n_sentences = len(rows.columns), len(task.offsets) - 1
        walk = Walk(
            state.vectors["weights"][rows.columns],
            np.zeros(n_columns),
            np.zeros(batch.n_hyps),
            np.zeros(n_sentences),
        )
        features = rows.arrays(step.active)
        if options.constraints == "one":
            solve_each_sentence(features, task, walk)
        else:
            together = n_sentences if options.constraints == "cutting-plane" else 1
            with_working_sets(features, task, walk, together)
        touched = np.flatnonzero(walk.moved)
        return Change(
            columns=rows.columns[touched],
            values=walk.moved[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, walk.scores, gains)),
            report={
                "loss": float(walk.losses.sum()) / max(1, n_sentences),
                "violations": float(np.count_nonzero(walk.losses)),
            },
        )

    return Learner(
        fills={"weights": 0.0},
        init=lambda weights: LearnerState({"weights": np.array(weights, dtype=np.float64)}),
        change=change,
        apply=_apply,
        weights=lambda state: state.vectors["weights"].copy(),
    )


def _apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
    state.vectors["weights"][change.columns] += change.values
    memory = {**state.memory, **change.memory}
    return replace(state, memory=memory, updates=state.updates + 1)


ALGORITHMS = (
    online_algorithm(
        name="mira",
        summary="Take the smallest step that reaches the margin.",
        source="Crammer et al. 2006",
        options=MiraOptions,
        learner=mira_learner,
    ),
)
