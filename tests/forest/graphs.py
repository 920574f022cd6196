"""Small search graphs, and all that they can say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge, HypergraphFile, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.text import read_bytes
from mosesplug.forest import Hypergraph
from mosesplug.forest.scanner import scan_graph

NAMES = ("A", "B")


def graph_of(nodes: list[list[Edge]], directory: Path) -> Hypergraph:
    """A graph with the first of the features ``NAMES``, as many as the edges have."""
    names = NAMES[: max(len(edge.dense) for edges in nodes for edge in edges)]
    write_hypergraph(directory / "0", names, nodes)
    columns = {name: column for column, name in enumerate(names)}
    return Hypergraph.of_file(read_hypergraph(directory / "0"), columns)


def read_recorded(multi30k: Path, sentence: int) -> HypergraphFile:
    """A graph of Moses, read by the scanner: the reader takes 20 times as long."""
    path = multi30k / "forest" / "hypergraph" / f"{sentence}.gz"
    file = scan_graph(str(path), read_bytes(path))
    assert file is not None
    return file


def derivations(
    nodes: list[list[Edge]], node: int
) -> Iterator[tuple[tuple[float, ...], list[bytes]]]:
    """Features and words of every derivation of a node."""
    for edge in nodes[node]:
        partial: list[tuple[tuple[float, ...], list[bytes]]] = [(edge.dense, [])]
        for part in edge.target:
            if isinstance(part, bytes):
                ways = [((0.0,) * len(edge.dense), [part])]
            else:
                ways = list(derivations(nodes, part))
            partial = [
                (tuple(x + y for x, y in zip(s, t, strict=True)), [*a, *b])
                for s, a in partial
                for t, b in ways
            ]
        yield from partial


@st.composite
def graphs(draw: st.DrawFn, features: int = 1) -> list[list[Edge]]:
    """Small graphs whose edges have distinct words, with no more than 1,500 derivations."""
    nodes: list[list[Edge]] = []
    ways: list[int] = []
    number = 0
    for head in range(draw(st.integers(1, 4))):
        edges = []
        for _ in range(draw(st.integers(1, 3))):
            tails = draw(st.lists(st.integers(0, head - 1), max_size=2)) if head else []
            while math.prod(ways[tail] for tail in tails) > 500:
                tails.pop()
            target = draw(st.permutations([*tails, b"w%d" % number]))
            values = [draw(st.integers(-4, 4)) / 2 for _ in range(features)]
            edges.append(Edge(tuple(target), 1, tuple(values)))
            number += 1
        nodes.append(edges)
        ways.append(
            sum(
                math.prod(ways[part] for part in edge.target if isinstance(part, int))
                for edge in edges
            )
        )
    return nodes


@st.composite
def worded_graphs(draw: st.DrawFn) -> list[list[Edge]]:
    """Small graphs of few words between the borders of the sentence, with two features."""
    nodes = draw(graphs(features=2))
    words = st.sampled_from([b"a", b"b", b"c"])

    def reworded(edge: Edge, head: int) -> Edge:
        parts: list[int | bytes] = []
        for part in edge.target:
            parts += [part] if isinstance(part, int) else draw(st.lists(words, max_size=4))
        return Edge(tuple(parts), head + 1, edge.dense)

    nodes = [[reworded(edge, head) for edge in edges] for head, edges in enumerate(nodes)]
    more: tuple[bytes, ...] = draw(st.sampled_from([(), (b"b",)]))
    whole: tuple[int | bytes, ...] = (b"<s>", len(nodes) - 1, *more, b"</s>")
    nodes.append([Edge(whole, len(nodes) + 1, (0.0, 0.0))])
    return nodes


def references() -> st.SearchStrategy[list[list[bytes]]]:
    """References of any length, and with a word that only the borders of graphs have."""
    said = st.sampled_from([b"a", b"b", b"c", b"<s>"])
    return st.lists(st.lists(said, max_size=12), min_size=1, max_size=3)
