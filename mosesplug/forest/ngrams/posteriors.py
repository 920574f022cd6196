"""Expected counts and occurrence probabilities of n-grams in a search graph.

Both are under the posterior of derivations. In a split graph (``forest.ngrams.split``) the n-gram
counts of a derivation are sums over its edges. The expected count of an n-gram is therefore the sum
of the posteriors of the edges that create it (DeNero et al. 2009, section 3). One pass computes it
for all n-grams.

The probability that an n-gram occurs at least once (Tromble et al. 2008) equals its expected count
if no derivation has it twice. A pass with bit sets at the nodes checks this for 64 n-grams at a
time. For the other n-grams, a pass over the edge shares sums the derivations without the n-gram,
for 16 n-grams at a time. Kumar et al. (2009) approximate this probability by the edge with the
highest posterior; this module computes it exactly.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.forest.inside_outside import Posterior
from mosesplug.forest.ngrams.split import SplitGraph
from mosesplug.kernels import kernel

RARE = 1e-9
"""Below this expected count, the count approximates the probability within this bound."""

_BLOCK = 16


def expected_counts(graph: SplitGraph, posterior: Posterior) -> Floats:
    """Return the expected count of each n-gram in a derivation.

    Returns:
        float64 ``[n_ngrams]``; 0 for number 0, the empty n-gram.
    """
    return _count(graph.ngram_offsets, graph.ngrams, posterior.edges, graph.n_ngrams)


def ngram_values(graph: SplitGraph, values: Floats) -> Floats:
    """Return the sum of the values of each edge's n-grams.

    Args:
        values: float64 ``[n_ngrams]``; value of each n-gram.

    Returns:
        float64 ``[n_edges]``.
    """
    return _sum_values(graph.ngram_offsets, graph.ngrams, values)


def occurrence_probabilities(graph: SplitGraph, posterior: Posterior) -> Floats:
    """Return the probability that a derivation has each n-gram.

    Returns:
        float64 ``[n_ngrams]``; 0 for number 0, the empty n-gram.
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
def _count(offsets: Ints, ngrams: Ints32, times: Floats, n_ngrams: int) -> Floats:
    counts = np.zeros(n_ngrams)
    for edge in range(len(times)):
        if times[edge] > 0.0:
            for entry in range(offsets[edge], offsets[edge + 1]):
                counts[ngrams[entry]] += times[edge]
    return counts


@kernel
def _sum_values(offsets: Ints, ngrams: Ints32, values: Floats) -> Floats:
    sums = np.zeros(len(offsets) - 1)
    for edge in range(len(sums)):
        for entry in range(offsets[edge], offsets[edge + 1]):
            sums[edge] += values[ngrams[entry]]
    return sums


@kernel
def _makers(offsets: Ints, ngrams: Ints32, chosen: Ints32, n_ngrams: int) -> tuple[Ints, Ints]:
    """Return offsets and edges: those that create each n-gram, once per occurrence."""
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
def _heads(edge_offsets: Ints) -> Ints:
    heads = np.empty(edge_offsets[-1], dtype=np.int64)
    for node in range(len(edge_offsets) - 1):
        heads[edge_offsets[node] : edge_offsets[node + 1]] = node
    return heads


@kernel
def _possible_twice(
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    times: Floats,
    starts: Ints,
    makers: Ints,
    n_chosen: int,
) -> Bools:
    """Return whether a derivation can have each n-gram twice, bool ``[n_chosen]``.

    The derivation may use only edges whose posterior is not 0.

    Args:
        times: float64 ``[n_edges]``; edge posteriors.
        starts, makers: offsets and edges from ``_makers``.
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
        # created at nearly the same nodes, and nodes below them can be skipped.
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
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    shares: Floats,
    starts: Ints,
    makers: Ints,
    n_chosen: int,
) -> Floats:
    """Return the probability that a derivation of the goal has each n-gram.

    Args:
        shares: float64 ``[n_edges]``; see ``Posterior``.
        starts, makers: offsets and edges from ``_makers``.
    """
    n_nodes = len(edge_offsets) - 1
    some = np.empty(n_chosen)
    made = np.zeros((len(shares), _BLOCK), dtype=np.bool_)
    makes = np.zeros(len(shares), dtype=np.bool_)
    # The fraction of each node's derivations without the n-gram.
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
