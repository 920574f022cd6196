"""``mosesplug optimize``: learn weights from existing n-best lists or graphs, without a decoder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import numpy as np
import typer
from numpy.typing import NDArray

from mosesplug.cli.learn.optimize_report import print_report
from mosesplug.cli.learn.parameters import (
    AlgorithmOptions,
    Folds,
    FromStore,
    HeldOutLists,
    HeldOutRefs,
    HeldOutShare,
    Init,
    Iterations,
    Runs,
    SelectOfRuns,
    SparseInit,
    column_names,
)
from mosesplug.cli.learn.setting_flags import SettingFlagsCommand
from mosesplug.cli.shared.output import check_output, print_bytes, progress_bar
from mosesplug.cli.shared.parameters import (
    THREADS,
    ColumnNames,
    Dense,
    MetricName,
    MetricSettings,
    Quiet,
    References,
    Seed,
    Threads,
)
from mosesplug.cli.shared.setting_options import (
    option_parameters,
    setting_values,
    with_parameters,
)
from mosesplug.errors import UsageError
from mosesplug.learning.data import (
    LearningData,
    read_graph_data,
    read_held_out_lists,
    read_list_data,
    read_store_data,
)
from mosesplug.learning.optimize import (
    LearningPlan,
    find_warnings,
    learn_weights,
    make_learner,
)
from mosesplug.learning.weights import format_weights, write_weights
from mosesplug.metrics import metric as find_metric
from mosesplug.optimizers import algorithm
from mosesplug.settings.algorithm_options import find_idle_options, make_options
from mosesplug.settings.arguments import assignments
from mosesplug.settings.build import sharding_of
from mosesplug.settings.configuration import SelectRun
from mosesplug.settings.declare import declared
from mosesplug.settings.sharding import Sharding

__all__ = ["COMMAND_CLASS", "make_plan", "optimize"]


class OptimizeCommand(SettingFlagsCommand):
    """``mosesplug optimize``, with its options in panels."""

    panels: ClassVar = {
        "Data": (
            "nbest", "graphs", "from_store", "iterations", "refs", "names", "dense", "hg_prune",
            "init", "sparse_init",
        ),
        "Learning": (
            "metric", "metric_settings", "algorithm_name", "option", "active", "bounds", "seed",
        ),
        "Held-out": ("held_out", "heldout_nbest", "heldout_refs", "folds"),
        "Repeats": ("runs", "select"),
        "Parallel": (
            "threads",
        ),
        "Output": ("output", "quiet"),
    }  # fmt: skip


COMMAND_CLASS = OptimizeCommand


def _optimize(
    more_files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="More n-best lists or search graphs."),
    ] = None,
    nbest: Annotated[
        list[Path] | None,
        typer.Option("--nbest", metavar="FILE...", help="n-best lists to merge."),
    ] = None,
    graphs: Annotated[
        list[Path] | None,
        typer.Option(
            "--graphs",
            metavar="DIR...",
            help="Search graphs (for mert, kbmira): a directory of 0.gz, 1.gz, ... or a file for "
            "each decoding.",
        ),
    ] = None,
    from_store: FromStore = None,
    iterations: Iterations = None,
    refs: References = None,
    names: ColumnNames = None,
    dense: Dense = None,
    hg_prune: Annotated[
        int,
        typer.Option(
            "--hg-prune",
            min=0,
            metavar="N",
            help="Prune graphs to N edges a word of the shortest reference; 0 keeps all.",
        ),
    ] = 0,
    init: Init = None,
    sparse_init: SparseInit = None,
    metric: MetricName = None,
    metric_settings: MetricSettings = "",
    algorithm_name: Annotated[
        str,
        typer.Option(
            "--algorithm", metavar="NAME", help="The optimizer (see mosesplug algorithms)."
        ),
    ] = "mert",
    option: AlgorithmOptions = None,
    active: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Features to tune (LM0_0, or a group: LM0). [all]"),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME:MIN..MAX",
            help="Bounds of random starts, as name:min..max,min..max; may be repeated. [0..1]",
        ),
    ] = None,
    seed: Seed = 1,
    held_out: HeldOutShare = None,
    heldout_nbest: HeldOutLists = None,
    heldout_refs: HeldOutRefs = None,
    folds: Folds = None,
    runs: Runs = None,
    select: SelectOfRuns = None,
    threads: Threads = THREADS,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The weights; sparse ones go to FILE.sparse. [stdout]",
        ),
    ] = None,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Learn weights from existing n-best lists or search graphs, without a decoder.

    Prints the scores of the starting weights and of the result on the merged lists or the graphs.

    Example: mosesplug optimize --from tuning --algorithm kbmira --folds 5 -o tuned
    """
    places = [*(graphs or nbest or ()), *(more_files or ())]
    _check_sources(places, nbest, graphs, from_store, iterations)
    if from_store is None and refs is None:
        raise UsageError("no reference is given: use --refs FILE")
    if dense is not None and (graphs or from_store is not None):
        raise UsageError("--dense requires n-best lists: graphs and stores name their features")
    if hg_prune and not graphs:
        raise UsageError("--hg-prune requires --graphs")
    if sparse_init is not None and init is None and not graphs:
        raise UsageError("--sparse-init requires --init")
    if graphs and heldout_nbest:
        raise UsageError("--heldout-nbest requires n-best lists: with --graphs use --held-out")
    plan = make_plan(
        folds=folds,
        held_out=held_out,
        heldout_nbest=heldout_nbest,
        heldout_refs=heldout_refs,
        runs=runs,
        select=select,
    )
    tuner = algorithm(algorithm_name)
    settings = assignments(option or (), "--option")
    optimizer = tuner.bind(make_options(tuner, settings))
    sharding = sharding_of(algorithm_name, setting_values(declared(Sharding), given))
    shared = Path(sharding.directory) if sharding and sharding.directory else None
    columns = column_names(names)
    # Fail now instead of after minutes of work.
    for path in (*places, *(heldout_nbest or ()), from_store, init, sparse_init, shared):
        if path is not None:
            path.stat()
    check_output(output)
    for warning in find_idle_options(optimizer, settings):
        print(f"warning: {warning}", file=sys.stderr)

    with progress_bar(quiet) as progress:
        began = time.perf_counter()
        if from_store is not None:
            data = read_store_data(
                from_store,
                iterations,
                metric=metric,
                metric_settings=metric_settings,
                references=refs,
                init=init,
                sparse_init=sparse_init,
                threads=threads,
                progress=progress,
            )
        else:
            assert refs is not None
            scorer = find_metric(metric or "BLEU", metric_settings)
            if graphs:
                data = read_graph_data(
                    places,
                    refs,
                    scorer,
                    tuner,
                    names=columns,
                    edges=hg_prune,
                    init=init,
                    sparse_init=sparse_init,
                    threads=threads,
                    progress=progress,
                )
            else:
                data = read_list_data(
                    places,
                    refs,
                    scorer,
                    names=columns,
                    dense=dense,
                    init=init,
                    sparse_init=sparse_init,
                    threads=threads,
                    progress=progress,
                )
        data = data.select_features(
            None if active is None else active.replace(",", " ").split(), bounds or ()
        )
        other = None
        if heldout_nbest and heldout_refs is not None:
            other = read_held_out_lists(
                heldout_nbest, heldout_refs, data.problem, names=columns, progress=progress
            )
        loaded = time.perf_counter()
        cpu = time.process_time()
        learn = make_learner(optimizer, data.start.weights, sharding)
        result = learn_weights(data, learn, plan, seed, held_out=other, progress=progress)
        seconds = (loaded - began, time.perf_counter() - loaded, time.process_time() - cpu)

    for warning in find_warnings(data.problem.tuning_set, result):
        print(f"warning: {warning}", file=sys.stderr)
    if not quiet:
        print_report(data, result, plan, seconds)
    _output_weights(data, result.solution.weights, output)


