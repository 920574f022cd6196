"""Tuning as linear regression on feature differences (Bazrafshan et al. 2012).

The squared-error loss of the survey (Neubig & Watanabe 2016, eq. 33), over ``n`` pairs of
hypotheses of a sentence,

    1/n sum (gain(a) - gain(b) - w . (h(a) - h(b)))^2  +  lambda |w|^2

is least where the model scores differ as the gains do. (As printed, the sign of the difference in
error would make scores rise with errors, against the survey's own footnote 5.) Which pairs:

- ``sampled``: as PRO samples them, as the paper does;
- ``oracles``: the oracle of each sentence, and every other hypothesis (equation 33, which goes
  through all oracles; here it is the first of equally good ones);
- ``all``: all of each sentence. Their squares add up to the number of hypotheses times the squares
  about the sentence's means, so each hypothesis is one example, ``gain - mean`` of ``h - mean``:
  every sentence has an offset of its own, which is not regularized. A sentence then counts as its
  number of hypotheses, not as that of its pairs.

It is solved by LSQR (Paige & Saunders 1982), which asks for products with the differences, and for
no matrix of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Scores
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.fits import fit_scaled
from mosesplug.optimizers.batch.margin.options import RegularizedOptions
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, RankedPairs, sample_pairs
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.scaled import ScaledLists, scale_lists
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.solvers.bounded import Box, minimize_in_box
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.options import Opt, same_as

_ITERATIONS = 5000
"""Maximum iterations of LSQR."""


@dataclass(frozen=True)
class RegressionOptions(RegularizedOptions):
    """Settings of regression."""

    cost: Annotated[
        Literal["corpus", "lin-och", "moses", "nakov", "pseudo-corpus"],
        same_as(RegularizedOptions, "cost"),
    ] = "moses"
    regularization: Annotated[
        float,
        Opt(
            "lambda, the factor of the squared norm of the weights",
            details="The weights are in units of their features; the squared error is a mean.",
            source="Neubig & Watanabe 2016, figure 3, line 9; the value is chosen",
            minimum=0.0,
        ),
    ] = 1e-4
    examples: Annotated[
        Literal["sampled", "oracles", "all"],
        Opt(
            "pairs of hypotheses in the regression",
            details="A sample with large differences; the oracle and each other hypothesis; or "
            "each hypothesis and the mean of its sentence, which stands for all pairs.",
            source="Bazrafshan et al. 2012; Neubig & Watanabe 2016, eq. 33",
        ),
    ] = "sampled"
    candidate_pairs: Annotated[
        int,
        Opt(
            "number of hypothesis pairs sampled per sentence",
            source="Hopkins & May 2011, Gamma",
            only_with="examples=sampled",
            minimum=1,
        ),
    ] = 5000
    kept_pairs: Annotated[
        int,
        Opt(
            "number of candidate pairs kept, those with largest score differences",
            source="Hopkins & May 2011, Xi",
            only_with="examples=sampled",
            minimum=1,
        ),
    ] = 50
    minimum_difference: Annotated[
        float,
        Opt(
            "smallest difference in sentence score of a pair",
            details="0: only pairs of equal scores are dropped. In the unit of costs.",
            source="Hopkins & May 2011, alpha",
            only_with="examples=sampled",
            minimum=0.0,
        ),
    ] = 0.05


class Contrast(NamedTuple):
    """A linear map from values of hypotheses to those of examples, and its transpose.

    Attributes:
        apply: float64 ``[n_hyps]`` to ``[n_examples]``.
        transpose: float64 ``[n_examples]`` to ``[n_hyps]``.
    """

    apply: Callable[[Floats], Floats]
    transpose: Callable[[Floats], Floats]


def contrast_pairs(pairs: RankedPairs, n_hyps: int) -> Contrast:
    """Return the better hypothesis minus the worse, of each pair."""

    def transposed(values: Floats) -> Floats:
        sums = np.bincount(pairs.better, values, n_hyps) - np.bincount(pairs.worse, values, n_hyps)
        return np.asarray(sums, dtype=np.float64)

    return Contrast(lambda values: values[pairs.better] - values[pairs.worse], transposed)


def contrast_means(offsets: NDArray[np.int64]) -> Contrast:
    """Return each value minus its sentence's mean; no sentence may be empty.

    The map takes float64 ``[n_hyps, ...]``, and is its own transpose. ``offsets``, int64
    ``[n_sentences + 1]``, are those of the sentences.
    """
    widths = np.diff(offsets)

    def centered(values: Floats) -> Floats:
        means = np.add.reduceat(values, offsets[:-1]) / widths
        return np.asarray(values - np.repeat(means, widths))

    return Contrast(centered, centered)


def fit_differences(
    lists: ScaledLists,
    gains: Scores,
    contrast: Contrast,
    counts: Floats,
    regularization: float,
    box: Box | None = None,
) -> Minimum:
    """Return the weights with the least loss, in their features' units.

    Args:
        lists: the hypotheses.
        contrast: from hypotheses to examples.
        counts: float64 ``[n_examples]``, the weight of each example.
        regularization: lambda.
        box: limits of the weights; None if there are none.
    """
    # SciPy takes a tenth of a second to import, and other algorithms do not need it.
    from scipy.sparse.linalg import LinearOperator, lsqr

    roots, total = np.sqrt(counts), float(counts.sum()) or 1.0
    targets = roots * contrast.apply(gains - lists.fixed_scores)

    def forward(weights: Any) -> Floats:
        scores = lists.scores(np.ascontiguousarray(weights.reshape(-1))) - lists.fixed_scores
        return roots * contrast.apply(scores)

    def backward(values: Any) -> Floats:
        return lists.combine(contrast.transpose(roots * values.reshape(-1)))

    if box is not None:

        def value_and_gradient(weights: Floats) -> tuple[float, Floats]:
            misses = forward(weights) - targets
            value = float(misses @ misses) / total + regularization * float(weights @ weights)
            return value, 2.0 * (backward(misses) / total + regularization * weights)

        return minimize_in_box(
            value_and_gradient, np.zeros(len(lists.columns)), box, memory=20, decrease=1e-14
        )
    shape = (len(targets), len(lists.columns))
    operator = LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=np.float64)
    damp = float(np.sqrt(regularization * total))
    solved = lsqr(operator, targets, damp=damp, atol=1e-10, btol=1e-10, iter_lim=_ITERATIONS)
    weights, stopped, iterations = np.asarray(solved[0]), int(solved[1]), int(solved[2])
    misses = targets - forward(weights)
    loss = float(misses @ misses) / total
    return Minimum(
        weights, loss + regularization * float(weights @ weights), iterations, stopped != 7
    )


def regression(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: RegressionOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights so that model scores differ as gains do.

    See ``problem`` for the arguments. ``rng`` draws the pairs and the greedy oracles.

    Raises:
        OptimizerError: no two hypotheses of a
            sentence differ enough, or the fitted weights are all zero.
    """
    gains = options.gains(problem, initial, rng)
    lists = scale_lists(problem, initial, options.scaling)
    contrast, counts = _contrast(lists, gains, rng, options)
    progress(1, 2, "steps")
    weights, fit = fit_scaled(
        problem,
        initial,
        lists,
        lambda own, box=None: fit_differences(
            own, gains, contrast, counts, options.regularization, box
        ),
    )
    progress(2, 2, "steps")
    step = {
        "examples": len(counts),
        "objective": fit.loss,
        "iterations": fit.iterations,
        "converged": fit.has_converged,
    }
    return score_solution(problem, weights, (step,))


