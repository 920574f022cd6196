"""The report of ``mosesplug optimize``.

It is printed on stderr, so that the weights can be piped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mosesplug.api.fit import Fit
from mosesplug.cli.shared.tables import print_blocks
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.results.report.learning_report import list_result
from mosesplug.results.scores.gains import Gain
from mosesplug.settings.learning import LearningSettings


def print_report(
    result: OptimizeResult, settings: LearningSettings, gains: Sequence[Gain] = ()
) -> None:
    """Print the scores of a result, and what it has gained by each metric."""
    print_blocks(list_result(result, settings, gains), sys.stderr)


def describe_fit(fit: Fit, settings: LearningSettings) -> dict[str, Any]:
    """Return what ``print_report`` prints, and the weights, as JSON has them."""
    result, learned = fit.result, fit.result.learning
    validation = learned.validation
    return {
        "data": result.data.description,
        "signature": result.data.signature,
        "algorithm": settings.algorithm,
        "sentences": {"learned_from": learned.sentences[0], "held_out": learned.sentences[1]},
        "start": {"score": learned.start, "held_out": learned.start_held_out},
        "result": {"score": learned.solution.score, "held_out": learned.held_out},
        "weights": dict(fit.weights),
        "length_exponent": fit.length_exponent,
        "notes": list(result.notes),
        "warnings": list(fit.warnings),
        "runs": [
            {
                "seed": run.seed,
                "score": run.solution.score,
                "held_out": run.held_out,
                "is_chosen": run is learned.chosen_run,
            }
            for run in learned.runs
        ],
        "validation": validation
        and {
            "start": validation.start,
            "held_out": validation.held_out,
            "gap": validation.gap,
            "folds": [
                {"sentences": fold.sentences, "learning": fold.learning, "held_out": fold.held_out}
                for fold in validation.folds
            ],
        },
        "gains": [asdict(gain) for gain in fit.gains],
        "domains": [asdict(score) for score in result.score_domains()],
        "seconds": {"loading": result.seconds_loading, "learning": result.seconds_learning},
    }
