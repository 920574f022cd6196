"""Sums of an objective and its derivatives over the search graphs of a tuning set.

Sentences are summed in their order, so that values do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.expectation import add_features
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.hypergraph import Hypergraph

__all__ = ["GraphObjective", "ScoreChange", "map_in_order", "mean_objective", "sum_objective"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class GraphObjective:
    """The value of an objective and its derivatives.

    Attributes:
        value: the value.
        gradient: float64 ``[n_columns]``; derivatives with respect to the weights.
        scale_gradient: derivative with respect to the scale.
    """

    value: float
    gradient: NDArray[np.float64]
    scale_gradient: float


@dataclass(frozen=True)
class ScoreChange:
    """Derivatives with respect to the scaled edge scores of a graph.

    Attributes:
        graph: the graph.
        scores: float64 ``[n_edges]``; unscaled edge scores.
        by_scaled: float64 ``[n_edges]``; the derivatives.
    """

    graph: Hypergraph
    scores: NDArray[np.float64]
    by_scaled: NDArray[np.float64]


def mean_objective(
    part: Callable[[int], tuple[float, list[ScoreChange]]],
    n_sentences: int,
    weights: NDArray[np.float64],
    scale: float,
    threads: int,
) -> GraphObjective:
    """Return the mean over the sentences of values and derivatives."""
    total = sum_objective(part, n_sentences, weights, scale, threads, 0.0)
    n = max(n_sentences, 1)
    return GraphObjective(total.value / n, total.gradient / n, total.scale_gradient / n)


def sum_objective(
    part: Callable[[int], tuple[float, list[ScoreChange]]],
    n_sentences: int,
    weights: NDArray[np.float64],
    scale: float,
    threads: int,
    value: float,
) -> GraphObjective:
    """Return the sum over the sentences of values and derivatives, starting from ``value``."""
    by_scaled = np.zeros(len(weights))
    by_scale = 0.0
    for own, changes in map_in_order(part, n_sentences, threads):
        value += own
        for change in changes:
            graph = change.graph
            add_features(
                graph.feature_indptr,
                graph.feature_indices,
                graph.feature_values,
                change.by_scaled,
                by_scaled,
            )
            by_scale += float((change.by_scaled * change.scores).sum())
    return GraphObjective(value, scale * by_scaled, by_scale)


def map_in_order(work: Callable[[int], Result], n_sentences: int, threads: int) -> Iterator[Result]:
    """Yield the results of the sentences in order, for any number of threads."""

    def named(sentence: int) -> Result:
        with name_sentence(sentence):
            return work(sentence)

    if threads == 1:
        yield from map(named, range(n_sentences))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(named, range(n_sentences))
