"""The report of learned weights."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from mosesplug.evaluation.error_rates import explain_signature
from mosesplug.reporting.gains import list_gain
from mosesplug.reporting.tables import Block, TextTable, format_score, tabulate_spreads
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lengths import WORDS
from mosesplug.tuning.repeats.scores import measure_spread

if TYPE_CHECKING:
    from mosesplug.evaluation.gains import Gain
    from mosesplug.learning.cross_validation import CrossValidation
    from mosesplug.learning.domains import DomainScore
    from mosesplug.learning.optimize import LearningResult, OptimizeResult

__all__ = ["list_result"]

_HOW_TO_ESTIMATE = (
    "The weights fit these sentences; for an estimate on others, add --folds 5 or --held-out 0.2."
)


def list_result(
    result: OptimizeResult, settings: LearningSettings, gains: Sequence[Gain] = ()
) -> list[Block]:
    """Return the scores of a result, and what it has gained by each metric."""
    learned = result.learning
    lines: list[Block] = [result.data.description, *result.notes]
    if learned.validation is not None:
        lines += ["", *_folds(learned.validation, learned), ""]
    if settings.runs:
        lines += ["", *_runs(learned, settings), ""]
    for gain in gains:
        lines += [*([""] if lines[-1] else []), *list_gain(gain)]
    if gains:
        lines.append("")
    lines += _scores(learned)
    if domains := result.score_domains():
        lines += ["", *_domains(domains), ""]
    if settings.length_range is not None:
        found = settings.length_range.at(learned.solution.length_exponent)
        by = "" if settings.length_by == WORDS else f" --length-by {settings.length_by}"
        lines.append(f"length exponent: rerank --length-exponent {found}{by}")
    lines.append(explain_signature(result.data.signature))
    lines.append(
        f"loading {result.seconds_loading:.2f} s, optimizing {result.seconds_learning:.2f} s"
        f" ({result.cpu_seconds:.2f} s of CPU)"
    )
    if learned.held_out is None and learned.validation is None:
        lines.append(_HOW_TO_ESTIMATE)
    return lines


def _scores(result: LearningResult) -> list[Block]:
    """Return the scores of the starting weights and of the result."""
    if result.held_out is None:
        return [
            f"score at the start  {result.start:.6f}",
            f"score at the end    {result.solution.score:.6f}",
        ]
    learned, away = result.sentences
    rows = [
        ("", f"learned from ({learned} sentences)", f"held out ({away} sentences)"),
        ("score at the start", f"{result.start:.6f}", f"{result.start_held_out:.6f}"),
        ("score at the end", f"{result.solution.score:.6f}", f"{result.held_out:.6f}"),
    ]
    return [TextTable(rows, left=1)]


def _domains(scores: Sequence[DomainScore]) -> list[Block]:
    """Return the scores of each domain."""
    rows = [("domain", "", "sentences", "start", "shared weights", "own weights")]
    for each in scores:
        start, shared, end = (f"{score:.6f}" for score in (each.start, each.shared, each.end))
        away = "held out" if each.is_held_out else ""
        rows.append((each.name, away, str(each.sentences), start, shared, end))
    return [TextTable(rows, left=2 if any(each.is_held_out for each in scores) else 1)]


def _folds(validation: CrossValidation, result: LearningResult) -> list[Block]:
    """Return the scores of each fold, and of all folds together."""
    rows = [("fold", "sentences", "learned from", "left out")]
    rows += [
        (str(number), str(fold.sentences), format_score(fold.learning), format_score(fold.held_out))
        for number, fold in enumerate(validation.folds, start=1)
    ]
    for name, of_learning, of_left_out in zip(
        ("mean", "sd"), validation.learning, validation.left_out, strict=True
    ):
        rows.append((name, "", format_score(of_learning), format_score(of_left_out)))
    average = fmean(fold.sentences for fold in validation.folds)
    together = [
        ("", "score"),
        ("all sentences, starting weights", format_score(validation.start)),
        ("all sentences, each with weights of the other folds", format_score(validation.held_out)),
        (
            "all sentences, weights learned from all (the result)",
            format_score(result.solution.score),
        ),
    ]
    return [
        TextTable(rows),
        "",
        f"gap: {validation.gap:+.4f}, the mean score on sentences learned from minus that on a fold"
        f" left out ({average:.0f} sentences)",
        "",
        TextTable(together, left=1),
    ]


def _runs(result: LearningResult, settings: LearningSettings) -> list[Block]:
    """Return the scores of each run, how they vary, and which weights were taken."""
    rows = [("run", "seed", "score", "held out")]
    rows += [
        (str(number), str(run.seed), format_score(run.solution.score), format_score(run.held_out))
        for number, run in enumerate(result.runs, start=1)
    ]
    spreads = [
        ("score", measure_spread([run.solution.score for run in result.runs])),
        ("held out", measure_spread([run.held_out for run in result.runs])),
    ]
    known = [(name, each) for name, each in spreads if each is not None]
    which = f"the average of {len(result.runs)} runs"
    if result.chosen_run is not None:
        number = result.runs.index(result.chosen_run) + 1
        order = {"median": "the median", "best-heldout": "the best"}[settings.select]
        score = "score" if result.held_out is None else "held-out score"
        which = f"run {number}, {order} by {score}"
    return [
        TextTable(rows),
        "",
        tabulate_spreads(known),
        "",
        f"weights: {which}",
    ]
