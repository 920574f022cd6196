"""Gains of learned weights by the objective and by metrics not optimized.

Optimizing a metric games it: its score rises more than the output improves (Kovacs et al. 2024,
"Mitigating metric bias in minimum Bayes risk decoding"). Metrics that are only watched, sentences
that were held out, and tests of the differences show what a gain is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import SentenceValues
from mosesplug.learning.cross_validation import CrossValidation
from mosesplug.learning.inputs import LearningData
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.learning.watched import WatchedMetric
from mosesplug.metrics import Metric
from mosesplug.metrics.error_rates import display_difference, is_error_rate
from mosesplug.optimizers import Problem
from mosesplug.results.render.record import Change, Score, Shown, Text
from mosesplug.results.scores.significance import approximate_randomization, paired_bootstrap

_SAMPLES = 1000
_SEED = 1
_SIGNIFICANT = 0.05


def _format_interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return "" if math.isnan(low) else f"{low:+.4f} to {high:+.4f}"


@dataclass(frozen=True)
class MetricGain:
    """The scores of one metric with the starting weights and with the learned ones.

    Attributes:
        is_objective: whether the weights were optimized for it.
        is_error_rate: whether less is better. ``start`` and ``end`` are rates, then.
        interval: the 95 % interval of ``difference`` by the paired bootstrap; NaN for fewer than 2
            sentences.
        p_bootstrap: p-value of the paired bootstrap; NaN for fewer than 2 sentences.
        p_randomization: p-value of approximate randomization; NaN likewise.
    """

    metric: Text
    signature: str
    is_objective: bool
    is_error_rate: bool
    start: Score
    end: Score
    interval: Annotated[tuple[float, float], Shown(_format_interval, "95 % interval")]
    p_bootstrap: Annotated[float, Shown(".3f", "p(boot)")]
    p_randomization: Annotated[float, Shown(".3f", "p(AR)")]

    @property
    def difference(self) -> Change:
        """``end - start``."""
        return self.end - self.start

    @property
    def improvement(self) -> float:
        """The difference, negated for error rates: more is better."""
        return -self.difference if self.is_error_rate else self.difference

    @property
    def verdict(self) -> Annotated[str, Shown(label="", is_text=True)]:
        """Whether the score is better, and whether that is significant, in words."""
        gain = self.improvement
        words = ["better" if gain > 0 else "worse" if gain < 0 else "same"]
        if gain and self.p_randomization >= _SIGNIFICANT:
            words.append("not significant")
        if self.is_objective:
            words.append("optimized")
        return ", ".join(words)


@dataclass(frozen=True)
class Gain:
    """The gain of learning on some sentences.

    Attributes:
        data: ``learned from``, sentences that weights were learned from; ``held out``; ``folds``,
            all sentences, each decided with weights that were learned from the other folds of a
            cross-validation; or ``monitor NAME``, lists that were only scored.
        metrics: the objective, then the metrics that were watched.
    """

    data: str
    sentences: int
    metrics: tuple[MetricGain, ...]

    @property
    def objective(self) -> MetricGain:
        """The metric that was optimized."""
        return self.metrics[0]

    @property
    def watched_metrics(self) -> tuple[MetricGain, ...]:
        """The metrics that were only watched."""
        return self.metrics[1:]


def measure_gains(result: OptimizeResult) -> tuple[Gain, ...]:
    """Return the gain on the sentences learned from, then on those that were not.

    Those of monitors follow. All tests draw 1,000 samples with the same seed. Nothing is measured,
    and nothing returned, for search graphs, or if no metric is watched, no sentence held out, and
    no list monitored.
    """
    if not has_lists(result):
        return ()
    learned, held_out = find_learned(result), find_held_out(result)
    validation = result.learning.validation
    monitors = result.monitors
    if held_out is None and validation is None and not (monitors or result.data.watched_metrics):
        return ()
    gains = [_measure_sentences("learned from", learned, result)]
    if held_out is not None:
        gains.append(_measure_sentences("held out", held_out, result))
    if validation is not None:
        gains.append(_measure_folds(learned, validation, result.data))
    gains += [
        _measure_sentences(name, _score_all(data, result), result)
        for name, data in monitors.items()
    ]
    return tuple(gains)


def measure_fold_gains(data: LearningData, validation: CrossValidation) -> tuple[Gain, ...]:
    """Return the gain on all sentences, each decided with weights of the other folds.

    Nothing is returned for search graphs.
    """
    if "lists" not in data.problem.candidates.answers:
        return ()
    objective = WatchedMetric(data.problem.metric, data.problem.tuning_set.stats)
    metrics = (objective, *data.watched_metrics)
    sentences = ScoredSentences(data.problem, data.sentences, metrics, data.rescore)
    return (_measure_folds(sentences, validation, data),)


def _measure_sentences(data: str, sentences: ScoredSentences, result: OptimizeResult) -> Gain:
    solution = result.learning.solution
    end = sentences.divide(solution.length_exponent).choose(solution.weights)
    rows = _choose_at_start(sentences, result.data), end
    weights = sentences.problem.tuning_set.sentence_weights
    if weights is None or data != "learned from":
        return _measure(data, sentences.metrics, rows)
    return _measure(data, sentences.metrics, rows, weights[sentences.positions])


def _measure_folds(
    sentences: ScoredSentences, validation: CrossValidation, data: LearningData
) -> Gain:
    places = np.concatenate([fold.positions for fold in validation.folds])
    decided = [
        sentences.take(fold.positions)
        .divide(fold.solution.length_exponent)
        .choose(fold.solution.weights)
        for fold in validation.folds
    ]
    start = _choose_at_start(sentences.take(places), data)
    return _measure("folds", sentences.metrics, (start, np.concatenate(decided)))


def _choose_at_start(sentences: ScoredSentences, data: LearningData) -> NDArray[np.int64]:
    return sentences.divide(data.start_exponent).choose(data.start.weights)


def _measure(
    data: str,
    metrics: Sequence[WatchedMetric],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    sentence_weights: SentenceValues | None = None,
) -> Gain:
    def take(metric: WatchedMetric, chosen: NDArray[np.int64]) -> NDArray[Any]:
        statistics = metric.statistics[chosen]
        return statistics if sentence_weights is None else sentence_weights[:, None] * statistics

    return Gain(
        data,
        len(rows[0]),
        tuple(
            _measure_metric(metric.metric, take(metric, rows[0]), take(metric, rows[1]), not n)
            for n, metric in enumerate(metrics)
        ),
    )


def _measure_metric(
    metric: Metric, start: NDArray[Any], end: NDArray[Any], is_objective: bool
) -> MetricGain:
    low = high = bootstrap = randomization = float("nan")
    if len(start) > 1:
        rng = np.random.default_rng(_SEED)
        bootstrap, _, low, high = paired_bootstrap(metric, start, end, _SAMPLES, rng)
        rng = np.random.default_rng(_SEED)
        randomization = approximate_randomization(metric, [start], [end], _SAMPLES, rng)
    signature = metric.signature()
    is_rate = is_error_rate(signature)
    scores = [float(metric.score(rows.sum(axis=0, dtype=np.float64))) for rows in (start, end)]
    before, after = (1.0 - score if is_rate else score for score in scores)
    return MetricGain(
        metric=metric.name,
        signature=signature,
        is_objective=is_objective,
        is_error_rate=is_rate,
        start=before,
        end=after,
        interval=display_difference(signature, (low, high)),
        p_bootstrap=bootstrap,
        p_randomization=randomization,
    )


_JUDGED = {
    "learned from": "the sentences learned from",
    "held out": "the held-out sentences",
    "folds": "sentences of other folds",
}
"""Data by which a result is judged, in words; monitors are only shown."""


def find_gaming(gains: Sequence[Gain]) -> str | None:
    """Return a warning if the objective rises and each watched metric falls, or None.

    It is judged on the last of the gains, sentences that were not learned from if there are any.
    """
    judged = [gain for gain in gains if gain.data in _JUDGED]
    if not judged or not judged[-1].watched_metrics:
        return None
    last = judged[-1]
    if last.objective.improvement <= 0 or any(
        metric.improvement >= 0 for metric in last.watched_metrics
    ):
        return None
    where = _JUDGED[last.data]
    worse = ", ".join(
        f"{watched_metric.metric} ({watched_metric.start:.4f} to {watched_metric.end:.4f})"
        for watched_metric in last.watched_metrics
    )
    return (
        f"{last.objective.metric} improves on {where} ({last.objective.start:.4f} to "
        f"{last.objective.end:.4f}), but every other metric gets worse: {worse}. The weights may "
        f"exploit {last.objective.metric}; optimize a sum of metrics, or trust the starting weights"
    )


@dataclass(frozen=True, eq=False)
class ScoredSentences:
    """Some sentences of lists.

    Attributes:
        positions: int64, the positions of the sentences in the lists; all have hypotheses.
        metrics: the objective, then the metrics that are only reported, with their statistics.
        rescore: returns a problem with features divided for a length exponent.
    """

    problem: Problem
    positions: NDArray[np.int64]
    metrics: tuple[WatchedMetric, ...]
    rescore: Callable[[Problem, float | None], Problem]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, positions: NDArray[np.int64]) -> ScoredSentences:
        """Return other sentences of the same lists."""
        return replace(self, positions=positions)

    def divide(self, exponent: float | None) -> ScoredSentences:
        """Return the same sentences with features divided for a length exponent."""
        return replace(self, problem=self.rescore(self.problem, exponent))

    def choose(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row of the 1-best of each sentence, int64 ``[n_sentences]``."""
        lists = self.problem.tuning_set
        filled = np.flatnonzero(np.diff(lists.offsets))
        return lists.first_best(weights)[np.searchsorted(filled, self.positions)]


