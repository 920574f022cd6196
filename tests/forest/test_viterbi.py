"""The best derivation against every derivation, and against Moses' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge, hypergraph_names, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.weights.files import read_dense
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, viterbi
from tests.forest.graphs import derivations, graph_of, graphs, read_recorded


@given(nodes=graphs())
def test_best_of_all_derivations(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = graph_of(nodes, tmp_path_factory.mktemp("graph"))
    scores = graph.edge_scores(np.ones(1))
    best = viterbi(graph, scores)
    every = [(features[0], words) for features, words in derivations(nodes, len(nodes) - 1)]
    assert best.score == max(score for score, _ in every)
    assert best.score == scores[best.edges].sum() == graph.features(best.edges, 1)[0]
    assert (best.score, graph.translation(best.edges)) in every


def test_of_equal_edges_the_later_one(tmp_path: Path) -> None:
    edges = [Edge((word,), 1, (1.0,)) for word in (b"a", b"b")]
    graph = graph_of([edges, [Edge((0, b"c"), 1, (0.0,))]], tmp_path)
    best = viterbi(graph, graph.edge_scores(np.ones(1)))
    assert graph.translation(best.edges) == [b"b", b"c"]


def test_dead_ends_are_avoided(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(
        "# target ||| features ||| source-covered\n3 3\n"
        "0\n1\na ||| A=1 ||| 1\n2\n[1] b ||| A=1 ||| 1\n[0] c ||| A=9 ||| 1\n"
    )
    graph = Hypergraph.of_file(read_hypergraph(path), {"A": 0})
    assert graph.translation(viterbi(graph, graph.edge_scores(np.ones(1))).edges) == [b"a", b"b"]
    with pytest.raises(DataError, match="no derivation"):
        viterbi(graph, np.full(3, -np.inf))


def test_a_derivation_that_doubles_at_every_node_is_rejected(tmp_path: Path) -> None:
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(70)]
    graph = graph_of(nodes, tmp_path)
    with pytest.raises(DataError, match="edges"):
        viterbi(graph, graph.edge_scores(np.ones(1)))


def test_a_feature_without_a_column_is_an_error(tmp_path: Path) -> None:
    write_hypergraph(tmp_path / "0", ["A"], [[Edge((b"a",), 1, (0.0,))]])
    with pytest.raises(KeyError, match="A"):
        Hypergraph.of_file(read_hypergraph(tmp_path / "0"), {"B": 0})


def weights_of(path: Path, names: tuple[str, ...]) -> NDArray[np.float64]:
    groups = read_dense(path)
    spelled = hypergraph_names([(name, len(values)) for name, values in groups])
    known = dict(zip(spelled, (v for _, values in groups for v in values), strict=True))
    return np.array([known.get(name, 0.0) for name in names])


@pytest.mark.parametrize("tens", range(6))
def test_recorded_translations(multi30k: Path, tens: int) -> None:
    forest = multi30k / "forest"
    for sentence in range(10 * tens, 10 * tens + 10):
        file = read_recorded(multi30k, sentence)
        columns = {name: column for column, name in enumerate(file.names)}
        graph = Hypergraph.of_file(file, columns)
        best = viterbi(graph, graph.edge_scores(weights_of(forest / "init.dense", file.names)))
        text = b"".join(word + b" " for word in graph.translation(best.edges)) + b"\n"
        assert text == (forest / f"hgdecode.{sentence}.txt").read_bytes()
