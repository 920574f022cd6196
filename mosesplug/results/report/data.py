"""The data of a report: plain numbers and texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from mosesplug.arrays import Floats
from mosesplug.metrics.error_rates import display_score
from mosesplug.results.render.record import (
    Count,
    Measure,
    Score,
    Share,
    Shown,
    Text,
    format_date,
    format_seconds,
    format_size,
    tabulate,
)
from mosesplug.results.render.tables import TextTable, format_change, format_score


@dataclass(frozen=True)
class IterationFacts:
    """One iteration, or one epoch of an online run.

    Attributes:
        number: the iteration, from 1.
        sentences: number of sentences that have a list, whether the store has it or not.
        hypotheses: number of hypotheses in its lists.
        new_hypotheses: those that no earlier iteration had.
        graphs: number of sentences that have a search graph.
        stored_bytes: size of its records.
        change: largest difference between the weights that it was decoded with and those that it
            found, as the stopping rule computes it; None without a result.
        score: score of the decoder's translations.
        oracle: score of the greedy corpus oracle of all lists so far; None if it was not computed.
        optimum: score that the optimizer reached in the lists; None if it has not run.
        date: when its lists were stored, in UTC (ISO 8601); None in stores of version 0.1.
        held_out: best held-out score of the iteration; None without one.
        monitors: score of each monitor after the iteration, by its name.
        seconds_decoding, seconds_optimizing: wall times.
        weights: dense weights that it was decoded with, divided by their L1 norm.
        listed: with a score budget, number of hypotheses that the decoder listed.
        winners_scored: with a score budget, share of those that can win which have a score.
        left_out: with a score budget, number of sentences in which the new weights choose a
            hypothesis without score.
    """

    JSON_KEYS: ClassVar = (
        "number sentences hypotheses new_hypotheses graphs stored_bytes change score oracle optimum"
        " date held_out? monitors? listed? winners_scored? left_out?"
    )

    number: Annotated[int, Shown(label="iteration")]
    sentences: Count
    hypotheses: Count
    new_hypotheses: Annotated[int, Shown(label="new")]
    graphs: Count
    stored_bytes: Annotated[int, Shown(format_size, "size")]
    change: Annotated[float | None, Shown(format_change)]
    score: Score
    oracle: Score | None
    optimum: Annotated[float | None, Shown(".4f", "in lists")]
    date: Annotated[str | None, Shown(format_date)]
    held_out: Annotated[float | None, Shown(".4f", "held out")]
    seconds_decoding: Annotated[float, Shown(format_seconds, "decoding")]
    seconds_optimizing: Annotated[float, Shown(format_seconds, "optimizing")]
    weights: tuple[float, ...]
    monitors: Mapping[str, float] = field(default_factory=dict)
    listed: Annotated[int | None, Shown()] = None
    winners_scored: Annotated[float | None, Shown(".0%", "winners scored")] = None
    left_out: Annotated[int | None, Shown(label="left out")] = None


@dataclass(frozen=True)
class HeldOutScore:
    """The score of one decoding of the held-out set or of a monitor.

    Attributes:
        updates: number of updates of the weights before it: mini-batches if online, else
            iterations.
        text: ``held out``, or the name of the monitor.
    """

    iteration: int
    updates: int
    text: Text
    score: Score


TUNING_SET = "tuning set"


@dataclass(frozen=True)
class ReportedScore:
    """A score by a metric that is reported, never optimized.

    Attributes:
        updates: number of updates of the weights before the decoding: mini-batches if online, else
            iterations; None for the tuning set of an online run, whose weights change meanwhile.
        text: ``tuning set``, ``held out``, or the name of a monitor.
        metric: its name, as the run was asked for it.
    """

    iteration: int
    updates: int | None
    text: Text
    metric: Text
    score: Score


def list_monitors(iterations: Iterable[IterationFacts]) -> list[str]:
    """Return the names of all monitors, in the order in which they were scored first."""
    return list(dict.fromkeys(name for facts in iterations for name in facts.monitors))


def tabulate_iterations(
    iterations: Sequence[IterationFacts], columns: str, metric: str, signature: str
) -> TextTable:
    """Return a table with a column for each monitor, without empty columns.

    Args:
        columns: the fields to show; ``score`` is named as the metric.
        signature: that of the metric; scores of error rates are shown as rates.
    """
    iterations = [_display_scores(facts, signature) for facts in iterations]
    shown = zip(
        *tabulate(IterationFacts, iterations, columns, {"score": metric}).plain, strict=True
    )
    empty = ("", "0", format_seconds(0.0))
    kept = [column for column in shown if any(cell not in empty for cell in column[1:])]
    monitors = [
        (name, *(format_score(facts.monitors.get(name)) for facts in iterations))
        for name in list_monitors(iterations)
    ]
    return TextTable(list(zip(*kept, *monitors, strict=True)))


def _display_scores(facts: IterationFacts, signature: str) -> IterationFacts:
    def display(score: float | None) -> float | None:
        return None if score is None else display_score(signature, score)

    return replace(
        facts,
        score=display_score(signature, facts.score),
        optimum=display(facts.optimum),
        oracle=display(facts.oracle),
        held_out=display(facts.held_out),
        monitors={name: display_score(signature, score) for name, score in facts.monitors.items()},
    )


@dataclass(frozen=True)
class OutcomeFacts:
    """The outcome of a run.

    Attributes:
        algorithm: its name; empty if it is unknown.
        reason: why the run ended; empty if this is unknown.
        weights: what the resulting weights are, and their score.
        warnings: signs that something is wrong, in sentences.
    """

    algorithm: str
    reason: str
    weights: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedScores:
    """Scores by a metric that a run did not optimize.

    Attributes:
        metric: its name, with settings as the caller gave them.
        scores: corpus score of the decoder's translations in each iteration, None if it is unknown;
            rates as rates.
        text: ``held out`` or the name of a monitor, whose translations are with the weights after
            the iteration; empty for the tuning set.
    """

    metric: str
    is_error_rate: bool
    scores: tuple[float | None, ...]
    text: str = ""

    @property
    def label(self) -> str:
        """Metric and text."""
        return f"{self.metric}, {self.text}" if self.text else self.metric


@dataclass(frozen=True)
class FeatureFacts:
    """One dense feature over all distinct hypotheses.

    Attributes:
        weight: its weight in the run's result, divided by the L1 norm.
        mean: mean of its values.
        spread: standard deviation of its values in a sentence, mean over the sentences.
        active: share of the hypotheses whose value is not 0.
        correlation: correlation of its values with the sentence scores, both with the mean of the
            sentence subtracted; NaN if one of them never varies.
    """

    name: Annotated[str, Shown(label="feature", is_text=True)]
    weight: Score
    mean: Measure
    spread: Measure
    active: Share
    correlation: Annotated[float, Shown("+.3f")]


@dataclass(frozen=True)
class ErrorSurface:
    """The corpus score as a function of one weight.

    Attributes:
        weight: its weight in the run's result.
        ends: float64 ``[m + 1]``, ends of the intervals of equal score, ascending.
        scores: float64 ``[m]``, the score of each interval.
    """

    name: str
    weight: float
    ends: Floats
    scores: Floats


@dataclass(frozen=True)
class Coverage:
    """The oracle's score if only the first hypotheses of each list are allowed.

    Attributes:
        ranks: numbers of hypotheses allowed, ascending.
        scores: scores of the greedy corpus oracle.
        first_best: score of the decoder's translations.
    """

    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    first_best: float


@dataclass(frozen=True)
class SentenceFacts:
    """One sentence with its 1-best and its oracle in the merged lists.

    Attributes:
        source: the source sentence; None if unknown.
        references: the references; empty if unknown.
        first_best: the 1-best with the result's weights.
        oracle: the hypothesis with the best sentence score.
    """

    number: int
    source: str | None
    references: tuple[str, ...]
    first_best: str
    chosen_score: float
    oracle: str
    oracle_score: float


@dataclass(frozen=True)
class LatticeLine:
    """A translation on the envelope along one weight.

    Attributes:
        intercept: its model score at the weight of the run's result.
        slope: its value of the feature.
        start, end: the weights between which it has the highest model score; may be infinite.
        score: its sentence score; None if unknown.
    """

    text: str
    intercept: float
    slope: float
    start: float
    end: float
    score: float | None


@dataclass(frozen=True)
class LatticeFacts:
    """The best edges of a sentence's search graph, and its envelope for a weight.

    Attributes:
        feature: the feature whose weight changes.
        weight: its weight in the run's result.
        edges: ``(from node, to node, words)``; nodes are in topological order.
        whole: number of edges of the whole graph.
        lines: the envelope, from the smallest to the largest weight.
    """

    sentence: int
    feature: str
    weight: float
    edges: tuple[tuple[int, int, str], ...]
    n_nodes: int
    whole: int
    lines: tuple[LatticeLine, ...]


@dataclass(frozen=True)
class ReportData:
    """The data of a report of a run.

    Attributes:
        sentence_metric: name of the metric of single sentences.
        facts: settings and other facts by name, in order.
        outcome: None if it is unknown.
        features: the dense features; empty if the lists are in other stores.
        sparse: ``(name, weight)`` of the largest sparse weights of the result.
        n_sparse: number of sparse weights that are not 0.
        coverage: None if the lists are in other stores.
        worst, best: sentences with the lowest and highest sentence scores of the 1-best.
        lattice: None if no search graph is stored.
        watched_scores: metrics that the run did not optimize.
        where_lists_are: location of the lists if the store has none, as part of a message.
    """

    store: str
    metric: str
    sentence_metric: str
    signature: str
    facts: Mapping[str, str]
    iterations: tuple[IterationFacts, ...]
    names: tuple[str, ...]
    features: tuple[FeatureFacts, ...] = ()
    sparse: tuple[tuple[str, float], ...] = ()
    n_sparse: int = 0
    surfaces: tuple[ErrorSurface, ...] = ()
    coverage: Coverage | None = None
    worst: tuple[SentenceFacts, ...] = ()
    best: tuple[SentenceFacts, ...] = ()
    lattice: LatticeFacts | None = None
    watched_scores: tuple[WatchedScores, ...] = ()
    outcome: OutcomeFacts | None = None
    where_lists_are: str = ""
