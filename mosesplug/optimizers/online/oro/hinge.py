"""Online rank learning with the hinge loss (Watanabe 2012): plain, and with optimized updates.

In each sentence of a batch every oracle should outscore every other hypothesis by 1 (equation 5).
Oracles are those of the batch's own corpus score, in which an order without a match counts as a
share of one, so that batches of one sentence teach something too (``few_sentences``). The plain
learner descends the sub-gradient of the pairs that miss that margin, each with the same weight
(equations 8 and 9). The optimized one first lets the weights shrink, and then finds out how much
each pair should count, by the quadratic program of equation 14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.lists.oracle_pairs import ActiveFeatures, OraclePairs, count_violations
from mosesplug.optimizers.lists.rows import CompactRows, compact_rows
from mosesplug.optimizers.online.ball import (
    FILLS,
    exponential_rate,
    full,
    present,
    scaled,
    shrinkage,
    stepped,
)
from mosesplug.optimizers.online.epochs import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.online.oro.dual import renormalised
from mosesplug.optimizers.online.oro.pair_dual import pairs_in_box, pairs_in_simplex
from mosesplug.optimizers.options import option
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles
from mosesplug.tuning_set import Batch

__all__ = [
    "ALGORITHMS",
    "BatchView",
    "DualOptions",
    "OOroOptions",
    "OroOptions",
    "change_of",
    "learner_of",
    "o_oro_learner",
    "oro_learner",
    "view_of",
]


@dataclass(frozen=True)
class OroOptions(OnlineOptions):
    """Settings of online rank learning."""

    rate: float = option(
        0.2,
        help="learning rate at the start, eta",
        source="Watanabe 2012, section 3.2",
        minimum=0.0,
    )
    rate_decay: float = option(
        0.85,
        help="factor of the learning rate an epoch, alpha",
        source="Watanabe 2012, section 3.2",
        minimum=0.0,
    )
    regularization: float = option(
        1e-5,
        help="strength of the L2 regulariser, lambda",
        source="Watanabe 2012, section 5",
        minimum=0.0,
    )
    zero_start: bool = option(
        False,
        help="start learning from zero weights",
        source="Watanabe 2012, Algorithm 2",
    )


@dataclass(frozen=True)
class DualOptions(OroOptions):
    """Settings of optimized updates, whatever the loss."""

    exact_dual: bool = option(
        False,
        help="solve for multipliers whose sum is at most the learning rate, in place of "
        "scaling down those that are each at most that",
        source="Watanabe 2012, eq. 14",
    )
    renormalise: bool = option(
        True,
        help="scale the multipliers down until their sum is at most the learning rate; "
        "false: the dual of eq. 12",
        source="Watanabe 2012, footnote 2",
        only_with="exact_dual=false",
    )
    dual_tolerance: float = option(
        0.1,
        help="spread of the gradient at which dual coordinate descent ends",
        source="Hsieh et al. 2008; LIBLINEAR's -e",
        minimum=0.0,
    )
    dual_sweeps: int = option(
        30,
        help="maximum number of sweeps of dual coordinate descent",
        source="measured: with 30, steps are within some 10 % of those at convergence",
        minimum=1,
    )


@dataclass(frozen=True)
class OOroOptions(DualOptions):
    """Settings of optimized updates for the hinge loss."""

    all_pairs: bool = option(
        True,
        help="the multipliers are those of all pairs; false: of those that miss the margin "
        "before the update, which takes less time",
        source="Watanabe 2012, eq. 12; false: the author's program, cicada",
    )


@dataclass(frozen=True)
class BatchView:
    """A batch as rank learners see it.

    Attributes:
        rows: all its hypotheses, on the features that they have.
        oracles: the oracles of each sentence.
        is_oracle: bool ``[n_hyps]``.
        weights: float64 ``[n_columns]``, now.
        scores: float64 ``[n_hyps]``, by these weights.
        active: bool ``[n_columns]``.
    """

    rows: CompactRows
    oracles: OracleSets
    is_oracle: NDArray[np.bool_]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    active: NDArray[np.bool_]


def view_of(options: OroOptions, state: LearnerState, batch: Batch, step: Step) -> BatchView:
    """Return the batch, its oracles by its own corpus score, and the weights on its features."""
    oracles = corpus_oracles(batch, FewSentences(step.metric), step.rng)
    is_oracle = np.zeros(batch.n_hyps, dtype=np.bool_)
    is_oracle[oracles.rows] = True
    rows = compact_rows(batch, np.arange(batch.n_hyps))
    weights = present(state, rows.columns, step, from_zero=options.zero_start)
    return BatchView(
        rows, oracles, is_oracle, weights, rows.scores(weights), step.active[rows.columns]
    )


def change_of(
    view: BatchView, coefficients: NDArray[np.float64], loss: float, violations: int
) -> Change:
    """Return a step by the combination of the hypotheses, on active features.

    Where what the hypotheses add cancels out, the step is 0 and not what rounding leaves: a
    feature that a sentence's hypotheses share is not learnt.
    """
    rows = view.rows
    values = rows.combine_exactly(coefficients)[view.active]
    report = {"loss": loss, "violations": float(violations)}
    return Change(rows.columns[view.active], values, report=report)


def oro_learner(options: OroOptions) -> Learner:
    """Sub-gradient descent on the pairwise hinge loss (Watanabe 2012, Algorithm 2).

    The sub-gradient is divided by ``M'``, the number of pairs that miss the margin.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = view_of(options, state, batch, step)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(_pairs(view, batch), view.scores, 1.0, coefficients)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        coefficients *= rate / max(1, count)
        return change_of(view, coefficients, loss / max(1, total), count)

    return learner_of(options, change)


