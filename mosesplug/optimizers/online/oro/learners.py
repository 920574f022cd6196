"""Online rank learning, plain and with optimized updates (Watanabe 2012).

In each sentence of a batch, every oracle should outscore every other hypothesis. Oracles maximize
the corpus score of the batch. N-gram orders without a match count as a fraction of one match, so
that small batches have oracles, too (``few_sentences``). A chain shrinks the weights, adds the
change and projects the weights into a ball (Algorithm 2). What it adds depends on the loss:

- hinge: the margin of each pair is 1 (equation 5), or the difference of its costs, as in the
  author's published program (cicada). ``oro`` descends the sub-gradient of the pairs that violate
  the margin, all with the same coefficient (equations 8 and 9). ``o-oro`` first shrinks the
  weights, and then finds the coefficient of each pair with the quadratic program of equation 14.
- softmax: the loss of a sentence is ``-L = -log(Z_O / Z_N)``, the negative log-probability of its
  oracles (equation 6). ``Psi``, the gradient of ``L``, is the mean features of the oracles minus
  those of the whole list. ``oro-softmax`` follows the mean ``Psi`` of a batch (equation 10).
  ``o-oro-softmax`` finds the coefficient of each sentence, with one constraint per sentence,

      w . Psi >= -L - slack

  (equation 16). This is the constraint as printed, and as in cicada. The text describes the tangent
  plane of the loss at the current weights ``w_k``, which has an additional ``w_k . Psi`` on the
  right; ``tangent`` adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Choice, ColumnValues, FeatureMask, Offsets, Scores
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.oracle_pairs import OraclePairs, count_violations
from mosesplug.optimizers.lists.rows import (
    CompactRows,
    FeatureRows,
    compact_rows,
    filled_weights,
)
from mosesplug.optimizers.losses import SOFTMAX
from mosesplug.optimizers.online import ball
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.ball import exponential_rate, shrink_factor
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.oro.dual import (
    renormalize,
    solve_box,
    solve_pairs_in_box,
    solve_pairs_in_simplex,
    solve_simplex,
)
from mosesplug.optimizers.online.oro.options import (
    HingeOptions,
    OOroOptions,
    OOroSoftmaxOptions,
    OroOptions,
    OroSoftmaxOptions,
    PairSolverOptions,
    RankMiraOptions,
)
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.optimizers.spread import find_spreads, report_spreads
from mosesplug.tuning_set import Batch


@dataclass(frozen=True)
class _View:
    """A batch as an update sees it.

    Attributes:
        rate: the learning rate of this step.
        rows: all hypotheses; its columns are the features that they have.
        oracles: the rows of the oracles, sentence by sentence; empty sentences have none.
        is_good: whether a hypothesis is at least as good as an oracle of its sentence, and need not
            be outscored.
        gains: None if neither the oracles nor the margins need them.
        weights: the current weights of the columns.
        scores: the model scores by these weights.
        row_weights: the weight of each hypothesis' sentence; 1 without weights.
        active: whether a weight may change.
        memory: the learner's memory after this batch.
    """

    batch: Batch
    step: Step
    rate: float
    rows: CompactRows
    oracles: Choice
    oracle_offsets: Offsets
    is_good: NDArray[np.bool_]
    gains: Scores | None
    weights: ColumnValues
    scores: Scores
    row_weights: Scores
    active: FeatureMask
    memory: Mapping[str, NDArray[np.float64]]


def _make_view(
    options: OroOptions, state: LearnerState, batch: Batch, step: Step, *, needs_gains: bool
) -> _View:
    rows = compact_rows(batch)
    weights = ball.present_weights(state, rows.columns, step, from_zero=options.zero_start)
    scores = rows.scores(weights)
    oracles, gains, memory = _find_oracles(
        options, state, batch, step, scores, needs_gains=needs_gains
    )
    is_good = np.zeros(batch.n_hyps, dtype=np.bool_)
    is_good[oracles.rows] = True
    chosen, offsets = oracles.rows, oracles.offsets
    if options.oracles == "hope" and gains is not None:
        chosen = first_of_largest(batch.offsets, scores + gains)
        offsets = np.searchsorted(chosen, batch.offsets).astype(np.int64)
        least = np.repeat(gains[chosen], np.diff(batch.offsets)[np.diff(batch.offsets) > 0])
        is_good = gains >= least
    return _View(
        batch=batch,
        step=step,
        rate=exponential_rate(step, options.rate, options.rate_decay),
        rows=rows,
        oracles=chosen,
        oracle_offsets=offsets,
        is_good=is_good,
        gains=gains,
        weights=weights,
        scores=scores,
        row_weights=np.ones(batch.n_hyps) if batch.row_weights is None else batch.row_weights,
        active=step.active[rows.columns],
        memory=memory,
    )


def _find_oracles(
    options: OroOptions,
    state: LearnerState,
    batch: Batch,
    step: Step,
    scores: Scores,
    *,
    needs_gains: bool,
) -> tuple[OracleSets, Scores | None, Mapping[str, NDArray[np.float64]]]:
    """Return the best hypotheses, gains if needed, and the memory after the batch."""
    costs = options.costs()
    sizes = costs.sizes(batch, step.metric, step.source_lengths)
    if options.cost == "corpus":
        metric = FewSentences(step.metric)
        oracles = corpus_oracles(batch, metric, step.rng)
        if not needs_gains and options.oracles == "best":
            return oracles, None, {}
        stats = batch.stats.astype(np.float64)
        filled = np.diff(batch.offsets) > 0
        owners = np.repeat(np.arange(int(filled.sum())), np.diff(batch.offsets)[filled])
        own, counts = stats[oracles.oracle_rows], filled_weights(batch)
        size = float((counts * sizes[filled]).sum())
        totals = (counts[:, None] * own).sum(axis=0)
        gains = metric.score(totals - own[owners] + stats) * size
        return oracles, gains, {}
    memory = costs.memory(step.metric)
    memory |= {name: state.memory[name] for name in memory if name in state.memory}
    gains = costs.gains(batch, step.metric, memory, step.rng, sizes)
    kept = costs.update_memory(batch, memory, costs.choose(batch, scores, gains), sizes)
    return sentence_oracles(batch.offsets, gains), gains, kept


def _rank_learner(
    options: OroOptions,
    update: Callable[[_View], tuple[Scores, float, int]],
    *,
    needs_gains: bool = False,
) -> Learner:
    """Return the chain that shrinks weights, adds a change and projects into a ball.

    Args:
        update: returns the coefficients of the hypotheses in the change, the loss before it, and
            the number of violations.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = _make_view(options, state, batch, step, needs_gains=needs_gains)
        coefficients, loss, violations = update(view)
        # Exact zeros: a feature that all hypotheses of a sentence share does not change.
        values = view.rows.combine_exactly(coefficients)[view.active]
        report = {"loss": loss, "violations": float(violations)}
        report |= report_spreads(find_spreads(batch.offsets, view.scores, view.oracles))
        return Change(view.rows.columns[view.active], values, memory=view.memory, report=report)

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        return ball.take_step(
            state,
            change,
            step,
            rate=exponential_rate(step, options.rate, options.rate_decay),
            regularization=options.regularization,
            from_zero=options.zero_start,
        )

    return Learner(
        fills=ball.FILLS,
        init=ball.init_state,
        change=change,
        apply=apply,
        weights=ball.all_weights,
        project=ball.project_all,
        line_search=options.line_search,
        zero_start=options.zero_start,
        initial_memory=options.costs().memory,
    )


