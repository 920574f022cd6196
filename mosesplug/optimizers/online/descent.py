"""The gradient of a loss on a mini-batch, shared by all gradient learners.

Loss, step and regularizer can be combined freely. This module computes the gradient of a batch with
respect to the features of its hypotheses; the module of each learner applies it.

By forward-backward splitting (Duchi & Singer 2009), the regularizer is applied exactly after a
gradient step, and only when a feature is used:

    argmin_v  |v - w|^2 / 2 + rate * strength * r(v)

with ``r`` the L1 norm (each weight moves towards 0 by ``rate * strength``, at most to 0) or half
the squared L2 norm (each weight is divided by ``1 + rate * strength``). Between two gradients, a
feature only has such steps, and they add up: as distances for L1, as logarithms for L2. The size
of a step is called its *dose*. Learners sum the doses and apply the sum when the feature is updated
or its weight is read, without approximation (Green et al. 2013, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.batch.ranking.cross_entropy import (
    discounted_shares,
    metric_distributions,
)
from mosesplug.optimizers.batch.ranking.pairs import PairSampling
from mosesplug.optimizers.lists.rows import CompactRows, compact_rows
from mosesplug.optimizers.online.learner import Change, LearnerState, Step
from mosesplug.optimizers.online.objectives import (
    LISTWISE,
    PAIRWISE,
    Loss,
    Objective,
    list_objective,
    pair_objective,
    xbleu_objective,
)
from mosesplug.optimizers.online.options import START_SPREAD_DETAILS, CostOptions
from mosesplug.optimizers.options import option
from mosesplug.optimizers.oracles import corpus_oracles, sentence_oracles
from mosesplug.optimizers.problem import LARGEST
from mosesplug.tuning_set import Batch

__all__ = [
    "LOSS_DETAILS",
    "DescentOptions",
    "Norm",
    "RateOptions",
    "drop_rare_features",
    "ignore_overflow",
    "initial_vectors",
    "list_count_vectors",
    "make_change",
    "regularization_dose",
    "require_usable",
    "shrink",
]

Norm = Literal["l1", "l2"]


def regularization_dose(
    rates: NDArray[np.float64], strength: float, norm: Norm
) -> NDArray[np.float64]:
    """Return the dose of one step of regularization, float64, shaped like ``rates``.

    Args:
        rates: learning rates of the step: one per feature, or one for all.
        strength: lambda, at least 0.
        norm: the regularizer.
    """
    if norm == "l1":
        return rates * strength
    return np.log1p(rates * strength)


def shrink(
    weights: NDArray[np.float64], doses: NDArray[np.float64], norm: Norm
) -> NDArray[np.float64]:
    """Return the weights after a sum of doses, float64 ``[n]``.

    L1 is truncated as in Green et al. (2013), eq. 15.

    Args:
        weights: float64 ``[n]``.
        doses: float64 ``[n]``, at least 0.
        norm: the regularizer.
    """
    if norm == "l1":
        return np.copysign(np.maximum(np.abs(weights) - doses, 0.0), weights)
    return weights * np.exp(-doses)


Present = Callable[[LearnerState, NDArray[np.int64], Step], NDArray[np.float64]]
"""``(state, columns int64 [n], step) -> float64 [n]``: return the weights of some features with
all regularization that is due; the state is only read."""


LOSS_DETAILS = (
    "logistic, hinge and squared use pairs, softmax, expected-error and cross-entropy use lists. "
    "xbleu uses the mini-batch, with the statistics that cost=background keeps; the metric must be "
    "BLEU."
)


@dataclass(frozen=True)
class DescentOptions(CostOptions):
    """Settings of any gradient learner."""

    loss: Loss = option(
        "logistic",
        help="loss, on sampled pairs of hypotheses or on whole n-best lists",
        details=LOSS_DETAILS,
        source="Green et al. 2013, eq. 12; Watanabe 2012, eq. 5-6; Neubig & Watanabe 2016, "
        "eq. 24, 33 and 54; Green et al. 2014",
    )
    best_hypotheses: int = option(
        40,
        help="number of best hypotheses with a probability above 0; 0: all",
        source="Green et al. 2014; Phrasal's CrossEntropyOptimizer, ceTopk",
        only_with="loss=cross-entropy",
        minimum=0,
    )
    candidate_pairs: int = option(
        500,
        help="number of hypothesis pairs sampled per sentence",
        source="PairwiseRankingOptimizerSGD of Phrasal, the program of Green et al. 2013",
        only_with="loss=logistic|hinge|squared",
        minimum=1,
    )
    kept_pairs: int = option(
        15,
        help="number of sampled pairs kept, those with largest score differences",
        source="Green et al. 2013, section 4.2",
        only_with="loss=logistic|hinge|squared",
        minimum=1,
    )
    minimum_difference: float = option(
        0.05,
        help="smallest difference in sentence score of a pair",
        source="Hopkins & May 2011, alpha",
        only_with="loss=logistic|hinge|squared",
        minimum=0.0,
    )
    minimum_count: int = option(
        0,
        help="number of sentences per epoch required to learn a sparse feature",
        source="OnlineTuner of Phrasal",
        minimum=0,
    )


@dataclass(frozen=True)
class RateOptions(DescentOptions):
    """Settings of gradient learners whose rate suits only one scale of weights."""

    start_spread: float = option(
        0.5,
        help="scale starting weights to this spread of model scores; 0: no",
        details=START_SPREAD_DETAILS,
        source="after risk and xbleu; value: found on halves of recorded lists of Moses",
        minimum=0.0,
    )


def make_change(
    options: DescentOptions, present: Present, *, summed: bool
) -> Callable[[LearnerState, Batch, Step], Change]:
    """Return the ``change`` of a gradient learner: the gradient of its loss.

    The gradient has the active features only.

    Args:
        options: settings of loss, sampling and costs.
        present: returns the learner's current weights.
        summed: whether the loss is the sum over pairs or sentences, as in Green et al. (2013),
            eq. 12, or their mean, as in Neubig & Watanabe (2016), section 3.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = costs.memory(step.metric)
        memory |= {name: state.memory[name] for name in memory if name in state.memory}
        gains = costs.gains(batch, step.metric, memory, step.rng)
        objective = _objective(options, gains, batch, step, memory)
        rows = compact_rows(batch, objective.rows)
        # Diverging weights raise an error later; suppress the warnings before it.
        with np.errstate(over="ignore", invalid="ignore"):
            pull = objective.pull(rows.scores(present(state, rows.columns, step)))
            divisor = 1 if summed else max(1, objective.terms)
            # AdaGrad would turn a rounding error into a full step.
            gradient = rows.combine_exactly(pull.coefficients / divisor)
        if memory:
            everything = compact_rows(batch, np.arange(batch.n_hyps))
            scores = everything.scores(present(state, everything.columns, step))
            memory = costs.update_memory(batch, memory, costs.choose(batch, scores, gains))
        active = step.active[rows.columns]
        more = {}
        if options.minimum_count:
            counts = _sentences(rows, objective.rows, batch)
            is_dense = rows.columns < batch.space.n_dense
            more["sentences"] = np.where(is_dense, options.minimum_count, counts)[active]
        return Change(
            columns=rows.columns[active],
            values=gradient[active],
            more=more,
            memory=memory,
            report={
                "loss": pull.loss / max(1, objective.terms),
                "violations": float(pull.violations),
            },
        )

    return change


