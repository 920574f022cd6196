"""Trade-offs of objective and watched metrics by weights near the learned ones.

The weights on the way from the starting weights to the learned ones, and the learned ones with one
weight changed, are scored by every metric. Those that no other weights beat by two metrics at once
are Pareto-optimal among them: a user may prefer one of these to the objective's optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.learning.optimize import OptimizeResult
from mosesplug.metrics.error_rates import is_error_rate
from mosesplug.results.scores.gains import ScoredSentences, find_held_out, find_learned, has_lists

PointKind = Literal["start", "learned", "between", "changed"]

_STEPS = 20
"""Steps from the starting weights to the learned ones."""

_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 4.0)
"""What a weight is multiplied by."""

_LARGEST = 30
"""Number of weights that are changed: those with the largest absolute values."""


@dataclass(frozen=True)
class ScoredWeights:
    """Weights near the learned ones, by their scores.

    Attributes:
        kind: the starting weights; the learned ones; weights between them; or the learned ones with
            one weight changed.
        label: how the weights were made, for people.
        scores: score by each metric, the objective first; error rates as rates.
    """

    kind: PointKind
    label: str
    scores: tuple[float, ...]


@dataclass(frozen=True)
class TradeOffs:
    """The scores of weights near the learned ones by several metrics.

    Attributes:
        is_error_rate: whether less is better, for each metric.
        sentences: what the scores are about, for people.
        points: the weights; the first are the starting weights, the second the learned ones.
    """

    metrics: tuple[str, ...]
    is_error_rate: tuple[bool, ...]
    sentences: str
    points: tuple[ScoredWeights, ...]

    def find_front(self, metric: int) -> list[int]:
        """Return the points that are Pareto-optimal by the objective and another metric."""
        signs = np.where(self.is_error_rate, -1.0, 1.0)
        scores = np.array([point.scores for point in self.points]) * signs
        return find_front(scores[:, [0, metric]])


def measure_trade_offs(result: OptimizeResult) -> TradeOffs | None:
    """Return the trade-offs on held-out sentences, or else on those learned from.

    None if no metric is watched.
    """
    data, solution = result.data, result.learning.solution
    if not (data.watched_metrics and has_lists(result)):
        return None
    held_out = find_held_out(result)
    sentences = find_learned(result) if held_out is None else held_out
    which = "sentences learned from" if held_out is None else "held-out sentences"
    metrics = [gain.metric for gain in sentences.metrics]
    rates = tuple(is_error_rate(metric.signature()) for metric in metrics)
    start, divided = data.start.weights, sentences.divide(solution.length_exponent)
    first = _score(sentences.divide(data.start_exponent), start, rates)
    return TradeOffs(
        tuple(metric.name for metric in metrics),
        rates,
        f"{len(sentences)} {which}",
        (
            ScoredWeights("start", "starting weights", first),
            *(
                ScoredWeights(kind, label, _score(divided, weights, rates))
                for kind, label, weights in _list_weights(
                    start, solution.weights, data.space.labels
                )
            ),
        ),
    )


def _list_weights(
    start: NDArray[np.float64], end: NDArray[np.float64], names: Sequence[str]
) -> Iterator[tuple[PointKind, str, NDArray[np.float64]]]:
    yield "learned", "learned weights", end
    norms = np.abs(start).sum(), np.abs(end).sum()
    if norms[0] > 0.0:
        for step in range(1, _STEPS):
            share = step / _STEPS
            mixed = (1.0 - share) * start / norms[0] + share * end / norms[1]
            yield "between", f"{100 * share:.0f}% of the way from the starting weights", mixed
    heaviest = np.argsort(-np.abs(end), kind="stable")[:_LARGEST]
    for column in heaviest[end[heaviest] != 0.0].tolist():
        name = names[column] if column < len(names) else str(column)
        for factor in _FACTORS:
            changed = end.copy()
            changed[column] *= factor
            if changed.any():
                yield "changed", f"{name} x {factor:g}", changed


def _score(
    sentences: ScoredSentences, weights: NDArray[np.float64], rates: Sequence[bool]
) -> tuple[float, ...]:
    rows = sentences.choose(weights)
    scores = [
        float(metric.metric.score(metric.statistics[rows].sum(axis=0, dtype=np.float64)))
        for metric in sentences.metrics
    ]
    return tuple(1.0 - score if rate else score for score, rate in zip(scores, rates, strict=True))


def find_front(scores: NDArray[np.float64]) -> list[int]:
    """Return rows that no row exceeds in one column without being less in the other.

    Args:
        scores: float64 ``[n, 2]``, larger is better. Of equal rows, the first counts.

    Returns:
        Rows in descending order of the first column.
    """
    order = np.lexsort((np.arange(len(scores)), -scores[:, 1], -scores[:, 0]))
    best = -np.inf
    front = []
    for row in order.tolist():
        if scores[row, 1] > best:
            best = scores[row, 1]
            front.append(row)
    return front