def _compare_pairs(
    options: HingeOptions | OOroOptions, view: _View
) -> tuple[OraclePairs, Scores, Scores, int, float]:
    """Return the pairs of a batch, and how they violate their margins.

    Returns:
        The pairs, whose ``base`` has leads and scores of inactive features; the model scores plus
        leads, by which a margin of 1 is required; the coefficients of the hypotheses in the sum of
        violating pairs; their number; and the mean loss of all pairs.
    """
    # With costs as margins, s_o - s_e >= gain_o - gain_e is
    # (s_o - gain_o + 1) - (s_e - gain_e) >= 1.
    leads = np.zeros(len(view.scores))
    if options.margin == "cost" and view.gains is not None:
        leads -= view.gains
        leads[view.oracles] += 1.0
    batch, active = view.batch, view.active
    dense, indptr, indices, data = view.rows.rows
    base = leads
    if not active.all():
        base = leads + view.rows.scores(np.where(active, 0.0, view.weights))
    kept = active[indices]
    pairs = OraclePairs(
        offsets=np.array(batch.offsets, dtype=np.int64),
        oracles=np.array(view.oracles, dtype=np.int64),
        oracle_offsets=np.array(view.oracle_offsets, dtype=np.int64),
        is_oracle=view.is_good,
        base=base,
        features=FeatureRows(
            dense=np.where(active[: dense.shape[1]], dense, 0.0),
            indptr=np.concatenate([[0], np.cumsum(kept)])[indptr],
            indices=indices[kept],
            data=data[kept],
        ),
    )
    coefficients, scores = np.empty(batch.n_hyps), view.scores + leads
    ones = np.ones(batch.n_hyps)
    count, total, loss = count_violations(pairs, scores, 1.0, ones, coefficients)
    return pairs, scores, coefficients, count, loss / max(1, total)


def oro_learner(options: HingeOptions) -> Learner:
    """Return sub-gradient descent on pairwise hinge loss (Watanabe 2012, Algorithm 2).

    The sub-gradient is divided by ``M'``, the number of pairs that violate the margin.
    """

    def update(view: _View) -> tuple[Scores, float, int]:
        _, _, coefficients, count, loss = _compare_pairs(options, view)
        coefficients *= view.row_weights * (view.rate / max(1, count))
        return coefficients, loss, count

    return _rank_learner(options, update, needs_gains=options.margin == "cost")


