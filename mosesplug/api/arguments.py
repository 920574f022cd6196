"""Settings as keywords, and checks of arguments that several calls share."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Real
from os import PathLike, fspath
from typing import Any

from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError, suggest
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.recommended import ONLINE
from mosesplug.settings.algorithm_options import add_tune_options
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.declare import Setting, list_settings
from mosesplug.settings.spellings import list_spellings
from mosesplug.settings.toml import check_type

__all__ = [
    "check_integer",
    "check_keyword",
    "check_number",
    "collect_keywords",
    "fill_defaults",
    "spell_keyword",
]

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
    settings = {each.name: each for each in list_settings(RunPlan)}
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


def check_keyword(setting: Setting, value: Any, keyword: str) -> Any:
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
        for each in list_settings(RunPlan)
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


def _plain(setting: Setting, value: Any) -> Any:
    """Return a value as a settings file has it."""
    if isinstance(value, PathLike):
        return fspath(value)
    if setting.kind == "texts" and not isinstance(value, str) and hasattr(value, "__iter__"):
        return [str(each) for each in value]
    if setting.kind == "table" and isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