def o_oro_learner(options: OOroOptions) -> Learner:
    """Optimized updates for the pairwise hinge loss (Watanabe 2012, equations 12 to 15).

    Equation 12 is over all pairs. The author's published program (cicada) leaves out those that
    have the margin before the update; so does this where ``all_pairs`` is not set.

    The exact dual is always that of all pairs. Its objective is the loss of the worst pair of the
    batch. It learns fastest where some weights rank all pairs rightly; where none do, that loss is
    least at weights of 0, and they vanish.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = view_of(options, state, batch, step)
        pairs = _pairs(view, batch)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(pairs, view.scores, 1.0, coefficients)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        shrunk = np.where(view.active, view.weights, 0.0)
        shrunk *= shrinkage(rate, options.regularization)
        if options.exact_dual:
            coefficients = pairs_in_simplex(pairs, shrunk, rate)
        else:
            coefficients, mass = pairs_in_box(
                pairs,
                np.zeros(batch.n_hyps) if options.all_pairs else view.scores,
                shrunk,
                rate,
                options.dual_tolerance,
                options.dual_sweeps,
                step.rng,
            )
            if options.renormalise:
                renormalised(coefficients, mass, rate)
        return change_of(view, coefficients, loss / max(1, total), count)

    return learner_of(options, change)


def learner_of(
    options: OroOptions, change: Callable[[LearnerState, Batch, Step], Change]
) -> Learner:
    """Return a learner that shrinks the weights, adds the change and projects into the ball."""

    def apply(state: LearnerState, found: Change, step: Step) -> LearnerState:
        return stepped(
            state,
            found,
            step,
            rate=exponential_rate(step, options.rate, options.rate_decay),
            regularization=options.regularization,
            from_zero=options.zero_start,
        )

    return Learner(fills=FILLS, init=scaled, change=change, apply=apply, weights=full)


def _pairs(view: BatchView, batch: Batch) -> OraclePairs:
    """Return the pairs of the batch, features that are not active apart, in arrays of its own."""
    n_dense = batch.dense.shape[1]
    rows, active = view.rows, view.active
    base = np.zeros(batch.n_hyps)
    if not active.all():
        base = rows.scores(np.where(active, 0.0, view.weights))
    kept = (rows.indices >= n_dense) & active[rows.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return OraclePairs(
        offsets=np.array(batch.offsets, dtype=np.int64),
        oracles=np.array(view.oracles.rows, dtype=np.int64),
        oracle_offsets=np.array(view.oracles.offsets, dtype=np.int64),
        is_oracle=view.is_oracle,
        base=base,
        features=ActiveFeatures(
            dense=np.where(active[:n_dense], batch.dense, 0.0).astype(np.float64),
            indptr=indptr,
            indices=rows.indices[kept],
            data=rows.data[kept],
        ),
    )


ALGORITHMS = (
    online_algorithm(
        name="oro",
        summary="Rank oracles above the rest with the hinge loss.",
        source="Watanabe 2012",
        options=OroOptions,
        learner=oro_learner,
    ),
    online_algorithm(
        name="o-oro",
        summary="Optimise each update of `oro` in its dual.",
        source="Watanabe 2012",
        options=OOroOptions,
        learner=o_oro_learner,
    ),
)
