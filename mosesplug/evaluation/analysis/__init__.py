"""Analyses of how systems differ: in words, sentences, n-grams and examples.

The reports are those of compare-mt (Neubig et al. 2019, "compare-mt: a tool for holistic comparison
of language generation systems"), here for several references and several runs of a system.
"""

from __future__ import annotations

from mosesplug.evaluation.analysis.analysis import SystemAnalysis, analyze_systems
from mosesplug.evaluation.analysis.examples import Example
from mosesplug.evaluation.analysis.ngrams import NgramDifference
from mosesplug.evaluation.analysis.sentences import SentenceBucket, SystemStatistics
from mosesplug.evaluation.analysis.systems import measure_metric, read_source, read_systems
from mosesplug.evaluation.analysis.words import WordAccuracy

__all__ = [
    "Example",
    "NgramDifference",
    "SentenceBucket",
    "SystemAnalysis",
    "SystemStatistics",
    "WordAccuracy",
    "analyze_systems",
    "measure_metric",
    "read_source",
    "read_systems",
]
