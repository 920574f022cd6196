"""Margin-infused relaxed algorithm (MIRA): the smallest step to reach the margins.

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
from mosesplug.optimizers.solvers.qp import EXCHANGES
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "MiraOptions", "mira_learner"]


class MiraTask(NamedTuple):
    """A batch, for kernels.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``; row offsets of the sentences.
        gains: float64 ``[n_hyps]``.
        slack: ``C``.
        tolerance: see ``MiraOptions.solver_tolerance``.
        hopes: whether the surrogate reference is the hope instead of the oracle.
        oracles: int64 ``[n_sentences]``; the row of the surrogate reference where it is given, or
            -1.
    """

    offsets: NDArray[np.int64]
    gains: NDArray[np.float64]
    slack: float
    tolerance: float
    hopes: bool
    oracles: NDArray[np.int64]


@kernel
def _reference(task: MiraTask, scores: NDArray[np.float64], sentence: int) -> int:
    """Return the row of a sentence's hope, or its oracle with the highest model score.

    If the task gives an oracle, it is that one.

    Args:
        task: the batch, with gains and ``hopes``.
        scores: float64; model scores of the rows of this sentence.
        sentence: its place in the batch.
    """
    if task.oracles[sentence] >= 0:
        return int(task.oracles[sentence])
    start = task.offsets[sentence]
    best, best_score, best_gain = 0, -np.inf, -np.inf
    for place in range(len(scores)):
        gain = task.gains[start + place]
        if task.hopes:
            better = scores[place] + gain > best_score
        else:
            better = gain > best_gain or (gain == best_gain and scores[place] > best_score)
        if better:
            best, best_gain = place, gain
            best_score = scores[place] + gain if task.hopes else scores[place]
    return int(start + best)


@kernel
def solve_each_sentence(features: CompactArrays, task: MiraTask, walk: Walk) -> None:
    """Apply equations 61 and 62 to each sentence in turn; ``walk`` is the output."""
    for sentence in range(len(walk.losses)):
        start, end = task.offsets[sentence], task.offsets[sentence + 1]
        scores = row_scores(features, walk.weights, start, end)
        walk.scores[start:end] = scores
        reference = _reference(task, scores, sentence)
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
            add_difference(walk.total_step, along, size)


@kernel
def with_working_sets(features: CompactArrays, task: MiraTask, walk: Walk, together: int) -> None:
    """Use all hypotheses as constraints, ``together`` sentences per quadratic program.

    ``walk`` is the output.
    """
    for first in range(0, len(walk.losses), max(1, together)):
        last = min(first + together, len(walk.losses))
        references = np.empty(last - first, dtype=np.int64)
        for sentence in range(first, last):
            start, end = task.offsets[sentence], task.offsets[sentence + 1]
            scores = row_scores(features, walk.weights, start, end)
            walk.scores[start:end] = scores
            references[sentence - first] = _reference(task, scores, sentence)
        _cut(features, task, walk, first, references)


@inlined_kernel
def _cut(
    features: CompactArrays, task: MiraTask, walk: Walk, first: int, references: NDArray[np.int64]
) -> None:
    """Solve for several sentences, adding each one's worst constraint in each pass.

    Args:
        features: the features of the batch.
        task: the batch.
        walk: output.
        first: the first of these sentences.
        references: int64 ``[n]``; the row of each sentence that should outscore the others.
    """
    size, working = 0, empty_set(8 * len(references))
    caps, tolerance = np.full(len(references), task.slack), max(0.1 * task.tolerance, 1e-12)
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
    features: CompactArrays, task: MiraTask, walk: Walk, sentence: int, reference: int
) -> NDArray[np.float64]:
    """Return each hypothesis' violation of its margin, float64; negative if satisfied."""
    start, end = task.offsets[sentence], task.offsets[sentence + 1]
    scores = row_scores(features, walk.weights, start, end)
    missing = np.empty(end - start)
    for place in range(end - start):
        margin = task.gains[reference] - task.gains[start + place]
        missing[place] = margin - (scores[reference - start] - scores[place])
    return missing


@dataclass(frozen=True)
class MiraOptions(GraphCostOptions):
    """Settings of MIRA."""

    slack: float = option(
        0.0,
        help="C: weight of margin violations",
        details="It limits the sum of a sentence's multipliers. 0 stands for 0.01 while decoding, "
        "and for 0.0001 on stored lists, which each epoch visits again.",
        source="Cherry & Foster 2012, as kbmira --cparam; on stored lists: found on halves of "
        "recorded lists",
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
            options.slack or step.choose(stored=0.0001, decoding=0.01),
            options.solver_tolerance,
            options.choice == "hope-fear",
            given_oracles(batch),
        )
        n_sentences = len(task.offsets) - 1
        walk = Walk.start(state.vectors["weights"][rows.columns], batch.n_hyps, n_sentences)
        features = rows.arrays(step.active)
        if options.constraints == "one":
            solve_each_sentence(features, task, walk)
        else:
            together = n_sentences if options.constraints == "cutting-plane" else 1
            with_working_sets(features, task, walk, together)
        touched = np.flatnonzero(walk.total_step)
        return Change(
            columns=rows.columns[touched],
            values=walk.total_step[touched],
            memory=costs.update_memory(batch, memory, costs.choose(batch, walk.scores, gains)),
            report={
                "loss": float(walk.losses.sum()) / max(1, n_sentences),
                "violations": float(np.count_nonzero(walk.losses)),
            },
        )

    return additive_learner(change, costs.memory)


ALGORITHMS = (
    online_algorithm(
        name="mira",
        summary="Take the smallest step to the margin.",
        source="Crammer et al. 2006",
        options=MiraOptions,
        learner=mira_learner,
        graphs="derivations",
    ),
)
