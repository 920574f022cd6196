"""``mosesplug metrics``: list the metrics, and how to use others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mosesplug.cli.learn.options import MetricsCommand
from mosesplug.cli.shared.tables import print_record
from mosesplug.metrics.registry import MetricFacts, list_absent_metrics, list_metrics
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable

_OTHERS = """
To use another metric, give a file with its scores (optimize --scores NAME=FILE),
or a command that computes them (tune or optimize --score-command NAME=COMMAND).
A metric that is a function of summed counts can be a plug-in
(docs/howto/plugins.md). GLEU is not the GLEU of grammatical error correction.
METEOR matches neither synonyms nor paraphrases."""


@dataclass(frozen=True)
class MetricList:
    """The metrics, and why others are not included.

    Attributes:
        absent: reasons by name.
    """

    JSON_KEYS: ClassVar = "metrics absent"

    metrics: tuple[MetricFacts, ...]
    absent: Mapping[str, str]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a table of the metrics, then one of those that are not included."""
        rows = [(row.name, row.summary, " ".join(row.settings)) for row in self.metrics]
        yield TextTable([("metric", "summary", "settings"), *rows], left=2, last=1)
        if medium.is_text:
            yield ""
        reasons = [(name, reason) for name, reason in self.absent.items()]
        yield TextTable([("not included", "reason"), *reasons], left=1, last=1)
        if medium.is_text:
            yield _OTHERS


def metrics(_options: MetricsCommand) -> None:
    """List the metrics with their settings, and what is not included."""
    print_record(MetricList(list_metrics(), list_absent_metrics()))
