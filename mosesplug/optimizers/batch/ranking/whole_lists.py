"""All-pairs ranking (Dreyer & Dong 2015): every pair of a list, without sampling.

PRO learns from a few pairs of each list, and its results vary with the sample. The loss over all
pairs with different scores is computed without visiting them (``pair_sweep``), and is convex: the
same lists always give the same weights. A ranking SVM in sub-quadratic time is Dreyer and Dong's
idea; the weights of pairs and the least difference are choices of this program.

Cross-entropy ranking (Green et al. 2014): fit the metric's distribution.

Pairs are ranked with certainty even where the metric is uncertain. The survey (section 3.5)
recommends fitting distributions instead. The hypotheses ``i`` of each list that the metric ranks
highest have the probabilities

    p_i  ~  gain_i^a / log(1 + rank_i)

with ``a = 1`` and 40 hypotheses, as in the authors' decoder Phrasal since May 2014 (before: ``a =
2`` and 5 hypotheses). The gain is discounted as in information retrieval (Järvelin & Kekäläinen
2002), and hypotheses of equal gains share the least rank. The loss of a list is ``- sum p_i log
q_i`` where ``q`` is the softmax of the model scores. Phrasal minimizes it online; here it is
minimized over all lists, with a prior. With probabilities in proportion to ``exp(sharpness
gain_i)`` it is the loss of ListNet (Cao et al. 2007).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Offsets, Scores
from mosesplug.errors import OptimizerError
from mosesplug.metrics.protocol import Smoothing
from mosesplug.optimizers.batch.ranking.all_pairs import (
    all_pairs,
    all_pairs_hinge,
    squared_hinge,
)
from mosesplug.optimizers.batch.ranking.hinge import HingeLosses, minimize_hinge
from mosesplug.optimizers.batch.ranking.linear import (
    FeatureMoments,
    LossCurve,
    ScoreLoss,
    fit_score_loss,
    minimize_score_loss,
)
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    score_solution,
    sentence_scores,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.solvers.bounded import Box
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.options import Opt


@dataclass(frozen=True)
class RankAllOptions:
    """Settings of all-pairs ranking."""

    pair_loss: Annotated[
        Literal["squared-hinge", "hinge"],
        Opt(
            "loss of a margin below 1: the difference, or its square",
            source="after Dreyer & Dong 2015; squared: Lee & Lin 2014",
        ),
    ] = "squared-hinge"
    pair_weights: Annotated[
        Literal["difference", "equal"],
        Opt("weight of a pair: its difference of score, or 1", source="mosesplug's"),
    ] = "difference"
    minimum_difference: Annotated[
        float,
        Opt(
            "smallest difference in sentence score of a pair",
            details="0: only pairs of equal scores are dropped.",
            source="after Hopkins & May 2011, alpha, who have 0.05; 0.1: mosesplug's",
            minimum=0.0,
        ),
    ] = 0.1
    sentence_bleu: Annotated[
        Smoothing,
        Opt(
            "smoothing of sentence BLEU, if the metric is BLEU",
            details="nakov makes output longer.",
            source="Moses pro; Nakov et al. 2012; Lin & Och 2004",
        ),
    ] = "moses"
    prior_precision: Annotated[
        float,
        Opt(
            "precision (1/variance) of the Gaussian prior on the weights",
            details="The pairs of a sentence together count once.",
            source="Lee & Lin 2014, 1/C; the number and what counts once: mosesplug's",
            minimum=0.0,
        ),
    ] = 0.01


def rank_all(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: RankAllOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights so that the better of any two hypotheses scores higher.

    See ``problem`` for the arguments. Nothing is random, and the result depends on the initial
    weights only where they are inactive.

    Raises:
        OptimizerError: no two hypotheses of
            a sentence differ enough in score and in features.
    """
    pairs = all_pairs(
        problem.tuning_set.offsets,
        sentence_scores(problem, options.sentence_bleu),
        minimum_difference=options.minimum_difference,
        by_gap=options.pair_weights == "difference",
        sentence_weights=problem.tuning_set.sentence_weights,
    )
    if pairs.n_pairs == 0:
        raise OptimizerError(
            "no two hypotheses of a sentence differ in score by "
            f"{options.minimum_difference:g} or more; use longer n-best lists, or a smaller "
            "minimum_difference"
        )
    facts = {"pairs": pairs.n_pairs}
    if options.pair_loss == "hinge":
        losses = all_pairs_hinge(pairs)
        return _fit(problem, initial, minimize_hinge, losses, options, facts, progress)
    loss = squared_hinge(pairs)
    return _fit(problem, initial, minimize_score_loss, loss, options, facts, progress)


