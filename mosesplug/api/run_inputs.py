"""Features, starting weights and references that a caller has as values: files of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formats.text import write_atomic
from formats.weights.json_file import format_json_weights
from mosesplug.api.references import load_references
from mosesplug.api.start import arrange_initial, make_weight_file
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["place_references", "place_start"]


def place_references(references: Any, workspace: Workspace, *, keep: bool) -> str:
    """Return the path of references; texts are written into the working directory.

    Args:
        references: a file or the prefix of several, or texts as for ``mosesplug.optimize``.
        workspace: the working directory.
        keep: whether files of an earlier run must stay as they are.

    Raises:
        UsageError: they are something else.
        DataError: the earlier run had others.
    """
    if isinstance(references, str | PathLike):
        return fspath(references)
    for number, lines in enumerate(load_references(references)):
        text = b"".join(line + b"\n" for line in lines)
        _place(workspace.references(number), text, "references", keep=keep)
    return fspath(workspace.directory / "references")


def place_start(features: Any, initial: Any, workspace: Workspace, *, keep: bool) -> str:
    """Return the path of a file of weights; weights given as values are written to one.

    Args:
        features: names, pairs of name and number of values, a mapping to initial weights, or None.
        initial: starting weights: a mapping, a vector, the path of a file, or None.
        workspace: the working directory.
        keep: whether the file of an earlier run must stay as it is.

    Raises:
        UsageError: they are something else, or do not fit together.
        DataError: the earlier run had others.
    """
    if isinstance(initial, str | PathLike):
        if features is not None:
            raise UsageError("initial is a file, which names the features: leave out features")
        return fspath(initial)
    sparse: Mapping[str, float] = {}
    if isinstance(features, Mapping):
        if initial is not None:
            raise UsageError("features are given with their weights: leave out initial")
        space = FeatureSpace(tuple((name, np.size(value)) for name, value in features.items()))
        vector = arrange_initial(features, space).weights
    elif features is None:
        file = make_weight_file(initial)
        if not file.show.names:
            raise UsageError("initial names no dense features: give features, too")
        space = FeatureSpace.of_names(file.show.names)
        vector, sparse = np.array(file.show.values), file.sparse
    else:
        space = _make_space(features)
        vector = np.ones(space.n_dense)
        if initial is not None:
            vector = arrange_initial(initial, space).weights
    numbers = iter(vector.tolist())
    groups = [(name, [next(numbers) for _ in range(width)]) for name, width in space.groups]
    text = format_json_weights(groups, sparse)
    _place(workspace.start_weights, text, "features or starting weights", keep=keep)
    return fspath(workspace.start_weights)


def _make_space(features: Any) -> FeatureSpace:
    """Return the dense features of names, or of pairs of name and number of values."""
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise UsageError(
            "features must be names, pairs of name and number of values, or a mapping of names to"
            " initial weights"
        )
    names: list[str] = []
    for place, each in enumerate(features):
        name, width = each if isinstance(each, tuple) and len(each) == 2 else (each, 1)
        if not isinstance(name, str) or not name or any(map(str.isspace, name)):
            raise UsageError(f"features[{place}] is {each!r}: give a name without blanks")
        if not isinstance(width, int) or width < 1:
            raise UsageError(f"features[{place}] is {each!r}: give a number of values from 1")
        names += [name] * width
    space = FeatureSpace.of_names(names)
    if len(dict(space.groups)) < len(space.groups) or not names:
        raise UsageError("features: a name is repeated, or there is none; give each feature once")
    return space


def _place(path: Path, text: bytes, what: str, *, keep: bool) -> None:
    if path.is_file() and path.read_bytes() == text:
        return
    if keep:
        raise DataError(
            f"the run in {path.parent} was begun with other {what} ({path}): give the same or none"
            " to continue it, or overwrite=True to replace it"
        )
    write_atomic(path, text)