def _contrast(
    lists: ScaledLists, gains: Floats, rng: np.random.Generator, options: RegressionOptions
) -> tuple[Contrast, Floats]:
    """Return the examples, and the weight of each, float64 ``[n_examples]``."""
    row_weights = lists.weights_of_sentences[lists.owners]
    if options.examples == "all":
        return contrast_means(lists.offsets), row_weights
    if options.examples == "oracles":
        oracles = first_of_largest(lists.offsets, gains)[lists.owners]
        others = np.flatnonzero(oracles != np.arange(len(gains)))
        pairs = RankedPairs(oracles[others], others)
    else:
        pairs = sample_pairs(
            lists.offsets,
            gains,
            lambda top, count: rng.integers(0, top, count),
            PairSampling(options.candidate_pairs, options.kept_pairs, options.minimum_difference),
        )
    if not len(pairs):
        raise OptimizerError(
            "no two hypotheses of a sentence differ in score by enough; use longer n-best lists, "
            "or a smaller minimum_difference"
        )
    return contrast_pairs(pairs, len(gains)), row_weights[pairs.better]


ALGORITHMS = (
    Algorithm(
        name="mse",
        summary="Fit differences of sentence scores by linear regression.",
        source="Bazrafshan et al. 2012",
        family="margin",
        options=RegressionOptions,
        optimize=regression,
        keeps_bounds=True,
        weighs_sentences=True,
    ),
)
