"""Expectations over derivations and gradients by edge scores (Li & Eisner 2009).

An additive quantity ``R(d)`` = sum of ``r(e)`` over the edges of derivation ``d`` has an
expectation under the posterior. Li & Eisner compute it, and covariances, with expectation
semirings, whose elements are tuples instead of weights. Those tuples contain a vector per node;
the authors show that an outside pass avoids the vectors for first-order quantities. This module
does the same for second-order ones: the expectation is a function of the edge scores, and a
backward pass through its computation gives for all edges at once

    d E[R] / d score(e) = Cov(R, number of uses of e).

By the chain rule, this yields the gradient with respect to anything that determines the scores:
weights (the sum over edges times sparse features), a scale, or another additive quantity:

    Cov(R, S) = sum over e of d E[R] / d score(e) * s(e).

A gradient costs two passes with one number per node, independent of the number of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.inside_outside import GraphEdges, Posterior
from mosesplug.kernels import kernel


def expectation(posterior: Posterior, values: NDArray[Any]) -> NDArray[np.float64]:
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
    graph: GraphEdges, posterior: Posterior, values: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
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
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    times: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Add ``times`` times the features of each edge to ``totals`` (output)."""
    for edge in range(len(times)):
        if times[edge] != 0.0:
            for entry in range(indptr[edge], indptr[edge + 1]):
                totals[indices[entry]] += times[edge] * values[entry]


@kernel
def _averages(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    shares: NDArray[np.float64],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
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
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    shares: NDArray[np.float64],
    nodes: NDArray[np.float64],
    values: NDArray[np.float64],
    below: NDArray[np.float64],
) -> NDArray[np.float64]:
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