def _fit(
    problem: Problem,
    initial: Floats,
    minimize: Callable[..., Minimum],
    loss: ScoreLoss | HingeLosses,
    options: RankAllOptions | CrossEntropyOptions,
    facts: Mapping[str, Any],
    progress: Progress,
) -> Solution:
    """Minimize a loss of all model scores.

    The history has the facts and those of the fit.
    """
    progress(1, 2, "steps")

    def fit(rows: Any, second: FeatureMoments, offsets: Floats | float, box: Box | None) -> Minimum:
        precision = options.prior_precision
        return minimize(rows, loss, second, precision=precision, offsets=offsets, box=box)

    weights, result = fit_score_loss(problem, initial, fit)
    progress(2, 2, "steps")
    return score_solution(problem, weights, ({**facts, **result.facts()},))


@dataclass(frozen=True)
class CrossEntropyOptions:
    """Settings of cross-entropy ranking."""

    distribution: Annotated[
        Literal["discounted", "exponential"],
        Opt(
            "how the metric gives a distribution over a list",
            details="Powers of sentence scores discounted by rank, or exponentials of sentence "
            "scores.",
            source="Green et al. 2014, as Phrasal has it; Cao et al. 2007",
        ),
    ] = "discounted"
    best_hypotheses: Annotated[
        int,
        Opt(
            "number of best hypotheses with a probability above 0; 0: all",
            source="Phrasal's CrossEntropyOptimizer, ceTopk; 5 in that of March 2014",
            only_with="distribution=discounted",
            minimum=0,
        ),
    ] = 40
    gain_exponent: Annotated[
        float,
        Opt(
            "exponent of the sentence score",
            source="Phrasal's CrossEntropyOptimizer; 2 in that of March 2014",
            only_with="distribution=discounted",
            minimum=0.0,
        ),
    ] = 1.0
    sharpness: Annotated[
        float,
        Opt(
            "factor of the sentence score in the exponential",
            source="Cao et al. 2007, who take 1; 30: mosesplug's",
            only_with="distribution=exponential",
            minimum=0.0,
        ),
    ] = 30.0
    sentence_bleu: Annotated[
        Smoothing,
        Opt(
            "smoothing of sentence BLEU, if the metric is BLEU",
            details="nakov makes output longer.",
            source="Nakov et al. 2012; Moses pro; Lin & Och 2004",
        ),
    ] = "nakov"
    prior_precision: Annotated[
        float,
        Opt(
            "precision (1/variance) of the Gaussian prior on the weights",
            details="The loss of a sentence counts once.",
            source="mosesplug's",
            minimum=0.0,
        ),
    ] = 0.01


