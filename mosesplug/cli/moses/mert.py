"""``mert``: minimum error rate training on extractor files, as in Moses' program."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, run, split_names
from mosesplug.errors import DataError, UsageError
from mosesplug.options import Opt

if TYPE_CHECKING:
    from mosesplug.metrics import Metric
    from mosesplug.moses_tools.extractor_files import ExtractorSet

Method = Literal["powell", "random-direction", "random"]


@dataclass(frozen=True)
class MertArguments(ProgramArguments):
    """The options of ``mert``."""

    pdim: Annotated[int | None, Opt("number of dense weights (required)", short="d")] = None
    ntry: Annotated[int, Opt("random starting points", short="n", minimum=0)] = 1
    nrandom: Annotated[
        int, Opt("random directions per line search round", short="m", minimum=0)
    ] = 0
    rseed: Annotated[int | None, Opt("random seed (default: drawn)", short="r")] = None
    optimize: Annotated[
        str | None,
        Opt(
            "names of the weights to tune, comma-separated (default: all)",
            short="o",
            metavar="NAMES",
        ),
    ] = None
    type: Annotated[
        Method, Opt("powell, random-direction or random", short="t", metavar="METHOD")
    ] = "powell"
    sctype: Annotated[str, Opt("the metric", short="s", metavar="METRIC")] = "BLEU"
    scconfig: Annotated[
        str, Opt("metric settings, and regtype and regwin", short="c", metavar="name:value,...")
    ] = ""
    scfile: Annotated[
        str, Opt("files of statistics, comma-separated", short="S", metavar="FILES")
    ] = "statscore.data"
    ffile: Annotated[str, Opt("files of features, comma-separated", short="F", metavar="FILES")] = (
        "features.data"
    )
    ifile: Annotated[
        str,
        Opt(
            "starting point files, comma-separated; the first also has the ranges of restarts",
            short="i",
            metavar="FILES",
        ),
    ] = "init.opt"
    sparse_weights: Annotated[
        str | None,
        Opt(
            "weights of sparse features; their score becomes the last dense feature",
            short="p",
            metavar="FILE",
        ),
    ] = None
    positive: Annotated[
        str | None,
        Opt("names of weights that must stay above 0, comma-separated", short="P", metavar="NAMES"),
    ] = None
    threads: Annotated[int, Opt("number of threads; does not change the result", short="T")] = 1
    shard_count: Annotated[
        int, Opt("number of shards to tune on; their weights are averaged", short="a", minimum=0)
    ] = 0
    shard_size: Annotated[
        float,
        Opt(
            "share of the sentences drawn for each shard; 0 splits them",
            short="b",
            metavar="SHARE",
            minimum=0.0,
            maximum=1.0,
            requires=("shard-count",),
            excludes=("shard-count=0",),
        ),
    ] = 0.0
    verbose: Annotated[
        int, Opt("2 prints the result of each shard", short="v", metavar="LEVEL")
    ] = 0


PROGRAM = Program(
    "mert",
    "Tune weights on extractor files; print the best point on stderr and write weights.txt.",
    MertArguments,
)

WEIGHTS_FILE = "weights.txt"
"""Written to the current directory, where mert-moses.pl expects it."""

_POLISH = 14
"""The search ends after so many climbs in a row without gain. With 8, a small set scored lower than
with Moses' mert."""

