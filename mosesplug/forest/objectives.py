"""Differentiable objectives of weights on the search graphs of a tuning set.

The probability of a derivation is proportional to ``exp(w . h)`` (survey, equation 22). Each
objective maps graphs and weights to a value and its gradient, float64 ``[n_columns]``, exactly over
all derivations (``forest.ngrams.split``, ``forest.inside_outside``):

- ``softmax_margin``: minus the log-likelihood of oracle derivations (survey, section 3.2), with
  costs of the other derivations (Gimpel & Smith 2010);
- ``risk``: expected error, by linear BLEU (survey, equations 24 and 52);
- ``xbleu``: BLEU of expected statistics (survey, equations 53 to 55 and appendix A).

The last two take entropy of the posterior (survey, equation 44), for deterministic annealing.

Sentences are summed in their order, so that values do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mosesplug.arrays import Bools, Floats
from mosesplug.forest.inside_outside import (
    Posterior,
    add_features,
    expectation,
    expectation_and_gradient,
    posterior,
)
from mosesplug.forest.intersection import ReferenceGraph
from mosesplug.forest.ngrams.posteriors import expected_counts, ngram_values
from mosesplug.forest.ngrams.reference_ngrams import ORDER, ReferenceNgramTree
from mosesplug.forest.ngrams.split import SplitGraph, split_for
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.hypergraph import Hypergraph
from mosesplug.metrics.bleu.expected import expected_bleu
from mosesplug.metrics.bleu.linear import LinearBleu

_Result = TypeVar("_Result")

_Slope = tuple[float, Hypergraph, Floats]
"""The value of a sentence, its graph, and the derivatives by edge scores, float64 ``[n_edges]``."""


@dataclass(frozen=True)
class ScoredGraph:
    """A search graph with the n-grams that it shares with its references.

    Attributes:
        split: the same graph, split by these n-grams.
        limits: float64 ``[n_ngrams]``; maximum count of each n-gram in one reference.
        reference_length: length of the shortest reference in words.
        weight: weight of the sentence, above 0.
    """

    graph: Hypergraph
    split: SplitGraph
    limits: Floats
    reference_length: float
    weight: float = 1.0

    @classmethod
    def of(
        cls, graph: Hypergraph, references: ReferenceNgramTree, weight: float = 1.0
    ) -> ScoredGraph:
        """Split a graph for its references; see ``split_for``."""
        tree = references.tree
        return cls(
            graph,
            split_for(graph, references),
            tree.largest.astype(np.float64),
            float(tree.length),
            weight,
        )

    def gains(self, gains: LinearBleu) -> Floats:
        """Return the gain of each edge of the split graph, float64 ``[n_split_edges]``."""
        by_ngram = np.concatenate([[0.0], gains.ngrams])[self.split.orders]
        return gains.word * self.split.totals[:, 0] + ngram_values(self.split, by_ngram)

    def posterior(self, scores: Floats) -> Posterior:
        """Return the posterior of the split graph, given scores of the original edges."""
        return posterior(self.split, scores[self.split.origins])


def softmax_margin(
    graphs: Sequence[ScoredGraph],
    oracles: Sequence[Bools | ReferenceGraph],
    costs: Sequence[Floats] | None,
    weights: Floats,
    *,
    threads: int = 1,
) -> tuple[float, Floats]:
    """Return the negative mean log-probability of oracles, with costs of the others.

    Costs are added to model scores (Gimpel & Smith 2010). Oracles have no cost.

    Args:
        oracles: for each sentence bool ``[n_split_edges]``, if the derivations of these edges of
            the split graph are oracles; or those derivations of the split graph that are.
        costs: for each sentence float64 ``[n_split_edges]``, whose sum over a derivation is its
            cost, 0 or more; None: without costs.
        weights: float64 ``[n_columns]``.
        threads: number of threads; the result does not depend on it.
    """
    if len(graphs) != len(oracles):
        raise ValueError(f"{len(graphs)} search graphs but {len(oracles)} oracles")

    def part(sentence: int) -> _Slope:
        graph, kept = graphs[sentence], oracles[sentence]
        split = graph.split
        model = graph.graph.edge_scores(weights)[split.origins]
        good, good_uses = _oracle_posterior(split, kept, model)
        if costs is None:
            every = posterior(split, model)
            log_all, uses = every.log_partition, every.edges
        else:
            costly = model + costs[sentence]
            every = posterior(split, costly)
            dear, dear_uses = _oracle_posterior(split, kept, costly)
            # All derivations with costs, less the oracles with costs, and the oracles without.
            high = max(every.log_partition, good)
            share_all, share_dear, share_good = (
                math.exp(log_weight - high) for log_weight in (every.log_partition, dear, good)
            )
            total = share_all - share_dear + share_good
            log_all = high + math.log(total)
            uses = share_all * every.edges - share_dear * dear_uses + share_good * good_uses
            uses /= total
        change = split.on_graph(uses - good_uses, graph.graph.n_edges)
        return log_all - good, graph.graph, change

    return _mean_objective(part, graphs, len(weights), threads)


def risk(
    graphs: Sequence[ScoredGraph],
    weights: Floats,
    gains: LinearBleu,
    *,
    temperature: float = 0.0,
    threads: int = 1,
) -> tuple[float, Floats]:
    """Return the mean expected error by linear BLEU minus entropy, and its gradient.

    The error is that of the survey's equations 24 and 52. The gradient is float64 ``[n_columns]``.

    Args:
        weights: float64 ``[n_columns]``.
        gains: gains of words and matching n-grams; the error is minus their sum.
        temperature: factor of the entropy (survey, equation 45).
        threads: number of threads; the result does not depend on it.
    """

    def part(sentence: int) -> _Slope:
        graph = graphs[sentence]
        scores = graph.graph.edge_scores(weights)
        distribution = graph.posterior(scores)
        # The entropy is log Z - E[score], so the scores act as errors too.
        values = temperature * scores[graph.split.origins] - graph.gains(gains)
        value, change = _average(graph, distribution, values)
        value -= temperature * distribution.log_partition
        return value, graph.graph, change

    return _mean_objective(part, graphs, len(weights), threads)


def xbleu(
    graphs: Sequence[ScoredGraph],
    weights: Floats,
    *,
    temperature: float = 0.0,
    threads: int = 1,
) -> tuple[float, Floats]:
    """Return BLEU of expected statistics plus entropy, to maximize, and its gradient.

    The objective is that of Rosti et al. (2010, 2011). Expected n-gram counts are summed over
    sentences. Matches are clipped as expectations, ``min(E[count], limit)``, because clipping each
    derivation is not a sum over edges. If both are equal, the derivative is 0, as for more
    occurrences. The brevity penalty is smooth (``metrics.bleu.expected``) and uses the shortest
    references.

    Args:
        weights: float64 ``[n_columns]``.
        temperature: factor of the mean entropy (survey, equation 45).
        threads: number of threads; the result does not depend on it.

    Returns:
        The value, without entropy from 0 to 1. If some n-gram order has no match, value and
        gradient are 0.
    """

    def statistics(sentence: int) -> tuple[Floats, Bools]:
        graph = graphs[sentence]
        distribution = graph.posterior(graph.graph.edge_scores(weights))
        counts = expected_counts(graph.split, distribution)
        clipped = np.minimum(counts, graph.limits)
        matches = np.bincount(graph.split.orders, weights=clipped, minlength=ORDER + 1)[1:]
        totals = expectation(distribution, graph.split.totals)
        return np.concatenate([matches, totals]), counts < graph.limits

    def part(sentence: int) -> _Slope:
        graph = graphs[sentence]
        scores = graph.graph.edge_scores(weights)
        split = graph.split
        distribution = graph.posterior(scores)
        by_ngram = np.where(growing[sentence], by_matches[split.orders], 0.0)
        values = np.einsum("ij,j->i", split.totals, by_totals) + ngram_values(split, by_ngram)
        own = 0.0
        if share > 0.0:
            spread = share * scores[split.origins]
            own = share * distribution.log_partition - float(expectation(distribution, spread))
            values -= spread
        _, change = _average(graph, distribution, values)
        return own, graph.graph, change

    counts = np.array([graph.weight for graph in graphs])
    share = temperature / (counts.sum() or 1.0)
    sentences = list(_map_in_order(statistics, len(graphs), threads))
    growing = [mask for _, mask in sentences]
    rows = np.array([row for row, _ in sentences]).reshape(-1, 2 * ORDER)
    sums = (counts[:, None] * rows).sum(axis=0)
    statistics_of_all = np.empty(2 * ORDER + 1)
    statistics_of_all[0:-1:2], statistics_of_all[1:-1:2] = sums[:ORDER], sums[ORDER:]
    lengths = [graph.reference_length for graph in graphs]
    statistics_of_all[-1] = counts @ np.array(lengths)
    value, by_statistics = expected_bleu(statistics_of_all)
    by_matches = np.concatenate([[0.0], by_statistics[0:-1:2]])
    by_totals = by_statistics[1:-1:2]
    if value == 0.0:
        return 0.0, np.zeros(len(weights))
    return _sum_objective(part, graphs, len(weights), threads, value)


def _oracle_posterior(
    split: SplitGraph, oracles: Bools | ReferenceGraph, scores: Floats
) -> tuple[float, Floats]:
    """Return the log sum over oracles, and their expected uses of the split's edges."""
    if isinstance(oracles, ReferenceGraph):
        distribution = posterior(oracles, scores[oracles.origins])
        uses = np.bincount(oracles.origins, weights=distribution.edges, minlength=len(scores))
        return distribution.log_partition, uses.astype(np.float64, copy=False)
    distribution = posterior(split, np.where(oracles, scores, -np.inf))
    return distribution.log_partition, distribution.edges


