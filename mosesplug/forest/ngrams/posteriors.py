"""N-grams under the posterior of a search graph: how often each occurs, and whether it does.

In a split graph (``forest.ngrams.split``) the n-grams of a derivation are what its edges add up to.
So an n-gram's expected count is the sum of the posteriors of the edges that make it (DeNero et
al. 2009, section 3), in one pass for all n-grams.

The probability that it occurs at all (Tromble et al. 2008) is the same where no
derivation has it twice; which n-grams those are is found for 64 of them at a time, by bits at
the nodes. For the others the derivations without it are summed: a pass over the shares of edges
for 16 of them at a time. Kumar et al. (2009) approximate that by the edge of highest
posterior; here it is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.inside_outside import Posterior
from mosesplug.forest.ngrams.split import SplitGraph
from mosesplug.kernels import kernel

__all__ = ["RARE", "expected_counts", "ngram_values", "occurrence_probabilities"]

RARE = 1e-9
"""An n-gram that is expected less often occurs with that probability to within this."""

_BLOCK = 16


def expected_counts(graph: SplitGraph, posterior: Posterior) -> NDArray[np.float64]:
    """Return how often a derivation has each n-gram on average.

    Args:
        graph: of the sentence.
        posterior: of its derivations.

    Returns:
        float64 ``[n_ngrams]``; 0 for number 0, the empty one.
    """
    return _counted(graph.ngram_offsets, graph.ngrams, posterior.edges, graph.n_ngrams)


def ngram_values(graph: SplitGraph, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the n-grams of each edge are worth together.

    Args:
        graph: of the sentence.
        values: float64 ``[n_ngrams]``; of each n-gram.

    Returns:
        float64 ``[n_edges]``.
    """
    return _valued(graph.ngram_offsets, graph.ngrams, values)


def occurrence_probabilities(graph: SplitGraph, posterior: Posterior) -> NDArray[np.float64]:
    """Return the probability that a derivation has each n-gram.

    Args:
        graph: of the sentence.
        posterior: of its derivations.

    Returns:
        float64 ``[n_ngrams]``; 0 for number 0, the empty one.
    """
    counts = expected_counts(graph, posterior)
    common = np.flatnonzero(counts > RARE).astype(np.int32)
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    makers = _makers(graph.ngram_offsets, graph.ngrams, common, graph.n_ngrams)
    repeated = common[_possible_twice(*arrays, posterior.edges, *makers, len(common))]
    makers = _makers(graph.ngram_offsets, graph.ngrams, repeated, graph.n_ngrams)
    counts[repeated] = _some(*arrays, posterior.shares, *makers, len(repeated))
    return counts


@kernel
def _counted(
    offsets: NDArray[np.int64],
    ngrams: NDArray[np.int32],
    times: NDArray[np.float64],
    n_ngrams: int,
) -> NDArray[np.float64]:
    counts = np.zeros(n_ngrams)
    for edge in range(len(times)):
        if times[edge] > 0.0:
            for entry in range(offsets[edge], offsets[edge + 1]):
                counts[ngrams[entry]] += times[edge]
    return counts


