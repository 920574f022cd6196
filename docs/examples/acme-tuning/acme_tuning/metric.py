"""SACC, sentence accuracy: the share of sentences that equal one of their references."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.metrics.plugin import MetricPlugin
from mosesplug.metrics.text_metric import TextMetric


@dataclass(frozen=True)
class SentenceAccuracy(TextMetric):
    """Statistics: right sentences, sentences."""

    case: str = "true"

    name: ClassVar[str] = "SACC"
    version: ClassVar[str] = "acme-1.0"
    statistics_names: ClassVar[tuple[str, ...]] = ("right", "sentences")

    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        """Compare texts token by token."""
        texts = [text.split() for text in (hypothesis, *references)]
        if self.case == "false":
            texts = [[token.lower() for token in text] for text in texts]
        return texts[0] in texts[1:], 1

    def score_totals(self, totals: np.ndarray) -> np.ndarray:
        """Divide right sentences by all."""
        return totals[..., 0] / np.maximum(totals[..., 1], 1)


def build(settings: Mapping[str, str]) -> SentenceAccuracy:
    """Make the metric of --metric-settings, as case:false."""
    case = settings.get("case", "true")
    if case not in ("true", "false"):
        raise UsageError(f"case:{case} is invalid for SACC: case must be true or false")
    return SentenceAccuracy(case)


SACC = MetricPlugin("SACC", "Share of sentences that equal a reference", build, ("case",))
