"""Splitting of search graphs, so that the n-grams of every edge are fixed.

An edge concatenates the translations of its tails and its own words. The n-grams that this creates
depend on the last words of the left part and the first words of the right part. A node is
therefore split by its last ``order - 1`` words if words can follow its translation, and by its
first ``order - 1`` words if words can precede it. The graphs of phrase-based decoders grow from
left to right, so that only last words matter, and the language model state has already separated
most of these. After the split, the n-gram counts of a derivation are sums over its edges, and sums
over derivations are exact:

- ``split`` numbers every n-gram of the graph, for consensus decoding;
- ``split_for`` numbers the n-grams of the references, for objectives. It treats words that no
  reference n-gram can include as one word, which yields far fewer nodes.

The result is the product of the graph with an automaton of n-gram contexts (Bar-Hillel
intersection). With ``V`` contexts per node and side, a node becomes up to ``V**2`` nodes, and an
edge with ``m`` tails up to ``V**(2 * m)`` edges. In phrase-based graphs ``m`` is 1, and ``V``
replaces ``V**2``. The split does not depend on weights: a graph is split once for all weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.ngrams.reference_ngrams import ORDER, ReferenceNgramTree
from mosesplug.forest.ngrams.split_search import (
    LONGEST,
    Sizes,
    SplitEdges,
    SplitSource,
    States,
    fill_slots,
    search_nodes,
    worst_edge,
)
from mosesplug.forest.ngrams.states import open_sides, renumber_words
from mosesplug.forest.ngrams.table import (
    NgramTable,
    empty_table,
    larger_table,
    make_table,
    measure_orders,
)
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, read_only

MOST_EDGES = 4_000_000
"""Maximum number of edges of a split; larger ones would take gigabytes."""

ROOM = 4
"""A phrase-based graph has about three times as many edges when it is split by its 4-grams."""


@dataclass(frozen=True)
class SplitGraph:
    """A split graph; its derivations correspond one to one to the original ones.

    Attributes:
        edge_offsets, tail_offsets, tails: as in ``Hypergraph``; the last node is the goal.
        origins: int64 ``[n_edges]``; the original edge of each edge.
        ngram_offsets: int64 ``[n_edges + 1]``; offsets into ``ngrams``.
        ngrams: int32; the n-grams that each edge creates, once per occurrence.
        totals: int32 ``[n_edges, order]``; number of n-grams of each length that an edge creates,
            including those without a number.
        table: the n-grams; words are numbered as in the graph (``split``) or in the references
            (``split_for``).
        orders: int32 ``[n_ngrams]``; length of each n-gram; 0 for number 0, the empty n-gram.
    """

    edge_offsets: Ints
    tail_offsets: Ints
    tails: Ints32
    origins: Ints
    ngram_offsets: Ints
    ngrams: Ints32
    totals: Ints32
    table: NgramTable
    orders: Ints32

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.origins)

    @property
    def n_ngrams(self) -> int:
        """Number of n-grams, including the empty one."""
        return len(self.orders)

    def on_graph(self, values: Floats, n_edges: int) -> Floats:
        """Sum values over the copies of each original edge: float64 ``[n_edges]``."""
        sums = np.bincount(self.origins, weights=values, minlength=n_edges)
        return sums.astype(np.float64, copy=False)


def split(
    graph: Hypergraph, order: int = ORDER, *, most_edges: int = MOST_EDGES, room: int = ROOM
) -> SplitGraph:
    """Split a graph so that each edge has fixed n-grams, and number all n-grams.

    Args:
        graph: a graph whose goal can be built. ``<s>`` and ``</s>`` do not count as words.
        order: length of the longest n-grams in words, 1 to 4.
        room: initial capacity in states and edges per node and edge of the graph; it grows.

    Raises:
        DataError: no derivation builds the goal, or the result has more edges.
    """
    if not 1 <= order <= ORDER:
        raise ValueError(f"n-gram order must be from 1 to {ORDER}: {order}")
    source = _source(graph, {word: number for number, word in enumerate(graph.words)})
    table = empty_table(1 + room * graph.n_edges)
    return _split(source, table, 1, True, order, most_edges, room)


def split_for(
    graph: Hypergraph,
    references: ReferenceNgramTree,
    *,
    most_edges: int = MOST_EDGES,
    room: int = ROOM,
) -> SplitGraph:
    """Split a graph so that the reference n-grams of each edge are fixed.

    Only reference n-grams have numbers, the same as in ``references.tree``; ``totals`` includes
    the others.

    Args:
        graph, most_edges, room: see ``split``.
    """
    table = make_table(references.tree)
    count = len(references.tree.total_counts)
    return _split(_source(graph, references.words), table, count, False, ORDER, most_edges, room)


def _source(graph: Hypergraph, words: Mapping[bytes, int]) -> SplitSource:
    """Return the graph for kernels; ``words`` maps words to numbers."""
    text = renumber_words(graph, words)
    return SplitSource(text, *open_sides(text))


def _split(
    source: SplitSource,
    table: NgramTable,
    count: int,
    grow: bool,
    order: int,
    most_edges: int,
    room: int,
) -> SplitGraph:
    n_nodes = len(source.preceded)
    most_ngrams = worst_edge(source)[1] * order
    states, edges = _room(source, order, room)
    sizes = Sizes(*(np.array([size], dtype=np.int64) for size in (0, 0, count)))
    node = 0
    while node < n_nodes:
        node = search_nodes(source, states, edges, table, sizes, node, most_ngrams, grow)
        if sizes.edges[0] > most_edges:
            raise DataError(
                f"split by its {order}-grams, the search graph has more than {most_edges} edges: "
                "prune it first"
            )
        if node < n_nodes:
            most_new = most_ngrams if grow else 0
            states, edges, table = _larger(states, edges, table, sizes, most_new, node)
    if states.firsts[-1] == states.firsts[-2]:
        raise DataError("no derivation of the search graph builds its goal")
    return _make_graph(edges, int(sizes.states[0]), int(sizes.edges[0]), table, int(sizes.table[0]))


def _make_graph(
    edges: SplitEdges, n_states: int, n_edges: int, table: NgramTable, count: int
) -> SplitGraph:
    """Return the split graph of the states and edges found."""
    heads = edges.heads[:n_edges]
    # Edges are grouped by original node, but not yet by state.
    places = np.argsort(heads, kind="stable")
    edge_counts = np.bincount(heads, minlength=n_states)
    tail_offsets, tails = _gather(edges.tail_offsets, edges.tails, places)
    ngram_offsets, ngrams = _gather(edges.ngram_offsets, edges.ngrams, places)
    return SplitGraph(
        read_only(np.concatenate([[0], np.cumsum(edge_counts)]).astype(np.int64)),
        read_only(tail_offsets),
        read_only(tails),
        read_only(edges.origins[places]),
        read_only(ngram_offsets),
        read_only(ngrams),
        read_only(edges.totals[places]),
        table,
        read_only(measure_orders(table, count)),
    )


def _room(source: SplitSource, order: int, room: int) -> tuple[States, SplitEdges]:
    """Allocate ``room`` states and edges for each node and edge of the graph."""
    n_nodes, n_edges = len(source.preceded), len(source.graph.tail_offsets) - 1
    states = States(
        np.zeros(n_nodes + 1, dtype=np.int64),
        np.empty(room * n_nodes, dtype=np.int64),
        np.empty((room * n_nodes, LONGEST), dtype=np.int32),
        np.empty((room * n_nodes, LONGEST), dtype=np.int32),
        _slots(room * n_nodes),
    )
    room *= n_edges
    edges = SplitEdges(
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty((room, order), dtype=np.int32),
        np.zeros(room + 1, dtype=np.int64),
        np.empty(room, dtype=np.int32),
        np.zeros(room + 1, dtype=np.int64),
        np.empty(room * order, dtype=np.int32),
    )
    return states, edges


def _slots(room: int) -> Ints:
    """Return empty hash slots for the states; at least half of them stay free."""
    return np.full(1 << (2 * room).bit_length(), -1, dtype=np.int64)


def _larger(
    states: States, edges: SplitEdges, table: NgramTable, sizes: Sizes, most_new: int, node: int
) -> tuple[States, SplitEdges, NgramTable]:
    """Copy full arrays to twice the room, without the partial results of ``node``."""
    n_states, n_edges, count = (int(size[0]) for size in sizes)
    if n_states == len(states.nodes):
        nodes, left, right = (_twice(a) for a in (states.nodes, states.left, states.right))
        states = States(states.firsts, nodes, left, right, _slots(2 * n_states))
    elif count + most_new > len(table.words):
        table = larger_table(table, count, 2 * len(table.words))
    else:
        edges = SplitEdges(*(_twice(array) for array in edges))
    sizes.states[0] = states.firsts[node]
    sizes.edges[0] = np.count_nonzero(edges.heads[:n_edges] < states.firsts[node])
    fill_slots(states, int(sizes.states[0]))
    return states, edges, table


def _twice(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, np.empty_like(array)])


@kernel
def _gather(offsets: Ints, values: Ints32, places: Ints) -> tuple[Ints, Ints32]:
    """Return the used rows in another order."""
    new_offsets = np.zeros(len(places) + 1, dtype=np.int64)
    new_values = np.empty(offsets[len(places)], dtype=np.int32)
    size = 0
    for row in range(len(places)):
        first, last = offsets[places[row]], offsets[places[row] + 1]
        for entry in range(first, last):
            new_values[size] = values[entry]
            size += 1
        new_offsets[row + 1] = size
    return new_offsets, new_values
