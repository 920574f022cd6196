"""``mosesplug metrics``: list the metrics, and how to bring others."""

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
Scores of these and of any other program are numbers that mosesplug reads, as
optimize --scores NAME=FILE, or those of a command that keeps running, as
tune --score-command NAME=COMMAND. A metric of summed counts can be a plug-in
(docs/howto/plugins.md). GLEU is not that of grammatical error correction.
METEOR has no synonyms and no paraphrases."""


@dataclass(frozen=True)
class MetricList:
    """The metrics, and why others are not there.

    Attributes:
        absent: reasons by name.
    """

    JSON_KEYS: ClassVar = "metrics absent"

    metrics: tuple[MetricFacts, ...]
    absent: Mapping[str, str]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a table of the metrics, then one of those that are not there."""
        rows = [(row.name, row.summary, " ".join(row.settings)) for row in self.metrics]
        yield TextTable([("metric", "summary", "settings"), *rows], left=2, last=1)
        if medium.is_text:
            yield ""
        reasons = [(name, reason) for name, reason in self.absent.items()]
        yield TextTable([("not there", "reason"), *reasons], left=1, last=1)
        if medium.is_text:
            yield _OTHERS


def metrics(_options: MetricsCommand) -> None:
    """List the metrics with their settings, and what is not there."""
    print_record(MetricList(list_metrics(), list_absent_metrics()))
