"""Accept the settings of algorithms under their old spelling, ``--NAME VALUE``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields

from mosesplug.options import find_field_types

_PREFIX = "algorithm-"
"""Before the name of a setting that is also an option of the command."""


def rewrite_settings(words: Sequence[str], own: Collection[str]) -> Iterator[str]:
    """Yield the words with settings of algorithms as ``--option NAME=VALUE``."""
    flags: dict[str, bool] = {}
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            yield from (word, *remaining)
            return
        spelling, equals, value = word.partition("=")
        if not spelling.startswith("--") or spelling in own:
            yield word
            continue
        flags = flags or _settings()
        name = spelling[2:].removeprefix(_PREFIX)
        positive = name.removeprefix("no-")
        if flags.get(name) is True and not equals:
            yield from ("--option", f"{name}=true")
        elif flags.get(positive) is True and not equals:
            yield from ("--option", f"{positive}=false")
        elif name in flags:
            yield from ("--option", f"{name}={value if equals else next(remaining, '')}")
        else:
            yield word


def _settings() -> dict[str, bool]:
    """Return the settings of all algorithms, and whether each is a flag."""
    from mosesplug.optimizers import algorithms

    flags: dict[str, bool] = {}
    for algorithm in algorithms().values():
        kinds = find_field_types(algorithm.options)
        for field in fields(algorithm.options):
            name = field.name.replace("_", "-")
            flags[name] = flags.get(name, True) and kinds[field.name] is bool
    return flags
