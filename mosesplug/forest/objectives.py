"""Differentiable objectives of weights on the search graphs of a tuning set.

The probability of a derivation is proportional to ``exp(scale * w . h)`` (survey, equation 22).
Each objective maps graphs, weights and scale to a value and its gradient with respect to weights
and scale, exactly over all derivations (``forest.ngrams.split``, ``forest.expectation``):

- ``softmax_loss``: minus the log-likelihood of oracle derivations (survey, section 3.2);
- ``risk``: expected error, by linear BLEU (survey, equations 24 and 52);
- ``xbleu``: BLEU of expected statistics (survey, equations 53 to 55 and appendix A);
- ``entropy``: entropy of the posterior (survey, equation 44), for deterministic annealing.

Sentences are summed in their order, so that values do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.expectation import add_features, expectation, expectation_and_gradient
from mosesplug.forest.inside_outside import Posterior, posterior
from mosesplug.forest.k_best import Derivations
from mosesplug.forest.ngrams.posteriors import expected_counts, ngram_values
from mosesplug.forest.ngrams.reference_ngrams import ORDER, ReferenceNgramTree
from mosesplug.forest.ngrams.split import SplitGraph, split_for
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.hypergraph import Hypergraph
from mosesplug.metrics.expected_bleu import expected_bleu
from mosesplug.metrics.linear_bleu import LinearBleu

__all__ = [
    "GraphObjective",
    "ScoredGraph",
    "entropy",
    "risk",
    "softmax_loss",
    "xbleu",
]

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
class ScoredGraph:
    """A search graph with the n-grams that it shares with its references.

    Attributes:
        graph: the graph of the sentence.
        split: the same graph, split by these n-grams.
        limits: float64 ``[n_ngrams]``; maximum count of each n-gram in one reference.
        reference_length: length of the shortest reference in words.
    """

    graph: Hypergraph
    split: SplitGraph
    limits: NDArray[np.float64]
    reference_length: float

    @classmethod
    def of(cls, graph: Hypergraph, references: ReferenceNgramTree) -> ScoredGraph:
        """Split a graph for its references; see ``split_for``."""
        tree = references.tree
        return cls(
            graph,
            split_for(graph, references),
            tree.largest.astype(np.float64),
            float(tree.length),
        )

    def posterior(self, scores: NDArray[np.float64]) -> Posterior:
        """Return the posterior of the split graph, given scores of the original edges."""
        return posterior(self.split, scores[self.split.origins])


def softmax_loss(
    graphs: Sequence[Hypergraph],
    oracles: Sequence[Hypergraph | Derivations],
    weights: NDArray[np.float64],
    *,
    scale: float = 1.0,
    threads: int = 1,
) -> GraphObjective:
    """Return the negative mean log-probability of the oracle derivations (survey, equation 19).

    Args:
        graphs: the graphs of the sentences; each goal can be built.
        oracles: for each sentence a graph of its oracle derivations (``pruning.subgraph``), or a
            list of derivations of its graph.
        weights: float64 ``[n_columns]``.
        scale: factor of the model scores.
        threads: number of threads; the result does not depend on it.

    Raises:
        DataError: a sentence has no derivation, or no oracle.
    """

    def part(sentence: int) -> tuple[float, list[_Change]]:
        graph, oracle = graphs[sentence], oracles[sentence]
        scores = graph.edge_scores(weights)
        found = posterior(graph, scale * scores)
        changes = [_Change(graph, scores, found.edges)]
        if isinstance(oracle, Derivations):
            total, uses = _sum_derivations(oracle, scale * scores)
            changes.append(_Change(graph, scores, -uses))
        else:
            own = oracle.edge_scores(weights)
            good = posterior(oracle, scale * own)
            total = good.log_partition
            changes.append(_Change(oracle, own, -good.edges))
        return found.log_partition - total, changes

    return _mean(part, _count_sentences(graphs, oracles), weights, scale, threads)


def risk(
    graphs: Sequence[ScoredGraph],
    weights: NDArray[np.float64],
    gains: LinearBleu,
    *,
    scale: float = 1.0,
    threads: int = 1,
) -> GraphObjective:
    """Return the mean expected error by linear BLEU (survey, equations 24 and 52).

    Args:
        graphs: the graphs of the sentences.
        weights: float64 ``[n_columns]``.
        gains: gains of words and matching n-grams; the error is minus their sum.
        scale: factor of the model scores.
        threads: number of threads; the result does not depend on it.

    Raises:
        DataError: a sentence has no derivation.
    """
    worth = np.concatenate([[0.0], gains.ngrams])

    def part(sentence: int) -> tuple[float, list[_Change]]:
        graph = graphs[sentence]
        scores = graph.graph.edge_scores(weights)
        split = graph.split
        values = -gains.word * split.totals[:, 0] - ngram_values(split, worth[split.orders])
        value, change = _average(graph, graph.posterior(scale * scores), values)
        return value, [_Change(graph.graph, scores, change)]

    return _mean(part, len(graphs), weights, scale, threads)


def entropy(
    graphs: Sequence[Hypergraph],
    weights: NDArray[np.float64],
    *,
    scale: float = 1.0,
    threads: int = 1,
) -> GraphObjective:
    """Return the mean entropy of the posterior over derivations, in nats (survey, equation 44).

    Args:
        graphs: the graphs of the sentences.
        weights: float64 ``[n_columns]``.
        scale: factor of the model scores.
        threads: number of threads; the result does not depend on it.

    Raises:
        DataError: a sentence has no derivation.
    """

    def part(sentence: int) -> tuple[float, list[_Change]]:
        graph = graphs[sentence]
        scores = graph.edge_scores(weights)
        found = posterior(graph, scale * scores)
        mean, change = expectation_and_gradient(graph, found, scale * scores)
        return found.log_partition - mean, [_Change(graph, scores, -change)]

    return _mean(part, len(graphs), weights, scale, threads)


def xbleu(
    graphs: Sequence[ScoredGraph],
    weights: NDArray[np.float64],
    *,
    scale: float = 1.0,
    threads: int = 1,
) -> GraphObjective:
    """Return BLEU of expected statistics (Rosti et al. 2010, 2011), an objective to maximise.

    Expected n-gram counts are summed over sentences. Matches are clipped as expectations,
    ``min(E[count], limit)``, because clipping each derivation is not a sum over edges. If both are
    equal, the derivative is 0, as for more occurrences. The brevity penalty is smooth
    (``metrics.expected_bleu``) and uses the shortest references.

    Args:
        graphs: the graphs of the sentences.
        weights: float64 ``[n_columns]``.
        scale: factor of the model scores.
        threads: number of threads; the result does not depend on it.

    Returns:
        The value, from 0 to 1. If some n-gram order has no match, value and gradient are 0.

    Raises:
        DataError: a sentence has no derivation.
    """

    def statistics(sentence: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        graph = graphs[sentence]
        found = graph.posterior(scale * graph.graph.edge_scores(weights))
        counts = expected_counts(graph.split, found)
        clipped = np.minimum(counts, graph.limits)
        matches = np.bincount(graph.split.orders, weights=clipped, minlength=ORDER + 1)[1:]
        totals = expectation(found, graph.split.totals)
        return np.concatenate([matches, totals]), counts < graph.limits

    def part(sentence: int) -> tuple[float, list[_Change]]:
        graph = graphs[sentence]
        scores = graph.graph.edge_scores(weights)
        split = graph.split
        worth = np.where(growing[sentence], by_matches[split.orders], 0.0)
        values = np.einsum("ij,j->i", split.totals, by_totals) + ngram_values(split, worth)
        _, change = _average(graph, graph.posterior(scale * scores), values)
        return 0.0, [_Change(graph.graph, scores, change)]

    found = list(_map_in_order(statistics, len(graphs), threads))
    growing = [mask for _, mask in found]
    sums = np.array([row for row, _ in found]).reshape(-1, 2 * ORDER).sum(axis=0)
    statistics_of_all = np.empty(2 * ORDER + 1)
    statistics_of_all[0:-1:2], statistics_of_all[1:-1:2] = sums[:ORDER], sums[ORDER:]
    statistics_of_all[-1] = sum(graph.reference_length for graph in graphs)
    value, by_statistics = expected_bleu(statistics_of_all)
    by_matches = np.concatenate([[0.0], by_statistics[0:-1:2]])
    by_totals = by_statistics[1:-1:2]
    if value == 0.0:
        return GraphObjective(0.0, np.zeros(len(weights)), 0.0)
    return _total(part, len(graphs), weights, scale, threads, value)


@dataclass(frozen=True)
class _Change:
    """Derivatives with respect to the scaled edge scores of a graph.

    Attributes:
        graph: the graph.
        scores: float64 ``[n_edges]``; unscaled edge scores.
        by_scaled: float64 ``[n_edges]``; the derivatives.
    """

    graph: Hypergraph
    scores: NDArray[np.float64]
    by_scaled: NDArray[np.float64]


def _average(
    graph: ScoredGraph, found: Posterior, values: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return an average over the split graph and its derivatives by the original edge scores."""
    value, change = expectation_and_gradient(graph.split, found, values)
    return value, graph.split.on_graph(change, graph.graph.n_edges)


