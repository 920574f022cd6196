"""Learners of margins: the perceptron, MIRA, relative margins.

In each sentence, a surrogate reference (the hope or an oracle) should outscore other hypotheses by
at least the difference of their gains (Chiang 2012; survey, eq. 35-36 and section 6.3). With ``x``
the difference of their features and ``D`` that of their gains, the closed forms are

- perceptron (Collins 2002; survey, eq. 59): ``w <- w + eta / K sum of (h(oracle) - h(1-best))``
  over the sentences whose 1-best is not an oracle, each times its weight;
- mira (footnote 8 of the survey: PA-I of Crammer et al. 2006): the smallest step to the margins,

      min  1/2 |w - w_t|^2 + C sum over sentences of xi,    w . x >= D - xi for each constraint

  With one constraint, the multiplier of ``x`` is ``min(C, (D - w_t . x) / |x|^2)`` (eq. 61-62).
  With several, a cutting plane method (Algorithm 1 of Eidelman et al. 2013) adds the most violated
  one to a working set and solves the quadratic program of the set again, until no violation exceeds
  the slack of its sentence. Equation 60 has ``lambda / K`` for a batch of ``K`` sentences; here it
  is ``C``, so that the step of one sentence does not depend on the size of the batch; the ``C`` of
  a sentence is multiplied by its weight;
- rm-pa, rm-cp (Eidelman et al. 2013): also a small spread of scores. With ``d(y)`` the model score
  of the reference minus that of ``y``, equation 4 asks for

      d(y-) >= cost(y-) - cost(y+)    and    -B <= d(y) <= B

  with slacks of the weights ``C`` and ``D``: hypotheses far below the reference are pulled up,
  those far above it down. The survey (eq. 32) bounds the hypothesis of the largest cost only.
  rm-pa takes one step for the most violated constraint of each kind; rm-cp solves the dual of
  equation 5 on working sets (Algorithm 1). Algorithm 2 updates the upper bound with ``max(0, B -
  d)`` and without ``D``, which would move weights if the bound holds. Here it is ``max(0, d - B)``,
  and the multipliers of a sentence's bounds sum to at most ``D``, because they share their slack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from mosesplug.arrays import Choice, Scores
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.rows import (
    MaskedRows,
    compact_rows,
    drop_empty_sentences,
    filled_weights,
    given_oracles,
)
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.learner import (
    Change,
    Learner,
    LearnerState,
    Step,
    additive_learner,
)
from mosesplug.optimizers.online.margin_kernels import (
    MarginTask,
    Walk,
    solve_margins,
    solve_relative_margins,
    step_to_margins,
    step_to_relative_margins,
)
from mosesplug.optimizers.online.options import (
    Averaging,
    CostOptions,
    GraphCostOptions,
    OnlineOptions,
)
from mosesplug.optimizers.oracles import sentence_oracles
from mosesplug.optimizers.spread import find_spreads, report_spreads
from mosesplug.options import Opt, same_as
from mosesplug.tuning_set import Batch

MEAN_DETAILS = "The mean is over the weights after every update."


@dataclass(frozen=True)
class PerceptronOptions(CostOptions):
    """Settings of the perceptron."""

    averaging: Annotated[Averaging, same_as(OnlineOptions, "averaging", details=MEAN_DETAILS)] = (
        "all"
    )
    rate: Annotated[
        float,
        Opt(
            "learning rate, eta",
            details="0 stands for 0.01 on stored lists, and for 0.001 while decoding. The survey "
            "has 1, for weights that start at 0.",
            source="Neubig & Watanabe 2016, section 6.2; values: found on recorded lists, and on "
            "halves of a tuning set",
            minimum=0.0,
        ),
    ] = 0.0


@dataclass(frozen=True)
class MiraOptions(GraphCostOptions):
    """Settings of MIRA."""

    slack: Annotated[
        float,
        Opt(
            "C: weight of margin violations",
            details="It limits the sum of a sentence's multipliers. 0 stands for 0.01 while "
            "decoding, and for 0.0001 on stored lists, which each epoch visits again.",
            source="Cherry & Foster 2012, as kbmira --cparam; on stored lists: found on halves of "
            "recorded lists",
            minimum=0.0,
        ),
    ] = 0.0
    constraints: Annotated[
        Literal["one", "working-set", "cutting-plane"],
        Opt(
            "constraints of a step: worst hypothesis, sentence, or whole batch",
            details="one: the worst hypothesis of each sentence, in closed form. working-set: all "
            "hypotheses of one sentence at a time. cutting-plane: all hypotheses of the batch at "
            "once.",
            source="Neubig & Watanabe 2016, eq. 60-62; Eidelman et al. 2013, Algorithm 1",
        ),
    ] = "one"
    choice: Annotated[
        Literal["hope-fear", "best-oracle"],
        Opt(
            "hypotheses to separate: hope and fear, or oracle and 1-best",
            details="With several constraints: hope or oracle, and all others.",
            source="Neubig & Watanabe 2016, eq. 28-29 and 35-36",
        ),
    ] = "hope-fear"
    solver_tolerance: Annotated[
        float,
        Opt(
            "epsilon: smaller violations are ignored",
            source="mosesplug's: a tenth of a point of BLEU of a sentence",
            only_with="constraints=working-set|cutting-plane",
            minimum=0.0,
        ),
    ] = 1e-3


_EIDELMAN: Mapping[str, object] = MappingProxyType(
    {
        "batch": 1,
        "averaging": "all",
        "cost": "background",
        "remember": "one-best",
        "background_decay": 0.95,
        "cost_unit": "source",
        "margin_bound": 1.0,
        "bounded": "all",
        "solver_iterations": 100,
    }
)
_EIDELMAN_SLACK = 0.01


@dataclass(frozen=True)
class RelativeMarginOptions(GraphCostOptions):
    """Settings of passive-aggressive relative margin."""

    variant: Annotated[
        Literal["mosesplug", "paper"],
        Opt(
            "defaults of the other settings: mosesplug's, or the paper's",
            details="paper: one sentence at a time, with costs in words of the source, in the "
            "context of earlier 1-best hypotheses; C and D are 0.01, with sparse features D is "
            "0.1. Settings that are given keep their values.",
            source="Eidelman et al. 2013, section 4.1; kbest_cut_mira of cdec, its program",
            presets={"paper": _EIDELMAN},
        ),
    ] = "mosesplug"
    averaging: Annotated[
        Averaging,
        same_as(
            OnlineOptions,
            "averaging",
            details=MEAN_DETAILS,
            source="kbest_cut_mira of cdec, the program of Eidelman et al. 2013",
        ),
    ] = "all"
    slack: Annotated[
        float,
        Opt(
            "C: weight of losses, and largest step for a margin",
            details="0 stands for 0.01 on stored lists, and for 0.001 while decoding; with "
            "variant=paper for 0.01.",
            source="0.01: Eidelman et al. 2013, section 4.1; 0.001: found on halves of a tuning "
            "set",
            minimum=0.0,
        ),
    ] = 0.0
    margin_bound: Annotated[
        float,
        Opt(
            "B: largest difference in model score between the reference and others",
            source="Eidelman et al. 2013, section 4.1",
            minimum=0.0,
        ),
    ] = 1.0
    bounded: Annotated[
        Literal["all", "worst"],
        Opt(
            "hypotheses that the bound holds for: all, or the worst",
            details="The worst hypothesis of a sentence is that of the largest cost.",
            source="all: Eidelman et al. 2013, eq. 5; worst: Neubig & Watanabe 2016, eq. 32",
        ),
    ] = "all"
    bound_slack: Annotated[
        float,
        Opt(
            "D: largest step for a bound",
            details="0 stands for the default of slack, or with sparse features for ten times "
            "that.",
            source="Eidelman et al. 2013, section 4.1",
            minimum=0.0,
        ),
    ] = 0.0


@dataclass(frozen=True)
class RmCpOptions(RelativeMarginOptions):
    """Settings of relative margin with a cutting plane."""

    solver_iterations: Annotated[
        int,
        Opt(
            "maximum exchanges per new constraint, and constraints per sentence",
            source="Eidelman et al. 2013, section 4.1, MaxIter",
            minimum=1,
        ),
    ] = 100
    solver_tolerance: Annotated[
        float,
        Opt(
            "epsilon: smaller violations are ignored",
            source="Eidelman et al. 2013, Algorithm 1, without a value",
            minimum=0.0,
        ),
    ] = 0.001


def perceptron_learner(options: PerceptronOptions) -> Learner:
    """Return the perceptron on mini-batches.

    Oracles are the hypotheses with the largest gain by the options' costs. Among several, the
    learner takes the one with the highest model score, which needs the smallest step.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        sizes = costs.sizes(batch, step.metric, step.source_lengths)
        gains = costs.gains(batch, step.metric, memory, step.rng, sizes)
        scores = batch.model_scores(state.vectors["weights"])
        best = first_of_largest(batch.offsets, scores)
        oracles = _pick_oracles(batch, gains, scores)
        wrong = scores[best] > scores[oracles]
        wrong |= gains[best] < gains[oracles]
        rows = compact_rows(batch, np.concatenate([oracles[wrong], best[wrong]]))
        violations = int(np.count_nonzero(wrong))
        signs = np.repeat([1.0, -1.0], violations) * np.tile(filled_weights(batch)[wrong], 2)
        rate = options.rate or step.choose(stored=0.01, decoding=0.001)
        sums = rows.combine(signs) * (rate / max(1, len(best)))
        touched = step.active[rows.columns] & (sums != 0.0)
        return Change(
            columns=rows.columns[touched],
            values=sums[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, scores, gains), sizes),
            report={
                "loss": float((scores[best] - scores[oracles]).sum()) / max(1, len(best)),
                "violations": float(violations),
                **report_spreads(find_spreads(batch.offsets, scores, oracles)),
            },
        )

    return additive_learner(change, costs.memory)


