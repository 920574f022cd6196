"""Pairwise ranking optimization (Hopkins & May 2011), alone or as a MERT start.

Tuning as classification: which of two hypotheses of a sentence has the better sentence score? The
weights of a classifier on differences of feature vectors rank hypotheses as the metric does. The
problem is convex, with many thousands of sparse features. The sampler is that of Moses' ``pro``,
and the default classifier that of ``megam``; they exchange arrays instead of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.metrics.protocol import Smoothing
from mosesplug.optimizers.batch.mert.mert import MERT
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.batch.ranking.classifiers import (
    ClassifierOptions,
    describe_fit,
    fit_pairs,
)
from mosesplug.optimizers.batch.ranking.pairs import ConstraintOptions, PairSampling, sample_pairs
from mosesplug.optimizers.batch.ranking.summaries import Summaries
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    count_remaining,
    no_progress,
    normalize,
    score_solution,
    sentence_scores,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt

_FACTOR = "SparseFactor"
"""The dense feature that replaces the sparse ones in MERT: their score."""


_HOPKINS: Mapping[str, object] = MappingProxyType(
    {
        "classifier": "logistic",
        "prior_precision": 1.0,
        "acceptance": "sorted",
        "candidate_pairs": 5000,
        "kept_pairs": 50,
        "minimum_difference": 0.05,
        "sentence_bleu": "lin-och",
        "smooth_brevity_penalty": False,
    }
)


@dataclass(frozen=True)
class ProOptions(ClassifierOptions, ConstraintOptions):
    """Settings of PRO, with the defaults of Moses and of ``megam``."""

    variant: Annotated[
        Literal["mosesplug", "paper"],
        Opt(
            "defaults of the other settings: those of Moses, or the paper's",
            details="paper: sentence_bleu=lin-och, acceptance=sorted.",
            source="Hopkins & May 2011",
            presets={"paper": _HOPKINS},
        ),
    ] = "mosesplug"
    candidate_pairs: Annotated[
        int,
        Opt(
            "hypothesis pairs sampled per sentence",
            source="Hopkins & May 2011, Gamma",
            minimum=1,
        ),
    ] = 5000
    kept_pairs: Annotated[
        int,
        Opt(
            "candidate pairs kept per sentence",
            source="Hopkins & May 2011, Xi",
            minimum=1,
        ),
    ] = 50
    minimum_difference: Annotated[
        float,
        Opt(
            "smallest difference in sentence score of a pair",
            details="0: only pairs of equal scores are dropped.",
            source="Hopkins & May 2011, alpha",
            minimum=0.0,
        ),
    ] = 0.05
    sentence_bleu: Annotated[
        Literal["moses", "lin-och"],
        Opt(
            "smoothing of sentence BLEU",
            details="1 is added to matches and totals of all n-gram lengths (moses), or of all but "
            "single words (lin-och, BLEU+1).",
            source="pro of Moses; Hopkins & May 2011, after Lin & Och 2004",
        ),
    ] = "moses"
    smooth_brevity_penalty: Annotated[
        bool,
        Opt(
            "smooth the brevity penalty of sentence BLEU, too",
            source="pro -b; Nakov et al. 2012",
            only_with="sentence_bleu=moses",
        ),
    ] = False


@dataclass(frozen=True)
class ProMertOptions(MertOptions, ProOptions):
    """Settings of PRO and of the MERT that follows."""


def pro(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: ProOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights so that the better hypotheses of pairs score higher.

    See ``problem`` for the arguments. ``rng`` draws the pairs and the perceptron's orders; the
    result depends on the initial weights only where they are inactive. Hypotheses are ranked by
    smoothed sentence BLEU if the metric is BLEU or a mixture with it, otherwise by the
    metric of the sentence.

    Raises:
        OptimizerError: no two hypotheses of
            a sentence differ enough in score and in features.
        UsageError: ``smooth_brevity_penalty`` with a metric that has none.
    """
    tuning_set = problem.tuning_set
    if options.smooth_brevity_penalty and not problem.metric.has_smoothing:
        raise UsageError(
            f"{problem.metric.name} has no brevity penalty to smooth: leave out "
            "smooth_brevity_penalty"
        )
    smoothing: Smoothing = options.sentence_bleu
    if options.smooth_brevity_penalty and smoothing == "moses":
        smoothing = "nakov"
    scores = sentence_scores(problem, smoothing)

    def draw(top: int, count: int) -> NDArray[np.int64]:
        return rng.integers(0, top, count)

    sampling = PairSampling(
        options.candidate_pairs,
        options.kept_pairs,
        options.minimum_difference,
        largest=options.acceptance != "random",
        exact=options.acceptance == "sorted",
    )
    rule = options.rule(scores, tuning_set.lengths, draw)
    pairs = sample_pairs(tuning_set.offsets, scores, draw, sampling, rule)
    if not len(pairs):
        constrained = "" if rule is None else " and are within the limits set"
        raise OptimizerError(
            "no two hypotheses of a sentence differ in score by "
            f"{options.minimum_difference:g} or more{constrained}; use longer n-best lists, or a "
            "smaller minimum_difference"
        )
    progress(1, 2, "steps")
    weights, fit = fit_pairs(problem, initial, pairs, options, rng)
    progress(2, 2, "steps")
    solution = score_solution(problem, weights, (describe_fit(pairs, fit, options),))
    return count_remaining(problem, solution) if options.l1 > 0.0 else solution


def pro_mert(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: ProMertOptions,
    progress: Progress,
) -> Solution:
    """Run MERT with PRO's weights as a further start.

    As ``mert-moses.pl --pro-starting-point``.

    MERT tunes the dense weights and, if sparse features are active, one factor of all sparse
    weights that PRO found. Active sparse weights of ``initial`` are not used.

    Raises:
        OptimizerError, UsageError: as ``pro`` and ``mert``.
    """
    first = pro(problem, initial, rng, options, no_progress)
    n_dense, active = problem.tuning_set.space.n_dense, problem.active_mask
    is_dense = np.arange(len(active)) < n_dense
    start = np.where(active & ~is_dense, 0.0, initial)
    by_pro = np.where(active & ~is_dense, first.weights, 0.0)
    dense = replace(problem, active=active & is_dense, starts=(first.weights, *problem.starts))
    if not by_pro.any():
        solution = MERT.optimize(dense, start, rng, options, progress)
        weights = solution.weights
    else:
        whole = Summaries.of(problem, by_pro, [_FACTOR] * problem.tuning_set.space.n_sparse)
        merged = whole.add_to(dense)
        solution = MERT.optimize(merged, whole.start(start), rng, options, progress)
        weights = normalize(dense, whole.expand_weights(solution.weights))
    return Solution(weights, corpus_score(problem, weights), first.history + solution.history)


ALGORITHMS = (
    Algorithm(
        name="pro",
        summary="Train a classifier on sampled pairs of hypotheses.",
        source="Hopkins & May 2011",
        family="Moses",
        options=ProOptions,
        optimize=pro,
        keeps_bounds=True,
        order_matters=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="pro+mert",
        summary="Run MERT with PRO's weights among its starting points.",
        source="mert-moses.pl --pro-starting-point",
        family="Moses",
        options=ProMertOptions,
        optimize=pro_mert,
        restarts=True,
        weighs_sentences=True,
    ),
)
