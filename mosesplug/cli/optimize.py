"""``mosesplug optimize``: any optimizer on existing n-best lists, without a decoder."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from formats.text import write_atomic
from formats.weights import format_dense, format_sparse
from mosesplug.cli.algorithm_parameters import with_algorithm_options
from mosesplug.cli.bar import bar
from mosesplug.cli.sharding_options import sharding_of
from mosesplug.cli.sharding_parameters import (
    Asynchronous,
    AsyncOrder,
    Keep,
    Mixing,
    Scheduler,
    ShardDirectory,
    Shards,
    Workers,
)
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import metric as find_metric
from mosesplug.optimizers import Problem, Solution, algorithm, algorithms, corpus_score
from mosesplug.tuning.algorithm_options import algorithm_options
from mosesplug.tuning.offline import Lists, Start, load_lists, read_start
from mosesplug.tuning.weights import ranges

__all__ = ["optimize"]


def _optimize(
    more_lists: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE...]", help="More n-best lists.")
    ] = None,
    nbest: Annotated[
        list[Path] | None,
        typer.Option("--nbest", metavar="FILE...", help="n-best lists of one text, merged."),
    ] = None,
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
            help="Starting weights: moses.ini, runN.dense, init.opt, ... Without: all equal."
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
    metric: Annotated[
        str,
        typer.Option(
            help="What to optimise: BLEU, CDER, CHRF, PER, TER, TER-SACREBLEU or WER; "
            "or a weighted sum, as BLEU,TER."
        ),
    ] = "BLEU",
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
    shards: Shards = None,
    mixing: Mixing = None,
    keep: Keep = None,
    asynchronous: Asynchronous = False,
    async_order: AsyncOrder = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    shard_directory: ShardDirectory = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    **chosen: Any,
) -> None:
    """Find weights in existing n-best lists, without a decoder.

    Prints the score at the start and at the end, both of decoding the merged lists. Options below
    --quiet are the algorithms' own; each names its source.
    """
    files = [*(nbest or ()), *(more_lists or ())]
    if not files:
        raise UsageError("no n-best list is given: use --nbest FILE...")
    if refs is None:
        raise UsageError("no reference is given: use --refs FILE")
    if sparse_init is not None and init is None:
        raise UsageError("--sparse-init needs the dense weights too: give them by --init")
    tuner = algorithm(algorithm_name)
    options = algorithm_options(tuner, {k: v for k, v in chosen.items() if v is not None})
    sharding = sharding_of(
        tuner,
        shards=shards,
        mixing=mixing,
        keep=keep,
        asynchronous=asynchronous,
        async_order=async_order,
        workers=workers,
        scheduler=scheduler,
        shard_directory=shard_directory,
    )
    columns = _column_names(names)
    # What is missing is missing before minutes of work as well as after them.
    for path in (*files, init, sparse_init, shard_directory):
        if path is not None:
            path.stat()
    _check_output(output)

    with bar(quiet) as told:
        began = time.perf_counter()
        measure = find_metric(metric, metric_settings)
        lists = load_lists(
            files,
            refs,
            measure,
            names=columns,
            threads=threads,
            loaded=lambda done: told(done, len(files), "lists"),
        )
        space = lists.tuning_set.space
        start = _start(init, sparse_init, space)
        minima, maxima = _box(start, bounds or [], space)
        problem = Problem(
            lists.tuning_set,
            measure,
            _active(active, space),
            minima,
            maxima,
            threads=threads,
        )
        loaded = time.perf_counter()
        cpu = time.process_time()
        rng = np.random.default_rng(seed)
        if sharding is None:
            solution = tuner.optimize(problem, start.weights, rng, options, told)
        else:
            from mosesplug.tuning.sharded import optimize_sharded

            solution = optimize_sharded(problem, tuner, options, sharding, start.weights, rng, told)
        seconds = (loaded - began, time.perf_counter() - loaded, time.process_time() - cpu)

    if not quiet:
        _report(lists, corpus_score(problem, start.weights), solution, seconds)
    _write(output, space, solution)


def _start(init: Path | None, sparse_init: Path | None, space: FeatureSpace) -> Start:
    """The starting weights; all dense ones equal where no file is given."""
    if init is not None:
        return read_start(init, space, sparse_init)
    return Start(np.where(np.arange(len(space)) < space.n_dense, 1.0 / max(1, space.n_dense), 0.0))


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


def _check_output(output: Path | None) -> None:
    """Refuse at once what the weights could not be written to at the end."""
    if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
        return  # a device or a pipe takes what it is given
    directory = output.resolve().parent
    wrong = None
    if output.is_dir():
        wrong = "it is a directory"
    elif not directory.is_dir():
        wrong = f"there is no directory {directory}"
    elif not os.access(directory, os.W_OK | os.X_OK):
        wrong = f"no file can be made in {directory}"
    if wrong is not None:
        raise UsageError(f"--output {output}: {wrong}")


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
    start: Start, bounds: list[str], space: FeatureSpace
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Ends of the box of random starts, from --range or else from the file of --init."""
    if not bounds:
        return start.minima, start.maxima
    low, high = ranges(tuple(bounds), space.group_names)
    return (
        np.concatenate([low, np.zeros(space.n_sparse)]),
        np.concatenate([high, np.ones(space.n_sparse)]),
    )


def _report(
    lists: Lists, before: float, solution: Solution, seconds: tuple[float, float, float]
) -> None:
    """Scores on stderr, so that weights on stdout can be piped."""
    made = lists.tuning_set
    listed = int(np.count_nonzero(np.diff(made.offsets)))
    sentences = f"{listed} of {made.n_sentences}" if listed < made.n_sentences else f"{listed}"
    print(
        f"{sentences} sentences, {made.n_hyps} distinct hypotheses of {lists.hypotheses}, "
        f"{len(made.space)} features\n"
        f"score at the start  {before:.6f}\n"
        f"score at the end    {solution.score:.6f}\n"
        f"{lists.signature}\n"
        f"loading {seconds[0]:.2f} s, optimising {seconds[1]:.2f} s ({seconds[2]:.2f} s of CPU)",
        file=sys.stderr,
    )


def _write(output: Path | None, space: FeatureSpace, solution: Solution) -> None:
    """The weights, in all the digits they have; to stdout if they cannot be written."""
    if not (np.isfinite(solution.weights).all() and solution.weights.any()):
        raise OptimizerError(
            "the optimizer ended with weights that cannot be used; none is written"
        )
    values = solution.weights.tolist()
    groups, first = [], 0
    for name, width in space.groups:
        groups.append((name, values[first : first + width]))
        first += width
    sparse = {n: w for n, w in zip(space.sparse, values[first:], strict=True) if w != 0.0}
    if output is None:
        _print_weights(format_dense(groups), format_sparse(sparse))
        return
    beside = Path(f"{output}.sparse")
    try:
        write_atomic(output, format_dense(groups))
        if sparse:
            write_atomic(beside, format_sparse(sparse))
        else:
            beside.unlink(missing_ok=True)  # an earlier run's do not belong to these
    except OSError:
        _print_weights(format_dense(groups), format_sparse(sparse))
        raise


def _print_weights(dense: bytes, sparse: bytes) -> None:
    """The bytes as they are, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(dense + sparse)
    sys.stdout.buffer.flush()


optimize = with_algorithm_options(_optimize)
