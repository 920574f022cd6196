"""Minimum risk (Smith & Eisner 2006): the error that is expected of the model's distribution.

Errors belong to sentences: those of a smoothed BLEU of the sentence, of linear BLEU, of BLEU of a
corpus in which the sentence is replaced, or of any other metric of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, OptimizerError, UsageError
from mosesplug.metrics.linear_bleu import LinearBleu, linear_bleu
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.batch.expected.stages import AnnealingOptions, AnnealingStage, fit_stages
from mosesplug.optimizers.costs import CostKind, Costs
from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.lists.blocks import BlockedLists
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    no_progress,
)

__all__ = [
    "ALGORITHMS",
    "LinearBleuOptions",
    "RiskOptions",
    "expected_linear_bleu",
    "require_bleu",
    "risk",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RiskOptions(AnnealingOptions):
    """Settings of minimum risk."""

    error: Literal["lin-och", "moses", "nakov", "corpus", "pseudo-corpus"] = field(
        default="lin-och",
        metadata={
            "help": "error of a hypothesis: lin-och, moses or nakov (smoothed BLEU of the "
            "sentence; of another metric, its score of the sentence), corpus (the metric of the "
            "oracles, this hypothesis in the place of one), pseudo-corpus (the same with the first "
            "best hypotheses at each stage)",
            "source": "Neubig & Watanabe 2016, sections 3.3 and 6.1; Lin & Och 2004",
        },
    )


@dataclass(frozen=True)
class LinearBleuOptions(AnnealingOptions):
    """Settings of expected linear BLEU."""

    word_precision: float = field(
        default=0.0,
        metadata={
            "help": "precision of words that linear BLEU takes for granted; 0 to measure those of "
            "all lengths on the first best hypotheses at each stage",
            "source": "Tromble et al. 2008, section 4.1, p; Neubig & Watanabe 2016, section 5.5.1",
            "minimum": 0.0,
        },
    )
    precision_ratio: float = field(
        default=0.6,
        metadata={
            "help": "with a precision of words, what it is multiplied by for each further word",
            "source": "Tromble et al. 2008, r; moses -lmbr-r",
            "only_with": "word_precision>0",
            "minimum": 0.0,
        },
    )
    brevity_slope: float = field(
        default=0.5,
        metadata={
            "help": "how much of the slope of the brevity penalty counts: 0 as in the paper, which "
            "favours short output, 1 that of output which is too short, between them that of "
            "output as long as the reference",
            "source": "0 in Tromble et al. 2008; measured",
            "minimum": 0.0,
        },
    )


def require_bleu(problem: Problem, name: str) -> None:
    """Refuse other metrics than BLEU.

    Raises:
        UsageError: the metric has no statistics of BLEU.
    """
    if not problem.metric.has_bleu_statistics:
        raise UsageError(
            f"{name} tunes by the statistics of BLEU, not of {problem.metric.name}: choose the "
            "metric BLEU, or the algorithm risk"
        )


def risk(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: RiskOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Minimise the expected error of a sentence (survey, equations 22 to 24, 44 and 45).

    Where no active features are given, all are active, sparse ones too. Inactive weights keep their
    values, and the others are found in proportion to them. Where every dense weight is active, the
    result is divided by its L1 norm.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``; the search starts in this direction.
        rng: of the greedy search for oracles, where the error is that of the corpus.
        options: settings.
        progress: told of the stages.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights`` and ``fit_stages``).
        UsageError: a schedule that begins nowhere or does not end.
    """
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    stages = options.stages()
    lists = BlockedLists.of(problem.tuning_set, problem.threads)
    same = None if options.error == "pseudo-corpus" else _errors(problem, options.error, rng)

    def objective(stage: AnnealingStage, weights: Floats) -> Objective:
        errors = _replacing(problem, weights, rng) if same is None else same
        return objectives.risk(lists, errors, stage.temperature)

    return fit_stages(problem, initial, stages, options.regularised(), objective, progress)


def expected_linear_bleu(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: LinearBleuOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Maximise expected linear BLEU (survey, section 5.5.1); otherwise as ``risk``.

    Gains are those in log BLEU, times the number of sentences.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``; the search starts in this direction.
        rng: not used.
        options: settings.
        progress: told of the stages.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights`` and ``fit_stages``), or
            the 1-best hypotheses have no match of some length.
        UsageError: the metric is not BLEU, a ratio of 0, or a schedule that begins nowhere or does
            not end.
    """
    require_bleu(problem, "linear-bleu")
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    stages = options.stages()
    if not options.precision_ratio > 0.0:
        raise UsageError(f"precision_ratio is more than 0, not {options.precision_ratio:g}")
    tuning_set = problem.tuning_set
    lists = BlockedLists.of(tuning_set, problem.threads)

    def objective(stage: AnnealingStage, weights: Floats) -> Objective:
        rows = tuning_set.first_best(weights)
        totals = tuning_set.stats[rows].sum(axis=0, dtype=np.float64)
        errors = -len(rows) * _linear(totals, options).gains(tuning_set.stats)
        return objectives.risk(lists, errors, stage.temperature)

    return fit_stages(problem, initial, stages, options.regularised(), objective, progress)


def _linear(totals: Floats, options: LinearBleuOptions) -> LinearBleu:
    """Linear BLEU near the statistics of a corpus, or near typical ones of as many words."""
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
    """Errors that do not depend on weights, float64 ``[n_hyps]``."""
    return -Costs(kind).gains(problem.tuning_set, problem.metric, {}, rng)


def _replacing(problem: Problem, weights: Floats, rng: np.random.Generator) -> Floats:
    """Errors in the corpus of the first best hypotheses (equation 56), float64 ``[n_hyps]``.

    An error is that of the corpus times the number of its sentences.
    """
    tuning_set, metric = problem.tuning_set, problem.metric
    costs = Costs("pseudo-corpus", "one-best")
    memory = costs.remembered(tuning_set, costs.memory(metric), tuning_set.first_best(weights))
    return -costs.gains(tuning_set, metric, memory, rng)


ALGORITHMS = (
    Algorithm(
        name="risk",
        summary="Minimise the expected sentence cost, with annealing.",
        source="Smith & Eisner 2006",
        family="expectation",
        options=RiskOptions,
        optimize=risk,
    ),
    Algorithm(
        name="linear-bleu",
        summary="Maximise the expectation of linear BLEU, with annealing.",
        source="Tromble et al. 2008",
        family="expectation",
        options=LinearBleuOptions,
        optimize=expected_linear_bleu,
        needs_bleu=True,
    ),
)