_INTERVALS = {"none": "best", "average": "average", "min": "minimum"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``mert`` and exit."""
    run(PROGRAM, _mert, arguments)


def _mert(arguments: MertArguments) -> None:
    _check(arguments)
    # Imported here: --help does not need these modules.
    import numpy as np

    from formats.text import write_atomic
    from mosesplug.metrics import metric as find_metric
    from mosesplug.moses_tools.extractor_files import load_extractor_files
    from mosesplug.moses_tools.mert_files import (
        average_solutions,
        read_starts,
        remove_sparse,
        select_weights,
        split_problem,
    )
    from mosesplug.optimizers import Problem, algorithm, no_progress
    from mosesplug.settings.algorithm_options import make_options

    settings, options = _search(arguments)
    tuner = algorithm("mert")
    chosen = make_options(tuner, options)
    metric = find_metric(arguments.sctype, settings)
    seed = secrets.randbits(31) if arguments.rseed is None else arguments.rseed
    _log(f"Seeding random numbers with {seed}")
    rng = np.random.default_rng(seed % 2**32)
    threads = max(1, arguments.threads)
    data = load_extractor_files(
        split_names(arguments.ffile), split_names(arguments.scfile), threads=threads
    )
    _log(f"{data.tuning_set.n_hyps} distinct hypotheses of {data.hypotheses}")
    _check_data(arguments, metric, data)
    tuning_set = remove_sparse(data.tuning_set, arguments.sparse_weights)
    n_features = len(tuning_set.space)
    active, positive = (
        select_weights(names.replace(",", " ").split(), data.names, n_features, option)
        if names
        else None
        for option, names in (
            ("--optimize", arguments.optimize),
            ("--positive", arguments.positive),
        )
    )
    starts, minima, maxima = read_starts(split_names(arguments.ifile), tuning_set.space)
    problem = Problem(
        tuning_set, metric, active, minima, maxima, tuple(starts[1:]), threads, positive
    )
    solutions = [
        tuner.optimize(part, starts[0], rng, chosen, no_progress)
        for part in split_problem(problem, arguments.shard_count, arguments.shard_size, rng)
    ]
    if arguments.verbose > 1:
        for number, solution in enumerate(solutions):
            _log(f"shard {number} best score: {solution.score:.6f}")
    weights, score = average_solutions(problem, solutions)
    text = "".join(_number(weight) + " " for weight in weights.tolist())
    write_atomic(WEIGHTS_FILE, f"{text}\n".encode())
    _log(f"Best point: {text} => {score:.6f}")


def _check(arguments: MertArguments) -> None:
    """Raise UsageError for invalid options."""
    if arguments.pdim is None or arguments.pdim < 1:
        raise UsageError("give the number of dense weights: -d N")
    if not split_names(arguments.ifile):
        raise UsageError("no starting point: use --ifile FILE")


def _check_data(arguments: MertArguments, metric: Metric, data: ExtractorSet) -> None:
    """Raise an error if the files do not match the options."""
    from mosesplug.moses_tools.extractor_files import require_metric

    require_metric(data, metric, split_names(arguments.scfile)[0])
    if len(data.names) != arguments.pdim:
        raise DataError(
            f"the files have {len(data.names)} dense features, but -d is {arguments.pdim}:"
            f" {', '.join(data.names)}"
        )


def _search(arguments: MertArguments) -> tuple[str, dict[str, object]]:
    """Split ``--scconfig`` into metric settings and line search options."""
    kept: list[str] = []
    options: dict[str, object] = {
        "restarts": arguments.ntry,
        "polish": _POLISH,
        "random_directions": arguments.nrandom,
        "method": arguments.type,
    }
    for piece in arguments.scconfig.replace(",", " ").split():
        name, _, value = piece.partition(":")
        if name == "regtype":
            if value not in _INTERVALS:
                raise UsageError(f"regtype:{value}: must be one of {', '.join(_INTERVALS)}")
            options["interval"] = _INTERVALS[value]
        elif name == "regwin":
            if not value.isdecimal():
                raise UsageError(f"regwin:{value}: takes a whole number, at least 0")
            options["neighbors"] = value
        else:
            kept.append(piece)
    return ",".join(kept), options


def _number(weight: float) -> str:
    """Format all digits without ``e+``, which mert-moses.pl cannot read."""
    text = repr(weight).removesuffix(".0")
    return f"{weight:.0f}" if "e+" in text else text


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
