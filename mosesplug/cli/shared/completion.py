"""Values that a shell offers for options: algorithms, metrics, formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer

from mosesplug.options import Opt

Value = str | tuple[str, str]
"""A value, or a value and what it means."""

Complete = Callable[[typer.Context, str], Sequence[Value]]
"""Returns values that may follow what is typed; Typer drops those that do not."""


def offer(values: Iterable[str]) -> Complete:
    """Return a function that offers these values."""
    known = tuple(values)

    def complete(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
        return known

    return complete


def complete_algorithms(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer the algorithms, also as the next of several with commas."""
    from mosesplug.optimizers import algorithms

    before = _before_last(incomplete, ",")
    return [(f"{before}{name}", algorithm.summary) for name, algorithm in algorithms().items()]


def complete_metrics(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer the metrics, also as the next part of a weighted sum."""
    from mosesplug.metrics.registry import metric_names

    before = max(_before_last(incomplete, ","), _before_last(incomplete, "+"), key=len)
    return [f"{before}{name}" for name in metric_names()]


def complete_list_formats(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer the formats of n-best lists."""
    from formats.nbest.registry import list_formats

    return ["auto", *list_formats()]


def complete_weight_formats(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer the formats of files of weights."""
    from formats.weights.weight_format import FORMATS

    return [*FORMATS, "lines"]


def complete_setting_names(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer the settings of a run and of ``optimize``."""
    from mosesplug.options import list_options
    from mosesplug.settings.configuration import RunPlan
    from mosesplug.settings.learning import LearningSettings

    settings = (*list_options(RunPlan), *list_options(LearningSettings))
    return [*{setting.name: (setting.name, setting.help) for setting in settings}.values()]


def _complete_options(ctx: typer.Context, incomplete: str) -> Sequence[Value]:
    """Offer ``NAME=VALUE`` for each setting of the algorithm.

    Whole words, since bash completes what follows ``=`` as a word of its own.
    """
    from mosesplug.optimizers import algorithms
    from mosesplug.settings.algorithm_options import describe_options

    known = algorithms()
    chosen = known.get(str(_find_algorithm(ctx)))
    described = {
        setting["name"]: setting
        for algorithm in (known.values() if chosen is None else [chosen])
        for setting in describe_options(algorithm)
    }
    return [
        (f"{name}={value}", str(setting["help"]))
        for name, setting in described.items()
        for value in _list_values(setting)
    ]


def _list_values(setting: Mapping[str, Any]) -> Sequence[Any]:
    if setting["type"] == "bool":
        return ("true", "false")
    return setting["choices"] or (setting["default"],)


def _find_algorithm(ctx: typer.Context) -> object:
    return next((value for name, value in ctx.params.items() if _is_algorithm(name, value)), None)


def _is_algorithm(name: str, value: object) -> bool:
    return name.startswith("algorithm") and isinstance(value, str)


def _before_last(text: str, separator: str) -> str:
    """Return a text up to the last separator, inclusive; empty without any."""
    return text[: text.rfind(separator) + 1]


_BY_NAME: dict[str, Complete] = {
    "algorithm": complete_algorithms,
    "metric": complete_metrics,
    "report-metric": complete_metrics,
    "format": complete_list_formats,
    "list-format": complete_list_formats,
    "option": _complete_options,
}


def find_completion(setting: Opt) -> Complete | None:
    """Return a function that completes the values of a setting, or None."""
    if setting.complete is not None:
        return setting.complete
    if setting.choices:
        return offer(setting.choices)
    return _BY_NAME.get(setting.name)