def _objective(
    options: DescentOptions,
    gains: NDArray[np.float64],
    batch: Batch,
    step: Step,
    memory: Mapping[str, NDArray[np.float64]],
) -> Objective:
    """Return the loss of the options on a batch whose hypotheses have these gains.

    Raises:
        UsageError: the loss does not suit the metric.
    """
    if options.loss in PAIRWISE:
        sampling = PairSampling(
            options.candidate_pairs, options.kept_pairs, options.minimum_difference
        )
        return pair_objective(PAIRWISE[options.loss], batch.offsets, gains, sampling, step.rng)
    if options.cost == "corpus":
        oracles = corpus_oracles(batch, FewSentences(step.metric), step.rng)
    else:
        oracles = sentence_oracles(batch.offsets, gains)
    if options.loss == "xbleu":
        if not step.metric.has_bleu_statistics:
            raise UsageError(
                f"loss=xbleu requires the metric BLEU, not {step.metric.name}; choose "
                "loss=expected-error"
            )
        stats = batch.stats.astype(np.float64)
        empty = np.zeros(stats.shape[1] + 1)
        context = options.background_decay * memory.get("background", empty)
        return xbleu_objective(batch.offsets, stats, context, oracles)
    goals = 1.0 - gains
    if options.loss == "cross-entropy":
        shares = discounted_shares(1.0)
        goals = metric_distributions(batch.offsets, gains, shares, options.best_hypotheses)
    if options.loss == "softmax":
        goals = np.zeros(batch.n_hyps)
        goals[oracles.rows] = 1.0
    return list_objective(LISTWISE[options.loss], batch.offsets, goals, oracles)