def cross_entropy(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: CrossEntropyOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights so that the model's distribution is like the metric's.

    See ``problem`` for the arguments. Nothing is random, and the result depends on the initial
    weights only where they are inactive.

    Raises:
        OptimizerError: no hypothesis has a
            gain above 0, or the fitted weights are all zero.
    """
    offsets = problem.tuning_set.offsets
    gains = sentence_scores(problem, options.sentence_bleu)
    if options.distribution == "exponential":
        goals = metric_distributions(offsets, gains, exponential_shares(options.sharpness))
    else:
        shares = discounted_shares(options.gain_exponent)
        goals = metric_distributions(offsets, gains, shares, options.best_hypotheses)
    if not goals.any():
        raise OptimizerError(
            f"no hypothesis has a {problem.metric.name} above 0; check the references"
        )
    loss = cross_entropy_loss(offsets, goals, problem.tuning_set.row_weights)
    return _fit(problem, initial, minimize_score_loss, loss, options, {}, progress)


Shares = Callable[[Floats, NDArray[np.int64]], Floats]
"""From gains and ranks of a list's hypotheses to numbers in proportion to probabilities."""


def discounted_shares(exponent: float) -> Shares:
    """Return ``gain^exponent / log(1 + rank)``; 0 for gains that are not above 0."""

    def shares(gains: Floats, ranks: NDArray[np.int64]) -> Floats:
        # Relative to the largest gain: a large exponent would underflow.
        top = gains.max()
        relative = np.maximum(gains, 0.0) / (top if top > 0.0 else 1.0)
        return np.asarray(np.where(gains > 0.0, relative**exponent, 0.0) / np.log1p(ranks))

    return shares


def exponential_shares(sharpness: float) -> Shares:
    """Return ``exp(sharpness gain)``."""
    return lambda gains, ranks: np.asarray(np.exp(sharpness * (gains - gains.max())))


def metric_distributions(offsets: Offsets, gains: Scores, shares: Shares, best: int = 0) -> Floats:
    """Return the metric's distribution over each list, float64 ``[n_hyps]``.

    Args:
        shares: numbers in proportion to the probabilities; all zero: no distribution.
        best: hypotheses of a larger rank have probability 0; 0: no limit.
    """
    goals = np.zeros(len(gains))
    for start, end in itertools.pairwise(offsets.tolist()):
        own = gains[start:end]
        # Ties share the least rank: 1 plus the number of larger gains.
        ranks = 1 + (end - start) - np.searchsorted(np.sort(own), own, side="right")
        some = (ranks <= best) | (best == 0)
        if end > start:
            raw = np.zeros(end - start)
            raw[some] = shares(own[some], ranks[some])
            goals[start:end] = raw / (raw.sum() if raw.any() else 1.0)
    return goals


def cross_entropy_loss(
    offsets: Offsets, goals: Scores, row_weights: Scores | None = None
) -> ScoreLoss:
    """Return ``- sum p log q`` over all lists, with ``q`` the softmax of the scores.

    Args:
        goals: ``p``: 1 in sum over a list, or 0 for lists that do not count.
        row_weights: factor of each hypothesis' list; None: 1.
    """
    factors = 1.0 if row_weights is None else row_weights
    widths = np.diff(offsets)
    starts, widths = offsets[:-1][widths > 0], widths[widths > 0]
    counted = np.repeat(np.add.reduceat(goals, starts) > 0.0, widths)

    def spread(values: Floats) -> Floats:
        return np.repeat(values, widths)

    def loss(scores: Floats) -> LossCurve:
        shifted = scores - spread(np.maximum.reduceat(scores, starts))
        raw = np.exp(shifted)
        sums = np.add.reduceat(raw, starts)
        shares = np.where(counted, raw / spread(sums), 0.0)
        value = float(np.sum(factors * (goals * (spread(np.log(sums)) - shifted))))

        def product(vector: Floats) -> Floats:
            weighted = shares * vector
            means = spread(np.add.reduceat(weighted, starts))
            return np.asarray(factors * (weighted - shares * means))

        return LossCurve(value, factors * (shares - goals), product)

    return loss


ALGORITHMS = (
    Algorithm(
        name="rank-all",
        summary="Rank all pairs of hypotheses instead of a sample.",
        source="Dreyer & Dong 2015",
        family="ranking",
        options=RankAllOptions,
        optimize=rank_all,
        keeps_bounds=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="cross-entropy",
        summary="Fit the model's distribution to one of the metric.",
        source="Green et al. 2014",
        family="ranking",
        options=CrossEntropyOptions,
        optimize=cross_entropy,
        keeps_bounds=True,
        weighs_sentences=True,
    ),
)
