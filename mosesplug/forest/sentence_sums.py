"""Sums of an objective and its derivatives over the search graphs of a tuning set.

Sentences are summed in their order, so that values do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.expectation import add_features
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.hypergraph import Hypergraph

__all__ = ["Slope", "map_in_order", "mean_objective", "sum_objective"]

Result = TypeVar("Result")

Slope = tuple[float, Hypergraph, NDArray[np.float64]]
"""The value of a sentence, its graph, and the derivatives by edge scores, float64 ``[n_edges]``."""


def mean_objective(
    part: Callable[[int], Slope], n_sentences: int, n_columns: int, threads: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean over the sentences of values and gradients."""
    value, gradient = sum_objective(part, n_sentences, n_columns, threads, 0.0)
    n = max(n_sentences, 1)
    return value / n, gradient / n


def sum_objective(
    part: Callable[[int], Slope], n_sentences: int, n_columns: int, threads: int, value: float
) -> tuple[float, NDArray[np.float64]]:
    """Return ``value`` plus the sentences' values, and the gradient.

    The gradient is float64 ``[n_columns]``.
    """
    gradient = np.zeros(n_columns)
    for own, graph, by_scores in map_in_order(part, n_sentences, threads):
        value += own
        add_features(
            graph.feature_indptr,
            graph.feature_indices,
            graph.feature_values,
            by_scores,
            gradient,
        )
    return value, gradient


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
