"""``mert``: minimum error rate training on extractor files, as in Moses' program."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    parse_count,
    parse_integer,
    parse_real,
    run,
    split_names,
)
from mosesplug.errors import DataError, UsageError

if TYPE_CHECKING:
    from mosesplug.metrics import Metric
    from mosesplug.moses_tools.extractor_files import ExtractorSet

_METHODS = ("powell", "random-direction", "random")


def parse_method(text: str) -> str:
    """Parse the name of a search method.

    Raises:
        ValueError: it is not one.
    """
    if text not in _METHODS:
        raise ValueError(f"takes {', '.join(_METHODS[:-1])} or {_METHODS[-1]}, not {text!r}")
    return text


PROGRAM = Program(
    "mert",
    "Tune weights on extractor files; print the best point on stderr and write weights.txt.",
    (
        ProgramOption("pdim", "number of dense weights (required)", "d", "N", parse_integer),
        ProgramOption("ntry", "random starting points", "n", "N", parse_count, 1),
        ProgramOption(
            "nrandom", "random directions per line search round", "m", "N", parse_count, 0
        ),
        ProgramOption("rseed", "random seed (default: drawn)", "r", "N", parse_integer),
        ProgramOption(
            "optimize", "names of the weights to tune, comma-separated (default: all)", "o", "NAMES"
        ),
        ProgramOption(
            "type", "powell, random-direction or random", "t", "METHOD", parse_method, "powell"
        ),
        ProgramOption("sctype", "the metric", "s", "METRIC", default="BLEU"),
        ProgramOption(
            "scconfig", "metric settings, and regtype and regwin", "c", "name:value,...", str, ""
        ),
        ProgramOption(
            "scfile", "files of statistics, comma-separated", "S", "FILES", str, "statscore.data"
        ),
        ProgramOption(
            "ffile", "files of features, comma-separated", "F", "FILES", str, "features.data"
        ),
        ProgramOption(
            "ifile",
            "starting point files, comma-separated; the first also has the ranges of restarts",
            "i",
            "FILES",
            str,
            "init.opt",
        ),
        ProgramOption(
            "sparse-weights",
            "weights of sparse features; their score becomes the last dense feature",
            "p",
            "FILE",
        ),
        ProgramOption(
            "positive", "names of weights that must stay above 0, comma-separated", "P", "NAMES"
        ),
        ProgramOption(
            "threads", "number of threads; does not change the result", "T", "N", parse_integer, 1
        ),
        ProgramOption(
            "shard-count",
            "number of shards to tune on; their weights are averaged",
            "a",
            "N",
            parse_integer,
            0,
        ),
        ProgramOption(
            "shard-size",
            "share of the sentences drawn for each shard; 0 splits them",
            "b",
            "SHARE",
            parse_real,
            0.0,
        ),
        ProgramOption(
            "verbose", "2 prints the result of each shard", "v", "LEVEL", parse_integer, 0
        ),
    ),
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


def _mert(arguments: Arguments) -> None:
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
    metric = find_metric(arguments["sctype"], settings)
    seed = secrets.randbits(31) if arguments["rseed"] is None else arguments["rseed"]
    _log(f"Seeding random numbers with {seed}")
    rng = np.random.default_rng(seed % 2**32)
    threads = max(1, arguments["threads"])
    data = load_extractor_files(
        split_names(arguments["ffile"]), split_names(arguments["scfile"]), threads=threads
    )
    _log(f"{data.tuning_set.n_hyps} distinct hypotheses of {data.hypotheses}")
    _check_data(arguments, metric, data)
    tuning_set = remove_sparse(data.tuning_set, arguments["sparse-weights"])
    n_features = len(tuning_set.space)
    active, positive = (
        select_weights(
            arguments[name].replace(",", " ").split(), data.names, n_features, f"--{name}"
        )
        if arguments[name]
        else None
        for name in ("optimize", "positive")
    )
    starts, minima, maxima = read_starts(split_names(arguments["ifile"]), tuning_set.space)
    problem = Problem(
        tuning_set, metric, active, minima, maxima, tuple(starts[1:]), threads, positive
    )
    solutions = [
        tuner.optimize(part, starts[0], rng, chosen, no_progress)
        for part in split_problem(problem, arguments["shard-count"], arguments["shard-size"], rng)
    ]
    if arguments["verbose"] > 1:
        for number, solution in enumerate(solutions):
            _log(f"shard {number} best score: {solution.score:.6f}")
    weights, score = average_solutions(problem, solutions)
    text = "".join(_number(weight) + " " for weight in weights.tolist())
    write_atomic(WEIGHTS_FILE, f"{text}\n".encode())
    _log(f"Best point: {text} => {score:.6f}")


def _check(arguments: Arguments) -> None:
    """Raise UsageError for invalid options."""
    if arguments["pdim"] is None or arguments["pdim"] < 1:
        raise UsageError("give the number of dense weights: -d N")
    if arguments["shard-size"] and arguments["shard-count"] < 1:
        raise UsageError("--shard-size requires --shard-count: give the number of shards")
    if not 0.0 <= arguments["shard-size"] <= 1.0:
        raise UsageError(f"--shard-size {arguments['shard-size']:g}: must be from 0 to 1")
    if arguments["shard-count"] < 0:
        raise UsageError(f"--shard-count {arguments['shard-count']}: must be at least 0")
    if not split_names(arguments["ifile"]):
        raise UsageError("no starting point: use --ifile FILE")


def _check_data(arguments: Arguments, metric: Metric, data: ExtractorSet) -> None:
    """Raise an error if the files do not match the options."""
    from mosesplug.moses_tools.extractor_files import require_metric

    require_metric(data, metric, split_names(arguments["scfile"])[0])
    if len(data.names) != arguments["pdim"]:
        raise DataError(
            f"the files have {len(data.names)} dense features, but -d is {arguments['pdim']}:"
            f" {', '.join(data.names)}"
        )


def _search(arguments: Arguments) -> tuple[str, dict[str, object]]:
    """Split ``--scconfig`` into metric settings and line search options."""
    kept: list[str] = []
    options: dict[str, object] = {
        "restarts": arguments["ntry"],
        "polish": _POLISH,
        "random_directions": arguments["nrandom"],
        "method": arguments["type"],
    }
    for piece in arguments["scconfig"].replace(",", " ").split():
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
