"""xBLEU (Rosti et al. 2010, 2011): BLEU of the expected statistics of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.batch.expected.risk import require_bleu
from mosesplug.optimizers.batch.expected.stages import AnnealingOptions, AnnealingStage, fit_stages
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

__all__ = ["ALGORITHMS", "XbleuOptions", "xbleu"]


@dataclass(frozen=True)
class XbleuOptions(AnnealingOptions):
    """Settings of xBLEU."""


def xbleu(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: XbleuOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Maximize BLEU of expected statistics (survey, eq. 53 to 55 and appendix A).

    Arguments and result are those of ``risk``; ``rng`` is not used.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights`` and ``fit_stages``), or
            no hypothesis has a match of some n-gram length.
        UsageError: the metric is not BLEU, or the annealing schedule is invalid.
    """
    require_bleu(problem, "xbleu")
    problem = activate_sparse(problem)
    initial = check_weights(problem, initial)
    stages = options.stages()
    settings = options.descent_settings()
    if (graphs := problem.derivations) is not None:
        _require_matches(graphs.matches())
        return fit_stages(
            problem,
            initial,
            stages,
            settings,
            lambda stage, weights: graphs.xbleu(stage.temperature),
            progress,
        )
    _require_matches(np.asarray(problem.tuning_set.stats[:, 0:-1:2].any(axis=0)))
    shards = list_shards(problem)

    def objective(stage: AnnealingStage, weights: NDArray[np.float64]) -> Objective:
        return objectives.xbleu(shards, stage.temperature)

    return fit_stages(problem, initial, stages, settings, objective, progress)


def _require_matches(matches: NDArray[np.bool_]) -> None:
    """Check that hypotheses have matches of each n-gram length, bool ``[4]``.

    Raises:
        OptimizerError: no hypothesis matches an n-gram of some length.
    """
    if not matches.all():
        raise OptimizerError(
            f"no hypothesis has a match of {int(np.argmin(matches)) + 1} words, so BLEU is 0 with "
            "any weights; check that the references belong to the hypotheses"
        )


ALGORITHMS = (
    Algorithm(
        name="xbleu",
        summary="Maximize BLEU of the expected statistics, with annealing.",
        source="Rosti et al. 2010, 2011",
        family="expectation",
        options=XbleuOptions,
        optimize=xbleu,
        graphs="derivations",
        keeps_bounds=True,
        needs_bleu=True,
        maps_shards=True,
    ),
)