optimize = with_parameters(_optimize, option_parameters(declared(Sharding)))


def make_plan(
    *,
    folds: int | None,
    held_out: float | None,
    heldout_nbest: list[Path] | None,
    heldout_refs: Path | None,
    runs: int | None,
    select: str | None,
) -> LearningPlan:
    """Return the plan that the options ask for.

    Raises:
        UsageError: options that exclude or require each other.
    """
    if bool(heldout_nbest) != (heldout_refs is not None):
        raise UsageError("--heldout-nbest and --heldout-refs require each other")
    given = {
        "--folds": folds is not None,
        "--held-out": held_out is not None,
        "--heldout-nbest": bool(heldout_nbest),
    }
    used = [name for name, is_used in given.items() if is_used]
    if len(used) > 1:
        raise UsageError(f"{' and '.join(used)} exclude each other: use one of them")
    if folds is not None and runs is not None:
        raise UsageError("--folds and --runs exclude each other: use one of them")
    if held_out is not None and not 0.0 < held_out < 1.0:
        raise UsageError(f"--held-out must be more than 0 and less than 1, not {held_out:g}")
    choices: tuple[SelectRun, ...] = get_args(SelectRun)
    if select is not None and runs is None:
        raise UsageError("--select requires --runs")
    if select is not None and select not in choices:
        raise UsageError(f"--select must be one of {', '.join(choices)}, not {select}")
    if select == "best-heldout" and not (held_out or heldout_nbest):
        raise UsageError("--select best-heldout requires --held-out or --heldout-nbest")
    choice = next((each for each in choices if each == select), choices[0])
    return LearningPlan(folds or 0, held_out or 0.0, runs or 0, choice)


def _check_sources(
    places: list[Path],
    nbest: list[Path] | None,
    graphs: list[Path] | None,
    store: Path | None,
    iterations: str | None,
) -> None:
    """Check that there is one kind of data to learn from.

    Raises:
        UsageError: there is none, or several.
    """
    if store is not None and places:
        raise UsageError("--from excludes n-best lists and graphs: use one of them")
    if graphs and nbest:
        raise UsageError("--nbest and --graphs exclude each other: use one of them")
    if iterations is not None and store is None:
        raise UsageError("--iterations requires --from")
    if store is None and not places:
        raise UsageError(
            "nothing to learn from: use --nbest FILE..., --graphs DIR... or --from STORE"
        )


def _output_weights(data: LearningData, weights: NDArray[np.float64], output: Path | None) -> None:
    """Write the weights; print them without ``output``, or if it cannot be written."""
    dense, sparse = format_weights(data.problem, weights)
    if output is None:
        print_bytes(dense + sparse)
        return
    try:
        write_weights(output, dense, sparse)
    except OSError:
        print_bytes(dense + sparse)
        raise
