"""``mosesplug weights average``, ``interpolate``, ``normalize`` and ``convert``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from formats.moses.ini import read_moses_ini
from formats.text import write_atomic
from formats.weights.files import format_weight
from formats.weights.named import sparse_companion
from formats.weights.weight_format import Format, find_named_format, find_weight_format
from mosesplug.cli.inspect.weight_options import (
    WeightsAverageCommand,
    WeightsConvertCommand,
    WeightsInterpolateCommand,
    WeightsNormalizeCommand,
)
from mosesplug.cli.shared.output import check_output, check_two_outputs, write_output
from mosesplug.errors import UsageError
from mosesplug.learning.weights import write_weights
from mosesplug.results.weights import algebra
from mosesplug.results.weights.convert import convert_weights
from mosesplug.results.weights.sources import ResolvedWeights, resolve_weights


def average(options: WeightsAverageCommand) -> None:
    """Average several weight vectors, for example of runs with different seeds."""
    every = _resolve(options.weights, options.names_from)
    shares = [1.0 / len(every)] * len(every)
    mean = algebra.combine(every, shares, "the mean", normalized=options.normalize)
    _write(mean, options, options.sparse_output, options.output)


def interpolate(options: WeightsInterpolateCommand) -> None:
    """Interpolate between two weight vectors: (1 - X) A + X B."""
    at, output, sparse_output = options.at, options.output, options.sparse_output
    for x in at:
        if not math.isfinite(x):
            raise UsageError(f"--at must be a finite number, not {x}")
    if len(set(at)) > 1:
        if output is None or "{}" not in str(output):
            raise UsageError("several --at make several files: give -o a name with {} in it")
        if sparse_output is not None and "{}" not in str(sparse_output):
            raise UsageError("several --at make several files: give --sparse-output {} in its name")
    every = _resolve([options.first, options.second], options.names_from)
    # Compute all before any is written.
    mixed = {
        x: algebra.combine(every, (1.0 - x, x), f"the point at {x:g}", normalized=options.normalize)
        for x in dict.fromkeys(at)
    }
    for x, weights in mixed.items():
        _write(weights, options, _fill_in(sparse_output, x), _fill_in(output, x))


def normalize(options: WeightsNormalizeCommand) -> None:
    """Divide weights by the L1 norm of the dense ones."""
    norm: algebra.Norm = "l2" if options.l2 else "max" if options.largest else "l1"
    weights = resolve_weights(options.weights, options.names_from)
    _write(algebra.normalize(weights, norm), options, options.sparse_output, options.output)


def convert(options: WeightsConvertCommand) -> None:
    """Write weights in another format, with identical numbers."""
    weights, output = resolve_weights(options.weights, options.names_from), options.output
    if options.to is None and (output is None or find_named_format(output) is None):
        raise UsageError("name a format with --to, or an output such as weights.json")
    _write(weights, options, options.sparse_output, output)


def _resolve(names: list[str], names_from: Path | None) -> list[ResolvedWeights]:
    """Resolve weights to combine; report which lack sparse weights, if not all do."""
    every = [resolve_weights(name, names_from) for name in names]
    if any(weights.weights.sparse for weights in every):
        for weights in every:
            if not weights.weights.sparse:
                _report(f"{weights.source} has no sparse weights: they count as 0")
    return every


def _write(
    weights: ResolvedWeights,
    options: WeightsAverageCommand
    | WeightsInterpolateCommand
    | WeightsNormalizeCommand
    | WeightsConvertCommand,
    sparse_output: Path | None,
    output: Path | None,
) -> None:
    """Write weights, the file of sparse weights first."""
    config, ini = options.config, weights.file.ini if weights.file is not None else None
    form = _find_format(options.to, weights, output)
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
    if name is None:
        return (None if output is None else find_named_format(output)) or weights.format
    try:
        return find_weight_format(name)
    except ValueError as error:
        raise UsageError(f"--to {name}: {error}") from None


def _fill_in(path: Path | None, x: float) -> Path | None:
    return None if path is None else Path(str(path).replace("{}", format_weight(x)))


def _report(text: str) -> None:
    print(f"mosesplug: {text}", file=sys.stderr)
