"""The report of learned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mosesplug.errors import Message
from mosesplug.metrics.error_rates import display_score, explain_shown_scores, is_error_rate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable, format_score, tabulate_spreads
from mosesplug.results.report.gains import list_gain
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lengths import WORDS
from mosesplug.tuning.repeats.scores import measure_spread

if TYPE_CHECKING:
    from mosesplug.learning.cross_validation import CrossValidation
    from mosesplug.learning.domains import DomainScore
    from mosesplug.learning.optimize import OptimizeResult
    from mosesplug.learning.runs import LearningResult
    from mosesplug.results.scores.gains import Gain

_HOW_TO_ESTIMATE = Message(
    "The weights fit these sentences; for an estimate on others, add {--folds 5} or "
    "{--held-out 0.2}."
)


@dataclass(frozen=True)
class FitReport:
    """Learned weights, with the data that they were learned from, and their scores.

    Attributes:
        gains: what was gained by each metric.
        weights: the learned weights by name.
        length_exponent: the learned exponent of the length; None if scores are not divided.
        warnings: what to check about the data, the options and the weights.
    """

    result: OptimizeResult
    settings: LearningSettings
    gains: Sequence[Gain] = ()
    weights: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)
    length_exponent: float | None = None
    warnings: Sequence[str] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The scores of all runs and folds, and the weights."""
        result, learned = self.result, self.result.learning
        sentences, away = learned.sentences
        return {
            "data": result.data.description,
            "signature": result.data.signature,
            "algorithm": self.settings.algorithm,
            "sentences": {"learned_from": sentences, "held_out": away},
            "start": {"score": learned.start, "held_out": learned.start_held_out},
            "result": {"score": learned.solution.score, "held_out": learned.held_out},
            "weights": self.weights,
            "length_exponent": self.length_exponent,
            **({} if result.budget is None else {"score_budget": asdict(result.budget)}),
            "notes": result.notes,
            "warnings": self.warnings,
            "runs": [
                {
                    "seed": run.seed,
                    "score": run.solution.score,
                    "held_out": run.held_out,
                    "is_chosen": run is learned.chosen_run,
                }
                for run in learned.runs
            ],
            "validation": learned.validation,
            "gains": self.gains,
            "domains": result.score_domains(),
            "seconds": {"loading": result.seconds_loading, "learning": result.seconds_learning},
        }

    def blocks(self, _medium: Medium) -> list[Block]:
        """Return the scores of the result, and what it has gained by each metric."""
        result, settings, gains = self.result, self.settings, self.gains
        learned, signature = result.learning, result.data.signature
        lines: list[Block] = [result.data.description, *result.notes]
        if learned.validation is not None:
            lines += ["", *_folds(learned.validation, learned, signature), ""]
        if settings.runs:
            lines += ["", *_runs(learned, settings, signature), ""]
        for gain in gains:
            lines += [*([""] if lines[-1] else []), *list_gain(gain)]
        if gains:
            lines.append("")
        lines += _scores(learned, signature)
        if domains := result.score_domains():
            lines += ["", *_domains(domains, signature), ""]
        if settings.length_range is not None:
            length = settings.length_range.at(learned.solution.length_exponent)
            by = "" if settings.length_by == WORDS else f" {{--length-by}} {settings.length_by}"
            lines.append(Message(f"length exponent: rerank {{--length-exponent}} {length}{by}"))
        lines.append(explain_shown_scores(signature))
        lines.append(
            f"loading {result.seconds_loading:.2f} s, optimizing {result.seconds_learning:.2f} s"
            f" ({result.cpu_seconds:.2f} s of CPU)"
        )
        if learned.held_out is None and learned.validation is None:
            lines.append(_HOW_TO_ESTIMATE)
        return lines


