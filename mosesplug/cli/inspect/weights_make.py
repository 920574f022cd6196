"""``mosesplug weights average``, ``interpolate``, ``normalize`` and ``convert``."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.inspect.weights import WEIGHTS
from mosesplug.cli.shared.completion import complete_weight_formats
from mosesplug.cli.shared.inputs import OUTPUT
from mosesplug.cli.shared.output import check_output, check_two_outputs, write_output
from mosesplug.cli.shared.parameters import Output
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from formats.weights.weight_format import Format
    from mosesplug.results.weights.algebra import Norm
    from mosesplug.results.weights.sources import ResolvedWeights

_FORMATS = (
    "dense, json, json-flat, yaml, tsv, equals, lines, moses.ini, show-weights, overwrite, sparse, "
    "graph, kbmira, init.opt, weights.txt"
)

_Weights = Annotated[str, typer.Argument(metavar="WEIGHTS", help=WEIGHTS)]
_To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help=f"{_FORMATS} [by the name of the output, or that of the first]",
        autocompletion=complete_weight_formats,
    ),
]
_Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The moses.ini to edit [that of the run or file]."),
]
_SparseOutput = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Sparse weights, if the format cannot hold them."),
    OUTPUT,
]
_NamesFrom = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Names of unnamed weights: a runN.dense or features.list."),
]
_Normalize = Annotated[
    bool,
    typer.Option("--normalize/--no-normalize", help="Divide each by its L1 norm first."),
]


def average(
    weights: Annotated[list[str], typer.Argument(metavar="WEIGHTS", help=WEIGHTS)],
    normalize: _Normalize = True,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: Output = None,
) -> None:
    """Average several weight vectors, for example of runs with different seeds.

    Each is divided by the L1 norm of its dense weights first, since those with a large norm would
    otherwise dominate. All must have the same dense features; a missing sparse weight counts as 0.

    Example: mosesplug weights average run1 run2 run3 --to moses.ini --config moses.ini -o mean.ini
    """
    from mosesplug.results.weights.algebra import combine

    every = _resolve(weights, names_from)
    shares = [1.0 / len(every)] * len(every)
    mean = combine(every, shares, "the mean", normalized=normalize)
    _write(mean, to, config, sparse_output, output)


def interpolate(
    first: Annotated[str, typer.Argument(metavar="A", help=WEIGHTS)],
    second: Annotated[str, typer.Argument(metavar="B", help="Other weights.")],
    at: Annotated[
        list[float],
        typer.Option("--at", metavar="X", help="0 is A, 1 is B; may be outside, or repeated."),
    ],
    normalize: _Normalize = True,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: Output = None,
) -> None:
    """Interpolate between two weight vectors: (1 - X) A + X B.

    Both are divided by their L1 norms first, so that X = 0.5 is half of the way. If --at is
    repeated, {} in file names stands for X. mosesplug line shows the score along the line.

    Example: mosesplug weights interpolate tuning:1 tuning --at 0.25 --at 0.5 -o mixed.{}.dense
    """
    from mosesplug.results.weights.algebra import combine

    for x in at:
        if not math.isfinite(x):
            raise UsageError(f"--at must be a finite number, not {x}")
    if len(set(at)) > 1:
        if output is None or "{}" not in str(output):
            raise UsageError("several --at make several files: give -o a name with {} in it")
        if sparse_output is not None and "{}" not in str(sparse_output):
            raise UsageError("several --at make several files: give --sparse-output {} in its name")
    every = _resolve([first, second], names_from)
    # Compute all before any is written.
    mixed = {
        x: combine(every, (1.0 - x, x), f"the point at {x:g}", normalized=normalize)
        for x in dict.fromkeys(at)
    }
    for x, weights in mixed.items():
        _write(weights, to, config, _fill_in(sparse_output, x), _fill_in(output, x))


def normalize(
    weights: _Weights,
    l2: Annotated[bool, typer.Option("--l2", help="Divide by the L2 norm.")] = False,
    largest: Annotated[
        bool, typer.Option("--max", help="Divide by the largest absolute weight.")
    ] = False,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: Output = None,
) -> None:
    """Divide weights by the L1 norm of the dense ones.

    No ranking changes, unless there are features that are not tuned: their weights stay.

    Example: mosesplug weights normalize moses.ini -o normalized.ini
    """
    from mosesplug.results.weights import algebra
    from mosesplug.results.weights.sources import resolve_weights

    if l2 and largest:
        raise UsageError("--l2 and --max exclude each other")
    norm: Norm = "l2" if l2 else "max" if largest else "l1"
    found = algebra.normalize(resolve_weights(weights, names_from), norm)
    _write(found, to, config, sparse_output, output)


def convert(
    weights: _Weights,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help=f"{_FORMATS} [by the name of the output]",
            autocompletion=complete_weight_formats,
        ),
    ] = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: Output = None,
) -> None:
    """Write weights in another format, with identical numbers.

    Sparse weights that a format cannot hold require --sparse-output; missing names and features
    that are not tuned are reported on stderr. graph is the file "weights" beside search graphs,
    overwrite the value of the decoder's -weight-overwrite.

    Examples: mosesplug weights convert tuning -o tuned.json; mosesplug weights convert tuning:3
    --to moses.ini -o third.ini
    """
    from formats.weights.weight_format import find_named_format
    from mosesplug.results.weights.sources import resolve_weights

    found = resolve_weights(weights, names_from)
    if to is None and (output is None or find_named_format(output) is None):
        raise UsageError("name a format with --to, or an output such as weights.json")
    _write(found, to, config, sparse_output, output)


def _resolve(names: list[str], names_from: Path | None) -> list[ResolvedWeights]:
    """Resolve weights to combine; report which lack sparse weights, if not all do."""
    from mosesplug.results.weights.sources import resolve_weights

    every = [resolve_weights(name, names_from) for name in names]
    if any(each.weights.sparse for each in every):
        for each in every:
            if not each.weights.sparse:
                _report(f"{each.source} has no sparse weights: they count as 0")
    return every


def _write(
    weights: ResolvedWeights,
    to: str | None,
    config: Path | None,
    sparse_output: Path | None,
    output: Path | None,
) -> None:
    """Write weights, the file of sparse weights first."""
    from formats.moses.ini import read_moses_ini
    from formats.text import write_atomic
    from formats.weights.named import sparse_companion
    from mosesplug.learning.weights import write_weights
    from mosesplug.results.weights.convert import convert_weights

    ini = weights.file.ini if weights.file is not None else None
    form = _find_format(to, weights, output)
    if config is None and ini is None and form == "moses.ini":
        config = weights.config
    if config is not None:
        ini = read_moses_ini(config)
    check_output(output)
    check_output(sparse_output, "--sparse-output")
    check_two_outputs({"--output": output, "--sparse-output": sparse_output})
    beside = sparse_output
    if beside is None and output is not None:
        beside = sparse_companion(output)
    converted = convert_weights(weights, form, config=ini, sparse_output=beside, output=output)
    if sparse_output is not None:
        if converted.sparse is not None:
            write_atomic(sparse_output, converted.sparse)
        else:
            _report(f"{sparse_output} is not written: there are no sparse weights for it")
    if output is None:
        write_output(None, converted.text)
    else:
        sparse = converted.sparse if beside == sparse_companion(output) else None
        write_weights(output, converted.text, sparse, weights.changes)
    for note in converted.notes:
        _report(note)


def _find_format(name: str | None, weights: ResolvedWeights, output: Path | None) -> Format:
    """Return the format of the option, of the output's name or of the weights."""
    from formats.weights.weight_format import find_named_format, find_weight_format

    if name is None:
        return (None if output is None else find_named_format(output)) or weights.format
    try:
        return find_weight_format(name)
    except ValueError as error:
        raise UsageError(f"--to {name}: {error}") from None


def _fill_in(path: Path | None, x: float) -> Path | None:
    from formats.weights.files import format_weight

    return None if path is None else Path(str(path).replace("{}", format_weight(x)))


def _report(text: str) -> None:
    print(f"mosesplug: {text}", file=sys.stderr)
