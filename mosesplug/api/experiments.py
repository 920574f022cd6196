"""Experiments: run them, estimate their time, read their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from formats.text import StrPath
from mosesplug.api.keywords import RUN
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.tune import follow
from mosesplug.events import Event
from mosesplug.experiments.estimate import RunForecast, forecast_runs
from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.outputs import write_table
from mosesplug.experiments.planning import ExperimentPlan, plan_experiment
from mosesplug.experiments.scheduling import choose_runs, finish_experiment, reject_failures
from mosesplug.experiments.table import ExperimentTable, make_table


def run_experiment(
    file: StrPath,
    *,
    directory: StrPath | None = None,
    paths: Mapping[str, StrPath] | None = None,
    systems: Sequence[str] = (),
    seeds: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    watch: Callable[[Event], object] | None = None,
    progress: Progress = None,
) -> ExperimentTable:
    """Finish the runs of an experiment file, as ``mosesplug experiment`` does.

    Finished runs are not repeated, and interrupted ones continue. The table is also written into
    the directory of the experiment, as text, Markdown, LaTeX, JSON and a page with figures.

    Args:
        file: the experiment, a TOML file.
        directory: of all runs and of the table; None: what the file says.
        paths: values of ``[paths]`` in the file, by name.
        systems: the systems to run; none for all.
        seeds: run the first seeds of each only, this many; None for all.
        jobs: number of runs side by side, each in a process of its own.
        scheduler: address of a Dask scheduler whose workers run them instead.
        watch: called with each event of runs in this process.
        progress: as for ``tune``; counts finished runs.

    Returns:
        The table of all rows that have a finished run: ``rows``, each with ``system``,
        ``features``, ``tuning``, ``tests`` (``test``, ``metric``, ``scores`` by seed from 0 to 100,
        ``mean``, ``deviation``, and ``difference`` and ``p`` from the baseline), ``mean`` over the
        test sets, ``active`` weights, ``decodings``, ``cpu`` and ``wall`` seconds of tuning and
        ``test_cpu`` of the test sets; and the labels of the ``unfinished`` runs.

    Raises:
        UsageError: the file cannot be used; the message names the key.
        DataError: a run was begun with another definition; or runs failed, which the message
            names, after the others were finished.

    Examples:
        >>> import mosesplug
        >>> table = mosesplug.run_experiment("small.toml")
        >>> [(row.system, row.decodings) for row in table.rows]
        [('kbmira', 1.0), ('untuned', 0.0)]
    """
    with RUN.in_messages(), follow(watch, None) as receive, open_progress(progress) as report:
        plan = _plan(file, directory, paths)
        failures = finish_experiment(
            plan,
            systems,
            seeds=seeds,
            jobs=jobs,
            scheduler=scheduler,
            progress=report,
            watch=receive,
        )
        table = make_table(plan, report)
        write_table(table, plan)
        reject_failures(failures, plan)
        return table


def forecast_experiment(
    file: StrPath,
    *,
    directory: StrPath | None = None,
    paths: Mapping[str, StrPath] | None = None,
    systems: Sequence[str] = (),
    seeds: int | None = None,
) -> list[RunForecast]:
    """List the runs of an experiment and estimate their time.

    Nothing is run or written. The whole file is checked, as by ``run_experiment``.

    Args:
        file, directory, paths, systems, seeds: as for ``run_experiment``.

    Returns:
        For each run ``system``, ``features``, ``tuning`` and ``seed``; its ``state``; and ``wall``,
        the estimated wall seconds of its tuning, 0 if it is finished, None before any run is.

    Raises:
        UsageError: the file cannot be used; the message names the key.
        DataError: a run was begun with another definition.

    Examples:
        >>> import mosesplug
        >>> [(run.system, run.state) for run in mosesplug.forecast_experiment("small.toml")]
        [('kbmira', 'not begun'), ('untuned', 'not begun')]
    """
    with RUN.in_messages():
        plan = _plan(file, directory, paths)
        return forecast_runs(choose_runs(plan, systems, seeds), plan.runs)


def read_experiment_table(
    file: StrPath,
    *,
    directory: StrPath | None = None,
    paths: Mapping[str, StrPath] | None = None,
    progress: Progress = None,
) -> ExperimentTable:
    """Score the finished runs of an experiment, even while another process runs it.

    The table is also written into the directory of the experiment.

    Args:
        file, directory, paths: as for ``run_experiment``.
        progress: as for ``tune``; counts test sets.

    Returns:
        The table, as from ``run_experiment``.

    Raises:
        UsageError: the file cannot be used; the message names the key.
        DataError: a run was begun with another definition.
        FormatError: a translation or reference cannot be read.

    Examples:
        >>> import mosesplug
        >>> mosesplug.read_experiment_table("small.toml").unfinished
        ('kbmira/two/dev seed 1', 'untuned/two/dev seed 1')
    """
    with RUN.in_messages(), open_progress(progress) as report:
        plan = _plan(file, directory, paths)
        table = make_table(plan, report)
        write_table(table, plan)
        return table


def _plan(
    file: StrPath, directory: StrPath | None, paths: Mapping[str, StrPath] | None
) -> ExperimentPlan:
    experiment = read_experiment(
        Path(file),
        paths={name: str(path) for name, path in (paths or {}).items()},
        directory=None if directory is None else Path(directory),
    )
    return plan_experiment(experiment)
