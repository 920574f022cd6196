"""Keywords that say how n-best lists are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mosesplug.api.arguments import check_keyword, spell_keyword
from mosesplug.errors import UsageError
from mosesplug.settings.declare import list_settings
from mosesplug.settings.lists import ListSettings, make_list_settings

__all__ = ["make_list_keywords", "spell_list_values"]


def make_list_keywords(
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    **keywords: Any,
) -> ListSettings:
    """Return the settings of keywords; None is not given.

    Raises:
        UsageError: a value cannot be used.
    """
    settings = {each.name: each for each in list_settings(ListSettings)}
    values: dict[str, Any] = {}
    for keyword, value in spell_list_values(keywords).items():
        name = keyword.replace("_", "-")
        if value is not None:
            values[name] = check_keyword(settings[name], value, keyword)
    for keyword, names_of in (("names", names), ("dense", dense)):
        if isinstance(names_of, str):
            raise UsageError(f"{keyword} is a single text: give a sequence of names")
        if names_of is not None:
            values[keyword] = tuple(names_of)
    return make_list_settings(values, spell_keyword)


def spell_list_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords with their values as the command line has them.

    Raises:
        UsageError: a value has another type.
    """
    found = dict(values)
    if isinstance(found.get("rename"), Mapping):
        found["rename"] = [f"{old}={new}" for old, new in found["rename"].items()]
    for name in ("rename", "drop_feature"):
        if isinstance(found.get(name), str):
            found[name] = [found[name]]
    columns = found.get("columns")
    if columns is not None and not isinstance(columns, str):
        found["columns"] = ",".join(map(str, columns))
    return found
