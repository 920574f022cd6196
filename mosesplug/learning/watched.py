"""Metrics that are reported, not optimized, on the objective's hypotheses.

A weighted sum of all metrics gives their statistics side by side in one pass over the lists;
``split_statistics`` separates those of the objective, which is all that an optimizer sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics import Metric
from mosesplug.metrics.interpolated import InterpolatedMetric, list_parts, slice_columns
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.metrics.protocol import has_doubles
from mosesplug.settings.reported import find_reported, find_with_settings
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True, eq=False)
class WatchedMetric:
    """A metric that is reported, with the statistics of each hypothesis.

    Attributes:
        statistics: ``[n_hyps, n_statistics]``, rows as in the tuning set.
    """

    metric: Metric
    statistics: NDArray[Any]


def find_watched(
    names: Sequence[str], settings: str, outside: Sequence[OutsideMetric], objective: Metric
) -> tuple[Metric, ...]:
    """Return the metrics to report beside the objective.

    Args:
        names: those that a caller asks for, as for ``metric_of_text``.
        settings: the settings of the objective; others use those that they know, after their own.
        outside: the metrics of scores from outside. Those that the objective does not use are
            reported without being asked for.

    Raises:
        UsageError: an unknown metric, or one that is optimized or named twice.
    """
    optimized = {objective.name, *(part.name for part in list_parts(objective))}
    known = {metric.name: metric for metric in outside if metric.name not in optimized}
    asked: dict[str, Metric] = {}
    find = partial(find_with_settings, settings=settings, outside=outside)
    for reported in find_reported(names, objective, find):
        metric = reported.metric
        if metric.name in {objective.name, *asked}:
            raise UsageError(
                f"{{--report-metric}} {reported}: gains are shown by the names of metrics, and "
                f"there is another {metric.name}: leave one of them out"
            )
        asked[metric.name] = metric
    return tuple({**known, **asked}.values())


def join_metrics(objective: Metric, watched: Sequence[Metric]) -> Metric:
    """Return a metric whose statistics are those of all, the objective's first."""
    return InterpolatedMetric((objective, *watched)) if watched else objective


def split_statistics(
    lists: TuningSet, objective: Metric, watched: Sequence[Metric]
) -> tuple[TuningSet, tuple[WatchedMetric, ...]]:
    """Separate the statistics of ``join_metrics``.

    Returns:
        The lists with the statistics of the objective alone, as if nothing else were scored; and
        the statistics of each of the others.
    """
    if not watched:
        return lists, ()
    first, *others = (lists.stats[:, columns] for columns in slice_columns((objective, *watched)))
    return (
        replace(lists, stats=narrow(first, objective)),
        tuple(
            WatchedMetric(metric, narrow(part, metric))
            for metric, part in zip(watched, others, strict=True)
        ),
    )


def narrow(statistics: NDArray[Any], metric: Metric) -> NDArray[Any]:
    """Return statistics in the metric's own type: counts of texts are int32."""
    kind = statistics.dtype if has_doubles(metric) else np.int32
    return np.ascontiguousarray(statistics, dtype=kind)