def _sum_derivations(
    oracles: Derivations, scores: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the log of the sum over derivations, and the expected uses of each edge."""
    if not len(oracles):
        raise DataError("there is no oracle derivation")
    totals = np.add.reduceat(scores[oracles.edges], oracles.offsets[:-1])
    log_total = float(np.logaddexp.reduce(totals))
    times = np.repeat(np.exp(totals - log_total), np.diff(oracles.offsets))
    uses = np.bincount(oracles.edges, weights=times, minlength=len(scores))
    return log_total, uses.astype(np.float64, copy=False)


def _count_sentences(graphs: Sequence[object], oracles: Sequence[object]) -> int:
    """Return the number of sentences; raise ``ValueError`` if the numbers differ."""
    if len(graphs) != len(oracles):
        raise ValueError(f"{len(graphs)} search graphs but {len(oracles)} oracles")
    return len(graphs)


def _mean(
    part: Callable[[int], tuple[float, list[_Change]]],
    n_sentences: int,
    weights: NDArray[np.float64],
    scale: float,
    threads: int,
) -> GraphObjective:
    total = _total(part, n_sentences, weights, scale, threads, 0.0)
    n = max(n_sentences, 1)
    return GraphObjective(total.value / n, total.gradient / n, total.scale_gradient / n)


def _total(
    part: Callable[[int], tuple[float, list[_Change]]],
    n_sentences: int,
    weights: NDArray[np.float64],
    scale: float,
    threads: int,
    value: float,
) -> GraphObjective:
    """Return the sum over the sentences of values and derivatives, starting from ``value``."""
    by_scaled = np.zeros(len(weights))
    by_scale = 0.0
    for own, changes in _map_in_order(part, n_sentences, threads):
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


def _map_in_order(
    work: Callable[[int], Result], n_sentences: int, threads: int
) -> Iterator[Result]:
    """Yield the results of the sentences in order, for any number of threads."""

    def told(sentence: int) -> Result:
        with name_sentence(sentence):
            return work(sentence)

    if threads == 1:
        yield from map(told, range(n_sentences))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(told, range(n_sentences))
