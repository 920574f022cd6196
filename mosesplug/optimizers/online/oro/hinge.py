"""Online rank learning with the hinge loss (Watanabe 2012): plain, and with optimized updates.

In each sentence of a batch, every oracle should outscore every other hypothesis by 1 (equation 5).
Oracles maximise the corpus score of the batch. N-gram orders without a match count as a fraction of
one match, so that small batches have oracles, too (``few_sentences``). The plain learner
descends the sub-gradient of the pairs that violate the margin, all with the same coefficient
(equations 8 and 9). The optimized learner first shrinks the weights, and then finds the coefficient
of each pair with the quadratic program of equation 14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.lists.oracle_pairs import ActiveFeatures, OraclePairs, count_violations
from mosesplug.optimizers.lists.rows import CompactRows, compact_rows
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.ball import (
    FILLS,
    all_weights,
    exponential_rate,
    init_state,
    present_weights,
    project_all,
    shrink_factor,
    take_step,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.online.oro.dual import (
    renormalise,
    solve_pairs_in_box,
    solve_pairs_in_simplex,
)
from mosesplug.optimizers.options import option
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles
from mosesplug.tuning_set import Batch

__all__ = [
    "ALGORITHMS",
    "BatchView",
    "DualOptions",
    "OOroOptions",
    "OroOptions",
    "make_change",
    "make_learner",
    "make_view",
    "o_oro_learner",
    "oro_learner",
]


@dataclass(frozen=True)
class OroOptions(OnlineOptions):
    """Settings of online rank learning."""

    rate: float = option(
        0.2,
        help="initial learning rate, eta",
        source="Watanabe 2012, section 3.2",
        minimum=0.0,
    )
    rate_decay: float = option(
        0.85,
        help="factor of the learning rate per epoch, alpha",
        source="Watanabe 2012, section 3.2",
        minimum=0.0,
    )
    regularization: float = option(
        1e-5,
        help="strength of the L2 regulariser, lambda",
        source="Watanabe 2012, section 5",
        minimum=0.0,
    )
    keep_state: bool = option(
        False,
        help="keep rates, sums and the scale of weights between decodings",
        details="The rate would go on falling, to nothing after two decodings of 30 epochs each. "
        "Epochs that decode always keep the state.",
        source="Watanabe 2012, section 3.2",
    )
    zero_start: bool = option(
        False,
        help="start learning from zero weights",
        source="Watanabe 2012, Algorithm 2",
    )


@dataclass(frozen=True)
class DualOptions(OroOptions):
    """Settings of optimized updates, for any loss."""

    exact_dual: bool = option(
        False,
        help="bound the sum of the multipliers instead of scaling them down",
        details="The sum is then at most the learning rate.",
        source="Watanabe 2012, eq. 14",
    )
    renormalise: bool = option(
        True,
        help="scale multipliers down so that their sum is at most the rate",
        details="If false, only each multiplier is bounded, as in the dual of eq. 12.",
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
        source="measured: after 30 sweeps, steps are within 10 % of those at convergence",
        minimum=1,
    )


@dataclass(frozen=True)
class OOroOptions(DualOptions):
    """Settings of optimized updates for the hinge loss."""

    all_pairs: bool = option(
        True,
        help="use all pairs, or only those that violate the margin",
        details="Violations are those before the update. False is faster.",
        source="Watanabe 2012, eq. 12; false: the author's program, cicada",
    )


@dataclass(frozen=True)
class BatchView:
    """A batch, for rank learners.

    Attributes:
        rows: all hypotheses; its columns are the features that they have.
        oracles: the oracles of each sentence.
        is_oracle: bool ``[n_hyps]``.
        weights: float64 ``[n_columns]``, the current weights.
        scores: float64 ``[n_hyps]``, by these weights.
        active: bool ``[n_columns]``.
    """

    rows: CompactRows
    oracles: OracleSets
    is_oracle: NDArray[np.bool_]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    active: NDArray[np.bool_]


def make_view(options: OroOptions, state: LearnerState, batch: Batch, step: Step) -> BatchView:
    """Return the batch with its oracles and the current weights of its features."""
    oracles = corpus_oracles(batch, FewSentences(step.metric), step.rng)
    is_oracle = np.zeros(batch.n_hyps, dtype=np.bool_)
    is_oracle[oracles.rows] = True
    rows = compact_rows(batch, np.arange(batch.n_hyps))
    weights = present_weights(state, rows.columns, step, from_zero=options.zero_start)
    return BatchView(
        rows, oracles, is_oracle, weights, rows.scores(weights), step.active[rows.columns]
    )


def make_change(
    view: BatchView, coefficients: NDArray[np.float64], loss: float, violations: int
) -> Change:
    """Return the change of active features by a combination of the hypotheses.

    Values that cancel out give exactly 0, without rounding errors: features that all hypotheses of
    a sentence share do not change.
    """
    rows = view.rows
    values = rows.combine_exactly(coefficients)[view.active]
    report = {"loss": loss, "violations": float(violations)}
    return Change(rows.columns[view.active], values, report=report)


def oro_learner(options: OroOptions) -> Learner:
    """Return sub-gradient descent on the pairwise hinge loss (Watanabe 2012, Algorithm 2).

    The sub-gradient is divided by ``M'``, the number of pairs that violate the margin.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(_pairs(view, batch), view.scores, 1.0, coefficients)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        coefficients *= rate / max(1, count)
        return make_change(view, coefficients, loss / max(1, total), count)

    return make_learner(options, change)


def o_oro_learner(options: OOroOptions) -> Learner:
    """Return optimized updates for the pairwise hinge loss (Watanabe 2012, equations 12 to 15).

    Equation 12 has all pairs. The author's published program (cicada) omits those that satisfy the
    margin before the update; so does this learner unless ``all_pairs`` is set.

    The exact dual always has all pairs. Its objective is the loss of the worst pair of the batch.
    It learns fastest if some weights rank all pairs correctly; otherwise that loss is smallest at
    zero weights, and the weights vanish.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step)
        pairs = _pairs(view, batch)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(pairs, view.scores, 1.0, coefficients)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        shrunk = np.where(view.active, view.weights, 0.0)
        shrunk *= shrink_factor(rate, options.regularization)
        if options.exact_dual:
            coefficients = solve_pairs_in_simplex(pairs, shrunk, rate)
        else:
            coefficients, mass = solve_pairs_in_box(
                pairs,
                np.zeros(batch.n_hyps) if options.all_pairs else view.scores,
                shrunk,
                rate,
                options.dual_tolerance,
                options.dual_sweeps,
                step.rng,
            )
            if options.renormalise:
                renormalise(coefficients, mass, rate)
        return make_change(view, coefficients, loss / max(1, total), count)

    return make_learner(options, change)


def make_learner(
    options: OroOptions, change: Callable[[LearnerState, Batch, Step], Change]
) -> Learner:
    """Return a learner that shrinks the weights, adds the change and projects into the ball."""

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        return take_step(
            state,
            change,
            step,
            rate=exponential_rate(step, options.rate, options.rate_decay),
            regularization=options.regularization,
            from_zero=options.zero_start,
        )

    return Learner(
        fills=FILLS,
        init=init_state,
        change=change,
        apply=apply,
        weights=all_weights,
        project=project_all,
    )


def _pairs(view: BatchView, batch: Batch) -> OraclePairs:
    """Return the pairs of the batch; the scores of inactive features are in ``base``."""
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
