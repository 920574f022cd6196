"""Run an experiment: systems, tuning sets and seeds in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from formats.text import StrPath
from mosesplug.api.keywords import RUN
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.tune import follow
from mosesplug.errors import DataError
from mosesplug.events import Event
from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.outputs import write_table
from mosesplug.experiments.planning import plan_experiment
from mosesplug.experiments.scheduling import finish_experiment
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
        The table of all rows that have a finished run.

    Raises:
        UsageError: the file cannot be used; the message names the key.
        DataError: a run was begun with another definition; or runs failed, which the message
            names, after the others were finished.

    Examples:
        >>> import mosesplug
        >>> from pathlib import Path
        >>> _ = Path("small.toml").write_text('''
        ... baseline = "kbmira"
        ... [settings]
        ... decode-command = "python3 decoder.py {weights} {input} {nbest}"
        ... max-iterations = 1
        ... [features.two]
        ... config = "start.weights"
        ... [tuning.dev]
        ... input = "dev.fr"
        ... refs = "dev.en"
        ... [tests.test]
        ... input = "dev.fr"
        ... refs = "dev.en"
        ... [systems.kbmira]
        ... [systems.untuned]
        ... untuned = true
        ... ''')
        >>> table = mosesplug.run_experiment("small.toml")
        >>> [(row.system, row.decodings) for row in table.rows]
        [('kbmira', 1.0), ('untuned', 0.0)]
    """
    spelled = {name: str(path) for name, path in (paths or {}).items()}
    with RUN.in_messages(), follow(watch, None) as receive, open_progress(progress) as report:
        experiment = read_experiment(
            Path(file), paths=spelled, directory=None if directory is None else Path(directory)
        )
        plan = plan_experiment(experiment)
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
        if failures:
            labels = "; ".join(f"{failure.label}: {failure.message}" for failure in failures)
            raise DataError(
                f"failed runs of {file}: {labels}. They did not stop the other runs; the same call"
                " repeats those that failed"
            )
        return table
