"""Files of references and starting weights, written for callers that have values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formats.text import write_atomic
from formats.weights.json_file import format_json_weights
from mosesplug.api.initial_weights import arrange_initial, check_values, make_weight_file
from mosesplug.api.lists.arrays import load_references
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning.workdir.workspace import Workspace


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
    """Return the path of a file of weights; write one if values are given.

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
        values = {name: check_values(name, value, "features") for name, value in features.items()}
        space = _make_space([(name, len(weights)) for name, weights in values.items()])
        vector = np.array([weight for weights in values.values() for weight in weights])
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
    for place, feature in enumerate(features):
        name, width = feature if isinstance(feature, tuple) and len(feature) == 2 else (feature, 1)
        if not isinstance(name, str) or not name or any(map(str.isspace, name)):
            raise UsageError(f"features[{place}] is {feature!r}: give a name without blanks")
        if not isinstance(width, int) or width < 1:
            raise UsageError(f"features[{place}] is {feature!r}: give a number of values from 1")
        names += [name] * width
    if not names:
        raise UsageError("features is empty: name at least one feature")
    space = FeatureSpace.of_names(names)
    groups = [group for group, _ in space.groups]
    for group in groups:
        if groups.count(group) > 1:
            raise UsageError(f"features names {group} twice: name each feature once")
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
