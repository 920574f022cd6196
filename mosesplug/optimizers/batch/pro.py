"""Pairwise ranking optimization (Hopkins & May 2011), alone and as a start of MERT.

Tuning as classification: of two hypotheses of a sentence, which has the better sentence score? The
weights of a classifier on differences of feature vectors rank hypotheses as the metric does. It is
convex, and takes many thousands of sparse features. The sampler is that of Moses' ``pro``, the
classifier does what ``megam`` does; nothing but arrays passes between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.metrics.sentence_bleu import sentence_bleu_moses, sentence_bleu_nakov
from mosesplug.optimizers.batch.logistic import LogisticFit, fit_logistic
from mosesplug.optimizers.batch.mert import MertOptions, mert
from mosesplug.optimizers.batch.pairs import Pairs, PairSampling, differences, sample_pairs
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    checked_weights,
    corpus_score,
    normalised,
    silent,
    with_sparse_active,
)

__all__ = ["ProMertOptions", "ProOptions", "pro", "pro_mert"]

_FACTOR = "SparseFactor"
"""The dense feature that stands for the sparse ones while MERT runs: their score."""


@dataclass(frozen=True)
class ProOptions:
    """Settings of PRO, with the defaults of Moses and of ``megam``."""

    candidate_pairs: int = field(
        default=5000,
        metadata={
            "help": "pairs of hypotheses drawn of each sentence",
            "source": "Hopkins & May 2011, Gamma",
            "minimum": 1,
        },
    )
    kept_pairs: int = field(
        default=50,
        metadata={
            "help": "of these, how many are kept, those with the largest differences of score",
            "source": "Hopkins & May 2011, Xi",
            "minimum": 1,
        },
    )
    minimum_difference: float = field(
        default=0.05,
        metadata={
            "help": "pairs whose sentence scores differ by less are dropped",
            "source": "Hopkins & May 2011, alpha",
            "minimum": 0.0,
        },
    )
    smooth_brevity_penalty: bool = field(
        default=False,
        metadata={
            "help": "smooth the brevity penalty of sentence BLEU too",
            "source": "pro -b; Nakov et al. 2012",
        },
    )
    prior_precision: float = field(
        default=1.0,
        metadata={
            "help": "of the Gaussian prior on the classifier's weights, 1 over its variance",
            "source": "megam -lambda",
            "minimum": 0.0,
        },
    )


@dataclass(frozen=True)
class ProMertOptions(MertOptions, ProOptions):
    """Settings of PRO and of the MERT that follows."""


def pro(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: ProOptions,
    progress: Progress = silent,
) -> Solution:
    """Tune the active weights so that the better hypotheses of pairs score higher.

    Where no active features are given, all are active, sparse ones too. The result does not depend
    on the initial weights, but for those that are not active: they keep their values, and the
    others are found in proportion to them. Where every dense weight is active, the result is
    divided by its L1 norm. Hypotheses are ranked by Moses' smoothed sentence BLEU where the metric
    is BLEU, otherwise by the metric of the sentence alone.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``.
        rng: draws the pairs.
        options: settings.
        progress: told of the two steps.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``checked_weights``), or no two hypotheses
            of a sentence differ enough in score and in features.
        UsageError: a brevity penalty is to be smoothed, and the metric is not BLEU.
    """
    problem = with_sparse_active(problem)
    initial = checked_weights(problem, initial)
    tuning_set, active = problem.tuning_set, problem.active_mask
    pairs = sample_pairs(
        tuning_set.offsets,
        _sentence_scores(problem, options),
        lambda top, count: rng.integers(0, top, count),
        PairSampling(options.candidate_pairs, options.kept_pairs, options.minimum_difference),
    )
    if not len(pairs):
        raise OptimizerError(
            "no two hypotheses of a sentence differ in score by "
            f"{options.minimum_difference:g} or more; take longer n-best lists, or a smaller "
            "minimum difference"
        )
    progress(1, 2, "steps")
    weights = initial.copy()
    weights[active], fit = _fitted(problem, initial, pairs, options)
    if not weights.any():
        raise OptimizerError(
            "the features do not tell good hypotheses from bad ones: PRO's weights are all zero"
        )
    progress(2, 2, "steps")
    weights = normalised(problem, weights)
    step = {
        "pairs": len(pairs),
        "loss": fit.loss,
        "iterations": fit.iterations,
        "converged": fit.converged,
    }
    return Solution(weights, corpus_score(problem, weights), (step,))


def pro_mert(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: ProMertOptions,
    progress: Progress = silent,
) -> Solution:
    """MERT with PRO's weights as a further start, as ``mert-moses.pl --pro-starting-point``.

    MERT tunes the dense weights and, where sparse features are active, one factor of all sparse
    weights that PRO found.

    Args:
        problem: as for ``mert``; where no active features are given, sparse ones are active too.
        initial: float64 ``[n_features]``, MERT's first start; its sparse weights are not used
            unless they are inactive.
        rng: of both.
        options: settings of both.
        progress: told of MERT's climbs.

    Raises:
        OptimizerError, UsageError: as ``pro`` and ``mert``.
    """
    problem = with_sparse_active(problem)
    found = pro(problem, initial, rng, options)
    n_dense, active = problem.tuning_set.space.n_dense, problem.active_mask
    is_dense = np.arange(len(active)) < n_dense
    start = np.where(active & ~is_dense, 0.0, initial)
    by_pro = np.where(active & ~is_dense, found.weights, 0.0)
    dense = replace(problem, active=active & is_dense, starts=(found.weights, *problem.starts))
    if not by_pro.any():
        solution = mert(dense, start, rng, options, progress)
        weights = solution.weights
    else:
        merged = _with_factor(dense, by_pro)
        solution = mert(merged, np.insert(start, n_dense, 1.0), rng, options, progress)
        weights = np.delete(solution.weights, n_dense) + solution.weights[n_dense] * by_pro
        weights = normalised(dense, weights)
    return Solution(weights, corpus_score(problem, weights), found.history + solution.history)


def _sentence_scores(problem: Problem, options: ProOptions) -> NDArray[np.float64]:
    """Score of every hypothesis by itself, float64 ``[n_hyps]``."""
    stats = problem.tuning_set.stats
    if problem.metric.name != "BLEU":
        if options.smooth_brevity_penalty:
            raise UsageError(
                f"{problem.metric.name} has no brevity penalty to smooth: leave out "
                "smooth_brevity_penalty"
            )
        return np.asarray(problem.metric.score(stats), dtype=np.float64)
    if options.smooth_brevity_penalty:
        return sentence_bleu_nakov(stats)
    return sentence_bleu_moses(stats)


def _fitted(
    problem: Problem, initial: NDArray[np.float64], pairs: Pairs, options: ProOptions
) -> tuple[NDArray[np.float64], LogisticFit]:
    """Active weights, and the classifier they come from.

    A pair is an example of either class, once in each direction. Both have the same loss: one
    direction under half the prior has the same minimum.

    Inactive weights have a scale of their own, which is not the classifier's. Their score is
    therefore one more feature, that of a vector of length 1, and the others are multiplied by what
    gives it back its length; unless its weight is not positive, when the inactive score is taken
    as it is.
    """
    from scipy.sparse import csr_array, hstack

    active = problem.active_mask
    examples = differences(problem.tuning_set, pairs, active)
    labels, precision = np.ones(len(pairs)), 0.5 * options.prior_precision
    fixed = np.where(active, 0.0, initial)
    scores = problem.tuning_set.model_scores(fixed)
    margins = scores[pairs.better] - scores[pairs.worse]
    if not margins.any():
        fit = fit_logistic(examples, labels, precision=precision)
        return fit.weights, fit
    length = np.linalg.norm(fixed)
    with_fixed = hstack([examples, csr_array(margins[:, None] / length)], format="csr")
    fit = fit_logistic(with_fixed, labels, precision=precision)
    if fit.weights[-1] > 0.0:
        return fit.weights[:-1] * (length / fit.weights[-1]), fit
    fit = fit_logistic(examples, labels, precision=precision, offsets=margins)
    return fit.weights, fit


def _with_factor(problem: Problem, sparse: NDArray[np.float64]) -> Problem:
    """The problem with the factor of some sparse weights as one more dense weight, the last.

    The factor starts at 1, and random starts draw it from 0 to 1, as in ``mert-moses.pl``.

    Args:
        problem: with its sparse features.
        sparse: float64 ``[n_features]``; the weights that have the factor in common.
    """
    tuning_set, (minima, maxima) = problem.tuning_set, problem.box
    space, positive = tuning_set.space, problem.positive
    column = tuning_set.model_scores(sparse).astype(np.float32)
    return replace(
        problem,
        tuning_set=replace(
            tuning_set,
            space=FeatureSpace((*space.groups, (_FACTOR, 1)), space.sparse),
            dense=np.column_stack([tuning_set.dense, column]),
        ),
        active=np.insert(problem.active_mask, space.n_dense, True),
        minima=np.insert(minima, space.n_dense, 0.0),
        maxima=np.insert(maxima, space.n_dense, 1.0),
        starts=tuple(np.insert(start, space.n_dense, 1.0) for start in problem.starts),
        positive=None if positive is None else np.insert(positive, space.n_dense, False),
    )
