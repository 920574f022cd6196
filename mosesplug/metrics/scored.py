"""Metrics with a scorer, alone or in a weighted sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError, count_noun
from mosesplug.metrics.interpolated import InterpolatedMetric, InterpolatedReferences
from mosesplug.metrics.outside import Formula, OutsideMetric, Question, TextScorer
from mosesplug.metrics.protocol import Metric, PreparedReferences


@dataclass(frozen=True)
class BudgetCost:
    """The numbers of hypotheses that a score budget scored and left out.

    Attributes:
        hypotheses: number of hypotheses in the lists.
        scored: number of those that have a score and take part.
        texts: number of texts that were scored for them; equal texts of a sentence count once.
        winners: number of hypotheses that win along an axis or between weights; see
            ``optimizers.line_search.winners``.
        scored_winners: number of those that take part.
        unscored_first_bests: number of sentences in which the new weights choose a hypothesis that
            has no score; None if it is unknown.
    """

    hypotheses: int = 0
    scored: int = 0
    texts: int = 0
    winners: int = 0
    scored_winners: int = 0
    unscored_first_bests: int | None = None

    @property
    def winning_share(self) -> float:
        """The share of ``winners`` that are scored; 1 if there are no winners."""
        return self.scored_winners / self.winners if self.winners else 1.0


def bind_source(metric: Metric, source: Sequence[bytes] | None) -> Metric:
    """Return a metric whose scorers read these source sentences, if they are known."""
    lines = None if source is None else tuple(source)
    return change_scored(metric, lambda scored: replace(scored, source=lines))


def change_scored(metric: Metric, change: Callable[[OutsideMetric], OutsideMetric]) -> Metric:
    """Return a metric with changes of those that have a scorer."""
    if isinstance(metric, InterpolatedMetric):
        parts = tuple(change_scored(part, change) for part in metric.metrics)
        return replace(metric, metrics=parts)
    if isinstance(metric, OutsideMetric) and metric.scorer is not None:
        return change(metric)
    return metric


@dataclass(frozen=True)
class _ZeroScorer:
    """A ``TextScorer`` whose numbers are all 0, in the place of a command."""

    formula: Formula
    reads_references: bool
    n_asked: int = 0
    n_known: int = 0

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        return np.zeros((len(questions), self.formula.width))


def disable_scorers(metric: Metric) -> Metric:
    """Return a metric with 0 for the numbers that commands would compute."""

    def change(scored: OutsideMetric) -> OutsideMetric:
        assert scored.scorer is not None
        return replace(scored, scorer=_ZeroScorer(scored.formula, scored.scorer.reads_references))

    return change_scored(metric, change)


def find_scorers(metric: Metric) -> dict[str, TextScorer]:
    """Return the commands that compute a metric, or parts of it, by name."""
    if isinstance(metric, InterpolatedMetric):
        scorers: dict[str, TextScorer] = {}
        for part in metric.metrics:
            scorers |= find_scorers(part)
        return scorers
    if isinstance(metric, OutsideMetric) and metric.scorer is not None:
        return {metric.name: metric.scorer}
    return {}


def require_scorer(metric: Metric, budget: int | None) -> None:
    """Check that a budget limits something.

    Raises:
        UsageError: no command computes the metric.
    """
    if budget is not None and not find_scorers(metric):
        raise UsageError(
            "{--score-budget} limits how many texts a {--score-command} scores, but no command "
            f"computes the metric {metric.name}: name a command's metric in {{--metric}}"
        )


def list_scored(
    metric: Metric, prepared: PreparedReferences
) -> list[tuple[OutsideMetric, PreparedReferences]]:
    """Return those parts of a metric that a command computes, with references."""
    if isinstance(metric, InterpolatedMetric) and isinstance(prepared, InterpolatedReferences):
        pairs = zip(metric.metrics, prepared.parts, strict=True)
        return [scored for pair in pairs for scored in list_scored(*pair)]
    if isinstance(metric, OutsideMetric) and metric.scorer is not None:
        return [(metric, prepared)]
    return []


def describe_scoring(metric: str, n_scored: int, n_known: int) -> str:
    """Return how many texts a score command scored, and how many had scores."""
    were = "was" if n_known == 1 else "were"
    return (
        f"the score command {metric} scored {count_noun(n_scored, 'text')}; {n_known} {were} known"
    )
