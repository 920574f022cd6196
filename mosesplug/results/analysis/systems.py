"""Read the systems of a comparison, and measure them by a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.references import read_reference
from formats.text import StrPath
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.analysis.sentences import SystemStatistics
from mosesplug.results.scores.comparison import System, measure_systems
from mosesplug.results.scores.scores import Translation, read_translation
from mosesplug.results.scores.scoring import PreparedMetric


def read_systems(systems: Sequence[System], n_sentences: int) -> dict[str, list[list[bytes]]]:
    """Return the translations as ``[name][run][sentence]``.

    Raises:
        FormatError: a translation cannot be read, or has another number of lines.
    """
    return {
        system.name: [_read_lines(each, n_sentences) for each in system.translations]
        for system in systems
    }


def _read_lines(translation: Translation, n_sentences: int) -> list[bytes]:
    read = read_translation(translation, n_sentences)
    text = read.buffer.tobytes()
    bounds = zip(read.starts.tolist(), read.ends.tolist(), strict=True)
    return [text[start:end] for start, end in bounds]


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
