"""Metrics that are reported, never optimized, as settings name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.metrics import Metric
    from mosesplug.metrics.outside import OutsideMetric
else:  # loading the metrics takes a second, which --help does not need
    Metric = Any


@dataclass(frozen=True)
class ReportedMetric:
    """A metric that is reported.

    Attributes:
        text: as the user wrote it, as ``TER`` or ``CHRF beta:3``; its scores have this name.
    """

    text: str
    metric: Metric

    def __str__(self) -> str:
        return self.text


def find_reported(
    wanted: Iterable[str | Metric], objective: Metric, find: Callable[[str], Metric]
) -> tuple[ReportedMetric, ...]:
    """Return the metrics to report beside the objective.

    Args:
        wanted: texts, as for ``metric_of_text``, or metrics.
        find: returns the metric of a text.

    Raises:
        UsageError: one of them is optimized, or given twice; or as ``find``.
    """
    reported: list[ReportedMetric] = []
    for one in wanted:
        if isinstance(one, str):
            new = ReportedMetric(one.strip(), find(one))
        else:
            new = ReportedMetric(one.name, one)
        if new.metric == objective or new.text == objective.name:
            raise UsageError(f"{{--report-metric}} {new}: it is the metric that is optimized")
        if any(new.text == other.text or new.metric == other.metric for other in reported):
            raise UsageError(f"{{--report-metric}} {new} is given twice")
        reported.append(new)
    return tuple(reported)


def find_with_settings(text: str, settings: str, outside: Sequence[OutsideMetric]) -> Metric:
    """Return the metric of a text.

    Args:
        settings: those of the objective. What the metric knows of them, and ``text`` lacks, is
            added.

    Raises:
        UsageError: as for ``metric_of_text``.
    """
    from mosesplug.metrics.registry import (
        list_metrics,
        metric_of_text,
        names_of_text,
        parse_settings,
        split_text,
    )

    name, own = split_text(text)
    names = set(names_of_text(name)) - {metric.name for metric in outside}
    known = {key for facts in list_metrics() if facts.name in names for key in facts.settings}
    unset = known - parse_settings(own).keys()
    shared = [f"{key}:{value}" for key, value in parse_settings(settings).items() if key in unset]
    return metric_of_text(" ".join([name, own, *shared]), outside)
