"""Declare one setting of an algorithm as a dataclass field, with its range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field
from typing import Any, TypeVar

__all__ = ["find_range", "option"]

T = TypeVar("T")

_LARGEST_COUNT = 10**6
_LARGEST_REAL = 1e9
"""Far beyond useful values, and small enough that products of a few settings are finite."""


def option(
    default: T,
    *,
    help: str,
    source: str,
    details: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    only_with: str | None = None,
    presets: Mapping[str, Mapping[str, object]] | None = None,
) -> T:
    """Return a dataclass field with metadata for help texts, checks and docs.

    Args:
        default: the default value.
        help: what the setting does, in at most 12 words.
        source: the paper or program that the setting comes from.
        details: the meaning of the values, in full sentences.
        minimum, maximum: bounds of a number; None: those that ``find_range`` has for its type.
        only_with: the condition under which the setting has an effect: ``name=value|value`` or
            ``name>other``, where ``other`` is a number or another setting.
        presets: for some values, what other settings are then, unless they are given. They apply
            where settings are read by name (``settings.algorithm_options``); a preset may have
            settings that an algorithm lacks.
    """
    metadata: dict[str, Any] = {"help": help, "source": source, "details": details}
    if only_with is not None:
        metadata["only_with"] = only_with
    if minimum is not None:
        metadata["minimum"] = minimum
    if maximum is not None:
        metadata["maximum"] = maximum
    if presets is not None:
        metadata["presets"] = presets
    made: T = field(default=default, metadata=metadata)
    return made


def find_range(setting: Field[Any], kind: type[int] | type[float]) -> tuple[float, float]:
    """Return the least and the largest value of a numeric option.

    Args:
        setting: the field of the option.
        kind: its type.
    """
    largest = _LARGEST_COUNT if kind is int else _LARGEST_REAL
    return setting.metadata.get("minimum", -largest), setting.metadata.get("maximum", largest)
