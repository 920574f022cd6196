"""Small search graphs for the tests of the store, and what a store must return of them."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from formats.graphs.hypergraph import Edge, HypergraphFile, hypergraph_names, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.hypergraph import Hypergraph
from mosesplug.store import NBestStore
from tests.store.toys import GROUPS, Hypothesis, ToyMetric, make_list

SpelledEdges = list[list[tuple[list[int | bytes], dict[str, float]]]]

N_SENTENCES = 3
METRIC = ToyMetric()
COMMON: dict[str, Any] = {
    "metric": METRIC,
    "references": METRIC.prepare(((b"a",) * N_SENTENCES,)),
    "n_sentences": N_SENTENCES,
}
NODES = [
    [Edge((b"<s>",), 0)],
    [
        Edge((0, b"a"), 1, (0.5, 0.0, -1.0), (("s_b", 2.0),)),
        Edge((b"\xff|", 0), 1, (0.25, 1.0, 0.0)),
    ],
    [Edge((1, b"</s>"), 1)],
]


def make_graph(nodes: list[list[Edge]] = NODES, groups: Any = GROUPS) -> HypergraphFile:
    """Return a graph as it is read from a file of hypergraphs."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0"
        write_hypergraph(path, hypergraph_names(groups), nodes, compress=None)
        return read_hypergraph(path)


def finish_iteration(store: NBestStore, iteration: int, *lines: Hypothesis) -> None:
    store.add_iteration(iteration, [make_list(lines or [Hypothesis(0, b"a")])], record={}, **COMMON)


def spell_edges(found: Hypergraph, names: tuple[str, ...]) -> tuple[SpelledEdges, list[int]]:
    """Return the edges of each node, with words and names, and the numbers of words covered."""
    edges = []
    for edge in range(found.n_edges):
        tails = iter(found.tails[found.tail_offsets[edge] : found.tail_offsets[edge + 1]].tolist())
        target = [
            next(tails) if word < 0 else found.words[word] for word in found.target(edge).tolist()
        ]
        part = slice(found.feature_indptr[edge], found.feature_indptr[edge + 1])
        columns = found.feature_indices[part].tolist()
        values = found.feature_values[part].tolist()
        edges.append((target, {names[c]: v for c, v in zip(columns, values, strict=True)}))
    bounds = found.edge_offsets.tolist()
    nodes = [edges[i:j] for i, j in itertools.pairwise(bounds)]
    return nodes, found.covered.tolist()


def spell_written(nodes: list[list[Edge]]) -> tuple[SpelledEdges, list[int]]:
    """Return what ``spell_edges`` must return of nodes; features of value 0 are not stored."""
    names = [f"{name}_{i}" for name, width in GROUPS for i in range(width)]
    return [
        [
            (
                list(edge.target),
                {
                    name: float(np.float32(value))
                    for name, value in [*zip(names, edge.dense, strict=False), *edge.sparse]
                    if value
                },
            )
            for edge in edges
        ]
        for edges in nodes
    ], [edges[0].covered for edges in nodes]


def read_value(path: Path, name: bytes, key: bytes) -> bytes:
    """Return the stored value of a key of the named database."""
    with lmdb.open(str(path), max_dbs=8) as environment, environment.begin(write=True) as writing:
        database = environment.open_db(name, writing, create=False)
        return bytes(writing.get(key, db=database))


def write_value(path: Path, name: bytes, key: bytes, value: bytes) -> None:
    """Store another value of a key of the named database."""
    with lmdb.open(str(path), max_dbs=8) as environment, environment.begin(write=True) as writing:
        writing.put(key, value, db=environment.open_db(name, writing, create=False))
