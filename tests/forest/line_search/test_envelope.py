"""Envelopes of search graphs against all derivations, and against decoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.errors import DataError
from mosesplug.forest import Envelope, Hypergraph, envelope, viterbi
from mosesplug.forest.pruning import prune_to_edges
from tests.forest.envelope_semiring import goal_envelope, thresholds
from tests.forest.graphs import derivations, graph_of, graphs, read_recorded


def middles(line: Envelope) -> NDArray[np.float64]:
    """A point in every interval."""
    if not len(line.thresholds):
        return np.zeros(1)
    ends = np.concatenate([line.thresholds[:1] - 1, line.thresholds, line.thresholds[-1:] + 1])
    return 0.5 * (ends[:-1] + ends[1:])


@given(nodes=graphs(features=2))
def test_against_all_derivations(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = graph_of(nodes, tmp_path_factory.mktemp("graph"))
    intercepts, slopes = (graph.edge_scores(axis) for axis in np.eye(2))
    line = envelope(graph, intercepts, slopes)
    every = list(derivations(nodes, len(nodes) - 1))
    points = np.array([features for features, _ in every])

    assert (np.diff(line.slopes) > 0.0).all()
    assert (np.diff(line.thresholds) > 0.0).all()
    for number, x in enumerate(middles(line)):
        best = (points[:, 0] + x * points[:, 1]).max()
        assert line.intercepts[number] + x * line.slopes[number] == pytest.approx(best)
        edges = line.derivation(number)
        found = (line.intercepts[number], line.slopes[number])
        assert graph.features(edges, 2) == pytest.approx(found)
        assert (found, graph.translation(edges)) in every
    # No threshold is missing: between neighbors, nothing wins that the envelope lacks.
    for x in np.linspace(-9.0, 9.0, 73):
        own = (line.intercepts + x * line.slopes).max()
        assert own == pytest.approx((points[:, 0] + x * points[:, 1]).max())


def check_against_the_semiring(
    graph: Hypergraph, intercepts: NDArray[np.float64], slopes: NDArray[np.float64]
) -> int:
    """Compare with the textbook's algebra; the sums are exact in both. Returns how many lines."""
    line, lines = envelope(graph, intercepts, slopes), goal_envelope(graph, intercepts, slopes)
    assert line.slopes.tolist() == [float(slope) for slope, _ in lines]
    assert line.intercepts.tolist() == [float(intercept) for _, intercept in lines]
    assert line.thresholds.tolist() == pytest.approx([float(x) for x in thresholds(lines)])
    return len(lines)


@given(nodes=graphs(features=2))
def test_against_the_semiring(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = graph_of(nodes, tmp_path_factory.mktemp("graph"))
    check_against_the_semiring(graph, *(graph.edge_scores(axis) for axis in np.eye(2)))


@pytest.mark.parametrize("sentence", [3, 29])
def test_recorded_graphs_against_the_semiring(multi30k: Path, sentence: int) -> None:
    file = read_recorded(multi30k, sentence)
    graph = Hypergraph.of_file(file, {name: k for k, name in enumerate(file.names)})
    rng = np.random.default_rng(sentence)
    weights = rng.uniform(0.0, 0.1, len(file.names))
    graph = prune_to_edges(graph, weights.astype(np.float32), 400)
    for _ in range(3):
        # In steps of 1/64 no sum is rounded, and what leads leads by more than rounding.
        intercepts, slopes = (
            np.round(64.0 * graph.edge_scores(vector)) / 64.0
            for vector in (weights, rng.normal(size=len(weights)))
        )
        assert check_against_the_semiring(graph, intercepts, slopes) > 3


def test_of_equal_derivations_the_one_that_decoding_finds(tmp_path: Path) -> None:
    edges = [Edge((word,), 1, (1.0, 2.0)) for word in (b"a", b"b")]
    graph = graph_of([edges, [Edge((0, b"c"), 1, (0.0, 0.0))]], tmp_path)
    line = envelope(graph, graph.edge_scores(np.eye(2)[0]), graph.edge_scores(np.eye(2)[1]))
    assert len(line) == 1
    assert graph.translation(line.derivation(0)) == [b"b", b"c"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_invalid_lines_are_rejected(tmp_path: Path, value: float) -> None:
    graph = graph_of([[Edge((word,), 1, (1.0,)) for word in (b"a", b"b")]], tmp_path)
    for intercepts, slopes in (([0.0, value], [0.0, 1.0]), ([0.0, 1.0], [value, 0.0])):
        with pytest.raises(DataError, match="edge"):
            envelope(graph, np.array(intercepts), np.array(slopes))


def test_lines_that_win_only_beyond_finite_steps_are_omitted(tmp_path: Path) -> None:
    graph = graph_of([[Edge((word,), 1, (1.0,)) for word in (b"a", b"b")]], tmp_path)
    line = envelope(graph, np.array([1.0, 0.0]), np.array([0.0, 1e-310]))
    assert len(line) == 1
    assert line.intercepts.tolist() == [1.0]


def test_dead_ends_are_avoided(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(
        "# target ||| features ||| source-covered\n3 3\n"
        "0\n1\na ||| A=1 ||| 1\n2\n[1] b ||| A=1 ||| 1\n[0] [1] c ||| A=9 ||| 1\n"
    )
    graph = Hypergraph.of_file(read_hypergraph(path), {"A": 0})
    line = envelope(graph, np.zeros(3), np.ones(3))
    assert graph.translation(line.derivation(0)) == [b"a", b"b"]


def test_a_derivation_that_doubles_at_every_node_is_rejected(tmp_path: Path) -> None:
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(70)]
    graph = graph_of(nodes, tmp_path)
    with pytest.raises(DataError, match="edges"):
        envelope(graph, np.zeros(71), np.zeros(71))


@pytest.mark.parametrize("sentence", [0, 17, 42])
def test_recorded_graphs(multi30k: Path, sentence: int) -> None:
    file = read_recorded(multi30k, sentence)
    graph = Hypergraph.of_file(file, {name: k for k, name in enumerate(file.names)})
    rng = np.random.default_rng(sentence)
    intercepts = graph.edge_scores(rng.uniform(0.0, 0.1, len(file.names)))
    slopes = graph.edge_scores(rng.normal(size=len(file.names)))
    line = envelope(graph, intercepts, slopes)
    assert len(line) > 3
    points = np.append(rng.uniform(2 * line.thresholds[0], 2 * line.thresholds[-1], 200), 0.0)
    for x in np.append(points, middles(line)):
        scores = intercepts + x * slopes
        best = viterbi(graph, scores)
        edges = line.derivation(int(np.searchsorted(line.thresholds, x)))
        assert scores[edges].sum() == pytest.approx(best.score, abs=1e-9)
        if np.abs(line.thresholds - x).min() > 1e-9:
            assert graph.translation(edges) == graph.translation(best.edges)
