"""Averages over all derivations, and how they change with the scores (Li & Eisner 2009).

What edges add up to, ``R(d)`` = sum of ``r(e)`` over the edges of derivation ``d``, has an average
under the posterior. Li & Eisner's expectation semirings find it, and its covariances, with tuples
in the place of weights. Vectors at every node would be carried for that; they show that an
outside pass spares them for first-order quantities. Here the same is done for second-order
ones: the average is a function of the edges' scores, and a backward pass through its computation
gives, for all edges at once,

    d E[R] / d score(e) = Cov(R, times that e is used).

By the chain rule that is a gradient with respect to anything that makes scores: weights (sum over
edges times sparse features), a scale, or again something that edges add up to, as

    Cov(R, S) = sum over e of d E[R] / d score(e) * s(e).

So a gradient costs two passes with one number a node, however many features there are, and a
matrix of covariances two for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.inside_outside import GraphEdges, Posterior
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

__all__ = [
    "covariance",
    "expectation",
    "expectation_and_gradient",
    "feature_covariance",
    "feature_sums",
]


def expectation(posterior: Posterior, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the averages of what edges add up to.

    Args:
        posterior: of the graph.
        values: ``[n_edges]`` or ``[n_edges, k]``; what each edge adds.

    Returns:
        float64 ``[]`` or ``[k]``.
    """
    # Not a product of matrices: threads of theirs would wait for those of other sentences.
    return np.asarray(np.einsum("i,i...->...", posterior.edges, values))


def expectation_and_gradient(
    graph: GraphEdges, posterior: Posterior, values: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return an average, and its derivatives with respect to the scores of the edges.

    Args:
        graph: of which.
        posterior: of its derivations.
        values: float64 ``[n_edges]``; what each edge adds. It does not depend on the scores.

    Returns:
        ``E[R]`` and ``d E[R] / d score``, float64 ``[n_edges]``.
    """
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    below = _averages(*arrays, posterior.shares, values)
    return float(below[-1]), _gradient(*arrays, posterior.shares, posterior.nodes, values, below)


def covariance(
    graph: GraphEdges,
    posterior: Posterior,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
) -> NDArray[np.float64]:
    """``Cov(R, S)`` of what edges add up to.

    Args:
        graph: of which.
        posterior: of its derivations.
        left: float64 ``[n_edges, k]``; each column costs two passes.
        right: float64 ``[n_edges, m]``; columns cost next to nothing.

    Returns:
        float64 ``[k, m]``.
    """
    gradients = [
        expectation_and_gradient(graph, posterior, np.ascontiguousarray(column))[1]
        for column in left.T
    ]
    stacked = np.array(gradients).reshape(left.shape[1], left.shape[0])
    return np.asarray(np.einsum("ki,im->km", stacked, right))


def feature_covariance(
    graph: Hypergraph, posterior: Posterior, values: NDArray[np.float64], n_columns: int
) -> NDArray[np.float64]:
    """Covariances of what edges add up to with the features: ``d E[R] / d w``.

    Args:
        graph: of which.
        posterior: of its derivations, under scores ``w . h``.
        values: float64 ``[n_edges]``.
        n_columns: features.

    Returns:
        float64 ``[n_columns]``.
    """
    _, gradient = expectation_and_gradient(graph, posterior, values)
    return feature_sums(graph, gradient, n_columns)


def feature_sums(
    graph: Hypergraph, times: NDArray[np.float64], n_columns: int
) -> NDArray[np.float64]:
    """Return the features of all edges, each edge a number of times: float64 ``[n_columns]``.

    With the posterior of the edges, the expected features.

    Args:
        graph: of which.
        times: float64 ``[n_edges]``.
        n_columns: features.
    """
    totals = np.zeros(n_columns)
    add_features(graph.feature_indptr, graph.feature_indices, graph.feature_values, times, totals)
    return totals


@kernel
def add_features(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    times: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Add the features of all edges, each ``times`` as often, to ``totals``, the output."""
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
    """Return the goal's average by the scores of the edges: the pass of ``_averages`` backwards.

    The average of a node depends on a score twice: by the averages of tails, whose derivatives
    are ``nodes``, and by the shares, which depend on the tails' inside scores. ``by_inside`` is
    the derivative with respect to the latter.
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
