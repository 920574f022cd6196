"""Every derivation of a small search graph, to hold sums over derivations against."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.forest import Hypergraph

WORDS = (b"a", b"b", b"c")


@dataclass(frozen=True)
class Every:
    """The derivations of a graph's goal.

    Attributes:
        edges: of each, as often as it uses them.
        uses: float64 ``[n, n_edges]``; how often each uses each edge.
    """

    edges: list[list[int]]
    uses: NDArray[np.float64]

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each derivation, float64 ``[n]``."""
        weights = np.exp(self.uses @ scores)
        return weights / weights.sum()


def every(graph: Hypergraph) -> Every:
    """All derivations of the goal."""
    lists = list(edge_lists(graph, graph.n_nodes - 1))
    uses = np.array([np.bincount(edges, minlength=graph.n_edges) for edges in lists], dtype=float)
    return Every(lists, uses)


def edge_lists(graph: Hypergraph, node: int) -> Iterator[list[int]]:
    """Edges of every derivation of a node, each before those of its tails."""
    for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
        tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
        for parts in product(*(list(edge_lists(graph, tail)) for tail in tails)):
            yield [edge, *(edge for part in parts for edge in part)]


def made(nodes: list[list[Edge]]) -> Hypergraph:
    """The graph of some nodes; its features are numbered."""
    names = [f"F{k}" for k in range(max(len(edge.dense) for edges in nodes for edge in edges))]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0"
        write_hypergraph(path, names, nodes, compress=None)
        file = read_hypergraph(path)
    return Hypergraph.of_file(file, {name: column for column, name in enumerate(names)})


@st.composite
def wordy_graphs(draw: st.DrawFn, features: int = 2, widest: int = 2) -> list[list[Edge]]:
    """Small graphs whose edges have none to three of few words, and up to ``widest`` tails."""
    nodes: list[list[Edge]] = []
    for head in range(draw(st.integers(1, 4))):
        edges = []
        for _ in range(draw(st.integers(1, 3))):
            tails = draw(st.lists(st.integers(0, head - 1), max_size=widest)) if head else []
            words = draw(st.lists(st.sampled_from((*WORDS, b"<s>")), max_size=3))
            target = draw(st.permutations([*tails, *words]))
            values = [draw(st.integers(-4, 4)) / 4 for _ in range(features)]
            edges.append(Edge(tuple(target), 1, tuple(values)))
        nodes.append(edges)
    return nodes


def is_small(graph: Hypergraph, most: int = 300) -> bool:
    """Whether the goal has few derivations."""
    counts: list[int] = []
    for node in range(graph.n_nodes):
        total = 0
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            ways = 1
            for tail in graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]:
                ways *= counts[tail]
            total += ways
        counts.append(total)
    return counts[-1] <= most


def random_graph(
    rng: np.random.Generator,
    *,
    phrase_based: bool,
    features: int = 3,
    n_nodes: int = 4,
    vocabulary: Sequence[bytes] = WORDS,
) -> Hypergraph:
    """A graph of a dozen derivations and more, each of four words and more."""
    nodes: list[list[Edge]] = []
    for head in range(n_nodes):
        edges = []
        for _ in range(2):
            words = [vocabulary[k] for k in rng.integers(0, len(vocabulary), rng.integers(1, 4))]
            target: list[bytes | int] = list(words)
            if head and phrase_based:
                target.insert(0, head - 1)
            elif head:
                for tail in {head - 1, int(rng.integers(0, head))}:
                    target.insert(int(rng.integers(0, len(target) + 1)), tail)
            edges.append(Edge(tuple(target), 1, tuple(rng.integers(-4, 5, features) / 4)))
        nodes.append(edges)
    return made(nodes)
