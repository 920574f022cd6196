"""Metrics: statistics of hypotheses, computed once, and scores of their sums."""

from __future__ import annotations

from mosesplug.metrics.bleu.corpus import Bleu, bleu_score_row, bleu_scores
from mosesplug.metrics.bleu.sentence import (
    sentence_bleu_lin_och,
    sentence_bleu_moses,
    sentence_bleu_nakov,
)
from mosesplug.metrics.chrf import Chrf
from mosesplug.metrics.edit.cer import Cer
from mosesplug.metrics.edit.mer import Mer
from mosesplug.metrics.edit.wer import Cder, Wer
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.metrics.normalization import parse_factors, select_factors
from mosesplug.metrics.per import Per
from mosesplug.metrics.protocol import Metric, PreparedReferences
from mosesplug.metrics.registry import metric, metric_names
from mosesplug.metrics.ter.moses import Ter
from mosesplug.metrics.ter.sacrebleu import TerSacrebleu

__all__ = [
    "Bleu",
    "Cder",
    "Cer",
    "Chrf",
    "InterpolatedMetric",
    "Mer",
    "Metric",
    "Per",
    "PreparedReferences",
    "Ter",
    "TerSacrebleu",
    "Wer",
    "bleu_score_row",
    "bleu_scores",
    "metric",
    "metric_names",
    "parse_factors",
    "select_factors",
    "sentence_bleu_lin_och",
    "sentence_bleu_moses",
    "sentence_bleu_nakov",
]
