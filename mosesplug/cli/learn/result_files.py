"""The files of learned weights, in the formats that options ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from formats.moses.ini import MosesIni
from formats.weights.any_format import read_weights
from formats.weights.list_changes import format_list_changes
from formats.weights.named import sparse_companion
from formats.weights.weight_format import Format
from mosesplug.api.fit import Fit
from mosesplug.api.weights import convert_table, find_format
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.results.weights.convert import ConvertedWeights


def find_result_format(
    name: str | None, path: Path | None, init: Path | None
) -> tuple[Format, MosesIni | None]:
    """Return the format of learned weights, and the configuration they go into.

    Args:
        name: its name; None: by the name of the file. A name that ends in ``.ini`` asks for a
            ``moses.ini`` only if the starting weights are those of one.
        path: the file; None: stdout.
        init: the file of the starting weights.

    Raises:
        UsageError: an unknown format, or one that needs a configuration or a file.
    """
    to = find_format(Path() if path is None else path, name)
    if to != "moses.ini":
        return to, None
    config = read_weights(init).ini if init is not None and init.is_file() else None
    if config is not None and path is not None:
        return to, config
    if name is None:
        return "dense", None
    needed = "{--init}, a moses.ini" if config is None else "{--output}"
    raise UsageError(f"{{--weights-format}} {name} requires {needed}")


def format_result(
    fit: Fit, to: Format, config: MosesIni | None, path: Path | None, domain: str | None = None
) -> ConvertedWeights:
    """Return the text of the file of learned weights, and that of sparse weights.

    Args:
        fit: the weights.
        to: the format.
        config: the configuration that a ``moses.ini`` is made from.
        path: the file, if there is one; the second is ``PATH.sparse``.
        domain: the domain whose weights are written; None: the shared ones.

    Raises:
        OptimizerError: a weight is not finite, or all of them are 0.
        DataError: the format cannot hold a name, or the configuration has other features.
    """
    from mosesplug.learning.weights import format_weights
    from mosesplug.results.weights.convert import ConvertedWeights, explain_unrecorded

    table = fit.weights if domain is None else fit.domains[domain]
    dense, sparse = format_weights(table.space, table.vector, fit.result.data.problem.is_fixed)
    changes = table.file.changes
    if to == "dense":
        return ConvertedWeights(
            format_list_changes(changes) + dense,
            sparse or None,
            tuple(explain_unrecorded(changes, to, path)),
        )
    beside = sparse_companion(path or "output")
    converted = convert_table(table, to, config=config, path=path, sparse_output=beside)
    # Which features are not tuned or in another order is known to who has learned the weights.
    return replace(converted, notes=tuple(explain_unrecorded(changes, to, path)))
