"""``mosesplug experiment``: tune, test and compare systems of a file."""

from __future__ import annotations

import sys

from mosesplug.cli.learn.options import ExperimentCommand
from mosesplug.cli.shared.output import progress_bar
from mosesplug.cli.shared.tables import print_record
from mosesplug.events import Event, Note
from mosesplug.experiments.estimate import ExperimentForecast, forecast_runs
from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.outputs import write_table
from mosesplug.experiments.planning import plan_experiment
from mosesplug.experiments.scheduling import (
    FailedRun,
    choose_runs,
    finish_experiment,
    reject_failures,
)
from mosesplug.experiments.table import make_table
from mosesplug.settings.checks import parse_assignments
from mosesplug.settings.sharding import check_address


def experiment(options: ExperimentCommand) -> None:
    """Finish the runs of an experiment, and print its table."""
    if options.scheduler is not None:
        check_address(options.scheduler)
    paths = {
        name: str(path) for name, path in parse_assignments(options.path or [], "--path").items()
    }
    plan = plan_experiment(read_experiment(options.file, paths=paths, directory=options.directory))
    only = [name.strip() for name in (options.systems or "").split(",") if name.strip()]
    if options.dry_run:
        runs = forecast_runs(choose_runs(plan, only, options.seeds), plan.runs)
        print_record(ExperimentForecast(runs, options.jobs))
        return
    failures: list[FailedRun] = []
    with progress_bar(options.quiet or options.json) as progress:
        if not options.table:
            failures = finish_experiment(
                plan,
                only,
                seeds=options.seeds,
                jobs=options.jobs,
                scheduler=options.scheduler,
                progress=progress,
                watch=_Warnings(options.quiet),
            )
        table = make_table(plan, progress)
    page = write_table(table, plan)
    print_record(table)
    if not options.json:
        print(f"page: {page}")
    reject_failures(failures, plan)


class _Warnings:
    """Prints warnings of runs, which would be lost behind the progress bar."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note) and event.is_warning and not self._quiet:
            print(f"warning: {event.text}", file=sys.stderr)
