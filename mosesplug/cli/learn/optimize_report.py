"""What ``mosesplug optimize`` says of its result, on stderr, so that weights can be piped."""

from __future__ import annotations

import sys
from statistics import fmean

from mosesplug.cli.learn.optimize_input import Given
from mosesplug.cli.learn.optimize_ways import Learnt, Ways
from mosesplug.cli.shared.tables import format_score, format_table, tabulate_spreads
from mosesplug.evaluation.error_rates import explain_signature
from mosesplug.learning.cross_validation import CrossValidation
from mosesplug.tuning.guards import list_findings, weight_findings
from mosesplug.tuning.repeats.scores import spread
from mosesplug.tuning_set import TuningSet

__all__ = ["report", "warnings"]


def report(given: Given, found: Learnt, ways: Ways, seconds: tuple[float, float, float]) -> None:
    """Print it.

    Args:
        given: what was learnt from.
        found: what came of it.
        ways: how it was learnt.
        seconds: of loading, of learning, and CPU time of that.
    """
    lines = [given.summary]
    if found.validation is not None:
        lines += ["", *_folds(found.validation, found), ""]
    if ways.runs:
        lines += ["", *_runs(found, ways), ""]
    lines += _scores(found)
    lines.append(explain_signature(given.signature))
    lines.append(
        f"loading {seconds[0]:.2f} s, optimising {seconds[1]:.2f} s ({seconds[2]:.2f} s of CPU)"
    )
    print("\n".join(lines), file=sys.stderr)


def warnings(lists: TuningSet, found: Learnt) -> list[str]:
    """What is wrong with lists or weights, but for what cannot be written at all."""
    weights, score = found.solution.weights, found.solution.score
    findings = [
        *list_findings(lists),
        *weight_findings(weights, lists.space.names, lists.space.n_dense),
    ]
    said = [finding.message for finding in findings if not finding.fatal]
    if unfinished := [step for step in found.solution.history if step.get("converged") is False]:
        gaps = [step["gap"] for step in unfinished if "gap" in step]
        times = "once" if len(unfinished) == 1 else f"{len(unfinished)} times"
        known = f"; the loss may be {max(gaps):.3g} above the least" if gaps else ""
        said.append(
            f"the solver stopped before the minimum {times}{known}: regularise"
            " more, or allow it more steps"
        )
    if score < found.start:
        said.append(
            f"the weights found score lower on what they were learnt from ({score:.6f}) than those"
            f" at the start ({found.start:.6f}): the algorithm optimises something else, or its"
            " settings do not suit these lists"
        )
    return said


def _scores(found: Learnt) -> list[str]:
    """Before and after."""
    if found.held_out is None:
        return [
            f"score at the start  {found.start:.6f}",
            f"score at the end    {found.solution.score:.6f}",
        ]
    learnt, away = found.sentences
    rows = [
        ("", f"learnt from ({learnt} sentences)", f"held out ({away} sentences)"),
        ("score at the start", f"{found.start:.6f}", f"{found.start_held_out:.6f}"),
        ("score at the end", f"{found.solution.score:.6f}", f"{found.held_out:.6f}"),
    ]
    return format_table(rows, left=1)


def _folds(validation: CrossValidation, found: Learnt) -> list[str]:
    """Each fold, how folds differ, and all decisions on what was left out together."""
    rows = [("fold", "sentences", "learnt from", "left out")]
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
            "all sentences, weights learnt from all (those written)",
            format_score(found.solution.score),
        ),
    ]
    return [
        *format_table(rows),
        "",
        f"gap: {validation.gap:+.4f}, by which weights do better on what they were learnt from"
        f" than on the {average:.0f} sentences of a fold left out",
        "",
        *format_table(together, left=1),
    ]


def _runs(found: Learnt, ways: Ways) -> list[str]:
    """Each run, how runs differ, and which one counts."""
    rows = [("run", "seed", "score", "held out")]
    rows += [
        (str(number), str(run.seed), format_score(run.solution.score), format_score(run.held_out))
        for number, run in enumerate(found.runs, start=1)
    ]
    spreads = [
        ("score", spread([run.solution.score for run in found.runs])),
        ("held out", spread([run.held_out for run in found.runs])),
    ]
    known = [(name, each) for name, each in spreads if each is not None]
    which = f"the mean of those of {len(found.runs)} runs"
    if found.chosen is not None:
        number = found.runs.index(found.chosen) + 1
        order = {"median": "the median", "best-heldout": "the best"}[ways.choice]
        where = "what was learnt from" if found.held_out is None else "what was held out"
        which = f"those of run {number}, {order} on {where}"
    return [
        *format_table(rows),
        "",
        *format_table(tabulate_spreads(known), left=1),
        "",
        f"weights: {which}",
    ]
