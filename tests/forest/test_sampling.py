"""Samples of derivations against the probabilities of all derivations."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.k_best import k_best, translations
from mosesplug.forest.sampling import count_translations, sample_derivations
from tests.forest.graphs import derivations, graph_of, graphs, worded_graphs

DRAWS = 20_000


def made(nodes: list[list[Edge]]) -> Hypergraph:
    with tempfile.TemporaryDirectory() as directory:
        return graph_of(nodes, Path(directory))


def choices() -> list[list[Edge]]:
    """12 derivations of 12 translations, none of them rare; a node that is used twice."""
    nodes = [[Edge((b"a",), 1, (0.5,)), Edge((b"b",), 1, (0.0,)), Edge((b"c",), 1, (-0.5,))]]
    nodes.append([Edge((0, b"x", 0), 1, (0.2,)), Edge((b"y", 0), 1, (0.7,))])
    return nodes


@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
def test_draws_follow_the_probabilities_of_the_scores(scale: float) -> None:
    from scipy.stats import chisquare  # slow to import, and each worker imports all test files

    nodes = choices()
    every = {tuple(words): features[0] for features, words in derivations(nodes, 1)}
    assert len(every) == 12
    weights = {words: math.exp(scale * score) for words, score in every.items()}
    graph = made(nodes)
    drawn = sample_derivations(
        graph, graph.edge_scores(np.ones(1)), DRAWS, np.random.default_rng(5), scale=scale
    )
    counts = Counter(tuple(words) for words in translations(graph, drawn))
    expected = [DRAWS * weights[words] / sum(weights.values()) for words in weights]
    # With these seeds; of all seeds, one of a thousand would be refused.
    assert chisquare([counts[words] for words in weights], expected).pvalue > 0.001


def test_draws_of_one_seed_are_the_same() -> None:
    graph = made(choices())
    scores = graph.edge_scores(np.ones(1))
    one, two, other = (
        sample_derivations(graph, scores, 50, np.random.default_rng(seed)).edges.tolist()
        for seed in (1, 1, 2)
    )
    assert one == two != other


@given(graphs())
def test_draws_are_derivations(nodes: list[list[Edge]]) -> None:
    graph = made(nodes)
    scores = graph.edge_scores(np.ones(1))
    known = k_best(graph, scores, 100_000)
    every = {tuple(known.derivation(k)): known.scores[k] for k in range(len(known))}
    drawn = sample_derivations(graph, scores, 30, np.random.default_rng(3))
    assert len(drawn) == 30
    for number in range(30):
        assert drawn.scores[number] == every[tuple(drawn.derivation(number))]


@given(worded_graphs())
def test_counts_of_translations(nodes: list[list[Edge]]) -> None:
    graph = made(nodes)
    drawn = sample_derivations(
        graph, graph.edge_scores(np.array([1.0, -0.5])), 40, np.random.default_rng(7)
    )
    found = count_translations(graph, drawn)
    said = [tuple(words) for words in translations(graph, drawn)]
    kept = [tuple(words) for words in translations(graph, found.derivations)]
    assert dict(zip(kept, found.counts.tolist(), strict=True)) == Counter(said)
    assert found.derivations.scores.tolist() == sorted(found.derivations.scores, reverse=True)
    for words, score in zip(kept, found.derivations.scores.tolist(), strict=True):
        pairs = zip(said, drawn.scores.tolist(), strict=True)
        assert score == max(own for other, own in pairs if other == words)


@pytest.mark.parametrize("score", [-np.inf, np.nan])
def test_edges_without_a_score_are_never_drawn(score: float) -> None:
    graph = made(choices())
    drawn = sample_derivations(
        graph, np.array([0.0, score, 1.0, score, 0.0]), 200, np.random.default_rng(1)
    )
    assert set(drawn.edges.tolist()) == {0, 2, 4}
    with pytest.raises(DataError, match="no derivation"):
        sample_derivations(graph, np.full(5, score), 1, np.random.default_rng(1))


def test_very_low_scores_can_be_sampled() -> None:
    graph = made(choices())
    scores = np.array([-5000.0, -5000.0, -5000.0, -5000.0, -10_000.0])
    drawn = sample_derivations(graph, scores, 100, np.random.default_rng(1))
    assert set(drawn.edges.tolist()) == {0, 1, 2, 3, 4}


def test_invalid_graphs_are_rejected(tmp_path: Path) -> None:
    graph = made(choices())
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="number of derivations must be positive: 0"):
        sample_derivations(graph, np.zeros(5), 0, rng)
    for scale in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale must be positive and finite"):
            sample_derivations(graph, np.zeros(5), 1, rng, scale=scale)
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(70)]
    with pytest.raises(DataError, match="edges"):
        sample_derivations(graph_of(nodes, tmp_path), np.zeros(71), 1, rng)
