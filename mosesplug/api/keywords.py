"""Keywords of Python calls: their settings, their checks, and their names in messages."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formats.errors import FormatError
from mosesplug.api.arrays import check_column
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, DecoderError, MosesplugError, UsageError, suggest
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.recommended import ONLINE
from mosesplug.options import Opt, list_options, list_spellings
from mosesplug.settings.algorithm_options import add_tune_options
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.features import AddedFeature, is_feature_name
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.lists import ListSettings, make_list_settings
from mosesplug.settings.toml import check_type

_KEYWORDS = {
    "resume": "continue",
    "options": "option",
    "references": "refs",
    "add_features": "add-feature",
}
"""Keywords that do not have the name of their setting: that is a word of Python, or plural."""


def collect_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of keywords by the names of settings; None is not given.

    Raises:
        UsageError: a keyword is not a setting, or its value has another type.
    """
    settings = {each.name: each for each in list_options(RunPlan)}
    known = {
        spell_keyword(name): each
        for each in settings.values()
        for name in (each.name, *list_spellings(each.name))
    }
    values: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword not in known:
            raise UsageError(f"unknown keyword {keyword}{suggest(keyword, known)}")
        if value is not None:
            setting = known[keyword]
            values[setting.name] = check_keyword(setting, value, keyword)
    return values


def check_keyword(setting: Opt, value: Any, keyword: str) -> Any:
    """Return the value of a keyword as settings have it.

    Raises:
        UsageError: it has another type.
    """
    return check_type(setting, _plain(setting, value), keyword)


def check_integer(value: Any, argument: str, least: int) -> int:
    """Return the integer of an argument.

    Raises:
        UsageError: it is not an integer, or less than ``least``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise UsageError(f"{argument} is {value!r}: give an integer of at least {least}")
    return number


_ALGORITHM_OF_GRAPHS = "mert"
"""The algorithm of ``mosesplug tune --forest``, where ``kbmira`` takes ten times longer."""

_AVERAGED = ("kbmira", "mert")
"""Algorithms whose mean weights translated other text better, with the real decoder."""


def check_number(value: Any, argument: str, least: float) -> float:
    """Return the number of an argument.

    Raises:
        UsageError: it is not a number, or less than ``least``.
    """
    number = float(value) if isinstance(value, Real) else float("nan")
    if not number >= least:
        raise UsageError(f"{argument} is {value!r}: give a number of at least {least:g}")
    return number


def spell_keyword(name: str) -> str:
    """Return the keyword of the setting with this name."""
    for keyword, other in _KEYWORDS.items():
        if other == name:
            return keyword
    return name.replace("-", "_")


def fill_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of ``mosesplug tune`` with defaults that depend on others.

    Raises:
        UsageError: an unknown algorithm, or a value that its setting cannot take.
    """
    defaults = {
        each.name: each.tune_default
        for each in list_options(RunPlan)
        if each.tune_default is not None
    }
    if values.get("forest"):
        defaults["algorithm"] = _ALGORITHM_OF_GRAPHS
    if values.get("online"):
        defaults["algorithm"] = ONLINE
    if any(values.get(name) for name in ("online", "patience")):
        del defaults["stop-after"]
    found = {**defaults, "threads": usable_cores(), **values}
    select = "select-run" if found.get("runs") else "select"
    if not any(found.get(name) for name in (select, "last", "online", "heldout")):
        found[select] = "average" if _is_averaged(found) else "best-dev"
    if not found.get("range"):  # which asks for random starts
        options = add_tune_options(algorithm(found["algorithm"]), found.get("option", {}))
        found |= {"option": options} if options else {}
    return found


def _is_averaged(values: Mapping[str, Any]) -> bool:
    """Return whether the mean of all weights is better than those of one iteration."""
    return values["algorithm"] in _AVERAGED and not _learns_from_graphs(values)


def _learns_from_graphs(values: Mapping[str, Any]) -> bool:
    return bool(values.get("forest")) or str(values.get("decoder", "")).startswith("forest:")


def _plain(setting: Opt, value: Any) -> Any:
    """Return a value as a settings file has it."""
    if isinstance(value, PathLike):
        return fspath(value)
    if setting.kind == "texts" and not isinstance(value, str) and hasattr(value, "__iter__"):
        return [str(each) for each in value]
    if setting.kind == "table" and isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


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
    settings = {each.name: each for each in list_options(ListSettings)}
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
    settings = {each.name: each for each in list_options(LearningSettings)}
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


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])(?: (?=[\"'])|([ =])([a-z-]+\b))?")
"""An option of the command line, and the word after it."""

_OTHERS = frozenset(
    (
        *("ids", "list-format", "mbr", "metric", "nbest", "refs", "scale", "sparse-weights"),
        "weights",
    )
)
"""Options of commands that are not settings of a run or of learning, but keywords of calls."""

_COMMAND = re.compile(r"mosesplug [a-z][a-z -]*[^.,;:()]*$")
"""The beginning of a command line, whose options stay as they are."""


def spell_options(text: str, spelled: Callable[[str], str], cls: type = LearningSettings) -> str:
    """Return a text with options as keywords.

    ``--overwrite`` becomes ``overwrite=True``.

    Args:
        text: a message.
        spelled: returns the keyword of a setting.
        cls: the class of the settings; options of others and of commands keep their names, with
            underscores. Options of other programs stay as they are.
    """
    if "--" not in text:
        return text
    settings = {spelling: each for each in list_options(cls) for spelling in each.spellings}

    def rename(found: re.Match[str]) -> str:
        if _COMMAND.search(text, 0, found.start()):
            return found[0]
        name, gap, word = found.groups(default="")
        if found[0].endswith(" "):  # a quoted value is behind it
            gap = "="
        setting = settings.get(name) or settings.get(name.removeprefix("no-"))
        if setting is None:
            is_own = name in _OTHERS or name in _spellings()
            return f"{name.replace('-', '_')}{gap}{word}" if is_own else found[0]
        keyword = spelled(setting.name)
        if setting.kind == "flag":
            return f"{keyword}={name in settings}{gap}{word}"
        if word in setting.choices:
            return f"{keyword}={word!r}"
        return f"{keyword}{gap}{word}"

    return _OPTION.sub(rename, text)


def _spellings() -> set[str]:
    """Return the options of all settings."""
    every = (*list_options(LearningSettings), *list_options(RunPlan))
    return {spelling for each in every for spelling in each.spellings}


@contextmanager
def name_keywords(cls: type, spelled: Callable[[str], str]) -> Iterator[None]:
    """Name settings as keywords in the errors of a block or of a function.

    Messages of other rooms name settings as the command line does. Those of decoders are left as
    they are: they quote command lines.

    Args:
        cls, spelled: as for ``spell_options``.
    """
    try:
        yield
    except DecoderError:
        raise
    except (MosesplugError, FormatError) as error:
        for attribute in ("message", "remedy"):
            if isinstance(text := getattr(error, attribute, None), str):
                setattr(error, attribute, spell_options(text, spelled, cls))
        error.args = tuple(spell_options(str(each), spelled, cls) for each in error.args)
        raise
