"""Metrics of other packages: entry points of the group ``mosesplug.metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mosesplug.errors import UsageError
from mosesplug.metrics.protocol import Metric
from mosesplug.plugins import METRICS, load_plugin, plugin_names


@dataclass(frozen=True)
class MetricPlugin:
    """What a package registers: how to make a metric of its settings.

    Attributes:
        name: the value of ``--metric``: letters, digits, ``-`` and ``_``.
        summary: one sentence of at most 60 characters.
        build: returns the metric with some settings, which are texts. It raises ``UsageError`` for
            a value that it cannot use.
        settings: names of the settings, as in ``--metric-settings NAME:VALUE``. The signature of
            the metric spells those that differ from their defaults in the same way.
        is_error_rate: whether people read 1 minus the score.
    """

    name: str
    summary: str
    build: Callable[[Mapping[str, str]], Metric]
    settings: tuple[str, ...] = ()
    is_error_rate: bool = False

    def make(self, settings: Mapping[str, str]) -> Metric:
        """Return the metric with these settings.

        Raises:
            UsageError: a value is invalid, or name and signature would not tell its statistics
                from those of another metric.
        """
        metric = self.build(settings)
        signature = metric.signature()
        fields = signature.split("|")
        versions = [text for text in fields if text.startswith("version:") and text != "version:"]
        if metric.name != self.name or fields[0] != self.name or len(versions) != 1:
            raise UsageError(
                f"the plug-in metric {self.name} has the name {metric.name} and the signature "
                f"{signature!r}: the name must be the plug-in's, and the signature "
                f"{self.name}|...|version:VERSION. Repair or uninstall its package"
            )
        return metric


_error_rates: set[str] = set()


def find_metric_plugin(name: str) -> MetricPlugin | None:
    """Return the metric that a package registers under this name, or None.

    Raises:
        UsageError: it cannot be used.
    """
    plugin = load_plugin(METRICS, name, MetricPlugin)
    if plugin is not None and plugin.is_error_rate:
        _error_rates.add(name)
    return plugin


def metric_plugin_names() -> list[str]:
    """Return the names of metrics that packages register."""
    return plugin_names(METRICS)


def is_error_rate_plugin(name: str) -> bool:
    """Return whether a metric that was found before is an error rate of a plug-in."""
    return name in _error_rates