def o_oro_learner(options: OOroOptions) -> Learner:
    """Return optimized updates for the pairwise hinge loss (Watanabe 2012, eq. 12-15).

    Equation 12 has all pairs. The author's published program (cicada) omits those that satisfy the
    margin before the update; so does this learner unless ``all_pairs`` is set.

    The exact dual always has all pairs. Its objective is the loss of the worst pair of the batch.
    It learns fastest if some weights rank all pairs correctly; otherwise that loss is smallest at
    zero weights, and the weights vanish.
    """

    def update(view: _View) -> tuple[Scores, float, int]:
        pairs, scores, _, count, loss = _compare_pairs(options, view)
        shrunk = np.where(view.active, view.weights, 0.0)
        shrunk *= shrink_factor(view.rate, options.regularization)
        if options.exact_dual:
            return solve_pairs_in_simplex(pairs, shrunk, view.rate), loss, count
        coefficients, mass = solve_pairs_in_box(
            pairs,
            np.zeros(len(scores)) if options.all_pairs else scores,
            shrunk,
            view.row_weights
            * (view.rate / max(1, count) if options.bound == "share" else view.rate),
            options.dual_tolerance,
            options.dual_sweeps,
            view.step.rng,
        )
        if options.renormalize:
            renormalize(coefficients, mass, view.rate, up=options.scale_up)
        return coefficients, loss, count

    return _rank_learner(options, update, needs_gains=options.margin == "cost")


def rank_mira_learner(options: RankMiraOptions) -> Learner:
    """Return MIRA on the pairs of a batch (Watanabe 2012, equation 13).

    This baseline of the paper is the optimized update with a constant rate of ``1 / lambda``,
    without a regularizer.
    """
    shared = {field.name: getattr(options, field.name) for field in fields(PairSolverOptions)}
    return o_oro_learner(
        OOroOptions(**shared, rate=options.slack, rate_decay=1.0, regularization=0.0)
    )


def _measure_lists(view: _View) -> tuple[NDArray[np.float64], Scores, float, int]:
    """Measure the softmax loss.

    Returns:
        The loss of each sentence, derivatives by the scores, the mean loss of the sentences with
        hypotheses, and the number of these.
    """
    goals = view.is_good.astype(np.float64)
    losses, slopes = SOFTMAX.value_and_gradient(view.scores, view.batch.offsets, goals)
    size = max(1, int(np.count_nonzero(np.diff(view.batch.offsets))))
    return losses, slopes, float(losses.sum()) / size, size


def oro_softmax_learner(options: OroSoftmaxOptions) -> Learner:
    """Return gradient descent on softmax loss (Watanabe 2012, Algorithm 2, eq. 10).

    ``violations`` counts the sentences in which some hypothesis is not an oracle.
    """

    def update(view: _View) -> tuple[Scores, float, int]:
        losses, slopes, loss, size = _measure_lists(view)
        return (
            slopes * view.row_weights * (-view.rate / size),
            loss,
            int(np.count_nonzero(losses > 0.0)),
        )

    return _rank_learner(options, update)


def o_oro_softmax_learner(options: OOroSoftmaxOptions) -> Learner:
    """Return optimized updates for the softmax loss (Watanabe 2012, equations 16, 17)."""

    def update(view: _View) -> tuple[Scores, float, int]:
        batch, rate = view.batch, view.rate
        losses, slopes, loss, _ = _measure_lists(view)
        positive = np.flatnonzero(losses > 0.0)
        counts = np.ones(batch.n_sentences)
        if batch.sentence_weights is not None:
            # The plane of a weighted loss is the weighted plane.
            counts, losses = batch.sentence_weights, batch.sentence_weights * losses
            slopes = view.row_weights * slopes
        owner = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
        planes = np.empty((len(positive), len(view.weights)))
        for place, sentence in enumerate(positive):
            planes[place] = view.rows.combine(np.where(owner == sentence, -slopes, 0.0))
        now = planes @ view.weights
        moving = np.where(view.active, planes, 0.0)
        shrinking = (1.0 - shrink_factor(rate, options.regularization)) * (moving @ view.weights)
        gains = losses[positive] + shrinking
        if not options.tangent:
            gains = gains - now
        gram = moving @ moving.T
        if options.exact_dual:
            multipliers = solve_simplex(gram, gains, rate)
        else:
            bound = rate / max(1, len(positive)) if options.bound == "share" else rate
            multipliers = solve_box(
                gram, gains, bound, options.dual_tolerance, options.dual_sweeps, view.step.rng
            )
            if options.renormalize:
                mass = float((counts[positive] * multipliers).sum())
                renormalize(multipliers, mass, rate, up=options.scale_up)
        shares = np.zeros(batch.n_sentences)
        shares[positive] = multipliers
        return -slopes * shares[owner], loss, len(positive)

    return _rank_learner(options, update)


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
    online_algorithm(
        name="oro-softmax",
        summary="Rank oracles above the rest with the softmax loss.",
        source="Watanabe 2012",
        options=OroSoftmaxOptions,
        learner=oro_softmax_learner,
        window=0,
    ),
    online_algorithm(
        name="o-oro-softmax",
        summary="Optimize each update of `oro-softmax` in its dual.",
        source="Watanabe 2012",
        options=OOroSoftmaxOptions,
        learner=o_oro_softmax_learner,
        window=0,
    ),
)
