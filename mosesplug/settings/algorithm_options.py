"""Make the option dataclass of an algorithm from ``NAME=VALUE`` texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Literal, get_args, get_origin

from mosesplug.errors import UsageError, suggest
from mosesplug.optimizers import Algorithm, Optimizer, registry
from mosesplug.options import Opt, find_field_types, options_by_field

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def make_options(algorithm: Algorithm, values: Mapping[str, object]) -> object:
    """Return the algorithm's option dataclass with some fields set.

    Args:
        values: field name (``-`` counts as ``_``) to value; texts are read as the field's type.

    Raises:
        UsageError: an unknown name, or a value that the field cannot take.
    """
    types = find_field_types(algorithm.options)
    known = options_by_field(algorithm.options)
    chosen: dict[str, object] = {}
    for spelled, value in values.items():
        name = spelled.replace("-", "_")
        if name not in known:
            raise unknown_option(spelled, [algorithm])
        chosen[name] = _value(types[name], value, f"option {spelled} of {algorithm.name}")
        if types[name] in (int, float):
            _check_range(known[name], chosen[name], f"{spelled} of {algorithm.name}")
    for name, option in known.items():
        preset = option.presets.get(str(chosen.get(name)), {})
        chosen |= {key: preset[key] for key in preset if key in known and key not in chosen}
    return algorithm.options(**chosen)


def add_tune_options(algorithm: Algorithm, given: Mapping[str, object]) -> dict[str, object]:
    """Return settings with those that ``mosesplug tune`` adds.

    Args:
        given: as for ``make_options``.

    Raises:
        UsageError: as ``make_options`` does.
    """
    condition = algorithm.tune_options_with
    if condition is not None:
        optimizer = algorithm.bind(make_options(algorithm, given))
        if not _holds(condition, optimizer.values):
            return dict(given)
    return {**algorithm.tune_options, **given}


def describe_options(algorithm: Algorithm) -> list[dict[str, Any]]:
    """Return the settings of an algorithm as plain data.

    Each has ``name``, ``type`` (``int``, ``float``, ``bool`` or ``str``), ``choices`` (or None),
    ``minimum`` and ``maximum`` (each None unless it is declared), ``default``, ``tune_default``
    (that of ``mosesplug tune``), ``help``, ``details``, ``source`` and ``only_with`` (a condition,
    or None).
    """
    types = find_field_types(algorithm.options)
    defaults = asdict(algorithm.options())
    described = []
    for name, option in options_by_field(algorithm.options).items():
        kind = types[name]
        default = defaults[name]
        choices = list(option.choices) or None
        described.append(
            {
                "name": name,
                "type": "str" if choices else kind.__name__,
                "choices": choices,
                "minimum": option.minimum,
                "maximum": option.maximum,
                "default": default,
                "tune_default": algorithm.tune_options.get(name, default),
                "help": option.help,
                "details": option.details,
                "source": option.source,
                "only_with": option.only_with,
            }
        )
    return described


def unknown_option(name: str, algorithms: Sequence[Algorithm]) -> UsageError:
    """Return the error for an option that no algorithm has, with a similar name."""
    names = {field.name for algorithm in algorithms for field in fields(algorithm.options)}
    suggestion = suggest(name.replace("-", "_"), sorted(names)) or "."
    if len(algorithms) == 1:
        owner = algorithms[0].name
        others = _find_owners(name.replace("-", "_")) if suggestion == "." else []
        hint = f" It is one of {', '.join(others)}: choose by {{--algorithm}}." if others else ""
        return UsageError(
            f"unknown option {name!r} of {owner}{suggestion}{hint}"
            f" See mosesplug algorithms {owner}."
        )
    owners = ", ".join(algorithm.name for algorithm in algorithms)
    return UsageError(
        f"none of {owners} has an option {name!r}{suggestion} See mosesplug algorithms NAME."
    )


def _find_owners(name: str) -> list[str]:
    every = map(registry.algorithm, registry.built_in_algorithms())
    return [
        algorithm.name
        for algorithm in every
        if name in {field.name for field in fields(algorithm.options)}
    ]


def find_idle_options(optimizer: Optimizer, names: Iterable[str]) -> list[str]:
    """Return a warning for each option without effect, given the other values.

    ``only_with`` says when it has one: ``name=value|value`` (another option
    has one of these values), or ``name>other`` (it is greater than a number or a third option).

    Args:
        names: the options to check; ``-`` counts as ``_``.
    """
    known = options_by_field(optimizer.algorithm.options)
    warnings = []
    for name in (spelled.replace("-", "_") for spelled in names):
        condition = known[name].only_with
        if condition is not None and not _holds(condition, optimizer.values):
            warnings.append(f"option {name} of {optimizer.name} has no effect without {condition}")
    return warnings


def enable_option(algorithm: Algorithm, values: Mapping[str, object], name: str) -> dict[str, Any]:
    """Return options with those under which an option has an effect."""
    types = find_field_types(algorithm.options)
    known = options_by_field(algorithm.options)
    condition = known[name].only_with
    if condition is None:
        return dict(values)
    other, equal, choices = condition.partition("=")
    if equal:
        enabling = _value(types[other], choices.split("|")[0], other)
    else:
        other, _, least = condition.partition(">")
        default: Any = known[least].default if least in known else float(least)
        limit: Any = values.get(least, default)
        enabling = types[other](limit + 1)
    return enable_option(algorithm, {other: enabling, **values}, other)


def _holds(condition: str, values: Mapping[str, Any]) -> bool:
    """Return whether the condition of an ``only_with`` holds for some values."""
    name, equal, choices = condition.partition("=")
    if equal:
        return str(values[name]).lower() in choices.split("|")
    name, _, least = condition.partition(">")
    return bool(values[name] > (values[least] if least in values else float(least)))


def _value(kind: Any, value: object, what: str) -> object:
    """Return a value converted to the type of a field."""
    text = str(value)
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise UsageError(f"{what} must be one of {', '.join(get_args(kind))}, not {text}")
        return text
    if kind is bool:
        if text.lower() not in _BOOLEANS:
            raise UsageError(f"{what} must be true or false, not {text}")
        return _BOOLEANS[text.lower()]
    if kind in (int, float):
        return _number(kind, text, what)
    return text


def _number(kind: type[int] | type[float], text: str, what: str) -> int | float:
    """Return a text as a finite number."""
    try:
        number = kind(text)
    except ValueError as error:
        noun = "an integer" if kind is int else "a number"
        raise UsageError(f"{what} must be {noun}, not {text}") from error
    if not math.isfinite(number):
        raise UsageError(f"{what} must be finite, not {text}")
    return number


def _check_range(option: Opt, value: Any, what: str) -> None:
    """Raise ``UsageError`` if the number is not one that the algorithm survives."""
    least, largest = option.limits
    if value < least:
        raise UsageError(f"option {what} must be at least {least:g}")
    if value > largest:
        raise UsageError(f"option {what} must be at most {largest:.10g}")
