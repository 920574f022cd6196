"""``mosesplug optimize``: any optimizer on existing n-best lists or graphs, without a decoder."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from numpy.typing import NDArray

from formats.nbest.dense import is_named
from mosesplug.cli.learn.algorithm_parameters import settings_of, with_algorithm_options
from mosesplug.cli.learn.optimize_input import Files, given_graphs, given_lists, held_out_lists
from mosesplug.cli.learn.optimize_output import check_output, write_weights
from mosesplug.cli.learn.optimize_parameters import (
    Folds,
    FromStore,
    HeldOutLists,
    HeldOutRefs,
    HeldOutShare,
    Iterations,
    Runs,
    SelectOfRuns,
)
from mosesplug.cli.learn.optimize_report import report, warnings
from mosesplug.cli.learn.optimize_store import given_store
from mosesplug.cli.learn.optimize_ways import Ways, learnt, ways_of
from mosesplug.cli.shared.output import progress_bar
from mosesplug.cli.shared.parameters import Dense
from mosesplug.cli.shared.setting_options import (
    option_parameters,
    setting_values,
    with_parameters,
)
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists import list_dense_features
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import metric as find_metric
from mosesplug.optimizers import Problem, Progress, Solution, algorithm, algorithms
from mosesplug.settings.algorithm_options import algorithm_options, idle_options
from mosesplug.settings.build import sharding_of
from mosesplug.settings.declare import declared
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.weights import ranges

__all__ = ["optimize"]


def _optimize(
    more_files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="More n-best lists, or search graphs."),
    ] = None,
    nbest: Annotated[
        list[Path] | None,
        typer.Option("--nbest", metavar="FILE...", help="n-best lists of one text, merged."),
    ] = None,
    graphs: Annotated[
        list[Path] | None,
        typer.Option(
            "--graphs",
            metavar="DIR...",
            help="Search graphs in place of lists (mert, kbmira): a directory of 0.gz, 1.gz, ... "
            "or a file for each decoding of one text, used together.",
        ),
    ] = None,
    hg_prune: Annotated[
        int,
        typer.Option(
            "--hg-prune",
            min=0,
            metavar="N",
            help="Keep of each graph the best N edges a word of the shortest reference, at the "
            "starting weights; 0 keeps all.",
        ),
    ] = 0,
    refs: Annotated[
        Path | None,
        typer.Option(help="The reference; or the prefix of several: REFS0, REFS1, ..."),
    ] = None,
    algorithm_name: Annotated[
        str, typer.Option("--algorithm", help=f"The optimizer: {', '.join(algorithms())}.")
    ] = "mert",
    init: Annotated[
        Path | None,
        typer.Option(
            help="Starting weights: moses.ini, runN.dense, init.opt, ... Without: all equal, or "
            "those that the graphs were made with."
        ),
    ] = None,
    sparse_init: Annotated[
        Path | None, typer.Option(help="Starting weights of sparse features, name value a line.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the weights go (sparse ones to FILE.sparse); else stdout.",
        ),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    dense: Dense = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What to optimise: BLEU, CDER, CHRF, PER, TER, TER-SACREBLEU or WER; "
            "or a weighted sum, as BLEU,TER. [BLEU; with --from, what that run optimised]"
        ),
    ] = None,
    metric_settings: Annotated[
        str,
        typer.Option(
            help="Its settings, as reflen:closest|shortest|average,case:true|false; "
            "of a sum also weights:0.6+0.4."
        ),
    ] = "",
    active: Annotated[
        str | None,
        typer.Option(help="Comma-separated features to tune (LM0_0, or a group: LM0); else all."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME:MIN..MAX",
            help="Bounds of random starts, else 0..1: name:min..max,min..max; repeat.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="The weights do not depend on it.")
    ] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of all random choices.")] = 1,
    from_store: FromStore = None,
    iterations: Iterations = None,
    folds: Folds = None,
    held_out: HeldOutShare = None,
    heldout_nbest: HeldOutLists = None,
    heldout_refs: HeldOutRefs = None,
    runs: Runs = None,
    select: SelectOfRuns = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    **chosen: Any,
) -> None:
    """Find weights in existing n-best lists or search graphs, without a decoder.

    Prints the score at the start and at the end, both of decoding the merged lists, or the graphs.
    Options below --quiet are the algorithms' own; each names its source.

    Example: mosesplug optimize --from tuning --algorithm kbmira --folds 5 -o tuned
    """
    places = [*(graphs or nbest or ()), *(more_files or ())]
    _check_sources(places, nbest, graphs, from_store, iterations, refs)
    if dense is not None and (graphs or from_store is not None):
        raise UsageError("--dense is for n-best lists: graphs and stores say it themselves")
    if hg_prune and not graphs:
        raise UsageError("--hg-prune cuts search graphs down: give some by --graphs")
    if sparse_init is not None and init is None and not graphs:
        raise UsageError("--sparse-init needs the dense weights too: give them by --init")
    ways = ways_of(folds, held_out, heldout_nbest, heldout_refs, runs, select)
    if graphs and ways.heldout_lists:
        raise UsageError("--heldout-nbest goes with lists: --held-out SHARE goes with graphs, too")
    tuner = algorithm(algorithm_name)
    parallel = setting_values(declared(Sharding), chosen)
    settings = settings_of(chosen)
    optimizer = tuner.bind(algorithm_options(tuner, settings))
    sharding = sharding_of(algorithm_name, parallel)
    shared = Path(sharding.directory) if sharding and sharding.directory else None
    columns = _column_names(names)
    # What is missing is missing before minutes of work as well as after them.
    for path in (*places, *ways.heldout_lists, from_store, init, sparse_init, shared):
        if path is not None:
            path.stat()
    check_output(output)
    for said in idle_options(optimizer, settings):
        print(f"warning: {said}", file=sys.stderr)

    with progress_bar(quiet) as told:
        began = time.perf_counter()
        if from_store is not None:
            given = given_store(
                from_store,
                iterations,
                metric=metric,
                settings=metric_settings,
                references=refs,
                init=init,
                sparse_init=sparse_init,
                threads=threads,
                told=told,
            )
        else:
            measure = find_metric(metric or "BLEU", metric_settings)
            named = None if graphs else list_dense_features(places, dense)
            files = Files(places, cast(Path, refs), init, sparse_init, columns, named)
            if graphs:
                given = given_graphs(files, measure, tuner, hg_prune, threads, told)
            else:
                given = given_lists(files, measure, threads, told)
        start, space = given.start, given.space
        minima, maxima = _box(start, bounds or [], space)
        problem = replace(
            given.problem, active=_active(active, space), minima=minima, maxima=maxima
        )
        judged = None
        if ways.heldout_refs is not None:
            other = _other_lists(ways, columns, problem.tuning_set.space)
            judged = held_out_lists(other, problem, told)
        loaded = time.perf_counter()
        cpu = time.process_time()

        def learn(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
            if sharding is None:
                return optimizer.optimize(problem, start.weights, rng, progress)
            from mosesplug.tuning.parallel.sharded import optimize_sharded

            return optimize_sharded(problem, optimizer, sharding, start.weights, rng, progress)

        found = learnt(replace(given, problem=problem), judged, learn, ways, seed, told)
        seconds = (loaded - began, time.perf_counter() - loaded, time.process_time() - cpu)

    for warning in warnings(given.problem.tuning_set, found):
        print(f"warning: {warning}", file=sys.stderr)
    if not quiet:
        report(given, found, ways, seconds)
    own = () if problem.fixed is None else np.array(space.names)[problem.fixed].tolist()
    write_weights(output, space, found.solution, own)


def _other_lists(ways: Ways, columns: list[str] | None, space: FeatureSpace) -> Files:
    """Held-out lists, to be read with the dense features of those that are learnt from."""
    lists, refs = ways.heldout_lists, cast(Path, ways.heldout_refs)
    dense = tuple(name for name, _ in space.groups) if is_named(lists[0]) else None
    return Files(lists, refs, names=columns, dense=dense)


def _check_sources(
    places: list[Path],
    nbest: list[Path] | None,
    graphs: list[Path] | None,
    store: Path | None,
    iterations: str | None,
    refs: Path | None,
) -> None:
    """See that there is one kind of thing to learn from.

    Raises:
        UsageError: there is none, or several.
    """
    if store is not None and places:
        raise UsageError("--from excludes n-best lists and graphs: give the one or the other")
    if graphs and nbest:
        raise UsageError("--nbest and --graphs exclude each other: give one of them")
    if store is not None:
        return
    if iterations is not None:
        raise UsageError("--iterations are those of a store: give it by --from")
    if not places:
        raise UsageError(
            "nothing to learn from: use --nbest FILE..., --graphs DIR... or --from STORE"
        )
    if refs is None:
        raise UsageError("no reference is given: use --refs FILE")


def _column_names(names: str | None) -> list[str] | None:
    """The columns of unlabelled lists; those of one group have one name, side by side."""
    if names is None:
        return None
    columns = [name.strip() for name in names.split(",")]
    if not all(columns):
        raise UsageError(f"--names={names}: a name is empty")
    groups = [group for group, _ in FeatureSpace.of_names(columns).groups]
    for group in groups:
        if groups.count(group) > 1:
            raise UsageError(f"--names={names}: the columns of {group} do not stand together")
    return columns


def _active(names: str | None, space: FeatureSpace) -> NDArray[np.bool_] | None:
    """The features to tune; None for all dense ones."""
    if names is None:
        return None
    try:
        return space.select(names.replace(",", " ").split())
    except KeyError as error:
        raise UsageError(
            f"--active: there is no feature {error.args[0]}; there are "
            f"{', '.join(space.names[:30])}"
        ) from error


def _box(
    start: StartingWeights, bounds: list[str], space: FeatureSpace
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Ends of the box of random starts, from --range or else from the file of --init."""
    if not bounds:
        return start.minima, start.maxima
    low, high = ranges(tuple(bounds), space.group_names)
    return (
        np.concatenate([low, np.zeros(space.n_sparse)]),
        np.concatenate([high, np.ones(space.n_sparse)]),
    )


optimize = with_algorithm_options(with_parameters(_optimize, option_parameters(declared(Sharding))))
