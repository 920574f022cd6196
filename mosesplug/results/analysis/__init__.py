"""Analyses of how systems differ: in words, sentences, n-grams and examples.

The reports are those of compare-mt (Neubig et al. 2019, "compare-mt: a tool for holistic comparison
of language generation systems"), here for several references and several runs of a system.
"""

from __future__ import annotations

from mosesplug.results.analysis.analysis import (
    SystemAnalysis,
    analyze_systems,
    measure_metric,
    read_source,
    read_systems,
)
from mosesplug.results.analysis.examples import Example
from mosesplug.results.analysis.ngrams import NgramDifference
from mosesplug.results.analysis.sentences import SentenceBucket, SystemStatistics
from mosesplug.results.analysis.words import WordAccuracy

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
