"""Minimum risk (Smith & Eisner 2006): the expected error of the model.

The error of a hypothesis is a smoothed sentence BLEU, linear BLEU, BLEU of a corpus in which the
sentence is replaced, or any other metric of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, OptimizerError, UsageError
from mosesplug.metrics.linear_bleu import LinearBleu, linear_bleu
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.batch.expected.stages import AnnealingOptions, AnnealingStage, fit_stages
from mosesplug.optimizers.costs import CostKind, Costs
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    corpus_statistics,
    list_shards,
    no_progress,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt

__all__ = [
    "ALGORITHMS",
    "LinearBleuOptions",
    "RiskOptions",
    "expected_linear_bleu",
    "first_best_totals",
    "linearize",
    "require_bleu",
    "require_linear_gain",
    "risk",
]

Floats = NDArray[np.float64]


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
    ] = 0.5


def require_bleu(problem: Problem, name: str) -> None:
    """Reject metrics other than BLEU.

    Raises:
        UsageError: the metric has no BLEU statistics.
    """
    if not problem.metric.has_bleu_statistics:
        raise UsageError(
            f"{name} requires the metric BLEU, not {problem.metric.name}; choose BLEU, or the "
            "algorithm risk"
        )


def risk(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: RiskOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Minimize the expected error of a sentence (survey, eq. 22 to 24, 44 and 45).

    By default all features are active, sparse ones too. Inactive weights keep their values, and the
    others are fitted in proportion to them. If every dense weight is active, the result is divided
    by its L1 norm.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``; the search starts in this direction.
        rng: the random generator of the greedy oracle search if the error is that of the corpus.
        options: settings.
        progress: called after each stage.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights`` and ``fit_stages``).
        UsageError: invalid annealing schedule.
    """
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    stages = options.stages()
    if problem.derivations is not None:
        require_linear_gain(options.error, "error")
        return _fit_graphs(problem, initial, LinearBleuOptions(), options, progress)
    shards = list_shards(problem)
    same = None if options.error == "pseudo-corpus" else _errors(problem, options.error, rng)

    def objective(stage: AnnealingStage, weights: Floats) -> Objective:
        errors = _replacing(problem, weights, rng) if same is None else same
        return objectives.risk(shards, errors, stage.temperature)

    return fit_stages(problem, initial, stages, options.descent_settings(), objective, progress)


def expected_linear_bleu(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: LinearBleuOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Maximize expected linear BLEU (survey, section 5.5.1); otherwise as ``risk``.

    Gains are those in log BLEU, times the number of sentences. ``rng`` is not used.

    Raises:
        OptimizerError: as ``risk``, or the 1-best hypotheses have no match of some n-gram length.
        UsageError: the metric is not BLEU, ``precision_ratio`` is 0, or the schedule is invalid.
    """
    require_bleu(problem, "linear-bleu")
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    stages = options.stages()
    if not options.precision_ratio > 0.0:
        raise UsageError(f"precision_ratio must be above 0, not {options.precision_ratio:g}")
    if problem.derivations is not None:
        return _fit_graphs(problem, initial, options, options, progress)
    tuning_set, shards = problem.tuning_set, list_shards(problem)

    def objective(stage: AnnealingStage, weights: Floats) -> Objective:
        rows = tuning_set.first_best(weights)
        totals = tuning_set.stats[rows].sum(axis=0, dtype=np.float64)
        errors = -len(rows) * linearize(totals, options).gains(tuning_set.stats)
        return objectives.risk(shards, errors, stage.temperature)

    return fit_stages(problem, initial, stages, options.descent_settings(), objective, progress)


def _fit_graphs(
    problem: Problem,
    initial: Floats,
    linear: LinearBleuOptions,
    annealing: AnnealingOptions,
    progress: Progress,
) -> Solution:
    """Maximize expected linear BLEU of all derivations of search graphs.

    Args:
        problem: with derivations.
        initial: float64 ``[n_features]``, checked.
        linear: how BLEU is linearized at the 1-best of each stage.
        annealing: regularizer and schedule.
        progress: called after each stage.
    """
    graphs = problem.derivations
    assert graphs is not None

    def objective(stage: AnnealingStage, weights: Floats) -> Objective:
        gains = linearize(first_best_totals(problem, weights), linear)
        return graphs.risk(gains.scale(float(graphs.n_sentences)), stage.temperature)

    settings = annealing.descent_settings()
    return fit_stages(problem, initial, annealing.stages(), settings, objective, progress)


def first_best_totals(problem: Problem, weights: Floats) -> Floats:
    """Return statistics of the 1-best that BLEU can be linearized at, float64 ``[9]``.

    If some n-gram length has no match, one more of each gives a direction.
    """
    totals = corpus_statistics(problem, weights)
    return totals if (totals[0:-1:2] > 0.0).all() else totals + 1.0


def require_linear_gain(value: str, name: str) -> None:
    """Check that a setting has its default, the only gain on search graphs.

    Args:
        value: the value of the setting.
        name: the name of the setting.

    Raises:
        UsageError: it has another value than ``lin-och``.
    """
    if value != "lin-och":
        raise UsageError(
            f"{name}={value} needs n-best lists; search graphs have linear BLEU only: leave out "
            f"{name}"
        )


def linearize(totals: Floats, options: LinearBleuOptions) -> LinearBleu:
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


def _errors(problem: Problem, kind: CostKind, rng: np.random.Generator) -> Floats:
    return -Costs(kind).gains(problem.tuning_set, problem.metric, {}, rng)


def _replacing(problem: Problem, weights: Floats, rng: np.random.Generator) -> Floats:
    """Return errors in the corpus of 1-best hypotheses (eq. 56), float64 ``[n_hyps]``.

    An error is that of the corpus times the number of its sentences.
    """
    tuning_set, metric = problem.tuning_set, problem.metric
    costs = Costs("pseudo-corpus", "one-best")
    memory = costs.update_memory(tuning_set, costs.memory(metric), tuning_set.first_best(weights))
    return -costs.gains(tuning_set, metric, memory, rng)


ALGORITHMS = (
    Algorithm(
        name="risk",
        summary="Minimize the expected sentence cost, with annealing.",
        source="Smith & Eisner 2006",
        family="expectation",
        options=RiskOptions,
        optimize=risk,
        graphs="derivations",
        keeps_bounds=True,
        maps_shards=True,
    ),
    Algorithm(
        name="linear-bleu",
        summary="Maximize the expectation of linear BLEU, with annealing.",
        source="Tromble et al. 2008",
        family="expectation",
        options=LinearBleuOptions,
        optimize=expected_linear_bleu,
        graphs="derivations",
        keeps_bounds=True,
        maps_shards=True,
        needs_bleu=True,
    ),
)
