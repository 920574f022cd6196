"""Test unions of several graphs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.forest import Hypergraph, k_best
from mosesplug.forest.k_best import translations
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.graph_search import GraphSearch
from mosesplug.forest.search_graph import search_graph
from mosesplug.forest.union import unite_graphs
from tests.forest.graphs import graph_of, references, worded_graphs

WEIGHTS = np.array([1.0, -0.5])
BACKGROUND = np.array([9, 10, 7, 9, 5, 8, 3, 7, 10], dtype=np.float32)
LENGTH = 7


def made(nodes: list[list[Edge]]) -> Hypergraph:
    """A graph of a sentence of ``LENGTH`` words."""
    goal = [Edge(edge.target, LENGTH, edge.dense) for edge in nodes[-1]]
    with tempfile.TemporaryDirectory() as directory:
        return graph_of([*nodes[:-1], goal], Path(directory))


several = st.lists(worded_graphs().map(made), min_size=1, max_size=3)


def everything(graph: Hypergraph) -> list[tuple[float, tuple[bytes, ...], tuple[float, ...]]]:
    """Score, words and features of all derivations."""
    found = k_best(graph, graph.edge_scores(WEIGHTS), 10_000)
    words = translations(graph, found)
    return [
        (score, tuple(text), tuple(graph.features(found.derivation(number), 2).tolist()))
        for number, (score, text) in enumerate(zip(found.scores.tolist(), words, strict=True))
    ]


@given(graphs=several)
def test_all_derivations_of_all_graphs(graphs: list[Hypergraph]) -> None:
    apart = [derivation for graph in graphs for derivation in everything(graph)]
    assert sorted(everything(unite_graphs(graphs))) == sorted(apart)


@given(graphs=several, references=references())
def test_the_best_derivation_of_a_union_is_the_best_of_its_graphs(
    graphs: list[Hypergraph], references: list[list[bytes]]
) -> None:
    """By the model exactly, and by BLEU as far as the search of a single graph does."""
    ngrams = ReferenceNgramTree.of(references)
    together = GraphSearch([search_graph(unite_graphs(graphs), ngrams)])
    weights = WEIGHTS.astype(np.float32)
    best = together.model_best(0, weights)
    apart = GraphSearch([search_graph(graph, ngrams) for graph in graphs])
    each = [apart.model_best(number, weights) for number in range(len(graphs))]
    # Of equal ones the first graph's.
    first = max(each, key=lambda found: found.score)
    assert best.score == first.score
    np.testing.assert_array_equal(best.statistics, first.statistics)
    pair = together.hope_and_fear(0, weights, BACKGROUND, safe_hope=False)
    pairs = [
        apart.hope_and_fear(number, weights, BACKGROUND, safe_hope=False)
        for number in range(len(graphs))
    ]
    assert any(np.array_equal(pair.hope.values, one.hope.values) for one in pairs)
    assert any(np.array_equal(pair.fear.values, one.fear.values) for one in pairs)


def test_equal_derivations_come_from_the_first_graph() -> None:
    def with_word(word: bytes) -> Hypergraph:
        return made([[Edge((word,), 1, (1.0, 2.0))], [Edge((0,), 1, (0.0, 0.0))]])

    graphs = [with_word(b"a"), with_word(b"b"), with_word(b"c")]
    references = ReferenceNgramTree.of([[b"a", b"x"]])
    search = GraphSearch([search_graph(unite_graphs(graphs), references)])
    found = search.model_best(0, np.array([1.0, 1.0], dtype=np.float32))
    assert found.statistics[0] == 1.0
    assert unite_graphs(graphs).words == (b"a", b"b", b"c")
    assert unite_graphs(graphs[:1]) is graphs[0]