def _sentences(rows: CompactRows, chosen: NDArray[np.int64], batch: Batch) -> NDArray[np.float64]:
    """Count the sentences with each feature in a chosen row, float64 ``[n_columns]``."""
    n_columns = len(rows.columns)
    sentence = np.searchsorted(batch.offsets, chosen, side="right") - 1
    keys = np.repeat(sentence, np.diff(rows.indptr)) * n_columns + rows.indices
    places = np.unique(keys) % n_columns if len(keys) else keys
    return np.bincount(places, minlength=n_columns).astype(np.float64)


def list_count_vectors(options: DescentOptions) -> dict[str, float]:
    """Return the vectors that count features, with their values for unseen features."""
    return {"seen": 0.0, "seen_in": 0.0} if options.minimum_count else {}


def initial_vectors(
    fills: Mapping[str, float], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return a copy of the weights, and vectors of fill values, each ``[n_features]``."""
    vectors = {name: np.full(len(weights), fill) for name, fill in fills.items()}
    vectors["weights"] = np.array(weights, dtype=np.float64)
    return vectors


def drop_rare_features(state: LearnerState, change: Change, step: Step, minimum: int) -> Change:
    """Drop features that too few sentences have.

    The counts of the batch are added in place. Counts restart in every epoch, so that a rare
    feature does not become frequent by repetition. An admitted feature stays admitted.

    Args:
        state: the state with the vectors ``seen`` and ``seen_in``, which are updated.
        change: a change with ``more["sentences"]``.
        step: the current step, which has the epoch.
        minimum: number of sentences required; 0 admits every feature without counting.
    """
    if not minimum:
        return change
    seen, seen_in = state.vectors["seen"], state.vectors["seen_in"]
    columns = change.columns
    have = np.where(seen_in[columns] == step.epoch, seen[columns], 0.0)
    have = np.where(seen[columns] >= minimum, seen[columns], have + change.more["sentences"])
    seen[columns], seen_in[columns] = have, step.epoch
    enough = have >= minimum
    return replace(change, columns=columns[enough], values=change.values[enough], more={})


def require_usable(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights, float64 ``[n]``, if they are usable as starting weights.

    Raises:
        OptimizerError: the weights are not finite or too large.
    """
    if not (np.abs(weights) <= LARGEST).all():
        raise OptimizerError(
            "the weights overflow. Choose a lower learning rate or smaller starting weights."
        )
    return weights


def ignore_overflow(
    apply: Callable[[LearnerState, Change, Step], LearnerState],
) -> Callable[[LearnerState, Change, Step], LearnerState]:
    """Return ``apply`` without overflow warnings.

    ``require_usable`` raises an error instead.
    """

    def quiet(state: LearnerState, change: Change, step: Step) -> LearnerState:
        with np.errstate(over="ignore", invalid="ignore"):
            return apply(state, change, step)

    return quiet
