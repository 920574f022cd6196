"""Expected errors and gains of the model's distribution.

- ``risk`` (Smith & Eisner 2006): the expected error of a hypothesis, by a smoothed sentence BLEU,
  by BLEU of a corpus in which the sentence is replaced, or by any other metric of the sentence;
- ``linear-bleu`` (Tromble et al. 2008): the expectation of linear BLEU;
- ``xbleu`` (Rosti et al. 2010, 2011): BLEU of the expected statistics;
- ``softmax`` (Och & Ney 2002): raise the probability of the oracles.

Search graphs, where only sums over edges have expectations, know linear BLEU alone.

The plain loss of oracles asks for the same odds against a nearly perfect hypothesis as against a
bad one, and its BLEU is then often no better than at the start. So by default all hypotheses within
a tolerance are oracles, and the costs of the others are added to their model scores
(softmax-margin; Gimpel & Smith 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Statistics, Weights
from mosesplug.candidates import Objective
from mosesplug.errors import DataError, OptimizerError, UsageError
from mosesplug.metrics.bleu.linear import HALF_SLOPE, LinearBleu, linear_bleu
from mosesplug.optimizers.batch.expected.descent import DescentSettings
from mosesplug.optimizers.batch.expected.stages import AnnealingOptions, AnnealingStage, fit_stages
from mosesplug.optimizers.problem import Problem, Progress, Solution
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt


@dataclass(frozen=True)
class RiskOptions(AnnealingOptions):
    """Settings of minimum risk."""

    error: Annotated[
        Literal["lin-och", "moses", "nakov", "corpus", "pseudo-corpus"],
        Opt(
            "error of a hypothesis, by corpus or sentence score",
            details="lin-och, moses, nakov: smoothed sentence BLEU; other metrics score the "
            "sentence. corpus: the metric of the oracles with this hypothesis in place of its "
            "sentence's oracle. pseudo-corpus: the same with the 1-best hypotheses at each stage. "
            "On search graphs, where only sums over edges have expectations, it is linear BLEU "
            "instead of lin-och, and no other error is possible.",
            source="Neubig & Watanabe 2016, sections 3.3 and 6.1; Lin & Och 2004",
        ),
    ] = "lin-och"


@dataclass(frozen=True)
class LinearBleuOptions(AnnealingOptions):
    """Settings of expected linear BLEU."""

    word_precision: Annotated[
        float,
        Opt(
            "word precision that linear BLEU assumes; 0: measure it",
            details="Measured precisions are those of all n-gram lengths of the 1-best hypotheses "
            "at each stage.",
            source="Tromble et al. 2008, section 4.1, p; Neubig & Watanabe 2016, section 5.5.1",
            minimum=0.0,
        ),
    ] = 0.0
    precision_ratio: Annotated[
        float,
        Opt(
            "factor of the word precision for each further word of an n-gram",
            source="Tromble et al. 2008, r; moses -lmbr-r",
            only_with="word_precision>0",
            minimum=0.0,
        ),
    ] = 0.6
    brevity_slope: Annotated[
        float,
        Opt(
            "fraction of the slope of the brevity penalty",
            details="0, as in the paper, favors short output. 1 is the slope for output that is "
            "too short. Values between suit output as long as the reference.",
            source="0 in Tromble et al. 2008; measured",
            minimum=0.0,
        ),
    ] = HALF_SLOPE


@dataclass(frozen=True)
class XbleuOptions(AnnealingOptions):
    """Settings of xBLEU."""


def risk(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: RiskOptions,
    progress: Progress,
) -> Solution:
    """Minimize the expected error of a sentence (survey, eq. 22 to 24, 44 and 45).

    ``rng`` is the random generator of the greedy oracle search if the error is that of the corpus.
    """
    candidates, stages = problem.candidates, options.stages()
    gains = candidates.gains(options.error, "error", rng)

    def objective(stage: AnnealingStage, weights: Weights) -> Objective:
        return candidates.expected_error(gains(weights), stage.temperature)

    return fit_stages(problem, initial, stages, options.descent_settings(), objective, progress)


def expected_linear_bleu(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: LinearBleuOptions,
    progress: Progress,
) -> Solution:
    """Maximize expected linear BLEU (survey, section 5.5.1).

    Gains are those in log BLEU, times the number of sentences. ``rng`` is not used.

    Raises:
        OptimizerError: the 1-best hypotheses have no match of some n-gram length.
        UsageError: ``precision_ratio`` is 0.
    """
    candidates, stages = problem.candidates, options.stages()
    if not options.precision_ratio > 0.0:
        raise UsageError(f"precision_ratio must be above 0, not {options.precision_ratio:g}")

    def objective(stage: AnnealingStage, weights: Weights) -> Objective:
        gains = linearize(candidates.expansion_point(weights), options)
        return candidates.expected_error(gains, stage.temperature)

    return fit_stages(problem, initial, stages, options.descent_settings(), objective, progress)


def linearize(totals: Statistics, options: LinearBleuOptions) -> LinearBleu:
    """Return linear BLEU at a corpus's statistics or at typical ones of its length."""
    if options.word_precision > 0.0:
        totals = totals.copy()
        totals[1] = max(totals[1], 1.0)
        ratios = options.precision_ratio ** np.arange(4.0)
        totals[0:8:2] = totals[1] * options.word_precision * ratios
    try:
        return linear_bleu(totals, brevity=options.brevity_slope)
    except DataError as error:
        raise OptimizerError(f"{error}: set word_precision") from error