def has_lists(result: OptimizeResult) -> bool:
    """Return whether weights were learned from n-best lists, not from search graphs."""
    return "lists" in result.data.problem.candidates.answers


def find_learned(result: OptimizeResult) -> ScoredSentences:
    """Return the sentences that weights were learned from."""
    data = result.data
    objective = WatchedMetric(data.problem.metric, data.problem.tuning_set.stats)
    metrics = (objective, *data.watched_metrics)
    return ScoredSentences(data.problem, result.learning.learned_sentences, metrics, data.rescore)


def find_held_out(result: OptimizeResult) -> ScoredSentences | None:
    """Return the held-out sentences, or None without any.

    They are a share of the lists, or other lists.
    """
    learned = result.learning
    if len(learned.held_out_sentences):
        return find_learned(result).take(learned.held_out_sentences)
    if result.held_out is None:
        return None
    return _score_all(result.held_out, result)


def _score_all(data: LearningData, result: OptimizeResult) -> ScoredSentences:
    """Return all sentences of other lists."""
    problem = data.problem
    positions = np.flatnonzero(np.diff(problem.tuning_set.offsets)).astype(np.int64)
    metrics = (
        WatchedMetric(problem.metric, problem.tuning_set.stats),
        *data.watched_metrics,
    )
    return ScoredSentences(problem, positions, metrics, result.data.rescore)
