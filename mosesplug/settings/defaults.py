"""The defaults of ``mosesplug tune`` that depend on other settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mosesplug.cores import usable_cores
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.recommended import ONLINE
from mosesplug.options import list_options
from mosesplug.settings.algorithm_options import add_tune_options
from mosesplug.settings.configuration import RunPlan

_ALGORITHM_OF_GRAPHS = "mert"
"""The algorithm of ``mosesplug tune --forest``, where ``kbmira`` takes ten times longer."""

_AVERAGED = ("kbmira", "mert")
"""Algorithms whose mean weights translated other text better, with the real decoder."""


def fill_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of ``mosesplug tune`` with defaults that depend on others.

    Raises:
        UsageError: an unknown algorithm, or a value that its setting cannot take.
    """
    defaults = {
        option.name: option.tune_default
        for option in list_options(RunPlan)
        if option.tune_default is not None
    }
    if values.get("forest"):
        defaults["algorithm"] = _ALGORITHM_OF_GRAPHS
    if values.get("online"):
        defaults["algorithm"] = ONLINE
    if any(values.get(name) for name in ("online", "patience")):
        del defaults["stop-after"]
    settings = {**defaults, "threads": usable_cores(), **values}
    select = "select-run" if settings.get("runs") else "select"
    if not any(settings.get(name) for name in (select, "last", "online", "heldout")):
        settings[select] = "average" if _is_averaged(settings) else "best-dev"
    if not settings.get("range"):  # which asks for random starts
        options = add_tune_options(algorithm(settings["algorithm"]), settings.get("option", {}))
        settings |= {"option": options} if options else {}
    return settings


def _is_averaged(values: Mapping[str, Any]) -> bool:
    """Return whether the mean of all weights is better than those of one iteration."""
    return values["algorithm"] in _AVERAGED and not _learns_from_graphs(values)


def _learns_from_graphs(values: Mapping[str, Any]) -> bool:
    return bool(values.get("forest")) or str(values.get("decoder", "")).startswith("forest:")
