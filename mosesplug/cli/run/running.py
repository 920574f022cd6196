"""A tuning run from the command line.

Progress goes to stderr, the table of iterations to stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mosesplug.api.tune import run_plan
from mosesplug.cli.run.progress import Reporter, list_iterations
from mosesplug.cli.shared.compiling import watch_compiling
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.streams import STDOUT, discard_stdout
from mosesplug.cli.shared.tables import print_blocks
from mosesplug.events import Note
from mosesplug.metrics.error_rates import display_score, explain_shown_scores
from mosesplug.results.render.tables import Block, TextTable, format_score, tabulate_spreads
from mosesplug.settings.configuration import Configuration, RunPlan
from mosesplug.tuning.repeats.result import SeveralResult
from mosesplug.tuning.repeats.scores import FinishedRun
from mosesplug.tuning.workdir.iteration_files import result_path, writes_moses_ini
from mosesplug.tuning.workdir.summary import Result
from mosesplug.tuning.workdir.workspace import Workspace


def list_runs(result: SeveralResult) -> list[Block]:
    """Return the table of runs, how their scores differ, and a line on the result."""
    first, signatures = result.runs[0], result.runs[0].report_signatures
    kinds = {run.dev_of for run in result.runs if run.dev is not None}
    head = {"lists": "in lists", "graphs": "in graphs", "learning": "learning"}
    where = head.get(kinds.pop() or "", first.metric) if len(kinds) == 1 else first.metric
    has_dev, has_heldout = result.dev is not None, result.heldout is not None
    rows: list[tuple[str, ...]] = [
        (
            *("run", "seed", "iterations", where if has_dev else ""),
            *("held out" if has_heldout else "", *result.monitors, *result.reported),
        )
    ]
    rows += [
        (
            str(run.number),
            str(run.seed),
            str(run.iterations),
            format_score(_display(run, run.dev)),
            format_score(_display(run, run.heldout)),
            *(format_score(_display(run, run.monitors.get(name))) for name in result.monitors),
            *(format_score(_display_reported(run, name)) for name in result.reported),
        )
        for run in result.runs
    ]
    lines: list[Block] = [TextTable(rows)]
    spreads = [("dev" if where == first.metric else f"dev, {where}", result.dev)]
    spreads += [("held out", result.heldout), *result.monitors.items()]
    rates = [(name, spread, first.signature) for name, spread in spreads]
    rates += [(name, spread, signatures[name]) for name, spread in result.reported.items()]
    if any(spread is not None for _, spread, _ in rates):
        lines += ["", tabulate_spreads(rates)]
    lines += [
        "",
        f"weights: {_chosen(result)}",
        f"signature: {explain_shown_scores(first.signature)}",
        *(f"{name}: {explain_shown_scores(one)}" for name, one in signatures.items()),
    ]
    return lines


def _chosen(result: SeveralResult) -> str:
    run = result.chosen_run
    if run is None:
        return f"the mean of those of {len(result.runs)} runs, not scored"
    which = {"median": "the median", "best-heldout": "the best"}[result.choice]
    text = "the held-out text" if result.by == "heldout" else "the tuning set"
    if result.by == "dev" and run.dev_of == "lists":
        text = "the tuning set, each in its own lists"
    return f"those of run {run.number}, {which} on {text}"


def _display(run: FinishedRun, score: float | None) -> float | None:
    """Return a score as people know it; see ``display_score``."""
    return None if score is None else display_score(run.signature, score)


def _display_reported(run: FinishedRun, name: str) -> float | None:
    score = run.reported.get(name)
    return None if score is None else display_score(run.report_signatures[name], score)


def _scores(run: FinishedRun) -> str:
    """Return the scores of a run's weights."""
    known = []
    if run.dev is not None:
        known.append(f"{run.metric} {_display(run, run.dev):.4f}")
    if run.heldout is not None:
        known.append(f"held out {_display(run, run.heldout):.4f}")
    return ", ".join(known) or "its weights are not scored"


def run(plan: RunPlan, notes: Sequence[str] = (), *, as_json: bool = False) -> None:
    """Tune, report progress, and end with the table.

    Args:
        as_json: whether the summary is printed as JSON instead of the table.

    Raises:
        UsageError: the working directory holds several runs, but one run is requested.
        MosesplugError, FormatError, OSError: as ``tune``.
    """
    configuration, is_quiet = plan.configuration, plan.output.quiet
    count = plan.repeats.runs
    reporter = Reporter(
        sys.stderr,
        quiet=is_quiet,
        verbose=plan.output.verbose,
        most_iterations=configuration.maximum_iterations,
    )

    def began(run: int, seed: int) -> None:
        reporter(Note(f"run {run} of {count}, seed {seed}"))

    def ended(run: FinishedRun) -> None:
        reporter(Note(f"run {run.number} of {count} is finished: {_scores(run)}"))

    for note in notes:
        reporter(Note(note))
    try:
        with watch_compiling(reporter.show_compiling):
            result = run_plan(plan, reporter, began, ended)
    finally:
        reporter.close()
    workspace = Workspace(configuration.working_directory, 0)
    path = result_path(configuration, workspace)
    if as_json:
        print_json({"output": str(path), **json.loads(workspace.summary.read_bytes())})
    elif not is_quiet:
        try:
            _print_result(result, configuration, path)
            sys.stdout.flush()
        except OSError as error:
            if error.filename != STDOUT:
                raise
            # The run has its result in files.
            discard_stdout()
            lost = f"{error}: the table is not printed; {workspace.summary} has its numbers"
            reporter(Note(lost, is_warning=True))


def _print_result(result: Result | SeveralResult, configuration: Configuration, path: Path) -> None:
    print_blocks(list_iterations(result) if isinstance(result, Result) else list_runs(result))
    what = "configuration" if writes_moses_ini(configuration) else "weights"
    print(f"tuned {what}: {path}")
    if configuration.domains is not None:
        print(f"of each domain: {path.parent / 'domain.LABEL.'}{path.name}")