def xbleu(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: XbleuOptions,
    progress: Progress,
) -> Solution:
    """Maximize BLEU of expected statistics (survey, eq. 53 to 55 and appendix A).

    ``rng`` is not used.

    Raises:
        OptimizerError: no hypothesis has a match of some n-gram length.
    """
    candidates, stages = problem.candidates, options.stages()
    matches = candidates.matches()
    if not matches.all():
        raise OptimizerError(
            f"no hypothesis has a match of {int(np.argmin(matches)) + 1} words, so BLEU is 0 with "
            "any weights; check that the references belong to the hypotheses"
        )

    def objective(stage: AnnealingStage, weights: Weights) -> Objective:
        return candidates.expected_bleu(stage.temperature)

    return fit_stages(problem, initial, stages, options.descent_settings(), objective, progress)


@dataclass(frozen=True)
class SoftmaxOptions:
    """Settings of the softmax loss."""

    oracle_gain: Annotated[
        Literal["corpus", "lin-och", "moses", "nakov"],
        Opt(
            "score that oracles maximize",
            details="corpus: the corpus metric, by greedy search. lin-och, moses, nakov: smoothed "
            "sentence BLEU; other metrics score the sentence. On search graphs, it is linear BLEU "
            "instead of lin-och, and no other gain is possible.",
            source="Neubig & Watanabe 2016, section 4; Venugopal & Vogel 2005",
        ),
    ] = "lin-och"
    oracles: Annotated[
        Literal["sets", "single", "bold", "hybrid"],
        Opt(
            "oracles: all good enough hypotheses, the best, or the references",
            details="sets: all good enough hypotheses. single: the best of each sentence; the "
            "loss is convex. bold: all derivations of a search graph that yield a reference; "
            "sentences without one are left out. hybrid: bold where there is one, else sets. bold "
            "and hybrid need search graphs.",
            source="Neubig & Watanabe 2016, sections 3.2 and 5.2; Liang et al. 2006",
        ),
    ] = "sets"
    oracle_tolerance: Annotated[
        float,
        Opt(
            "largest cost of an oracle; 0: the best hypotheses only",
            source="0 in Och & Ney 2002; measured",
            only_with="oracles=sets|hybrid",
            minimum=0.0,
        ),
    ] = 0.1
    error_margin: Annotated[
        float,
        Opt(
            "factor of the costs added to the scores of other hypotheses",
            details="0: the plain loss.",
            source="softmax-margin, Gimpel & Smith 2010; 0 in Och & Ney 2002; measured",
            minimum=0.0,
        ),
    ] = 30.0
    l1: Annotated[
        float,
        Opt(
            "lambda of the regularizer lambda |w|_1, which zeroes weights",
            source="Andrew & Gao 2007; cicada_learn_kbest --regularize-l1",
            minimum=0.0,
        ),
    ] = 0.0
    l2: Annotated[
        float,
        Opt(
            "lambda of the regularizer lambda/2 |w|^2; 0: none",
            source="0 in cicada_learn_kbest --regularize-l2; measured",
            minimum=0.0,
        ),
    ] = 0.01
    iterations: Annotated[
        int,
        Opt("maximum steps of L-BFGS (of OWL-QN if there is L1)", source="megam -maxi", minimum=1),
    ] = 1000
    flatness: Annotated[
        float,
        Opt(
            "relative decrease of the objective below which weights have converged",
            details="It is relative to the objective, or to 1 if that is larger.",
            source="measured",
            minimum=0.0,
        ),
    ] = 1e-9


def softmax(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: SoftmaxOptions,
    progress: Progress,
) -> Solution:
    """Maximize the probability of oracles (survey, equations 20 and 21).

    ``rng`` is the random generator of the greedy search for oracles.
    """
    settings = DescentSettings(
        l1=options.l1,
        l2=options.l2,
        learns_scale=not problem.has_conic_bounds,
        iterations=options.iterations,
        tolerance=options.flatness,
    )
    loss = problem.candidates.oracle_loss(
        initial,
        rng,
        gain=options.oracle_gain,
        oracles=options.oracles,
        tolerance=options.oracle_tolerance,
        margin=options.error_margin,
    )
    _, notes = problem.candidates.choose_sentences(options.oracles)
    once = (AnnealingStage(),)
    solution = fit_stages(problem, initial, once, settings, lambda stage, now: loss, progress)
    return replace(solution, notes=(*notes, *solution.notes))


ALGORITHMS = (
    Algorithm(
        name="risk",
        summary="Minimize the expected sentence cost, with annealing.",
        source="Smith & Eisner 2006",
        family="expectation",
        options=RiskOptions,
        optimize=risk,
        asks=frozenset({"expectations"}),
        keeps_bounds=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="linear-bleu",
        summary="Maximize the expectation of linear BLEU, with annealing.",
        source="Tromble et al. 2008",
        family="expectation",
        options=LinearBleuOptions,
        optimize=expected_linear_bleu,
        asks=frozenset({"expectations"}),
        keeps_bounds=True,
        needs_bleu=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="xbleu",
        summary="Maximize BLEU of the expected statistics, with annealing.",
        source="Rosti et al. 2010, 2011",
        family="expectation",
        options=XbleuOptions,
        optimize=xbleu,
        asks=frozenset({"expectations"}),
        keeps_bounds=True,
        needs_bleu=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="softmax",
        summary="Make the oracles of each list likely.",
        source="Och & Ney 2002",
        family="expectation",
        options=SoftmaxOptions,
        optimize=softmax,
        asks=frozenset({"expectations"}),
        keeps_bounds=True,
        weighs_sentences=True,
    ),
)