def _scores(result: LearningResult, signature: str) -> list[Block]:
    """Return the scores of the starting weights and of the result.

    Of error rates, these are the rate and the score, which scripts read for any metric.
    """
    pairs = [(result.start, result.solution.score)]
    if result.held_out is not None and result.start_held_out is not None:
        pairs.append((result.start_held_out, result.held_out))
    name = signature.partition("|")[0]
    columns = [("score", pairs)]
    if is_error_rate(signature):
        rates = [(1.0 - start, 1.0 - end) for start, end in pairs]
        columns.insert(0, (name, rates))
    rows = [
        (f"{label} at the {when}", *(f"{pair[number]:.6f}" for pair in values))
        for label, values in columns
        for number, when in enumerate(("start", "end"))
    ]
    blocks: list[Block]
    if len(pairs) == 1:
        blocks = [f"{label:18}  {value}" for label, value in rows]
    else:
        learned, away = result.sentences
        head = ("", f"learned from ({learned} sentences)", f"held out ({away} sentences)")
        blocks = [TextTable([head, *rows], left=1)]
    if is_error_rate(signature):
        blocks.append(f"the score is 1 - {name}: larger is better")
    return blocks


def _domains(scores: Sequence[DomainScore], signature: str) -> list[Block]:
    """Return the scores of each domain."""
    rows = [("domain", "", "sentences", "start", "shared weights", "own weights")]
    for domain in scores:
        start, shared, end = (
            f"{display_score(signature, score):.6f}"
            for score in (domain.start, domain.shared, domain.end)
        )
        away = "held out" if domain.is_held_out else ""
        rows.append((domain.name, away, str(domain.sentences), start, shared, end))
    return [TextTable(rows, left=2 if any(domain.is_held_out for domain in scores) else 1)]


def _folds(validation: CrossValidation, result: LearningResult, signature: str) -> list[Block]:
    """Return the scores of each fold, and of all folds together."""
    rows = [("fold", "sentences", "learned from", "left out")]
    rows += [
        (
            str(number),
            str(fold.sentences),
            _format(signature, fold.learning),
            _format(signature, fold.held_out),
        )
        for number, fold in enumerate(validation.folds, start=1)
    ]
    (mean, deviation), (mean_out, deviation_out) = validation.learning, validation.left_out
    rows.append(("mean", "", _format(signature, mean), _format(signature, mean_out)))
    rows.append(("sd", "", format_score(deviation), format_score(deviation_out)))
    average = fmean(fold.sentences for fold in validation.folds)
    together = [
        ("", "score"),
        ("all sentences, starting weights", _format(signature, validation.start)),
        (
            "all sentences, each with weights of the other folds",
            _format(signature, validation.held_out),
        ),
        (
            "all sentences, weights learned from all (the result)",
            _format(signature, result.solution.score),
        ),
    ]
    gap = -validation.gap if is_error_rate(signature) else validation.gap
    return [
        TextTable(rows),
        "",
        f"gap: {gap:+.4f}, the mean score on sentences learned from minus that on a fold"
        f" left out ({average:.0f} sentences)",
        "",
        TextTable(together, left=1),
    ]


def _runs(result: LearningResult, settings: LearningSettings, signature: str) -> list[Block]:
    """Return the scores of each run, how they vary, and which weights were taken."""
    has_held_out = any(run.held_out is not None for run in result.runs)
    rows = [("run", "seed", "score", *(["held out"] if has_held_out else []))]
    rows += [
        (
            str(number),
            str(run.seed),
            _format(signature, run.solution.score),
            *([_format(signature, run.held_out)] if has_held_out else []),
        )
        for number, run in enumerate(result.runs, start=1)
    ]
    spreads = [
        ("score", measure_spread([run.solution.score for run in result.runs]), signature),
        ("held out", measure_spread([run.held_out for run in result.runs]), signature),
    ]
    which = f"the average of {len(result.runs)} runs"
    if result.chosen_run is not None:
        number = result.runs.index(result.chosen_run) + 1
        order = {"median": "the median", "best-heldout": "the best"}[settings.select]
        score = "score" if result.held_out is None else "held-out score"
        which = f"run {number}, {order} by {score}"
    return [
        TextTable(rows),
        "",
        tabulate_spreads(spreads),
        "",
        f"weights: {which}",
    ]


def _format(signature: str, score: float | None) -> str:
    """Format a score; of an error rate, the rate."""
    return format_score(None if score is None else display_score(signature, score))
