"""Softmax loss (Och & Ney 2002): raise the probability of the oracles.

The plain loss asks for the same odds against a nearly perfect hypothesis as against a bad one, and
its BLEU is then often no better than at the start. So by default all hypotheses within a tolerance
are oracles, and the costs of the others are added to their model scores (softmax-margin; Gimpel &
Smith 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from mosesplug.arrays import Weights
from mosesplug.optimizers.batch.expected.descent import DescentSettings
from mosesplug.optimizers.batch.expected.stages import AnnealingStage, fit_stages
from mosesplug.optimizers.problem import Problem, Progress, Solution
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt


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
    return replace(solution, notes=notes)


ALGORITHMS = (
    Algorithm(
        name="softmax",
        summary="Make the oracles of each list likely.",
        source="Och & Ney 2002",
        family="expectation",
        options=SoftmaxOptions,
        optimize=softmax,
        asks=frozenset({"expectations"}),
        keeps_bounds=True,
    ),
)
