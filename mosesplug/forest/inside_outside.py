"""Sums over all derivations: inside, outside and posteriors (Goodman 1999).

The weight of a derivation is ``exp`` of the sum of its edge scores. The inside score of a node is
the log of the summed weights of its derivations, computed bottom-up. The *share* of an edge is the
probability that a derivation of its node begins with this edge: the summed weight of those
derivations divided by the sum of the node. Later passes use shares and need no logarithms. A
top-down pass computes the posterior of an edge: how often a derivation of the goal uses it on
average. A bottom-up pass computes the average of any additive quantity.

An additive quantity ``R(d)`` = sum of ``r(e)`` over the edges of derivation ``d`` has an
expectation under the posterior. Li & Eisner (2009) compute it, and covariances, with expectation
semirings, whose elements are tuples instead of weights. Those tuples contain a vector per node;
the authors show that an outside pass avoids the vectors for first-order quantities. This module
does the same for second-order ones: the expectation is a function of the edge scores, and a
backward pass through its computation gives for all edges at once

    d E[R] / d score(e) = Cov(R, number of uses of e).

By the chain rule, this yields the gradient with respect to anything that determines the scores:
weights (the sum over edges times sparse features), a scale, or another additive quantity:

    Cov(R, S) = sum over e of d E[R] / d score(e) * s(e).

A gradient costs two passes with one number per node, independent of the number of features.

Every pass takes time linear in the number of edges and tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Floats32, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.kernels import kernel


class GraphEdges(Protocol):
    """The arrays of a graph that the passes use; see ``Hypergraph``."""

    @property
    def edge_offsets(self) -> Ints:
        """int64 ``[n_nodes + 1]``."""

    @property
    def tail_offsets(self) -> Ints:
        """int64 ``[n_edges + 1]``."""

    @property
    def tails(self) -> Ints32:
        """int32; the tail nodes of all edges."""


@dataclass(frozen=True)
class Posterior:
    """The distribution over derivations that scores define.

    Attributes:
        log_partition: log of the sum over all derivations of the goal.
        inside: float64 ``[n_nodes]``; the log of the sum over the derivations of each node, -inf
            for a node without derivations.
        shares: float64 ``[n_edges]``; the probability that a derivation of the edge's head begins
            with this edge. Shares sum to 1 over the edges of a node that has a derivation.
        nodes: float64 ``[n_nodes]``; expected number of uses of each node in a derivation of the
            goal. It can exceed 1 because a derivation may use a node more than once.
        edges: float64 ``[n_edges]``; expected number of uses of each edge.
    """

    log_partition: float
    inside: Floats
    shares: Floats
    nodes: Floats
    edges: Floats


def posterior(graph: GraphEdges, scores: Floats) -> Posterior:
    """Return the distribution over a graph's derivations.

    The probability of a derivation is proportional to ``exp`` of its score.

    Args:
        scores: float64 ``[n_edges]``; -inf excludes an edge.
    """
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    inside, shares = log_inside(*arrays, scores)
    log_total = _finite(inside)
    nodes, edges = _count_uses(*arrays, shares)
    return Posterior(log_total, inside, shares, nodes, edges)


def log_partition(graph: GraphEdges, scores: Floats) -> float:
    """Return the log of the sum over all derivations; see ``posterior``."""
    inside, _ = log_inside(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    return _finite(inside)


def _finite(inside: Floats) -> float:
    if not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    return float(inside[-1])


@kernel
def log_inside(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, scores: Floats
) -> tuple[Floats, Floats]:
    """Return inside scores of the nodes and shares of the edges; see ``Posterior``."""
    n_nodes = len(edge_offsets) - 1
    inside = np.full(n_nodes, -np.inf)
    shares = np.zeros(len(scores))
    for node in range(n_nodes):
        first, last = edge_offsets[node], edge_offsets[node + 1]
        highest = -np.inf
        for edge in range(first, last):
            score = scores[edge]
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                score += inside[tails[entry]]
            shares[edge] = score
            # The largest is taken out of the sum, so that no exponential overflows.
            highest = max(highest, score)
        if highest == -np.inf:
            shares[first:last] = 0.0
            continue
        total = 0.0
        for edge in range(first, last):
            shares[edge] = math.exp(shares[edge] - highest)
            total += shares[edge]
        inside[node] = highest + math.log(total)
        for edge in range(first, last):
            shares[edge] /= total
    return inside, shares


@kernel
def _count_uses(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, shares: Floats
) -> tuple[Floats, Floats]:
    """Return the expected number of uses of each node and edge, computed top-down."""
    n_nodes = len(edge_offsets) - 1
    nodes = np.zeros(n_nodes)
    edges = np.zeros(len(shares))
    nodes[-1] = 1.0
    for node in range(n_nodes - 1, -1, -1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            times = nodes[node] * shares[edge]
            edges[edge] = times
            for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                nodes[tails[entry]] += times
    return nodes, edges


@kernel
def best_outside(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, scores: Floats, inside: Floats
) -> tuple[Floats, Ints]:
    """Find the best derivation of the goal through each node, without its own part.

    Args:
        scores: float64 ``[n_edges]``.
        inside: float64 ``[n_nodes]``; scores of the best derivations (``viterbi.inside_best``).

    Returns:
        The score of that partial derivation, float64 ``[n_nodes]``, -inf if no derivation uses
        the node; and the edge that has the node as a tail in it, int64 ``[n_nodes]``, -1 if there
        is no such edge and for the goal.
    """
    n_nodes = len(edge_offsets) - 1
    outside = np.full(n_nodes, -np.inf)
    above = np.full(n_nodes, -1, dtype=np.int64)
    outside[-1] = 0.0
    for node in range(n_nodes - 1, -1, -1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            first, last = tail_offsets[edge], tail_offsets[edge + 1]
            for entry in range(first, last):
                score = outside[node] + scores[edge]
                for other in range(first, last):
                    if other != entry:
                        score += inside[tails[other]]
                if score > outside[tails[entry]]:
                    outside[tails[entry]] = score
                    above[tails[entry]] = edge
    return outside, above


def log_count(graph: GraphEdges) -> float:
    """Return the natural logarithm of the number of derivations; -inf for zero."""
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    inside, _ = log_inside(*arrays, np.zeros(len(graph.tail_offsets) - 1))
    return float(inside[-1])


def expectation(posterior: Posterior, values: NDArray[Any]) -> Floats:
    """Return the expectations of additive quantities.

    Args:
        posterior: the distribution over the graph's derivations.
        values: ``[n_edges]`` or ``[n_edges, k]``; the contribution of each edge.

    Returns:
        float64 ``[]`` or ``[k]``.
    """
    # No matrix product: BLAS threads would wait for those of other sentences.
    return np.asarray(np.einsum("i,i...->...", posterior.edges, values))


def expectation_and_gradient(
    graph: GraphEdges, posterior: Posterior, values: Floats
) -> tuple[float, Floats]:
    """Return an expectation and its derivatives with respect to the edge scores.

    Args:
        values: float64 ``[n_edges]``; the contribution of each edge, independent of the scores.

    Returns:
        ``E[R]`` and ``d E[R] / d score``, float64 ``[n_edges]``.
    """
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    below = _averages(*arrays, posterior.shares, values)
    return float(below[-1]), _gradient(*arrays, posterior.shares, posterior.nodes, values, below)


@kernel
def add_features(
    indptr: Ints, indices: Ints32, values: Floats32, times: Floats, totals: Floats
) -> None:
    """Add ``times`` times the features of each edge to ``totals`` (output)."""
    for edge in range(len(times)):
        if times[edge] != 0.0:
            for entry in range(indptr[edge], indptr[edge + 1]):
                totals[indices[entry]] += times[edge] * values[entry]


@kernel
def _averages(
    edge_offsets: Ints, tail_offsets: Ints, tails: Ints32, shares: Floats, values: Floats
) -> Floats:
    """Return the average, over the derivations of each node, of the sum of ``values``."""
    below = np.zeros(len(edge_offsets) - 1)
    for node in range(len(below)):
        total = 0.0
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            if shares[edge] > 0.0:
                value = values[edge]
                for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                    value += below[tails[entry]]
                total += shares[edge] * value
        below[node] = total
    return below


@kernel
def _gradient(
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    shares: Floats,
    nodes: Floats,
    values: Floats,
    below: Floats,
) -> Floats:
    """Differentiate the goal's average by the edge scores: ``_averages`` backwards.

    The average of a node depends on a score in two ways: through the averages of the tails, whose
    derivatives are ``nodes``, and through the shares, which depend on the tails' inside scores.
    ``by_inside`` is the derivative with respect to these inside scores.
    """
    by_inside = np.zeros(len(nodes))
    gradient = np.zeros(len(shares))
    for node in range(len(nodes) - 1, -1, -1):
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            if shares[edge] > 0.0:
                value = values[edge]
                for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                    value += below[tails[entry]]
                change = shares[edge] * (nodes[node] * (value - below[node]) + by_inside[node])
                gradient[edge] = change
                for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                    by_inside[tails[entry]] += change
    return gradient
