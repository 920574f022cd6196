"""All-pairs ranking (Dreyer & Dong 2015): every pair of a list, without sampling.

PRO learns from a few pairs of each list, and its results vary with the sample. The loss over all
pairs with different scores is computed without visiting them (``pair_sweep``), and is convex: the
same lists always give the same weights. A ranking SVM in sub-quadratic time is Dreyer and Dong's
idea; the weights of pairs and the least difference are choices of this program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.metrics.protocol import Smoothing
from mosesplug.optimizers.batch.fits import WeightFit
from mosesplug.optimizers.batch.ranking.all_pairs import (
    AllPairs,
    all_pairs,
    all_pairs_hinge,
    squared_hinge,
)
from mosesplug.optimizers.batch.ranking.hinge import HingeFit, minimize_hinge
from mosesplug.optimizers.batch.ranking.linear import (
    FeatureMoments,
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
from mosesplug.options import Opt

Floats = NDArray[np.float64]


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
    )
    if pairs.n_pairs == 0:
        raise OptimizerError(
            "no two hypotheses of a sentence differ in score by "
            f"{options.minimum_difference:g} or more; use longer n-best lists, or a smaller "
            "minimum_difference"
        )
    progress(1, 2, "steps")

    def fit(
        rows: Any, second: FeatureMoments, offsets: Floats | float, box: Box | None
    ) -> WeightFit:
        return _fit(pairs, rows, second, offsets, options, box)

    weights, found = fit_score_loss(problem, initial, fit)
    progress(2, 2, "steps")
    step: dict[str, Any] = {
        "pairs": pairs.n_pairs,
        "loss": found.loss,
        "iterations": found.iterations,
        "converged": found.has_converged,
    }
    if isinstance(found, HingeFit):
        step["gap"] = found.gap
    return score_solution(problem, weights, (step,))


def _fit(
    pairs: AllPairs,
    rows: Any,
    second: FeatureMoments,
    offsets: Floats | float,
    options: RankAllOptions,
    box: Box | None,
) -> WeightFit:
    precision = options.prior_precision
    if options.pair_loss == "hinge":
        losses = all_pairs_hinge(pairs)
        return minimize_hinge(rows, losses, second, precision=precision, offsets=offsets, box=box)
    return minimize_score_loss(
        rows, squared_hinge(pairs), second, precision=precision, offsets=offsets, box=box
    )


ALGORITHMS = (
    Algorithm(
        name="rank-all",
        summary="Rank all pairs of hypotheses instead of a sample.",
        source="Dreyer & Dong 2015",
        family="ranking",
        options=RankAllOptions,
        optimize=rank_all,
        keeps_bounds=True,
    ),
)
