"""Sums over derivations against all of them, one by one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.inside_outside import (
    add_features,
    best_outside,
    expectation,
    expectation_and_gradient,
    log_count,
    log_partition,
    posterior,
)
from mosesplug.forest.viterbi import inside_best
from mosesplug.kernels import read_only
from tests.forest.every_derivation import edge_lists, every, is_small, made, wordy_graphs
from tests.forest.graphs import graph_of, read_recorded

WEIGHTS = np.array([1.0, -0.5])


def feature_sums(graph: Hypergraph, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The features of all edges, each times a factor."""
    totals = np.zeros(int(graph.feature_indices.max(initial=1)) + 1)
    add_features(graph.feature_indptr, graph.feature_indices, graph.feature_values, times, totals)
    return totals


@given(wordy_graphs())
def test_posteriors(nodes: list[list[Edge]]) -> None:
    graph = made(nodes)
    assume(is_small(graph))
    scores = graph.edge_scores(WEIGHTS)
    all_of_them = every(graph)
    probabilities = all_of_them.probabilities(scores)
    found = posterior(graph, scores)
    total = math.log(np.exp(all_of_them.uses @ scores).sum())
    assert found.log_partition == pytest.approx(total, abs=1e-12)
    assert log_partition(graph, scores) == found.log_partition
    np.testing.assert_allclose(found.edges, probabilities @ all_of_them.uses, atol=1e-12)
    for node in range(graph.n_nodes):
        of_node = [scores[edges].sum() for edges in edge_lists(graph, node)]
        assert found.inside[node] == pytest.approx(np.logaddexp.reduce(of_node))
        own = slice(graph.edge_offsets[node], graph.edge_offsets[node + 1])
        assert found.nodes[node] == pytest.approx(found.edges[own].sum())
        assert found.shares[own].sum() == pytest.approx(1.0)


@given(wordy_graphs())
def test_outside_scores(nodes: list[list[Edge]]) -> None:
    """Inside and outside score of a node together are the best derivation that uses it."""
    graph = made(nodes)
    assume(is_small(graph))
    scores = graph.edge_scores(WEIGHTS)
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    _, inside, _ = inside_best(*arrays, scores)
    highest, above = best_outside(*arrays, scores, inside)
    totals = [scores[edges].sum() for edges in every(graph).edges]
    heads = np.repeat(np.arange(graph.n_nodes), np.diff(graph.edge_offsets))
    for node in range(graph.n_nodes):
        users = [
            total
            for edges, total in zip(every(graph).edges, totals, strict=True)
            if node in heads[edges]
        ]
        assert highest[node] + inside[node] == pytest.approx(max(users, default=-np.inf))
        if users and node < graph.n_nodes - 1:
            edge = above[node]
            assert node in graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
        else:
            assert above[node] == -1


def test_edges_with_score_minus_infinity_are_ignored(tmp_path: Path) -> None:
    nodes = [
        [Edge((b"a",), 1, (0.0,)), Edge((b"b",), 1, (0.0,))],
        [Edge((0, b"c"), 1, (0.0,)), Edge((b"d",), 1, (0.0,))],
    ]
    graph = graph_of(nodes, tmp_path)
    scores = np.array([-np.inf, 0.0, 1.0, 1.0])
    found = posterior(graph, scores)
    assert found.edges.tolist() == [0.0, 0.5, 0.5, 0.5]
    scores[1] = -np.inf
    found = posterior(graph, scores)
    assert found.edges.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert found.log_partition == 1.0
    with pytest.raises(DataError, match="no derivation"):
        posterior(graph, np.full(4, -np.inf))
    with pytest.raises(DataError, match="no derivation"):
        posterior(graph, np.full(4, np.nan))


def test_large_scores_do_not_overflow(tmp_path: Path) -> None:
    nodes = [[Edge((b"a",), 1, (1.0,)), Edge((b"b",), 1, (0.5,))]]
    graph = graph_of([*nodes, [Edge((0, 0), 1, (1.0,))]], tmp_path)
    found = posterior(graph, graph.edge_scores(np.array([1e6])))
    assert found.log_partition == 3e6
    assert found.edges.tolist() == [2.0, 0.0, 1.0]


@given(wordy_graphs())
def test_number_of_derivations(nodes: list[list[Edge]]) -> None:
    graph = made(nodes)
    assume(is_small(graph))
    count = len(every(graph).edges)
    assert math.exp(log_count(graph)) == pytest.approx(count)


def test_numbers_of_derivations_beyond_floating_point(tmp_path: Path) -> None:
    nodes = [[Edge((word,), 1, (0.0,)) for word in (b"a", b"b")]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(12)]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(12, 60)]
    graph = graph_of(nodes, tmp_path)
    assert log_count(graph) == pytest.approx(2.0**60 * math.log(2))
    empty = Hypergraph(**{**vars(graph), "edge_offsets": read_only(np.zeros(2, dtype=np.int64))})
    assert log_count(empty) == -math.inf


@given(wordy_graphs(), st.integers(0, 2**32 - 1))
def test_expectations_and_covariances(nodes: list[list[Edge]], seed: int) -> None:
    graph = made(nodes)
    assume(is_small(graph))
    scores = graph.edge_scores(WEIGHTS)
    all_of_them = every(graph)
    probabilities = all_of_them.probabilities(scores)
    values = np.random.default_rng(seed).normal(size=(graph.n_edges, 3))
    sums = all_of_them.uses @ values
    found = posterior(graph, scores)
    means = probabilities @ sums
    np.testing.assert_allclose(expectation(found, values), means, atol=1e-10)
    mean, gradient = expectation_and_gradient(graph, found, values[:, 0].copy())
    assert mean == pytest.approx(means[0], abs=1e-10)
    centered = sums - means
    by_uses = (probabilities * centered[:, 0]) @ all_of_them.uses
    np.testing.assert_allclose(gradient, by_uses, atol=1e-9)
    covariances = (probabilities[:, None] * centered).T @ centered
    np.testing.assert_allclose(gradient @ values, covariances[0], atol=1e-9)
    features = np.array([graph.features(np.array(edges), 2) for edges in all_of_them.edges])
    np.testing.assert_allclose(
        feature_sums(graph, found.edges), probabilities @ features, atol=1e-10
    )
    np.testing.assert_allclose(
        feature_sums(graph, gradient),
        (probabilities * centered[:, 0]) @ features,
        atol=1e-9,
    )


def test_recorded_graph_has_the_same_passes(multi30k: Path) -> None:
    """Posteriors of a real graph: one derivation's worth, and expected features as a slope."""
    file = read_recorded(multi30k, 3)
    graph = Hypergraph.of_file(file, {name: column for column, name in enumerate(file.names)})
    weights = np.random.default_rng(1).normal(size=len(file.names)) / 10
    found = posterior(graph, graph.edge_scores(weights))
    assert found.nodes[-1] == 1.0
    assert found.edges[graph.edge_offsets[-2] :].sum() == pytest.approx(1.0)
    step = 1e-6 * np.eye(len(weights))[0]
    slope = (
        log_partition(graph, graph.edge_scores(weights + step))
        - log_partition(graph, graph.edge_scores(weights - step))
    ) / 2e-6
    assert feature_sums(graph, found.edges)[0] == pytest.approx(slope, rel=1e-5)
