"""Every optimizer under its name; what is registered is what the command line offers and tests.

An algorithm is a function and a frozen dataclass of its settings, each field with ``help`` and
``source`` in its metadata. Command-line options are made from the fields. Each family of algorithms
lists its own, in ``families/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mosesplug.errors import UsageError
from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.families import direct, expected, margin, moses, online, ranking

__all__ = ["Algorithm", "algorithm", "algorithms"]


def algorithms() -> Mapping[str, Algorithm]:
    """All optimizers by name."""
    families = (moses, ranking, expected, margin, direct, online)
    return MappingProxyType({each.name: each for made in families for each in made.algorithms()})


def algorithm(name: str) -> Algorithm:
    """The optimizer of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    known = algorithms()
    if name not in known:
        raise UsageError(f"unknown algorithm {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
