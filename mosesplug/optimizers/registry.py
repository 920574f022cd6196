"""Every optimizer under its name; what is registered is what the command line offers and tests.

An algorithm is a function and a frozen dataclass of its settings, each field with ``help`` and
``source`` in its metadata. Command-line options are made from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.kbmira import KbmiraOptions, kbmira
from mosesplug.optimizers.batch.mert import MertOptions, mert
from mosesplug.optimizers.batch.pro import ProMertOptions, ProOptions, pro, pro_mert
from mosesplug.optimizers.problem import Problem, Progress, Solution

__all__ = ["Algorithm", "algorithm", "algorithms"]


@dataclass(frozen=True)
class Algorithm:
    """An optimizer as others see it.

    Attributes:
        name: what ``--algorithm`` takes.
        summary: one line for ``--help``.
        source: the paper.
        options: frozen dataclass of its settings, every field with a default.
        optimize: ``(problem, initial, rng, options, progress) -> Solution``.
    """

    name: str
    summary: str
    source: str
    options: type[Any]
    optimize: Callable[[Problem, NDArray[np.float64], np.random.Generator, Any, Progress], Solution]


def algorithms() -> Mapping[str, Algorithm]:
    """All optimizers by name."""
    known = (
        Algorithm(
            name="mert",
            summary="exact line search on the metric itself",
            source="Och 2003",
            options=MertOptions,
            optimize=mert,
        ),
        Algorithm(
            name="kbmira",
            summary="margin-infused learning from hope and fear; many and sparse features",
            source="Cherry & Foster 2012",
            options=KbmiraOptions,
            optimize=kbmira,
        ),
        Algorithm(
            name="pro",
            summary="a classifier on pairs of hypotheses; many and sparse features",
            source="Hopkins & May 2011",
            options=ProOptions,
            optimize=pro,
        ),
        Algorithm(
            name="pro+mert",
            summary="MERT that also starts from PRO's weights",
            source="mert-moses.pl --pro-starting-point",
            options=ProMertOptions,
            optimize=pro_mert,
        ),
    )
    return MappingProxyType({each.name: each for each in known})


def algorithm(name: str) -> Algorithm:
    """The optimizer of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    known = algorithms()
    if name not in known:
        raise UsageError(f"unknown algorithm {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
