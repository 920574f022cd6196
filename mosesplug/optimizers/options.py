"""Declare one setting of an algorithm as a dataclass field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeVar

__all__ = ["option"]

T = TypeVar("T")


def option(
    default: T,
    *,
    help: str,
    source: str,
    details: str = "",
    minimum: float | None = None,
    only_with: str | None = None,
    presets: Mapping[str, Mapping[str, object]] | None = None,
) -> T:
    """Return a dataclass field with metadata for help texts, checks and docs.

    Args:
        default: the default value.
        help: what the setting does, in at most 12 words.
        source: the paper or program that the setting comes from.
        details: the meaning of the values, in full sentences.
        minimum: least valid value; None: any.
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
    if presets is not None:
        metadata["presets"] = presets
    made: T = field(default=default, metadata=metadata)
    return made
