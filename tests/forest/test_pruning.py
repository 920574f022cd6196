"""Pruning against every derivation of small graphs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, viterbi
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.hope_fear import find
from mosesplug.forest.pruning import (
    prune_to_edges,
    score_best_through_edges,
    score_in_single_precision,
    sort_columns,
)
from mosesplug.forest.search_graph import search_graph
from mosesplug.kernels import read_only
from tests.forest.graphs import NAMES, graph_of, graphs

WEIGHTS = np.array([1.0, -0.5], dtype=np.float32)


def made(nodes: list[list[Edge]]) -> Hypergraph:
    with tempfile.TemporaryDirectory() as directory:
        return graph_of(nodes, Path(directory))


def edge_lists(graph: Hypergraph, node: int) -> Iterator[list[int]]:
    """Edges of every derivation of a node, each before those of its tails."""
    for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
        tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
        for parts in product(*(list(edge_lists(graph, tail)) for tail in tails)):
            yield [edge, *(edge for part in parts for edge in part)]


def totals(graph: Hypergraph, edges: list[int]) -> tuple[float, ...]:
    return tuple(graph.features(np.array(edges), len(NAMES)).tolist())


def best_with_each(graph: Hypergraph) -> NDArray[np.float64]:
    """The highest score of a derivation that has an edge."""
    best = np.full(graph.n_edges, -np.inf)
    for edges in edge_lists(graph, graph.n_nodes - 1):
        score = sum(x * w for x, w in zip(totals(graph, edges), WEIGHTS.tolist(), strict=True))
        for edge in edges:
            best[edge] = max(best[edge], score)
    return best


@given(graphs(features=2))
def test_the_score_through_an_edge_is_that_of_its_best_derivation(nodes: list[list[Edge]]) -> None:
    graph = made(nodes)
    scores = score_in_single_precision(
        graph.feature_indptr, graph.feature_indices, graph.feature_values, WEIGHTS
    )
    np.testing.assert_array_equal(scores, graph.edge_scores(WEIGHTS.astype(np.float64)))
    through, _ = score_best_through_edges(
        graph.edge_offsets, graph.tail_offsets, graph.tails, scores
    )
    np.testing.assert_array_equal(through, best_with_each(graph))


@given(graphs(features=2), st.integers(0, 8))
def test_keeps_the_derivations_of_the_best_edges(nodes: list[list[Edge]], edges: int) -> None:
    graph = made(nodes)
    best = best_with_each(graph)
    place = min(max(edges, 1), len(best))
    kept = (best >= np.sort(best)[-place]) & (best > -np.inf)
    expected = sorted(
        (tuple(graph.translation(np.array(found))), totals(graph, found))
        for found in edge_lists(graph, graph.n_nodes - 1)
        if kept[found].all()
    )
    smaller = prune_to_edges(graph, WEIGHTS, edges)
    assert smaller.n_edges == np.count_nonzero(kept)
    found = sorted(
        (tuple(smaller.translation(np.array(found))), totals(smaller, found))
        for found in edge_lists(smaller, smaller.n_nodes - 1)
    )
    assert found == expected
    weights = WEIGHTS.astype(np.float64)
    highest = viterbi(graph, graph.edge_scores(weights)).score
    assert viterbi(smaller, smaller.edge_scores(weights)).score == highest


def test_nodes_keep_their_order_and_coverage(tmp_path: Path) -> None:
    nodes = [
        [Edge((b"<s>",), 0, (0.0,))],
        [Edge((0, b"bad"), 3, (-9.0,))],
        [Edge((0, b"good"), 2, (1.0,)), Edge((0, b"fair"), 2, (0.0,))],
        [Edge((1, b"a"), 5, (0.0,)), Edge((2, b"b"), 5, (0.0,))],
    ]
    smaller = prune_to_edges(graph_of(nodes, tmp_path), WEIGHTS[:1], 3)
    assert smaller.covered.tolist() == [0, 2, 5]
    assert smaller.edge_offsets.tolist() == [0, 1, 2, 3]
    assert smaller.tails.tolist() == [0, 1]
    assert smaller.translation(np.array([2, 1, 0])) == [b"<s>", b"good", b"b"]


def test_rounding_does_not_break_the_best_derivation(tmp_path: Path) -> None:
    """In single precision the sums of one derivation depend on where it is cut in two."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = rng.normal(0.0, 1e3, 9)
        nodes = [[Edge((b"a",), 1, (float(values[0]),))]]
        nodes += [[Edge((head, b"a"), 1, (float(value),))] for head, value in enumerate(values[1:])]
        smaller = prune_to_edges(graph_of(nodes, tmp_path), WEIGHTS[:1], 1)
        assert smaller.n_edges == len(nodes)


@given(st.lists(st.sampled_from([(), (2, 0, 1), (0, 1, 2), (1, 0, 2), (3, 1), (1, 3)])))
def test_features_of_each_edge_are_sorted(rows: list[tuple[int, ...]]) -> None:
    indices = np.array([column for row in rows for column in row], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    none, values = np.zeros(0, dtype=np.int32), np.arange(len(indices), dtype=np.float32)
    graph = Hypergraph(
        offsets, offsets, none, offsets, none, offsets, indices, values, none, words=()
    )
    ordered = sort_columns(graph)
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))
    expected = np.lexsort([indices, owners])
    assert np.array_equal(ordered.feature_indices, indices[expected])
    assert np.array_equal(ordered.feature_values, values[expected])


def test_features_in_order_of_columns(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (2.0, 3.0)), Edge((b"b",), 1)]], tmp_path)
    turned = Hypergraph(**{**vars(graph), "feature_indices": 1 - graph.feature_indices})
    ordered = sort_columns(turned)
    assert ordered.feature_indices.tolist() == [0, 1]
    assert ordered.feature_values.tolist() == [3.0, 2.0]
    assert turned.feature_values.tolist() == [2.0, 3.0]


def test_tiny_weights_count_as_zero(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (1e8,))]], tmp_path)
    weights = np.array([1e-8], dtype=np.float32)
    arrays = graph.feature_indptr, graph.feature_indices, graph.feature_values
    assert score_in_single_precision(*arrays, weights).tolist() == [0.0]
    assert score_in_single_precision(*arrays, 2 * weights).tolist() == [2.0]


def test_rejects_a_goal_without_derivation(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (1.0,))]], tmp_path)
    empty = Hypergraph(**{**vars(graph), "edge_offsets": read_only(np.array([0, 1, 1]))})
    with pytest.raises(DataError, match="no derivation"):
        prune_to_edges(empty, WEIGHTS, 1)


@pytest.mark.parametrize("value", [3e38, -3e38])
def test_rejects_scores_beyond_single_precision(tmp_path: Path, value: float) -> None:
    graph = graph_of([[Edge((b"a",), 1, (value,))]], tmp_path)
    with pytest.raises(DataError, match="finite"):
        prune_to_edges(graph, 2 * WEIGHTS[:1], 1)
    searched = search_graph(graph, ReferenceNgramTree.of([[b"a"]]))
    with pytest.raises(DataError, match="finite"):
        find(searched, 2 * WEIGHTS[:1], np.ones(9, dtype=np.float32))
