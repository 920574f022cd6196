"""The gradient of a mini-batch: the first piece of a chain.

A pairwise loss is computed on sampled pairs of hypotheses, as in PRO (Hopkins & May 2011), and
depends on few hypotheses of a sentence. A listwise loss is computed on all hypotheses. Its oracles
have the largest gain of their sentence, or together the largest corpus score of the batch. xBLEU is
a loss of the whole batch (Rosti et al. 2011; survey, eq. 54).

A weight of a sentence multiplies its loss, or its statistics in xBLEU. Means divide by the number
of sentences or pairs, not by their weights: else a batch of one sentence would have no weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Columns, ColumnValues, Offsets, Scores, SentenceValues, Statistics
from mosesplug.errors import UsageError
from mosesplug.metrics.bleu.expected import expected_bleu
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers import losses
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, sample_pairs
from mosesplug.optimizers.batch.ranking.whole_lists import (
    discounted_shares,
    metric_distributions,
)
from mosesplug.optimizers.lists.rows import compact_rows, filled_weights
from mosesplug.optimizers.losses import ListLoss, PairLoss
from mosesplug.optimizers.online.learner import Change, LearnerState, Step
from mosesplug.optimizers.online.options import CostOptions, OnlineOptions
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.options import Opt, same_as
from mosesplug.tuning_set import Batch

Loss = Literal[
    "logistic", "hinge", "squared", "softmax", "expected-error", "cross-entropy", "xbleu"
]
_PAIRWISE: Mapping[str, PairLoss] = {
    "logistic": losses.LOGISTIC,
    "hinge": losses.HINGE,
    "squared": losses.SQUARED,
}
_LISTWISE: Mapping[str, ListLoss] = {
    "softmax": losses.SOFTMAX,
    "expected-error": losses.EXPECTED_ERROR,
    "cross-entropy": losses.CROSS_ENTROPY,
}

Present = Callable[[LearnerState, Columns, Step], ColumnValues]
"""Returns the weights of some features with all regularization that is due; reads the state."""


@dataclass(frozen=True)
class DescentOptions(CostOptions):
    """Settings of any gradient learner."""

    loss: Annotated[
        Loss,
        Opt(
            "loss, on sampled pairs of hypotheses or on whole n-best lists",
            details="logistic, hinge and squared use pairs, softmax, expected-error and "
            "cross-entropy use lists. xbleu uses the mini-batch, with the statistics that "
            "cost=background keeps; the metric must be BLEU.",
            source="Green et al. 2013, eq. 12; Watanabe 2012, eq. 5-6; Neubig & Watanabe 2016, "
            "eq. 24, 33 and 54; Green et al. 2014",
        ),
    ] = "logistic"
    best_hypotheses: Annotated[
        int,
        Opt(
            "number of best hypotheses with a probability above 0; 0: all",
            source="Green et al. 2014; Phrasal's CrossEntropyOptimizer, ceTopk",
            only_with="loss=cross-entropy",
            minimum=0,
        ),
    ] = 40
    candidate_pairs: Annotated[
        int,
        Opt(
            "number of hypothesis pairs sampled per sentence",
            source="PairwiseRankingOptimizerSGD of Phrasal, the program of Green et al. 2013",
            only_with="loss=logistic|hinge|squared",
            minimum=1,
        ),
    ] = 500
    kept_pairs: Annotated[
        int,
        Opt(
            "number of sampled pairs kept, those with largest score differences",
            source="Green et al. 2013, section 4.2",
            only_with="loss=logistic|hinge|squared",
            minimum=1,
        ),
    ] = 15
    minimum_difference: Annotated[
        float,
        Opt(
            "smallest difference in sentence score of a pair",
            source="Hopkins & May 2011, alpha",
            only_with="loss=logistic|hinge|squared",
            minimum=0.0,
        ),
    ] = 0.05
    minimum_count: Annotated[
        int,
        Opt(
            "number of sentences per epoch required to learn a sparse feature",
            source="OnlineTuner of Phrasal",
            minimum=0,
        ),
    ] = 0


@dataclass(frozen=True)
class RateOptions(DescentOptions):
    """Settings of gradient learners whose rate suits only one scale of weights."""

    start_spread: Annotated[
        float,
        same_as(
            OnlineOptions,
            "start-spread",
            source="after risk and xbleu; value: found on halves of recorded lists of Moses",
        ),
    ] = 0.5


@dataclass(frozen=True)
class _Objective:
    """A loss as a function of the model scores of some hypotheses of a batch.

    Attributes:
        rows: bool ``[n_hyps]``: the hypotheses on which the loss depends.
        terms: number of pairs or sentences in the sum.
        pull: from the scores of all hypotheses, returns the summed loss, its derivative with
            respect to each score, and the number of violations: pairs that miss the margin of the
            loss, or sentences whose 1-best is not an oracle.
    """

    rows: NDArray[np.bool_]
    terms: int
    pull: Callable[[Scores], tuple[float, Scores, int]]


def loss_gradient(
    options: DescentOptions, present: Present, *, summed: bool
) -> Callable[[LearnerState, Batch, Step], Change]:
    """Return the ``change`` of a gradient learner, for active features.

    Args:
        summed: whether the loss is the sum over pairs or sentences, as in Green et al. (2013),
            eq. 12, or their mean, as in Neubig & Watanabe (2016), section 3.
    """
    costs = options.costs()

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        memory = costs.memory(step.metric)
        memory |= {name: state.memory[name] for name in memory if name in state.memory}
        sizes = costs.sizes(batch, step.metric, step.source_lengths)
        gains = costs.gains(batch, step.metric, memory, step.rng, sizes)
        objective = _objective(options, gains, sizes, batch, step, memory)
        rows = compact_rows(batch)
        # Diverging weights raise an error later; suppress the warnings before it.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = rows.scores(present(state, rows.columns, step))
            loss, derivatives, violations = objective.pull(scores)
            divisor = 1 if summed else max(1, objective.terms)
            # AdaGrad would turn a rounding error into a full step.
            gradient = rows.combine_exactly(derivatives / divisor)
        if memory:
            rows_kept = costs.choose(batch, scores, gains)
            memory = costs.update_memory(batch, memory, rows_kept, sizes)
        counts = rows.count_sentences(objective.rows, batch.offsets)
        is_dense = rows.columns < batch.space.n_dense
        # Features of other hypotheses are not updated: they owe their regularization.
        active = step.active[rows.columns] & (is_dense | (counts > 0.0))
        more = {}
        if options.minimum_count:
            more["sentences"] = np.where(is_dense, options.minimum_count, counts)[active]
        return Change(
            columns=rows.columns[active],
            values=gradient[active],
            more=more,
            memory=memory,
            report={"loss": loss / max(1, objective.terms), "violations": float(violations)},
        )

    return change


def _objective(
    options: DescentOptions,
    gains: Scores,
    sizes: SentenceValues,
    batch: Batch,
    step: Step,
    memory: Mapping[str, NDArray[np.float64]],
) -> _Objective:
    """Return the loss of the options on a batch whose hypotheses have these gains."""
    if options.loss in _PAIRWISE:
        sampling = PairSampling(
            options.candidate_pairs, options.kept_pairs, options.minimum_difference
        )
        return _pair_objective(_PAIRWISE[options.loss], batch, gains, sampling, step.rng)
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
        context = memory.get("background", np.zeros(batch.stats.shape[1] + 1))
        pull = _xbleu(batch, sizes, options.background_decay * context)
    else:
        goals = 1.0 - gains
        if options.loss == "cross-entropy":
            shares = discounted_shares(1.0)
            goals = metric_distributions(batch.offsets, gains, shares, options.best_hypotheses)
        elif options.loss == "softmax":
            goals = np.zeros(batch.n_hyps)
            goals[oracles.rows] = 1.0
        loss, offsets = _LISTWISE[options.loss], batch.offsets
        sentence_weights, row_weights = batch.sentence_weights, batch.row_weights

        def pull(scores: Scores) -> tuple[float, Scores]:
            values, derivatives = loss.value_and_gradient(scores, offsets, goals)
            if sentence_weights is not None and row_weights is not None:
                values, derivatives = sentence_weights * values, row_weights * derivatives
            return float(values.sum()), derivatives

    n_filled = int(np.count_nonzero(np.diff(batch.offsets)))
    return _Objective(
        np.ones(batch.n_hyps, dtype=np.bool_),
        n_filled,
        lambda scores: (*pull(scores), _count_misses(batch.offsets, oracles, scores)),
    )


def _pair_objective(
    loss: PairLoss,
    batch: Batch,
    gains: Scores,
    sampling: PairSampling,
    rng: np.random.Generator,
) -> _Objective:
    """Return a pairwise loss on sampled pairs."""
    pairs = sample_pairs(
        batch.offsets, gains, lambda top, count: rng.integers(0, top, count), sampling
    )
    counts = pairs.take(batch.row_weights)
    rows = np.zeros(batch.n_hyps, dtype=np.bool_)
    rows[pairs.better] = rows[pairs.worse] = True
    gaps = gains[pairs.better] - gains[pairs.worse]

    def pull(scores: Scores) -> tuple[float, Scores, int]:
        margins = scores[pairs.better] - scores[pairs.worse]
        values, slopes = loss.value_and_gradient(margins, gaps)
        derivatives = np.zeros(len(rows))
        np.add.at(derivatives, pairs.better, counts * slopes)
        np.subtract.at(derivatives, pairs.worse, counts * slopes)
        return float((counts * values).sum()), derivatives, int(np.sum(margins <= loss.margin))

    return _Objective(rows, len(pairs), pull)


def _xbleu(
    batch: Batch, sizes: SentenceValues, context: Statistics
) -> Callable[[Scores], tuple[float, Scores]]:
    """Return 1 - BLEU of the expected statistics of a batch and a context.

    BLEU of a corpus is multiplied by its size, in the unit of costs, which ends the statistics of
    the context. The loss of a batch without a match of some n-gram length,
    and without a context, is constant.
    """
    offsets, stats = batch.offsets, batch.stats.astype(np.float64)
    weights = batch.row_weights
    filled = np.diff(offsets) > 0
    size = float((filled_weights(batch) * sizes[filled]).sum() + context[-1])

    def pull(scores: Scores) -> tuple[float, Scores]:
        shares = losses.softmax_shares(scores, offsets)
        totals = (shares if weights is None else weights * shares) @ stats + context[:-1]
        bleu, slopes = expected_bleu(totals)
        errors = -size * (stats @ slopes)
        _, derivatives = losses.EXPECTED_ERROR.value_and_gradient(scores, offsets, errors)
        return size * (1.0 - bleu), derivatives if weights is None else weights * derivatives

    return pull


def _count_misses(offsets: Offsets, oracles: OracleSets, scores: Scores) -> int:
    """Count the sentences whose 1-best by these scores is not an oracle."""
    starts = offsets[:-1][np.diff(offsets) > 0]
    if not len(starts):
        return 0
    is_oracle = np.zeros(int(offsets[-1]), dtype=np.bool_)
    is_oracle[oracles.rows] = True
    best = np.maximum.reduceat(np.where(is_oracle, scores, -np.inf), starts)
    return int(np.sum(best < np.maximum.reduceat(scores, starts)))
