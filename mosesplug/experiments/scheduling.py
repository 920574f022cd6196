"""Finish the runs of an experiment, one after the other or side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace

from formats.errors import FormatError
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, MosesplugError, UsageError
from mosesplug.events import EpochLearned, Event, IterationFinished, Note, Watcher, ignore_event
from mosesplug.experiments.file import suggest_or_list
from mosesplug.experiments.planning import ExperimentPlan, PlannedRun
from mosesplug.experiments.running import check_definition, finish_run, is_finished
from mosesplug.tuning.parallel.executors import open_executor

Progress = Callable[[int, int, str], None]
"""Called with the number of finished runs, of all runs, and what happens."""


@dataclass(frozen=True)
class FailedRun:
    """A run that ended with an error; the others went on."""

    label: str
    message: str


def finish_experiment(
    plan: ExperimentPlan,
    only: Sequence[str] = (),
    *,
    seeds: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = lambda done, total, what: None,
    watch: Watcher = ignore_event,
) -> list[FailedRun]:
    """Finish all runs that are not finished; return those that failed.

    Args:
        only: the systems to run; none for all.
        seeds: run the first seeds of each row only, this many; None for all.
        jobs: number of runs side by side, each in a process of its own. Runs whose settings do not
            give ``threads`` share the cores.
        scheduler: address of a Dask scheduler, whose workers finish the runs instead. They see the
            directory of the experiment under the same name.
        watch: receives the events of runs in this process, and notes on finished runs.

    Raises:
        DataError: a run was begun with another definition, or workers died.
        UsageError: an unknown system; or Dask is not installed.
    """
    runs = choose_runs(plan, only, seeds)
    for run in runs:
        check_definition(run)
    missing = [run for run in runs if not is_finished(run)]
    done, total = len(runs) - len(missing), len(runs)
    failures: list[FailedRun] = []

    def end(run: PlannedRun, error: Exception | None) -> None:
        nonlocal done
        done += 1
        if error is not None:
            failures.append(FailedRun(run.label, str(error)))
            watch(Note(f"{run.label} failed: {error}", is_warning=True))
        progress(done, total, run.label)

    if not missing:
        return failures
    plan.write_files()
    if jobs == 1 and scheduler is None:
        for run in missing:
            progress(done, total, run.label)
            end(run, _try_run(run, _follow(run, watch, progress, done, total)))
        return failures
    threads = max(1, usable_cores() // jobs)
    with open_executor("processes", min(jobs, len(missing)), scheduler) as executor:
        tasks = {executor.submit(_try_run, _share_cores(run, threads)): run for run in missing}
        progress(done, total, "runs")
        for task in as_completed(tasks):
            end(tasks[task], task.result())
    return failures


def reject_failures(failures: Sequence[FailedRun], plan: ExperimentPlan) -> None:
    """Raise an error that names all failed runs, if there are any.

    Raises:
        DataError: a run failed.
    """
    if failures:
        labels = "; ".join(f"{failure.label}: {failure.message}" for failure in failures)
        raise DataError(
            f"failed runs of {plan.experiment.path}: {labels}. They did not stop the other runs."
            " Run the experiment again to repeat those that failed"
        )


def _try_run(run: PlannedRun, watch: Watcher = ignore_event) -> Exception | None:
    """Finish a run; return the error that ended it, if it is one of this run alone."""
    try:
        finish_run(run, watch)
    except (MosesplugError, FormatError, OSError) as error:
        return error
    return None


def _share_cores(run: PlannedRun, threads: int) -> PlannedRun:
    return replace(run, values={"threads": threads, **run.values})


def _follow(run: PlannedRun, watch: Watcher, progress: Progress, done: int, total: int) -> Watcher:
    """Return a watcher that reports iterations, and passes all events on."""

    def receive(event: Event) -> None:
        if isinstance(event, IterationFinished | EpochLearned):
            progress(done, total, f"{run.label}, iteration {event.iteration}")
        if isinstance(event, Note):
            event = replace(event, text=f"{run.label}: {event.text}")
        watch(event)

    return receive


def choose_runs(
    plan: ExperimentPlan, only: Sequence[str], seeds: int | None = None
) -> list[PlannedRun]:
    """Return the runs of some systems, or of all, with their first seeds.

    Raises:
        UsageError: an unknown system.
    """
    systems = plan.experiment.systems
    for name in only:
        if name not in systems:
            raise UsageError(
                f"there is no system {name} in {plan.experiment.path}"
                f"{suggest_or_list(name, systems)}"
            )
    return [
        run
        for run in plan.runs
        if (not only or run.row.system in only)
        and (seeds is None or run in plan.runs_of(run.row)[:seeds])
    ]