def _pick_oracles(batch: Batch, gains: Scores, scores: Scores) -> Choice:
    """Return the oracle of highest model score of each non-empty sentence."""
    values = np.full(batch.n_hyps, -np.inf)
    rows = sentence_oracles(batch.offsets, gains).rows
    values[rows] = scores[rows]
    return first_of_largest(batch.offsets, values)


Solve = Callable[[MaskedRows, MarginTask, Walk], int]
"""Changes a walk to satisfy margins and returns the number of violated constraints."""


def mira_learner(options: MiraOptions) -> Learner:
    """Return MIRA on mini-batches.

    Unless the solver is ``cutting-plane``, sentences are processed in turn, each at the weights
    after the previous sentence. The gains are computed once, at the start of the batch.
    """

    def settings(batch: Batch, step: Step) -> dict[str, Any]:
        slack = options.slack or step.choose(stored=0.0001, decoding=0.01)
        tolerance, hopes = options.solver_tolerance, options.choice == "hope-fear"
        return {"slack": slack, "tolerance": tolerance, "hopes": hopes}

    def solve(features: MaskedRows, task: MarginTask, walk: Walk) -> int:
        together = len(walk.losses) if options.constraints == "cutting-plane" else 1
        return solve_margins(features, task, walk, together)

    return _margin_learner(
        options, settings, step_to_margins if options.constraints == "one" else solve
    )


