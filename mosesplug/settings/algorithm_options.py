"""An algorithm's options from ``name=value`` texts, by the types of its option dataclass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, Optimizer

__all__ = ["algorithm_options", "idle_options"]

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_LARGEST = 2**31 - 1
"""Of whole numbers: what counts sweeps and draws takes no larger ones."""


def algorithm_options(algorithm: Algorithm, values: Mapping[str, object]) -> Any:
    """The algorithm's option dataclass, with some fields set.

    Args:
        algorithm: from the registry.
        values: field name (``-`` counts as ``_``) to value; texts are read as the field's type.

    Raises:
        UsageError: an unknown name, or a value that the field cannot take.
    """
    types = get_type_hints(algorithm.options)
    known = {field.name: field for field in fields(algorithm.options)}
    found: dict[str, object] = {}
    for given, value in values.items():
        name = given.replace("-", "_")
        if name not in known:
            raise UsageError(
                f"{algorithm.name} has no option {given}; it has {', '.join(sorted(known))}"
            )
        found[name] = _value(types[name], value, f"option {given} of {algorithm.name}")
        minimum = known[name].metadata.get("minimum")
        if minimum is not None and not _as_number(found[name]) >= minimum:
            raise UsageError(f"option {given} of {algorithm.name} must be at least {minimum}")
    return algorithm.options(**found)


def idle_options(optimizer: Optimizer, given: Iterable[str]) -> list[str]:
    """What is to be said of options that do nothing beside the values of others.

    A field says by ``only_with`` in its metadata beside what it counts: ``name=value|value``, where
    another option is one of these, or ``name>other``, where it is more than a number or than a
    third option.

    Args:
        optimizer: with all of its settings.
        given: names of those that were asked for; ``-`` counts as ``_``.
    """
    known = fields(optimizer.algorithm.options)
    conditions = {each.name: each.metadata.get("only_with") for each in known}
    found = []
    for name in (each.replace("-", "_") for each in given):
        condition = conditions[name]
        if condition is not None and not _holds(condition, optimizer.options):
            found.append(f"option {name} of {optimizer.name} does nothing but with {condition}")
    return found


def _holds(condition: str, options: Any) -> bool:
    """Whether options are as an ``only_with`` has them."""
    name, equal, values = condition.partition("=")
    if equal:
        return str(getattr(options, name)).lower() in values.split("|")
    name, _, least = condition.partition(">")
    limit = getattr(options, least) if hasattr(options, least) else float(least)
    return bool(getattr(options, name) > limit)


def _value(kind: Any, value: object, what: str) -> object:
    """``value`` as a field of type ``kind`` holds it."""
    text = str(value)
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise UsageError(f"{what} is one of {', '.join(get_args(kind))}, not {text}")
        return text
    if kind is bool:
        if text.lower() not in _BOOLEANS:
            raise UsageError(f"{what} is true or false, not {text}")
        return _BOOLEANS[text.lower()]
    if kind in (int, float):
        return _number(kind, text, what)
    return text


def _number(kind: type[int] | type[float], text: str, what: str) -> int | float:
    """``text`` as a number that optimizers can reckon with."""
    try:
        number = kind(text)
    except ValueError as error:
        noun = "a whole number" if kind is int else "a number"
        raise UsageError(f"{what} is {noun}, not {text}") from error
    if not math.isfinite(number):
        raise UsageError(f"{what} is a finite number, not {text}")
    if kind is int and number > _LARGEST:
        raise UsageError(f"{what} must be at most {_LARGEST}")
    return number


def _as_number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
