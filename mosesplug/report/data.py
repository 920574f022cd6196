"""What a report shows of a run: plain numbers and texts, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Coverage",
    "ErrorSurface",
    "FeatureFacts",
    "IterationFacts",
    "LatticeFacts",
    "LatticeLine",
    "ReportData",
    "SentenceFacts",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class IterationFacts:
    """One iteration, or epoch of an online run.

    Attributes:
        number: from 1.
        score: the metric of the decoder's own translations.
        optimum: what the optimizer reached in the lists; None where it has not run.
        oracle: the metric of the best choice among all hypotheses so far, by greedy search; None
            where the lists lie elsewhere.
        held_out: the best score of translations of the held-out text in it; None if there was none.
        hypotheses, new_hypotheses: of its lists, and those that no earlier iteration had.
        seconds_decoding, seconds_optimising: wall time.
        weights: the dense weights that it was decoded with, over their L1 norm.
    """

    number: int
    score: float
    optimum: float | None
    oracle: float | None
    held_out: float | None
    hypotheses: int
    new_hypotheses: int
    seconds_decoding: float
    seconds_optimising: float
    weights: tuple[float, ...]


@dataclass(frozen=True)
class FeatureFacts:
    """One dense feature over all distinct hypotheses.

    Attributes:
        name: of the column.
        weight: the run's result, over the L1 norm.
        mean: of its values.
        spread: mean over the sentences of the standard deviation of its values in the sentence.
        active: share of the hypotheses for which it is not 0.
        correlation: of its values with the metric of the hypothesis, both less their means in the
            sentence; NaN where one never varies.
    """

    name: str
    weight: float
    mean: float
    spread: float
    active: float
    correlation: float


@dataclass(frozen=True)
class ErrorSurface:
    """The corpus score as one weight changes and all others stay.

    Attributes:
        name: of the feature.
        weight: where the run's result lies.
        ends: float64 ``[m + 1]``, ascending; the weights at which the score changes, and the ends
            of the part that is shown.
        scores: float64 ``[m]``; between neighbouring ends.
    """

    name: str
    weight: float
    ends: Floats
    scores: Floats


@dataclass(frozen=True)
class Coverage:
    """How good the best choice is if only the first hypotheses of each list are allowed.

    Attributes:
        ranks: how many of each list of the last iteration, ascending.
        scores: of the best choice by greedy search.
        first_best: score at the decoder's own first choice.
    """

    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    first_best: float


@dataclass(frozen=True)
class SentenceFacts:
    """One sentence with what the result makes of it.

    Attributes:
        number: line of the input, from 0.
        source: the text; None where it is not known.
        references: its translations; empty where they are not known.
        chosen: the hypothesis that scores highest with the result's weights.
        chosen_score: its metric.
        oracle: the best hypothesis of the sentence.
        oracle_score: its metric.
    """

    number: int
    source: str | None
    references: tuple[str, ...]
    chosen: str
    chosen_score: float
    oracle: str
    oracle_score: float


@dataclass(frozen=True)
class LatticeLine:
    """A translation that wins somewhere as one weight changes.

    Attributes:
        text: the translation.
        intercept: its model score where the weight is that of the run's result.
        slope: the feature's value.
        start, end: the weights between which it wins; the first and last are infinite.
        score: its metric; None where the references are not known.
    """

    text: str
    intercept: float
    slope: float
    start: float
    end: float
    score: float | None


@dataclass(frozen=True)
class LatticeFacts:
    """A small part of one sentence's search graph.

    Attributes:
        sentence: line of the input, from 0.
        feature: whose weight changes.
        weight: the run's result.
        edges: ``(from node, to node, words)``; nodes count up along the sentence.
        n_nodes: how many there are.
        whole: edges of the graph that these are the best of.
        lines: by the weights at which they win, from left to right.
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
    """A run.

    Attributes:
        store: where it lies.
        metric: its name.
        signature: of all scores.
        facts: further facts by name, in order.
        iterations: all of them.
        names: of the dense columns.
        features: the dense features; empty where the lists lie elsewhere.
        sparse: ``(name, weight)`` of the largest sparse weights of the result.
        n_sparse: how many sparse weights are not 0.
        surfaces: one a dense feature.
        coverage: None where the lists lie elsewhere.
        worst, best: sentences by the metric of what is chosen.
        lattice: None where no search graph is stored.
    """

    store: str
    metric: str
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

    @property
    def sentence_metric(self) -> str:
        """What single sentences are judged by."""
        return "BLEU+1" if self.metric == "BLEU" else self.metric
