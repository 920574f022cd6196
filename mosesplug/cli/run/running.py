"""A tuning run from the command line: progress on stderr, the table of iterations on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mosesplug.cli.run.progress import Reporter, format_iterations
from mosesplug.cli.run.several_runs import run_several
from mosesplug.settings.configuration import RunPlan
from mosesplug.tuning import tune
from mosesplug.tuning.events import Note
from mosesplug.tuning.repeats.files import check_single

__all__ = ["run"]


def run(plan: RunPlan, notes: Sequence[str] = ()) -> None:
    """Tune, report progress, and end with the table.

    Args:
        plan: what to do.
        notes: shown first, one sentence each.

    Raises:
        UsageError: the working directory holds several runs, and one is asked for.
        MosesplugError, FormatError, OSError: as ``tune``.
    """
    configuration, is_quiet = plan.configuration, plan.output.quiet
    if plan.repeats.runs is None:
        check_single(configuration.working_directory)
    reporter = Reporter(sys.stderr, quiet=is_quiet, verbose=plan.output.verbose)
    for note in notes:
        reporter(Note(note))
    try:
        if plan.repeats.runs is None:
            end = format_iterations(tune(configuration, reporter))
        else:
            end = run_several(configuration, plan.repeats.runs, plan.select_run, reporter)
    finally:
        reporter.close()
    if not is_quiet:
        print(end, end="")
        print(f"tuned configuration: {configuration.working_directory / 'moses.ini'}")
