"""``mosesplug weights average``, ``interpolate``, ``normalise`` and ``convert``."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.inspect.weights import WEIGHTS
from mosesplug.errors import DataError, UsageError

if TYPE_CHECKING:
    from formats.weights.any_format import Format
    from mosesplug.inspection.weights.algebra import Norm
    from mosesplug.inspection.weights.points import Point

__all__ = ["average", "convert", "interpolate", "normalise"]

_FORMATS = "moses.ini|dense|show-weights|overwrite|sparse|graph|kbmira|init.opt|weights.txt"

_One = Annotated[str, typer.Argument(metavar="WEIGHTS", help=WEIGHTS)]
_To = Annotated[
    str | None,
    typer.Option("--to", metavar="FORMAT", help=f"{_FORMATS} [that of the first; of a run, dense]"),
]
_Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="To moses.ini: the configuration whose weights are replaced, every other byte being "
        "kept [the first, if it is one].",
    ),
]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here; else to stdout.")
]
_SparseOutput = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="For sparse weights, where the format cannot hold them."),
]
_NamesFrom = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Names for numbers that have none: a runN.dense or a features.list in their order.",
    ),
]
_Normalise = Annotated[
    bool,
    typer.Option(
        "--normalise/--no-normalise",
        help="Divide each by the L1 norm of its dense weights first, sparse ones by the same.",
    ),
]


def average(
    weights: Annotated[list[str], typer.Argument(metavar="WEIGHTS", help=WEIGHTS)],
    normalise: _Normalise = True,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: _Output = None,
) -> None:
    """The arithmetic mean of several weights, of runs that differ in their seeds for example.

    Each is divided by its L1 norm first: the size of weights decides nothing, and without that
    those of the largest size would count most. All must have the same dense features; a sparse
    feature that one of them lacks counts as 0 there.

    Example: mosesplug weights average run1 run2 run3 --to moses.ini --config moses.ini -o mean.ini
    """
    from mosesplug.inspection.weights.algebra import combined

    points = [_named(name, names_from) for name in weights]
    _say_without_sparse(points)
    shares = [1.0 / len(points)] * len(points)
    mean = combined(points, shares, "the mean", normalise=normalise)
    _write(mean, to, config, sparse_output, output)


def interpolate(
    first: Annotated[str, typer.Argument(metavar="A", help=WEIGHTS)],
    second: Annotated[str, typer.Argument(metavar="B", help="Others, likewise.")],
    at: Annotated[
        list[float],
        typer.Option(
            "--at",
            metavar="X",
            help="0 is A, 1 is B; below 0 and above 1 it is extrapolated. May be repeated: then "
            "{} in the names of files is X.",
        ),
    ],
    normalise: _Normalise = True,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: _Output = None,
) -> None:
    """Weights on the line between two: (1 - X) A + X B.

    Both are divided by their L1 norms first, so that X = 0.5 is half the way whatever their size;
    mosesplug line shows the score along that line.

    Example: mosesplug weights interpolate tuning:1 tuning --at 0.25 --at 0.5 -o mixed.{}.dense
    """
    from mosesplug.inspection.weights.algebra import combined

    for place in at:
        if not math.isfinite(place):
            raise UsageError(f"--at is a finite number, not {place}")
    if len(set(at)) > 1:
        if output is None or "{}" not in str(output):
            raise UsageError("several --at make several files: give -o a name with {} in it")
        if sparse_output is not None and "{}" not in str(sparse_output):
            raise UsageError("several --at make several files: give --sparse-output {} in its name")
    points = [_named(name, names_from) for name in (first, second)]
    _say_without_sparse(points)
    # All are found before any is written.
    mixed = {
        x: combined(points, (1.0 - x, x), f"the point at {x:g}", normalise=normalise)
        for x in dict.fromkeys(at)
    }
    for x, point in mixed.items():
        _write(point, to, config, _filled_in(sparse_output, x), _filled_in(output, x))


def normalise(
    weights: _One,
    l2: Annotated[bool, typer.Option("--l2", help="Euclid's norm instead of L1.")] = False,
    largest: Annotated[
        bool, typer.Option("--max", help="The largest size of a weight instead of L1.")
    ] = False,
    to: _To = None,
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: _Output = None,
) -> None:
    """Weights over the norm of the dense ones, sparse ones over the same: no decision changes.

    The norm is L1, as Moses' mert and mosesplug write weights. Weights that are not tuned stay,
    and so does what they add to a score: beside them the size of the others does matter.

    Example: mosesplug weights normalise moses.ini -o normalised.ini
    """
    from mosesplug.inspection.weights.algebra import normalised

    if l2 and largest:
        raise UsageError("--l2 and --max exclude each other")
    norm: Norm = "l2" if l2 else "max" if largest else "l1"
    point = normalised(_named(weights, names_from), norm)
    _write(point, to, config, sparse_output, output)


def convert(
    weights: _One,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=_FORMATS)],
    config: _Config = None,
    names_from: _NamesFrom = None,
    sparse_output: _SparseOutput = None,
    output: _Output = None,
) -> None:
    """The same weights in another format, with the same numbers to the last bit.

    What a format cannot hold is an error (sparse weights, without --sparse-output), or is said on
    stderr (names, features that are not tuned). graph is the file weights beside search graphs,
    overwrite the value of the decoder's -weight-overwrite.

    Example: mosesplug weights convert tuning:3 --to moses.ini --config moses.ini -o third.ini
    """
    _write(_named(weights, names_from), to, config, sparse_output, output)


def _named(name: str, names_from: Path | None) -> Point:
    """Weights, with names for numbers that have none.

    Raises:
        UsageError: the file of names has none in an order.
        DataError: not as many.
    """
    from mosesplug.inspection.weights.points import read_point

    point = read_point(name)
    if names_from is None or point.is_named:
        return point
    layout = read_point(str(names_from))
    if not layout.show.names or layout.format == "moses.ini":
        raise UsageError(
            f"--names-from {names_from}: it must tell the decoder's order, as a runN.dense or a "
            "features.list does"
        )
    if len(layout.show.names) != len(point.weights.dense):
        raise DataError(
            f"{name} has {len(point.weights.dense)} weights, and {names_from} names "
            f"{len(layout.show.names)}"
        )
    return replace(point, show=layout.show.with_values(point.weights.dense))


def _say_without_sparse(points: list[Point]) -> None:
    """Sparse weights that are not there count as 0, which a person may not have meant."""
    if any(point.weights.sparse for point in points):
        for point in points:
            if not point.weights.sparse:
                _say(f"{point.source} has no sparse weights: they count as 0")


def _write(
    point: Point,
    to: str | None,
    config: Path | None,
    sparse_output: Path | None,
    output: Path | None,
) -> None:
    """Write weights, those that another file needs first.

    Raises:
        UsageError: there is no such format, or a file cannot be where it shall be.
    """
    from formats.moses.ini import read_moses_ini
    from formats.text import write_atomic
    from mosesplug.inspection.weights.convert import spelled

    ini = point.file.ini if point.file is not None else None
    if config is not None:
        ini = read_moses_ini(config)
    for option, path in (("--output", output), ("--sparse-output", sparse_output)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise UsageError(f"{option} {path}: no file can be there")
    if output is not None and sparse_output is not None and output == sparse_output:
        raise UsageError("--output and --sparse-output name the same file")
    found = spelled(point, _format(to, point), config=ini, sparse_output=sparse_output)
    if found.sparse is not None and sparse_output is not None:
        write_atomic(sparse_output, found.sparse)
    elif sparse_output is not None:
        _say(f"{sparse_output} is not written: there are no sparse weights for it")
    if output is not None:
        write_atomic(output, found.text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(found.text)
        sys.stdout.buffer.flush()
    for note in found.notes:
        _say(note)


def _format(name: str | None, point: Point) -> Format:
    from formats.weights.any_format import FORMATS

    if name is None:
        return point.format
    for known in FORMATS:
        if name == known:
            return known
    raise UsageError(f"--to takes {', '.join(FORMATS)}, not {name!r}")


def _filled_in(path: Path | None, x: float) -> Path | None:
    from formats.weights.files import format_weight

    return None if path is None else Path(str(path).replace("{}", format_weight(x)))


def _say(text: str) -> None:
    print(f"mosesplug: {text}", file=sys.stderr)
