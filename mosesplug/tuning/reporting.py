"""Score translations by metrics that are reported, never optimized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.error_rates import display_score
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.scored import bind_source
from mosesplug.settings.reported import ReportedMetric
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet


def score_texts(
    metric: Metric,
    references: PreparedReferences,
    texts: HypothesisRanges,
    sentence_weights: NDArray[np.float64] | None = None,
    *,
    threads: int = 1,
) -> float:
    """Return the corpus score of a translation.

    Args:
        texts: at most one hypothesis of each sentence.
        sentence_weights: float64 ``[n_sentences]``; None: 1 each.
    """
    statistics = metric.statistics(references, *texts, threads=threads)
    return score_statistics(metric, statistics, texts.sentence_ids, sentence_weights)


def score_statistics(
    metric: Metric,
    statistics: NDArray[Any],
    sentence_ids: NDArray[np.int64],
    sentence_weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the corpus score of statistics; see ``score_texts``.

    Args:
        statistics: ``[n, n_statistics]``.
        sentence_ids: int64 ``[n]``.
    """
    if sentence_weights is not None:
        statistics = sentence_weights[sentence_ids, None] * statistics
    return float(metric.score(statistics.sum(axis=0, dtype=np.float64)))


@dataclass(frozen=True)
class Reporter:
    """Scores translations of a text by the metrics that are reported.

    Attributes:
        metrics: the metrics by their names, each with the references of the text.
        sentence_weights: float64 ``[n_sentences]``; None: 1 each.
    """

    metrics: Mapping[str, tuple[Metric, PreparedReferences]] = field(default_factory=dict)
    sentence_weights: NDArray[np.float64] | None = None
    threads: int = 1

    @classmethod
    def prepare(
        cls,
        reported: Sequence[ReportedMetric],
        lines: Sequence[Sequence[bytes]],
        source: Sequence[bytes] | None = None,
        sentence_weights: NDArray[np.float64] | None = None,
        threads: int = 1,
    ) -> Reporter:
        """Return the reporter of a text.

        Args:
            lines: ``lines[k][sentence]``, the references.
            source: the source sentences, which commands read; None: those of the metrics.

        Raises:
            DataError: references cannot be used.
        """
        metrics = {}
        for one in reported:
            metric = one.metric if source is None else bind_source(one.metric, source)
            metrics[one.text] = metric, metric.prepare(lines)
        return cls(metrics, sentence_weights, threads)

    def score(self, texts: HypothesisRanges) -> dict[str, float]:
        """Return the scores of a translation; see ``score_texts``.

        Raises:
            DataError: a command that scores failed, or its answer cannot be used.
        """
        weights, threads = self.sentence_weights, self.threads
        return {
            name: score_texts(metric, references, texts, weights, threads=threads)
            for name, (metric, references) in self.metrics.items()
        }

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each metric, with its references."""
        return {name: references.signature for name, (_, references) in self.metrics.items()}

    def display(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Return scores as people know them; see ``display_score``."""
        return {name: display_score(self.signatures[name], score) for name, score in scores.items()}


def read_first_bests(store: NBestStore, iteration: int, n_sentences: int) -> dict[int, bytes]:
    """Return the first hypothesis of each list of an iteration, by ascending sentence.

    Raises:
        StoreError: the store cannot be read.
    """
    texts: dict[int, bytes] = {}
    with store.snapshot() as snapshot:
        for sentence in range(n_sentences):
            listed = snapshot.record(iteration, sentence)
            if listed is None or not listed.n_list:
                continue
            held = snapshot.record(int(listed.home_iterations[0]), sentence)
            texts[sentence] = b"" if held is None else held.hypothesis(int(listed.home_rows[0]))
    return texts


def read_chosen(
    store: NBestStore, iterations: range, lists: TuningSet, weights: NDArray[np.float64]
) -> dict[int, bytes]:
    """Return the text that weights choose for each sentence from merged lists.

    Args:
        iterations: those of the lists.
        lists: the merged lists.
        weights: float64 ``[len(lists.space)]``.
    """
    rows = lists.first_best(weights)
    sentences = np.searchsorted(lists.offsets, rows, side="right") - 1
    return {
        sentence: store.hypotheses(sentence, iterations)[row - int(lists.offsets[sentence])]
        for sentence, row in zip(sentences.tolist(), rows.tolist(), strict=True)
    }


def arrange_texts(texts: Mapping[int, bytes]) -> HypothesisRanges:
    """Return the texts of sentences as a metric reads them, by ascending sentence."""
    sentences = sorted(texts)
    lines = [texts[sentence] for sentence in sentences]
    return HypothesisRanges.of_lines(lines, np.array(sentences, dtype=np.int64))
