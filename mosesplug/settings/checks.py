"""Checks of settings: choices, bounds, requirements and exclusions.

They apply to command lines, settings files and Python calls alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from mosesplug.errors import OptionName, UsageError, suggest
from mosesplug.options import Opt, find_field_types, find_switch, find_value, list_options

Settings = TypeVar("Settings")


def check_settings(settings: Sequence[Opt], given: Mapping[str, Any]) -> None:
    """Check the values of settings, and which settings are given together.

    Args:
        given: values by name. A flag that is False counts as not given, unless its default is True.

    Raises:
        UsageError: a value cannot be used, or one setting requires or excludes another.
    """
    positional = {option.name: option.metavar for option in settings if option.is_positional}

    def spell(condition: str) -> str:
        pairs = (alternative.split("=") for alternative in condition.split(" or "))
        return " or ".join(positional.get(pair[0], str(OptionName(*pair))) for pair in pairs)

    for setting in settings:
        is_negated = setting.default is True and given.get(setting.name) is False
        if not is_negated and not is_given(given, setting.name):
            continue
        _check_value(setting, given[setting.name])
        name = spell(f"no-{setting.name}" if is_negated else setting.name)
        for condition in setting.requires:
            if not _holds(condition, given):
                wanted = spell(condition)
                raise UsageError(f"{name} requires {wanted}: add {wanted}, or omit {name}")
        for condition in setting.excludes:
            if _holds(condition, given):
                why = f". {setting.excludes_because}" if setting.excludes_because else ""
                raise UsageError(
                    f"{name} and {spell(condition)} exclude each other: use one of them{why}"
                )


def check_dropped_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of features; raise ``ValueError`` for one that means all features."""
    for name in names:
        if not name.strip("*"):
            raise ValueError(f"{name!r} drops all features: leave at least one to tune")
    return tuple(names)


def _check_value(setting: Opt, value: object) -> None:
    """Check one value.

    Raises:
        UsageError: it is not one of the choices, or out of range.
    """
    name = setting.metavar if setting.is_positional else OptionName(setting.name)
    if setting.choices and value not in setting.choices:
        raise UsageError(
            f"{name} must be one of {', '.join(setting.choices)}, not {value}"
            f"{suggest(str(value), setting.choices)}"
        )
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if setting.above is not None and not setting.above < value < math.inf:
        raise UsageError(f"{name} must be more than {setting.above:g}, and finite, not {value:g}")
    if math.isnan(value):
        raise UsageError(f"{name} must be a number, not nan")
    if setting.minimum is not None and value < setting.minimum:
        raise UsageError(f"{name} must be at least {setting.minimum:g}, not {value:g}")
    if setting.maximum is not None and value > setting.maximum:
        raise UsageError(f"{name} must be at most {setting.maximum:g}, not {value:g}")


def check_given(options: Any) -> None:
    """Check the options of a command: their values, and which are given together.

    An option with its default counts as not given.

    Raises:
        UsageError: as for ``check_settings``.
    """
    cls: type = type(options)
    # Those of a settings class have been checked when it was made.
    declared = [option for option in list_options(cls) if len(option.path) == 1]
    values = {option.name: (option, find_value(options, option.path)) for option in declared}
    given = {name: value for name, (option, value) in values.items() if value != option.default}
    check_settings(declared, given)


def convert(option: Opt, value: Any) -> Any:
    """Return a value as its field holds it."""
    if option.parse is not None:
        return value
    if option.kind == "path":
        return Path(value)
    if option.kind != "texts":
        return value
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    return tuple(map(Path, words) if option.exists == "path" else words)


def make_settings(
    cls: type[Settings],
    values: Mapping[str, Any],
    objects: Mapping[tuple[str, ...], Any] | None = None,
    convert: Callable[[Opt, Any], Any] = convert,
) -> Settings:
    """Return a settings class with values; those that are missing have their defaults.

    Args:
        values: the values by the names of options.
        objects: values of fields that are no options, by the attributes that lead to them.
        convert: returns the value of an option as its field holds it.
    """
    root: type = cls
    known = {option.path: option for option in list_options(root) if option.path}

    def build(cls: Any, path: tuple[str, ...]) -> Any:
        arguments: dict[str, Any] = {}
        hints = find_field_types(cls)
        for declared in fields(cls):
            own = (*path, declared.name)
            hint, switch = hints[declared.name], find_switch(cls, declared.name)
            if own in (objects or {}):
                arguments[declared.name] = (objects or {})[own]
            elif switch is not None:
                if values.get(switch):
                    inner = next(part for part in get_args(hint) if is_dataclass(part))
                    arguments[declared.name] = build(inner, own)
            elif own in known:
                if known[own].name in values:
                    arguments[declared.name] = convert(known[own], values[known[own].name])
            elif is_dataclass(hint) and declared.default is MISSING:
                arguments[declared.name] = build(hint, own)
        return cls(**arguments)

    settings: Settings = build(cls, ())
    return settings


def check_fields(settings: Any, lenient: Collection[str] = ()) -> None:
    """Put parsed values in the place of texts, and check all values.

    A frozen dataclass calls this where it is made.

    Args:
        lenient: names of fields whose values are not checked.

    Raises:
        UsageError: a value cannot be used.
    """
    cls: type = type(settings)
    for option in list_options(cls):
        value = find_value(settings, option.path) if len(option.path) == 1 else None
        if value is None:
            continue
        if option.parse is not None:
            try:
                object.__setattr__(settings, option.path[0], option.parse(value))
            except ValueError as error:
                raise UsageError(f"{OptionName(option.name)} {error}") from error
        elif option.path[0] not in lenient:
            _check_value(option, value)


def reject_combinations(option: str, others: Mapping[str, bool]) -> None:
    """Reject settings that an option excludes.

    Args:
        others: the other settings, as fields of a message, and whether each is given.

    Raises:
        UsageError: one of them is given.
    """
    if excluded := [what for what, is_given in others.items() if is_given]:
        raise UsageError(f"{option} excludes {', '.join(excluded)}: use one or the other")


def is_given(given: Mapping[str, Any], name: str) -> bool:
    """Return whether a setting has a value; flags that are off have none."""
    value = given.get(name)
    return value is not None and value is not False


def _holds(condition: str, given: Mapping[str, Any]) -> bool:
    for alternative in condition.split(" or "):
        name, equal, value = alternative.partition("=")
        if is_given(given, name) and (not equal or str(given[name]) == value):
            return True
    return False


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, object]:
    """Return values of ``NAME=VALUE`` texts by name; of equal names, the last counts.

    Raises:
        UsageError: a text does not have that form.
    """
    values: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: not of the form NAME=VALUE")
        values[name] = value
    return values