def _average(graph: ScoredGraph, expected: Posterior, values: Floats) -> tuple[float, Floats]:
    """Return an average of the split graph and derivatives by original edge scores."""
    value, change = expectation_and_gradient(graph.split, expected, values)
    return value, graph.split.on_graph(change, graph.graph.n_edges)


def _mean_objective(
    part: Callable[[int], _Slope], graphs: Sequence[ScoredGraph], n_columns: int, threads: int
) -> tuple[float, Floats]:
    """Return the weighted mean over the sentences of values and gradients."""
    value, gradient = _sum_objective(part, graphs, n_columns, threads, 0.0)
    total = np.sum([graph.weight for graph in graphs]) or 1.0
    return value / total, gradient / total


def _sum_objective(
    part: Callable[[int], _Slope],
    graphs: Sequence[ScoredGraph],
    n_columns: int,
    threads: int,
    value: float,
) -> tuple[float, Floats]:
    """Return ``value`` plus the weighted sum over sentences, and its gradient.

    The gradient is float64 ``[n_columns]``.
    """
    gradient = np.zeros(n_columns)
    slopes = _map_in_order(part, len(graphs), threads)
    for scored, (own, graph, by_scores) in zip(graphs, slopes, strict=True):
        value += scored.weight * own
        add_features(
            graph.feature_indptr,
            graph.feature_indices,
            graph.feature_values,
            scored.weight * by_scores,
            gradient,
        )
    return value, gradient


def _map_in_order(
    work: Callable[[int], _Result], n_sentences: int, threads: int
) -> Iterator[_Result]:
    """Yield the results of the sentences in order, for any number of threads."""

    def named(sentence: int) -> _Result:
        with name_sentence(sentence):
            return work(sentence)

    if threads == 1:
        yield from map(named, range(n_sentences))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(named, range(n_sentences))