def rm_pa_learner(options: RelativeMarginOptions) -> Learner:
    """Return relative margin with passive-aggressive steps (Algorithm 2)."""
    return _margin_learner(options, _relative(options), step_to_relative_margins)


def rm_cp_learner(options: RmCpOptions) -> Learner:
    """Return relative margin with working sets (Algorithm 1, equation 5)."""
    settings = _relative(options, options.solver_tolerance, options.solver_iterations)
    return _margin_learner(options, settings, solve_relative_margins)


def _relative(
    options: RelativeMarginOptions, tolerance: float = 0.0, iterations: int = 0
) -> Callable[[Batch, Step], dict[str, Any]]:
    """Return a function that sets the margins and bounds of a batch."""

    def settings(batch: Batch, step: Step) -> dict[str, Any]:
        default = _EIDELMAN_SLACK
        if options.variant == "mosesplug":
            default = step.choose(stored=0.01, decoding=0.001)
        # D is larger with many features (Eidelman et al. 2013, section 4.1).
        factor = 10.0 if len(batch.space) > batch.space.n_dense else 1.0
        return {
            "slack": options.slack or default,
            "tolerance": tolerance,
            "bound_slack": options.bound_slack or default * factor,
            "bound": options.margin_bound,
            "by_error": options.bounded == "worst",
            "iterations": iterations,
        }

    return settings


def _margin_learner(
    options: CostOptions,
    settings: Callable[[Batch, Step], dict[str, Any]],
    solve: Solve,
) -> Learner:
    """Return the chain of a closed form, to whose weights steps are added.

    Args:
        settings: returns what a batch's ``MarginTask`` has beside hypotheses.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = {**costs.memory(step.metric), **state.memory}
        sizes = costs.sizes(batch, step.metric, step.source_lengths)
        gains = costs.gains(batch, step.metric, memory, step.rng, sizes)
        rows = compact_rows(batch)
        offsets = drop_empty_sentences(batch.offsets)
        task = MarginTask(
            offsets, gains, given_oracles(batch), filled_weights(batch), **settings(batch, step)
        )
        n_sentences = len(offsets) - 1
        walk = Walk.start(state.vectors["weights"][rows.columns], batch.n_hyps, n_sentences)
        violations = solve(rows.masked(step.active), task, walk)
        touched = np.flatnonzero(walk.total_step)
        divisor = max(1, n_sentences)
        report = {"loss": float(walk.losses.sum()) / divisor, "violations": float(violations)}
        return Change(
            columns=rows.columns[touched],
            values=walk.total_step[touched],
            memory=costs.update_memory(
                batch, memory, costs.choose(batch, walk.scores, gains), sizes
            ),
            report=report | report_spreads(walk.spreads),
        )

    return additive_learner(change, costs.memory)


ALGORITHMS = (
    online_algorithm(
        name="perceptron",
        summary="Move towards the oracle, away from the 1-best; averaged.",
        source="Collins 2002",
        options=PerceptronOptions,
        learner=perceptron_learner,
    ),
    online_algorithm(
        name="mira",
        summary="Take the smallest step to the margin.",
        source="Crammer et al. 2006",
        options=MiraOptions,
        learner=mira_learner,
        graphs=True,
    ),
    online_algorithm(
        name="rm-pa",
        summary="Keep every hypothesis near the hope (relative margin).",
        source="Eidelman et al. 2013",
        options=RelativeMarginOptions,
        learner=rm_pa_learner,
        graphs=True,
    ),
    online_algorithm(
        name="rm-cp",
        summary="Solve `rm-pa` over working sets of constraints.",
        source="Eidelman et al. 2013",
        options=RmCpOptions,
        learner=rm_cp_learner,
        graphs=True,
    ),
)
