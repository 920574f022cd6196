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
from numpy.typing import NDArray

from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.descent import DescentSettings
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.batch.expected.risk import (
    LinearBleuOptions,
    first_best_totals,
    linearize,
    require_bleu,
    require_linear_gain,
)
from mosesplug.optimizers.batch.expected.stages import AnnealingStage, fit_stages
from mosesplug.optimizers.costs import Costs, first_of_largest
from mosesplug.optimizers.derivations import (
    OracleUpdates,
    choose_sentences,
    count_reachable,
    require_local,
)
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    list_shards,
    no_progress,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt

__all__ = ["ALGORITHMS", "SoftmaxOptions", "softmax"]


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
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: SoftmaxOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Maximize the probability of oracles (survey, equations 20 and 21).

    Where no active features are given, all are active, sparse ones too. Inactive weights keep their
    values, and the others are found in proportion to them. Where every dense weight is active, the
    result is divided by its L1 norm.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``; the search starts in this direction.
        rng: the random generator of the greedy search for oracles.
        options: settings.
        progress: called when the weights are found.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights`` and ``fit_stages``).
    """
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    settings = DescentSettings(
        l1=options.l1,
        l2=options.l2,
        learns_scale=not problem.has_conic_bounds,
        iterations=options.iterations,
        tolerance=options.flatness,
    )
    notes: tuple[str, ...] = ()
    if problem.derivations is not None:
        found = _graph_objective(problem, initial, options)
        notes = count_reachable(problem.derivations, _updates(options))
    else:
        require_local(options.oracles)
        found = objectives.softmax(list_shards(problem), *_oracles(problem, options, rng))
    once = (AnnealingStage(),)
    solution = fit_stages(problem, initial, once, settings, lambda stage, now: found, progress)
    return replace(solution, notes=notes)


def _graph_objective(
    problem: Problem, initial: NDArray[np.float64], options: SoftmaxOptions
) -> Objective:
    """Return the loss of all derivations of search graphs.

    The gain is linear BLEU at the 1-best of the initial weights, times the number of sentences and
    BLEU, which gives it the unit of a sentence's BLEU.

    Raises:
        UsageError: another gain of oracles, or a metric without BLEU statistics.
        OptimizerError: references are the oracles, and no graph yields one.
    """
    require_linear_gain(options.oracle_gain, "oracle_gain")
    require_bleu(problem, "softmax on search graphs")
    graphs = problem.derivations
    assert graphs is not None
    totals = first_best_totals(problem, initial)
    gains = linearize(totals, LinearBleuOptions())
    unit = graphs.n_sentences * float(problem.metric.score(totals))
    tolerance = None if options.oracles == "single" else options.oracle_tolerance
    updates = _updates(options)
    sentences, bold = choose_sentences(graphs, updates), updates != "local"
    return graphs.softmax(gains.scale(unit), tolerance, options.error_margin, sentences, bold=bold)


def _updates(options: SoftmaxOptions) -> OracleUpdates:
    return options.oracles if options.oracles in ("bold", "hybrid") else "local"


def _oracles(
    problem: Problem, options: SoftmaxOptions, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return the oracles, bool ``[n_hyps]``, and the costs of the other hypotheses.

    The costs are None if they have no weight. A corpus gain is the change in the score of all other
    sentences' oracles, times the number of sentences; the largest gains make the sets that
    ``corpus_oracles`` finds.
    """
    offsets = problem.tuning_set.offsets
    gains = Costs(options.oracle_gain).gains(problem.tuning_set, problem.metric, {}, rng)
    single = first_of_largest(offsets, gains)
    widths = np.diff(offsets)
    losses = np.repeat(gains[single], widths[widths > 0]) - gains
    is_oracle = np.zeros(len(gains), dtype=np.bool_)
    if options.oracles == "single":
        is_oracle[single] = True
    else:
        is_oracle = losses <= options.oracle_tolerance
    if options.error_margin == 0.0:
        return is_oracle, None
    return is_oracle, np.where(is_oracle, 0.0, options.error_margin * losses)


ALGORITHMS = (
    Algorithm(
        name="softmax",
        summary="Make the oracles of each list likely.",
        source="Och & Ney 2002",
        family="expectation",
        options=SoftmaxOptions,
        optimize=softmax,
        graphs="derivations",
        keeps_bounds=True,
        maps_shards=True,
    ),
)
