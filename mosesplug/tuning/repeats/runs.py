"""Several runs of one tuning that differ only in their seed.

The scores of an optimizer that draws random numbers vary as much as many an improvement (Clark et
al. 2011). So a tuning is run several times, each in a directory of its own (``run.1/``, ``run.2/``,
...), and the weights of one run, or their mean, are the result.

``runs.json`` in the working directory holds the number of runs, the seed of the first, and which
have begun. Run K has the seed of the first plus K - 1.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from formats.text import write_atomic
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Event, Note, Watcher, ignore_event
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.build import collect_values
from mosesplug.settings.configuration import Configuration, SelectRun
from mosesplug.settings.toml import write_settings
from mosesplug.tuning.context import learns_from_graphs
from mosesplug.tuning.loop import tune
from mosesplug.tuning.online.state import select_result
from mosesplug.tuning.repeats.files import PLAN, run_directory, share_filtered
from mosesplug.tuning.repeats.result import SeveralResult, conclude_several
from mosesplug.tuning.repeats.scores import FinishedRun, read_finished_run
from mosesplug.tuning.setup import check_outputs
from mosesplug.tuning.templates import add_templates, check_functions
from mosesplug.tuning.workdir.workspace import Workspace


@dataclass(frozen=True)
class _Plan:
    """The content of ``runs.json``.

    Attributes:
        begun: numbers of the runs that have begun, and can be continued.
    """

    count: int
    seed: int
    begun: frozenset[int] = frozenset()

    def write(self, path: Path) -> None:
        document = {"runs": self.count, "seed": self.seed, "begun": sorted(self.begun)}
        write_atomic(path, (json.dumps(document, indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> _Plan:
        """Read the plan of an earlier run."""
        try:
            stored = json.loads(path.read_bytes())
            return cls(
                int(stored["runs"]), int(stored["seed"]), frozenset(map(int, stored["begun"]))
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} does not list the runs: remove it and the runs in its directory, or "
                "name another working directory"
            ) from error


def tune_several(
    configuration: Configuration,
    count: int,
    choice: SelectRun | None = None,
    watch: Watcher = ignore_event,
    began: Callable[[int, int], None] = lambda run, seed: None,
    ended: Callable[[FinishedRun], None] = lambda run: None,
) -> SeveralResult:
    """Tune several times; write ``moses.ini`` as a single run does.

    With ``existing="continue"``, finished runs are kept, and the first unfinished one is continued.

    Args:
        configuration: the settings of each run; its directory holds all runs, its seed is the
            first.
        count: number of runs, at least 2.
        choice: whose weights are the result. None is the run with the median score, or the mean of
            all runs if they end with averages that are not scored, as online and on search graphs.
        began: called with number and seed of each run that begins or continues.

    Raises:
        UsageError: the directory holds a single run, or other runs; the choice is not possible; or
            as ``tune``.
        DataError, DecoderError, StoreMismatch, OptimizerError, FormatError: as ``tune``.
    """
    choice = _check_choice(configuration, count, choice)
    workspace = Workspace(configuration.working_directory, configuration.decoding.nbest)
    check_outputs(configuration, workspace)
    check_functions(configuration)
    with workspace.lock():
        path = workspace.directory / PLAN
        for left in workspace.directory.glob(f".{path.name}.*"):  # of a process that was killed
            left.unlink()
        plan, anew = _make_plan(configuration, workspace, path, count, watch)
        workspace.reject_links(replacing=anew)
        configuration = add_templates(configuration)
        runs = []
        for number in range(1, count + 1):
            directory, seed = run_directory(workspace.directory, number), plan.seed + number - 1
            if number not in plan.begun or not _is_finished(directory):
                began(number, seed)
                plan = _finish_run(configuration, plan, path, directory, number, watch, anew=anew)
                values = collect_values(configuration, plan.seed, runs=count, choice=choice)
                write_settings(workspace.settings, values)
            runs.append(read_finished_run(directory, number, seed))
            ended(runs[-1])
        return conclude_several(configuration, workspace, runs, choice, watch)


def _check_choice(configuration: Configuration, count: int, choice: SelectRun | None) -> SelectRun:
    """Return the choice among the runs, if there can be one."""
    if count < 2:
        raise UsageError(f"several runs are 2 at least, not {count}")
    optimization = configuration.optimization
    if optimization.predictable_seeds:
        raise UsageError("runs with predictable seeds would all be alike")
    if optimization.seed is not None and optimization.seed < 0:
        raise UsageError(f"the seed must not be negative, as {optimization.seed} is")
    algorithm = find_algorithm(optimization.algorithm)
    optimizer = algorithm.bind(make_options(algorithm, optimization.options))
    selection: str | None = configuration.select
    is_scored = not learns_from_graphs(configuration, algorithm)
    if configuration.online is not None:
        selection, is_scored = select_result(configuration, optimizer), False
    if choice == "best-heldout" and configuration.held_out is None:
        raise UsageError("the best run on held-out text needs such text: give {--heldout}, too")
    if selection != "average" or (is_scored and choice != "best-heldout"):
        return choice or "median"
    if choice in ("median", "best-heldout"):
        where = "on the held-out text" if choice == "best-heldout" else "by a score of its own"
        raise UsageError(
            f"each run ends with the average of its weights, which is not scored {where}, so no run"
            f" can be the {'median' if choice == 'median' else 'best'} one: give"
            " {--select average}, or {--select-run last}"
        )
    return "average"


def _make_plan(
    configuration: Configuration, workspace: Workspace, path: Path, count: int, watch: Watcher
) -> tuple[_Plan, bool]:
    """Return the plan, and whether to replace existing runs."""
    directory, existing = workspace.directory, configuration.existing
    if workspace.finished_step.is_file() or workspace.store.exists():
        raise UsageError(
            f"{directory} holds a single run: leave out {{--runs}}, or name another "
            "{--working-dir}"
        )
    seed = configuration.optimization.seed
    if not path.is_file():
        if existing == "continue":
            watch(Note(f"no runs to continue in {directory}: starting from the beginning"))
        return _Plan(count, secrets.randbits(32) if seed is None else seed), False
    if existing == "overwrite":
        watch(
            Note(
                f"replacing the earlier runs in {directory} ({{--continue}} would have continued "
                "them)",
                is_warning=True,
            )
        )
        return _Plan(count, secrets.randbits(32) if seed is None else seed), True
    plan = _Plan.read(path)
    if existing == "refuse":
        raise UsageError(
            f"{directory} holds {plan.count} runs: continue them with {{--continue}}, replace them"
            " with {--overwrite}, or name another {--working-dir}"
        )
    if count < plan.count:
        raise UsageError(
            f"{directory} holds {plan.count} runs: continue with {{--runs}} {plan.count} or more"
        )
    if seed not in (None, plan.seed):
        raise UsageError(
            f"the runs in {directory} have seeds from {plan.seed} on, not {seed}: leave {{--seed}}"
            " out, or name another {--working-dir}"
        )
    return replace(plan, count=count), False


def _is_finished(directory: Path) -> bool:
    return Workspace(directory, 0).summary.is_file()


def _finish_run(
    configuration: Configuration,
    plan: _Plan,
    path: Path,
    directory: Path,
    number: int,
    watch: Watcher,
    *,
    anew: bool,
) -> _Plan:
    """Run or finish one run; return the new content of ``runs.json``.

    It is entered as begun when the first of its iterations begins. Until then, all that could be
    wrong with the call has been looked at, and what an earlier run left is still there, or is
    gone; after a kill, no file can be mistaken for a part of this run.
    """
    begun = replace(plan, begun=plan.begun | {number})
    replacing = anew and number == 1
    entered = threading.Event()
    lock = threading.Lock()

    def enter() -> None:
        with lock:
            if not entered.is_set():
                if replacing:
                    plan.write(path)
                    _clear(configuration.working_directory, plan.count)
                begun.write(path)
                entered.set()

    def watching(event: Event) -> None:
        if getattr(event, "iteration", 0) >= 1 and not entered.is_set():
            enter()
        watch(event)

    one = replace(
        configuration,
        working_directory=directory,
        existing="continue" if number in plan.begun else "overwrite" if replacing else "refuse",
        optimization=replace(configuration.optimization, seed=plan.seed + number - 1),
    )
    if configuration.decoding.filtering is not None and number > 1:
        share_filtered(configuration.config, run_directory(directory.parent, 1), directory)
    tune(one, watching)
    enter()
    return begun


def _clear(directory: Path, count: int) -> None:
    """Remove the result of earlier runs, and all runs but the first, which is new."""
    workspace = Workspace(directory, 0)
    for path in (*workspace.results, workspace.tuned_sparse, workspace.summary):
        path.unlink(missing_ok=True)
    number = 2
    while (place := run_directory(directory, number)).is_dir():
        if place.is_symlink():  # its target does not belong to this run
            place.unlink()
            number += 1
            continue
        Workspace(place, 0).clear(keep_list=False)
        if number > count:
            for left in (place / "tuning.lock", *place.glob("features.list*")):
                left.unlink(missing_ok=True)
            with suppress(OSError):  # what others put there stays
                place.rmdir()
        number += 1
