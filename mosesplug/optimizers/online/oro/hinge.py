"""Online rank learning with the hinge loss (Watanabe 2012).

There are a plain learner and one with optimized updates. In each sentence of a batch, every oracle
should outscore every other hypothesis by a margin: by 1 (equation 5), or by the difference of their
costs, as in the author's published program (cicada). Oracles maximize the corpus score of the
batch. N-gram orders without a match count as a fraction of one match, so that small batches have
oracles, too (``few_sentences``). The plain learner descends the sub-gradient of the pairs that
violate the margin, all with the same coefficient (equations 8 and 9). The optimized learner first
shrinks the weights, and then finds the coefficient of each pair with the quadratic program of
equation 14.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.lists.oracle_pairs import ActiveFeatures, OraclePairs, count_violations
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.ball import exponential_rate, shrink_factor
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.oro.dual import (
    renormalize,
    solve_pairs_in_box,
    solve_pairs_in_simplex,
)
from mosesplug.optimizers.online.oro.options import (
    HingeOptions,
    OOroOptions,
    PairSolverOptions,
    RankMiraOptions,
)
from mosesplug.optimizers.online.oro.view import BatchView, make_change, make_learner, make_view
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "o_oro_learner", "oro_learner", "rank_mira_learner"]


def oro_learner(options: HingeOptions) -> Learner:
    """Return sub-gradient descent on pairwise hinge loss (Watanabe 2012, Algorithm 2).

    The sub-gradient is divided by ``M'``, the number of pairs that violate the margin.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step, needs_gains=options.margin == "cost")
        leads = _leads(options, view)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(
            _pairs(view, batch, leads), view.scores + leads, 1.0, coefficients
        )
        rate = exponential_rate(step, options.rate, options.rate_decay)
        coefficients *= rate / max(1, count)
        return make_change(view, coefficients, loss / max(1, total), count)

    return make_learner(options, change)


def o_oro_learner(options: OOroOptions) -> Learner:
    """Return optimized updates for the pairwise hinge loss (Watanabe 2012, eq. 12-15).

    Equation 12 has all pairs. The author's published program (cicada) omits those that satisfy the
    margin before the update; so does this learner unless ``all_pairs`` is set.

    The exact dual always has all pairs. Its objective is the loss of the worst pair of the batch.
    It learns fastest if some weights rank all pairs correctly; otherwise that loss is smallest at
    zero weights, and the weights vanish.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step, needs_gains=options.margin == "cost")
        leads = _leads(options, view)
        pairs = _pairs(view, batch, leads)
        coefficients = np.empty(batch.n_hyps)
        count, total, loss = count_violations(pairs, view.scores + leads, 1.0, coefficients)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        shrunk = np.where(view.active, view.weights, 0.0)
        shrunk *= shrink_factor(rate, options.regularization)
        if options.exact_dual:
            coefficients = solve_pairs_in_simplex(pairs, shrunk, rate)
        else:
            coefficients, mass = solve_pairs_in_box(
                pairs,
                np.zeros(batch.n_hyps) if options.all_pairs else view.scores + leads,
                shrunk,
                rate / max(1, count) if options.bound == "share" else rate,
                options.dual_tolerance,
                options.dual_sweeps,
                step.rng,
            )
            if options.renormalize:
                renormalize(coefficients, mass, rate, up=options.scale_up)
        return make_change(view, coefficients, loss / max(1, total), count)

    return make_learner(options, change)


def rank_mira_learner(options: RankMiraOptions) -> Learner:
    """Return MIRA on the pairs of a batch (Watanabe 2012, equation 13).

    This baseline of the paper is the optimized update with a constant rate of ``1 / lambda``,
    without a regularizer.
    """
    same = {each.name: getattr(options, each.name) for each in fields(PairSolverOptions)}
    update = OOroOptions(**same, rate=options.slack, rate_decay=1.0, regularization=0.0)
    return o_oro_learner(update)


def _leads(options: HingeOptions | OOroOptions, view: BatchView) -> NDArray[np.float64]:
    """Return what to add to scores so that each pair's margin is 1, ``[n_hyps]``.

    With costs as margins, ``s_o - s_e >= gain_o - gain_e`` is ``(s_o - gain_o + 1) - (s_e - gain_e)
    >= 1``.
    """
    leads = np.zeros(len(view.scores))
    if options.margin == "cost" and view.gains is not None:
        leads -= view.gains
        leads[view.oracles] += 1.0
    return leads


def _pairs(view: BatchView, batch: Batch, leads: NDArray[np.float64]) -> OraclePairs:
    """Return the batch's pairs; ``base`` has leads and scores of inactive features."""
    n_dense = batch.dense.shape[1]
    rows, active = view.rows, view.active
    base = leads
    if not active.all():
        base = leads + rows.scores(np.where(active, 0.0, view.weights))
    kept = (rows.indices >= n_dense) & active[rows.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return OraclePairs(
        offsets=np.array(batch.offsets, dtype=np.int64),
        oracles=np.array(view.oracles, dtype=np.int64),
        oracle_offsets=np.array(view.oracle_offsets, dtype=np.int64),
        is_oracle=view.is_good,
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
        options=HingeOptions,
        learner=oro_learner,
        window=0,
    ),
    online_algorithm(
        name="o-oro",
        summary="Optimize each update of `oro` in its dual.",
        source="Watanabe 2012",
        options=OOroOptions,
        learner=o_oro_learner,
        window=0,
    ),
    online_algorithm(
        name="rank-mira",
        summary="Keep the margins of all oracle pairs.",
        source="Watanabe 2012",
        options=RankMiraOptions,
        learner=rank_mira_learner,
        window=0,
    ),
)