@kernel
def _valued(
    offsets: NDArray[np.int64], ngrams: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    sums = np.zeros(len(offsets) - 1)
    for edge in range(len(sums)):
        for entry in range(offsets[edge], offsets[edge + 1]):
            sums[edge] += values[ngrams[entry]]
    return sums


@kernel
def _makers(
    offsets: NDArray[np.int64], ngrams: NDArray[np.int32], chosen: NDArray[np.int32], n_ngrams: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges that make each of some n-grams, as often as they do: offsets, and edges."""
    places = np.full(n_ngrams, -1, dtype=np.int64)
    for place in range(len(chosen)):
        places[chosen[place]] = place
    starts = np.zeros(len(chosen) + 1, dtype=np.int64)
    for entry in range(len(ngrams)):
        if places[ngrams[entry]] >= 0:
            starts[places[ngrams[entry]] + 1] += 1
    starts = np.cumsum(starts)
    edges = np.empty(starts[-1], dtype=np.int64)
    ends = starts.copy()
    for edge in range(len(offsets) - 1):
        for entry in range(offsets[edge], offsets[edge + 1]):
            place = places[ngrams[entry]]
            if place >= 0:
                edges[ends[place]] = edge
                ends[place] += 1
    return starts, edges


@kernel
def _heads(edge_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the node that each edge leads to."""
    heads = np.empty(edge_offsets[-1], dtype=np.int64)
    for node in range(len(edge_offsets) - 1):
        heads[edge_offsets[node] : edge_offsets[node + 1]] = node
    return heads


@kernel
def _possible_twice(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    times: NDArray[np.float64],
    starts: NDArray[np.int64],
    makers: NDArray[np.int64],
    n_chosen: int,
) -> NDArray[np.bool_]:
    """Return whether a derivation of edges that are used can have each n-gram twice.

    Args:
        edge_offsets, tail_offsets, tails: of the split graph.
        times: float64 ``[n_edges]``; their posteriors.
        starts, makers: from ``_makers``.
        n_chosen: how many n-grams there are.
    """
    n_nodes = len(edge_offsets) - 1
    twice = np.zeros(n_chosen, dtype=np.bool_)
    # Of each edge the n-grams that it makes, and those that it makes twice, by bits.
    own, own_twice = np.zeros(len(times), dtype=np.uint64), np.zeros(len(times), dtype=np.uint64)
    once_below = np.zeros(n_nodes, dtype=np.uint64)
    twice_below = np.zeros(n_nodes, dtype=np.uint64)
    heads = _heads(edge_offsets)
    for first in range(0, n_chosen, 64):
        last = min(first + 64, n_chosen)
        # N-grams were numbered as they were found, from the first nodes on: those of a block are
        # made at much the same nodes, and below these there is nothing to be looked at.
        lowest = n_nodes - 1
        for place in range(first, last):
            bit = np.uint64(1) << np.uint64(place - first)
            for entry in range(starts[place], starts[place + 1]):
                own_twice[makers[entry]] |= own[makers[entry]] & bit
                own[makers[entry]] |= bit
                lowest = min(lowest, heads[makers[entry]])
        once_below[:lowest] = np.uint64(0)
        twice_below[:lowest] = np.uint64(0)
        for node in range(lowest, n_nodes):
            some, more = np.uint64(0), np.uint64(0)
            for edge in range(edge_offsets[node], edge_offsets[node + 1]):
                if times[edge] > 0.0:
                    once, again = own[edge], own_twice[edge]
                    for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                        tail = tails[entry]
                        again |= twice_below[tail] | (once & once_below[tail])
                        once |= once_below[tail]
                    some |= once
                    more |= again
            once_below[node], twice_below[node] = some, more
        for place in range(first, last):
            twice[place] = (twice_below[-1] >> np.uint64(place - first)) & np.uint64(1)
            for entry in range(starts[place], starts[place + 1]):
                own[makers[entry]] = own_twice[makers[entry]] = np.uint64(0)
    return twice


@kernel
def _some(
    edge_offsets: NDArray[np.int64],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.int32],
    shares: NDArray[np.float64],
    starts: NDArray[np.int64],
    makers: NDArray[np.int64],
    n_chosen: int,
) -> NDArray[np.float64]:
    """Return the probability that a derivation of the goal has each n-gram.

    Args:
        edge_offsets, tail_offsets, tails: of the split graph.
        shares: float64 ``[n_edges]``.
        starts, makers: from ``_makers``.
        n_chosen: how many n-grams there are.
    """
    n_nodes = len(edge_offsets) - 1
    some = np.empty(n_chosen)
    made = np.zeros((len(shares), _BLOCK), dtype=np.bool_)
    makes = np.zeros(len(shares), dtype=np.bool_)
    # Of each node's derivations, the part that has none.
    none = np.empty((n_nodes, _BLOCK))
    product = np.empty(_BLOCK)
    heads = _heads(edge_offsets)
    for first in range(0, n_chosen, _BLOCK):
        last = min(first + _BLOCK, n_chosen)
        lowest = n_nodes - 1
        for place in range(first, last):
            for entry in range(starts[place], starts[place + 1]):
                made[makers[entry], place - first] = makes[makers[entry]] = True
                lowest = min(lowest, heads[makers[entry]])
        none[:lowest] = 1.0
        for node in range(lowest, n_nodes):
            none[node] = 0.0
            for edge in range(edge_offsets[node], edge_offsets[node + 1]):
                if shares[edge] > 0.0:
                    product[:] = shares[edge]
                    for entry in range(tail_offsets[edge], tail_offsets[edge + 1]):
                        product *= none[tails[entry]]
                    if makes[edge]:
                        for column in range(_BLOCK):
                            if made[edge, column]:
                                product[column] = 0.0
                    none[node] += product
        for place in range(first, last):
            some[place] = 1.0 - none[n_nodes - 1, place - first]
            for entry in range(starts[place], starts[place + 1]):
                made[makers[entry], place - first] = makes[makers[entry]] = False
    return some
