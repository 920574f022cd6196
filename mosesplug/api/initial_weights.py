"""Starting weights that callers give: by name, as a vector, or as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.weights.any_format import WeightFile
from formats.weights.files import ShowWeights, WeightGroup
from mosesplug.api.weights import WeightTable
from mosesplug.errors import DataError, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.learning.weights import StartingWeights, arrange_weights

InitialWeights = (
    Mapping[str, float | tuple[float, ...]]
    | Mapping[str, float]
    | Sequence[float]
    | NDArray[Any]
    | str
    | PathLike[str]
)
"""Weights by name, a vector, or a file of any format."""


def arrange_initial(
    initial: Any, space: FeatureSpace, columns: NDArray[np.int64] | None = None
) -> StartingWeights:
    """Return starting weights in the order of a feature space.

    Args:
        initial: a mapping of names to weights, in which sparse features may be missing; or a
            vector of all weights, or of the dense ones.
        space: the features.
        columns: int64 ``[n_features]``, the entry of a whole vector that belongs to each feature;
            None: their order.

    Raises:
        UsageError: an unknown name, a missing one, or another number of weights.
        DataError: a weight is not finite.
        FormatError: a table of weights lacks a dense feature.
    """
    if isinstance(initial, WeightTable):
        return arrange_weights(initial.file, space)
    if isinstance(initial, Mapping):
        return StartingWeights(_arrange_by_name(initial, space))
    vector = _check_vector(initial)
    if len(vector) == len(space):
        return StartingWeights(vector if columns is None else vector[columns])
    if len(vector) == space.n_dense and columns is None:
        return StartingWeights(np.append(vector, np.zeros(space.n_sparse)))
    raise UsageError(
        f"initial has {len(vector)} weights for {len(space)} features: give one for each of "
        f"{', '.join([*space.group_names, *space.sparse][:20])}"
    )


def make_weight_file(initial: Any, what: str = "initial") -> WeightFile:
    """Convert weights to what a file of weights is read as.

    Args:
        initial: a mapping of names to weights, or a vector of the dense ones.
        what: the argument, for messages.

    Raises:
        UsageError: it is neither.
        DataError: a weight is not finite.
    """
    if isinstance(initial, WeightTable):
        return initial.file
    if not isinstance(initial, Mapping):
        return WeightFile(what, "weights.txt", numbers=tuple(_check_vector(initial, what).tolist()))
    groups, sparse = [], {}
    for name, value in initial.items():
        values = check_values(name, value, what)
        if "_" in name and len(values) == 1:
            sparse[name] = values[0]
        else:
            groups.append(WeightGroup(name, values))
    return WeightFile(what, "dense", ShowWeights(tuple(groups)), sparse)


def _arrange_by_name(initial: Mapping[str, Any], space: FeatureSpace) -> NDArray[np.float64]:
    vector = np.full(len(space), np.nan)
    vector[space.n_dense :] = 0.0
    first, groups = 0, {}
    for name, width in space.groups:
        groups[name] = (first, width)
        first += width
    for place, (name, value) in enumerate(initial.items()):
        values = check_values(name, value)
        begin, width = groups.get(name, (space.columns.get(name, -1), 1))
        if begin < 0:
            raise unknown_feature_error("initial", name, place, [*groups, *space.sparse])
        if len(values) != width:
            raise UsageError(f"initial[{name!r}] has {len(values)} weights for {width} values")
        vector[begin : begin + width] = values
    if np.isnan(vector).any():
        column = int(np.argmax(np.isnan(vector)))
        raise UsageError(f"initial has no weight of {space.group_names[column]}")
    return vector


def unknown_feature_error(what: str, name: str, place: int, known: Sequence[str]) -> UsageError:
    """Return the error of a weight that no feature has.

    Args:
        what: the argument, a mapping of names to weights.
        name, place: the name, and its position in the mapping.
        known: names of the features.
    """
    return UsageError(f"{what}, entry {place}: {explain_unknown_feature(name, known)}")


def check_values(name: str, value: Any, what: str = "initial") -> tuple[float, ...]:
    """Return one or several finite weights."""
    try:
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError(f"{what}[{name!r}] is {value!r}: give one or several numbers") from None
    if values.ndim != 1:
        raise UsageError(f"{what}[{name!r}] has the shape {values.shape}: give numbers")
    if not np.isfinite(values).all():
        raise DataError(f"{what}[{name!r}] is {value}: give finite numbers")
    return tuple(values.tolist())


def _check_vector(initial: Any, what: str = "initial") -> NDArray[np.float64]:
    """Return a vector of finite weights."""
    try:
        vector = np.asarray(initial, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{what} must be a mapping of names to weights, a vector, or a path"
        ) from None
    if vector.ndim != 1:
        raise UsageError(f"{what} has the shape {vector.shape}: give one weight for each feature")
    if not np.isfinite(vector).all():
        place = int(np.argmin(np.isfinite(vector)))
        raise DataError(f"{what}[{place}] is {vector[place]}: give finite numbers")
    return vector
