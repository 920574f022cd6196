"""Settings of a run as keywords of a call: the names of the command line, with underscores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from mosesplug.errors import UsageError, suggest
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.declare import Setting, list_settings
from mosesplug.settings.toml import check_type

__all__ = ["check_keyword", "collect_keywords", "fill_defaults", "spell_keyword"]

_KEYWORDS = {"resume": "continue", "options": "option", "references": "refs"}
"""Keywords that do not have the name of their setting: that is a word of Python, or plural."""


def collect_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of keywords by the names of settings; None is not given.

    Raises:
        UsageError: a keyword is not a setting, or its value has another type.
    """
    settings = {each.name: each for each in list_settings(RunPlan)}
    known = {spell_keyword(name): each for name, each in settings.items()}
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


def spell_keyword(name: str) -> str:
    """Return the keyword of the setting with this name."""
    for keyword, other in _KEYWORDS.items():
        if other == name:
            return keyword
    return name.replace("-", "_")


def fill_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of ``mosesplug tune`` with the defaults that depend on others."""
    found = {"working-dir": "tuning", "threads": os.cpu_count() or 1} | dict(values)
    select = "select-run" if found.get("runs") else "select"
    if not any(found.get(name) for name in (select, "last", "online", "heldout")):
        found[select] = "best-dev"
    return found


def _plain(setting: Setting, value: Any) -> Any:
    """Return a value as a settings file has it."""
    if isinstance(value, PathLike):
        return fspath(value)
    if setting.kind == "texts" and not isinstance(value, str) and hasattr(value, "__iter__"):
        return [str(each) for each in value]
    if setting.kind == "table" and isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
