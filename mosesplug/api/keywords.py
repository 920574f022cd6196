"""Make settings of reading lists and of learning weights from keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mosesplug.api.arguments import check_keyword, spell_keyword
from mosesplug.api.arrays import check_column
from mosesplug.errors import DataError, UsageError, suggest
from mosesplug.settings.declare import list_settings
from mosesplug.settings.features import AddedFeature, is_feature_name
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.lists import ListSettings, make_list_settings

__all__ = [
    "check_lengths",
    "make_added_features",
    "make_learning_keywords",
    "make_list_keywords",
    "spell_argument",
]

_SETTING_NAMES = {
    "lists": "nbest",
    "references": "refs",
    "heldout_lists": "heldout-nbest",
    "heldout_references": "heldout-refs",
    "store": "from",
    "initial": "init",
    "sparse_initial": "sparse-init",
    "options": "option",
    "add_features": "add-feature",
    "heldout_add_features": "heldout-add-feature",
    "ranges": "range",
    "report_metrics": "report-metric",
    "bounds": "bound",
    "asynchronous": "async",
    "directory": "shard-directory",
}
"""Arguments that settings have under another name than with dashes."""


def make_list_keywords(
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    add_features: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> ListSettings:
    """Return the settings of keywords; None is not given.

    Raises:
        UsageError: a value cannot be used.
    """
    settings = {each.name: each for each in list_settings(ListSettings)}
    values: dict[str, Any] = {}
    for keyword, value in _spell_list_values(keywords).items():
        name = keyword.replace("_", "-")
        if value is not None:
            values[name] = check_keyword(settings[name], value, keyword)
    for keyword, names_of in (("names", names), ("dense", dense)):
        if isinstance(names_of, str):
            raise UsageError(f"{keyword} is a single text: give a sequence of names")
        if names_of is not None:
            values[keyword] = tuple(names_of)
    values["add-feature"] = make_added_features(add_features)
    return make_list_settings(values, spell_keyword)


def make_added_features(
    features: Mapping[str, Any] | None, what: str = "add_features"
) -> tuple[AddedFeature, ...]:
    """Return added features.

    Args:
        features: the features by name: a value for each hypothesis, or several; or a file, or
            several files.
        what: the argument, for messages.

    Raises:
        UsageError: they are something else.
        DataError: a value is not finite, or too large for a feature.
    """
    if features is None:
        return ()
    if not isinstance(features, Mapping):
        raise UsageError(
            f"{what} is a {type(features).__name__}: give a mapping of names to values"
        )
    return tuple(_make_feature(name, values, what) for name, values in features.items())


def check_lengths(features: Mapping[str, Any] | None, hypotheses: int) -> None:
    """Check that added features have a value for each hypothesis.

    Raises:
        UsageError: one has more or fewer.
    """
    for name, values in (features or {}).items():
        is_array = hasattr(values, "__len__") and not isinstance(values, str | PathLike)
        if is_array and len(values) != hypotheses and not _are_paths(values):
            raise UsageError(
                f"the feature {name} has {len(values)} values for {hypotheses} hypotheses: give "
                "one for each"
            )


def _are_paths(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(v, str | PathLike) for v in values)


def _make_feature(name: Any, values: Any, what: str) -> AddedFeature:
    if not isinstance(name, str) or not is_feature_name(name):
        raise UsageError(f"{what}: {name!r} is not a name without blanks")
    place = f"{what}[{name!r}]"
    if isinstance(values, str | PathLike):
        return AddedFeature(name, (Path(values),))
    if not hasattr(values, "__len__"):
        raise UsageError(f"{place} must be a value for each hypothesis, or a file")
    if len(values) and _are_paths(values):
        return AddedFeature(name, tuple(map(Path, values)))
    if getattr(values, "ndim", 1) == 2:
        columns = [check_column(column, place, len(values)) for column in np.transpose(values)]
    else:
        columns = [check_column(values, place, len(values))]
    table = np.column_stack(columns)
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(table.astype(np.float32)).all(axis=1)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        value = table[row] if table.shape[1] > 1 else table[row, 0]
        raise DataError(f"{place}[{row}] is {value}: too large for a feature")
    return AddedFeature(name, values=table)


def _spell_list_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords with their values as the command line has them.

    Raises:
        UsageError: a value has another type.
    """
    found = dict(values)
    for name in ("rename", "derive"):
        if isinstance(found.get(name), Mapping):
            found[name] = [f"{one}={other}" for one, other in found[name].items()]
    for name in ("rename", "derive", "drop_feature"):
        if isinstance(found.get(name), str):
            found[name] = [found[name]]
    columns = found.get("columns")
    if columns is not None and not isinstance(columns, str):
        found["columns"] = ",".join(map(str, columns))
    return found


def make_learning_keywords(values: dict[str, Any]) -> LearningSettings:
    """Return the settings of the keywords of ``optimize`` that are values or paths.

    Raises:
        UsageError: a value cannot be used.
    """
    values = _spell_list_values(values | dict(values.pop("sharding", None) or {}))
    if isinstance(values.get("metric_settings"), Mapping):
        pairs = values["metric_settings"].items()
        values["metric_settings"] = ",".join(f"{name}:{value}" for name, value in pairs)
    if isinstance(values.get("ranges"), Mapping):
        pairs = values["ranges"].items()
        values["ranges"] = [_spell_range(name, interval) for name, interval in pairs]
    if isinstance(values.get("bounds"), Mapping):
        limits = values["bounds"].items()
        values["bounds"] = [_spell_bound(name, limit) for name, limit in limits]
    if isinstance(values.get("length_exponent"), float | int):
        values["length_exponent"] = repr(values["length_exponent"])
    if isinstance(values.get("graphs"), str | PathLike):
        values["graphs"] = [values["graphs"]]
    if values.get("runs") is None and values.get("select") == "median":
        del values["select"]  # the default, which requires several runs
    if values.get("held_out") == 1.0:
        raise UsageError("held_out must be less than 1")
    named = {
        _SETTING_NAMES.get(argument, argument.replace("_", "-")): value
        for argument, value in values.items()
        if value is not None and not (isinstance(value, str | tuple) and not value)
    }
    settings = {each.name: each for each in list_settings(LearningSettings)}
    for name, value in named.items():
        if name not in settings:
            raise UsageError(f"unknown setting {spell_argument(name)}{suggest(name, settings)}")
        named[name] = check_keyword(settings[name], value, spell_argument(name))
    return make_learning_settings(named, spell_argument, has_data=False)


def spell_argument(name: str) -> str:
    """Return the argument of ``optimize`` for the setting with this name."""
    for argument, other in _SETTING_NAMES.items():
        if other == name:
            return argument
    return name.replace("-", "_")


def _spell_range(name: str, interval: Any) -> str:
    try:
        low, high = map(float, interval)
    except (TypeError, ValueError):
        raise UsageError(f"ranges[{name!r}] is {interval!r}: give (lowest, highest)") from None
    return f"{name}:{low!r}..{high!r}"


def _spell_bound(name: str, limit: Any) -> str:
    if isinstance(limit, str):
        return f"{name}:{limit}"
    try:
        if np.ndim(limit) == 0:
            return f"{name}:={float(limit)!r}"
        ends = ["" if end is None else repr(float(end)) for end in limit]
        low, high = ends
    except (TypeError, ValueError):
        raise UsageError(
            f"bounds[{name!r}] is {limit!r}: give (lowest, highest) with None for no limit, a text "
            "such as '>0', or a number"
        ) from None
    return f"{name}:{low}..{high}" if low or high else f"{name}:-inf..inf"
