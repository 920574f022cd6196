"""The whole analysis of several systems: words, sentences, n-grams and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.references import read_reference
from formats.text import StrPath
from formats.word_frequencies import read_word_frequencies
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.analysis.corpus import NumberedCorpus
from mosesplug.results.analysis.examples import Example, find_examples
from mosesplug.results.analysis.ngrams import NgramDifference, compare_ngrams, count_ngrams
from mosesplug.results.analysis.sentences import (
    SentenceBucket,
    SystemStatistics,
    bucket_by_difference,
    bucket_by_length,
    bucket_by_score,
)
from mosesplug.results.analysis.words import WordAccuracy, measure_words
from mosesplug.results.scores.comparison import System, measure_systems
from mosesplug.results.scores.scores import read_translation
from mosesplug.results.scores.scoring import PreparedMetric


@dataclass(frozen=True)
class SystemAnalysis:
    """How systems differ.

    Attributes:
        sentence_metric: name of the metric of the sentence scores.
        frequencies: where the frequency of a word was counted.
        words: accuracy of words by their frequency; empty without references, as ``ngrams``.
        sentences: scores of sentences by length, difference of length, and sentence score.
        ngrams: n-grams that one system has right, or wrong, more often than the baseline.
        examples: sentences whose scores differ most.
    """

    systems: tuple[str, ...]
    runs: tuple[int, ...]
    n_sentences: int
    metrics: tuple[str, ...]
    sentence_metric: str
    frequencies: str
    words: tuple[WordAccuracy, ...]
    sentences: tuple[SentenceBucket, ...]
    ngrams: tuple[NgramDifference, ...]
    examples: tuple[Example, ...]


def analyze_systems(
    systems: Mapping[str, Sequence[Sequence[bytes]]],
    references: Sequence[Sequence[bytes]],
    metrics: Sequence[SystemStatistics],
    *,
    source: Sequence[bytes] | None = None,
    frequencies: Mapping[bytes, int] | StrPath | None = None,
    ngrams: int = 10,
    examples: int = 5,
) -> SystemAnalysis:
    """Analyze how systems differ from the first.

    Args:
        systems: ``[name][run][sentence]``, the baseline first.
        references: ``[reference][sentence]``; without any, words, lengths and n-grams are left
            out.
        metrics: statistics of the systems; sentence scores are those of the first metric.
        frequencies: how often words occur, 0 for others; or a file, see
            ``formats.word_frequencies``; None: in the references.
        ngrams: number of n-grams of each pair of systems, kind, and system that has more.
        examples: number of sentences of each pair of systems, and system that is better.

    Raises:
        FormatError: the file of frequencies cannot be read.
    """
    by = metrics[0]
    analysis = SystemAnalysis(
        systems=tuple(systems),
        runs=tuple(map(len, systems.values())),
        n_sentences=len(next(iter(systems.values()))[0]),
        metrics=tuple(metric.metric for metric in metrics),
        sentence_metric=by.sentence_metric,
        frequencies="the references",
        words=(),
        sentences=bucket_by_score(tuple(systems), metrics, by),
        ngrams=(),
        examples=find_examples(references, systems, by, source=source, most=examples),
    )
    if not references:
        return analysis
    corpus = NumberedCorpus.of_lines(references, systems)
    if frequencies is None:
        origin, counted = "the references", None
    elif isinstance(frequencies, Mapping):
        origin, counted = "another text", frequencies
    else:
        origin, counted = str(frequencies), read_word_frequencies(frequencies, corpus.vocabulary)
    return replace(
        analysis,
        frequencies=origin,
        words=measure_words(corpus, counted),
        sentences=(
            *bucket_by_length(corpus, metrics),
            *bucket_by_difference(corpus, metrics),
            *analysis.sentences,
        ),
        ngrams=compare_ngrams(corpus, count_ngrams(corpus), ngrams),
    )


def read_systems(systems: Sequence[System], n_sentences: int) -> dict[str, list[list[bytes]]]:
    """Return the translations as ``[name][run][sentence]``.

    Raises:
        FormatError: a translation cannot be read, or has another number of lines.
    """
    return {
        system.name: [read_translation(one, n_sentences).lines() for one in system.translations]
        for system in systems
    }


def measure_metric(systems: Sequence[System], metric: PreparedMetric) -> SystemStatistics:
    """Return what a metric says of the sentences of all systems.

    Raises:
        FormatError: a translation cannot be read, or does not fit the references.
    """
    signature = metric.references.signature
    statistics = measure_systems(systems, metric)

    def score(statistics: NDArray[Any]) -> float:
        totals = statistics.sum(axis=0, dtype=np.float64)
        return display_score(signature, float(metric.metric.score(totals)))

    def score_each(statistics: NDArray[Any]) -> NDArray[np.float64]:
        scores = score_sentences(metric.metric, statistics)
        return 1.0 - scores if is_error_rate(signature) else scores

    return SystemStatistics(
        metric=metric.metric.name,
        sentence_metric=metric.metric.sentence_metric,
        is_error_rate=is_error_rate(signature),
        statistics=tuple(tuple(runs) for runs in statistics),
        sentence_scores=tuple(tuple(map(score_each, runs)) for runs in statistics),
        score=score,
    )


def read_source(path: StrPath, n_sentences: int) -> list[bytes]:
    """Read the source sentences.

    Raises:
        FormatError: the file cannot be read, or has another number of lines.
    """
    lines = read_reference(path)
    if len(lines) != n_sentences:
        raise FormatError(
            f"{len(lines)} lines, but the translations have {n_sentences}",
            path=path,
            remedy="Line N must be the source sentence of line N of the translations",
        )
    return lines
