"""Metrics: statistics of each hypothesis once, a score of summed statistics many times."""

from __future__ import annotations

from mosesplug.metrics.bleu import Bleu, bleu_score_row, bleu_scores
from mosesplug.metrics.protocol import Metric, Prepared

__all__ = ["Bleu", "Metric", "Prepared", "bleu_score_row", "bleu_scores"]
