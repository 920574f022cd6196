"""Score the decoder's translations of each iteration by metrics that the run did not optimise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mosesplug.errors import UsageError
from mosesplug.evaluation.error_rates import display_score, is_error_rate
from mosesplug.inspection.run import StoredRun
from mosesplug.inspection.texts import ParallelText
from mosesplug.metrics import Metric, Prepared
from mosesplug.metrics import metric as find_metric
from mosesplug.moses_tools.scoring import ScorerInput
from mosesplug.reporting.data import WatchedScores

__all__ = ["measure_watched"]


def measure_watched(
    run: StoredRun, names: Sequence[str], text: ParallelText
) -> tuple[WatchedScores, ...]:
    """Return the corpus scores of the first hypotheses of each iteration's lists.

    Args:
        run: the run, whose store has its lists.
        names: names of metrics.
        text: its references.

    Raises:
        UsageError: an unknown metric, the run's own metric, or no references.
        StoreError: the store cannot be read.
    """
    metrics = [find_metric(name) for name in names]
    for metric in metrics:
        if metric.name == run.metric_name:
            raise UsageError(f"--report-metric {metric.name}: it is the metric of the run")
    if metrics and not text.references:
        raise UsageError(f"to report {metrics[0].name}, use --refs FILE")
    prepared = [metric.prepare(text.references) for metric in metrics]
    translations = [_read_translations(run, record.iteration) for record in run.records]
    return tuple(
        WatchedScores(
            metric.name,
            is_error_rate(metric.signature()),
            tuple(_score(metric, references, each) for each in translations),
        )
        for metric, references in zip(metrics, prepared, strict=True)
    )


def _read_translations(run: StoredRun, iteration: int) -> ScorerInput:
    """Return the first hypothesis of each list."""
    texts, sentences = [], []
    with run.store.snapshot() as snapshot:
        for sentence in range(run.n_sentences):
            listed = snapshot.record(iteration, sentence)
            if listed is None or not listed.n_list:
                continue
            held = snapshot.record(int(listed.home_iterations[0]), sentence)
            texts.append(b"" if held is None else held.hypothesis(int(listed.home_rows[0])))
            sentences.append(sentence)
    return ScorerInput.of_lines(texts, np.array(sentences, dtype=np.int64))


def _score(metric: Metric, prepared: Prepared, made: ScorerInput) -> float:
    statistics = metric.statistics(prepared, made.sentence_ids, made.buffer, made.starts, made.ends)
    score = float(metric.score(statistics.sum(axis=0, dtype=np.float64)))
    return display_score(metric.signature(), score)
