"""Where ``mosesplug optimize`` leaves its weights."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np

from formats.text import write_atomic
from formats.weights.files import format_dense, format_sparse
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Solution

__all__ = ["check_output", "write_weights"]


def check_output(output: Path | None) -> None:
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


def write_weights(
    output: Path | None, space: FeatureSpace, solution: Solution, fixed: Collection[str] = ()
) -> None:
    """The weights, in all the digits they have; to stdout if they cannot be written.

    Args:
        output: where the dense ones go, and with ``.sparse`` behind it the others.
        space: their names.
        solution: what was found.
        fixed: names of sparse features that were not tuned, and are left out.

    Raises:
        OptimizerError: the weights cannot be used.
        OSError: they cannot be written.
    """
    if not (np.isfinite(solution.weights).all() and solution.weights.any()):
        raise OptimizerError(
            "the optimizer ended with weights that cannot be used; none is written"
        )
    values = solution.weights.tolist()
    groups, first = [], 0
    for name, width in space.groups:
        groups.append((name, values[first : first + width]))
        first += width
    pairs = zip(space.sparse, values[first:], strict=True)
    sparse = {name: weight for name, weight in pairs if weight != 0.0 and name not in fixed}
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
