"""The k best derivations against all derivations, and against Moses' own n-best lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from formats.graphs.hypergraph import Edge
from formats.text import read_lines
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, k_best, viterbi
from tests.forest.graphs import derivations, graph_of, graphs, read_recorded


@given(nodes=graphs())
def test_against_all_derivations(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = graph_of(nodes, tmp_path_factory.mktemp("graph"))
    scores = graph.edge_scores(np.ones(1))
    every = [(features[0], words) for features, words in derivations(nodes, len(nodes) - 1)]
    for k in (1, 3, 1000):
        found = k_best(graph, scores, k)
        expected = sorted((score for score, _ in every), reverse=True)[:k]
        assert found.scores.tolist() == expected
        for number, score in enumerate(expected):
            edges = found.derivation(number)
            assert scores[edges].sum() == score
            assert (score, graph.translation(edges)) in every
        distinct = {tuple(found.derivation(number)) for number in range(len(found))}
        assert len(distinct) == len(found)
    assert found.derivation(0).tolist() == viterbi(graph, scores).edges.tolist()


def test_many_tails_of_which_some_are_the_same(tmp_path: Path) -> None:
    nodes = [[Edge((b"w%d" % k,), 1, (-0.5 * k * k,)) for k in range(3)]]
    nodes.append([Edge((b"x",), 1, (0.0,)), Edge((0, b"y"), 1, (-1.0,))])
    nodes.append([Edge((0, 1, 0, 0), 1, (0.0,)), Edge((0, 0, 1), 1, (-0.5,))])
    graph = graph_of(nodes, tmp_path)
    scores = graph.edge_scores(np.ones(1))
    every = sorted((features[0] for features, _ in derivations(nodes, 2)), reverse=True)
    assert len(every) == 27 * 4 + 9 * 4
    for k in (40, 1000):
        found = k_best(graph, scores, k)
        assert found.scores.tolist() == every[:k]
        assert len({tuple(found.derivation(number)) for number in range(len(found))}) == len(found)


@given(nodes=graphs())
def test_distinct_words(nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory) -> None:
    # Half of the words are the same.
    alike = [
        [
            Edge(
                tuple(
                    part if isinstance(part, int) else b"w%d" % (part[-1] % 2) for part in e.target
                ),
                e.covered,
                e.dense,
            )
            for e in edges
        ]
        for edges in nodes
    ]
    graph = graph_of(alike, tmp_path_factory.mktemp("graph"))
    best: dict[tuple[bytes, ...], float] = {}
    for features, words in derivations(alike, len(alike) - 1):
        best[tuple(words)] = max(features[0], best.get(tuple(words), -np.inf))
    found = k_best(graph, graph.edge_scores(np.ones(1)), 1000, distinct=True)
    texts = [tuple(graph.translation(found.derivation(k))) for k in range(len(found))]
    assert len(set(texts)) == len(texts)
    # Few as the nodes are, they may say more than the list has room for.
    assert all(best[text] == score for text, score in zip(texts, found.scores, strict=True))
    assert found.scores.tolist() == sorted(best.values(), reverse=True)[:1000]


def test_looking_for_other_words_ends(tmp_path: Path) -> None:
    nodes = [[Edge((b"a",), 1, (0.0,)), Edge((b"a",), 1, (-1.0,))]]
    nodes += [[Edge((head,), 1, (0.0,)), Edge((head,), 1, (-1.0,))] for head in range(20)]
    graph = graph_of(nodes, tmp_path)
    found = k_best(graph, graph.edge_scores(np.ones(1)), 2, distinct=True, most_alike=50)
    assert found.scores.tolist() == [0.0]


@pytest.mark.parametrize("score", [-np.inf, np.nan])
def test_edges_without_a_score_are_ignored(tmp_path: Path, score: float) -> None:
    nodes = [[Edge((word,), 1, (1.0,)) for word in (b"a", b"b", b"c")]]
    nodes.append([Edge((0, 0), 1, (0.0,)), Edge((b"d",), 1, (0.0,))])
    graph = graph_of(nodes, tmp_path)
    found = k_best(graph, np.array([1.0, score, 2.0, 0.5, score]), 10)
    assert found.scores.tolist() == [4.5, 3.5, 3.5, 2.5]
    assert not {1, 4} & set(found.edges.tolist())


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (0.0,))]], tmp_path)
    with pytest.raises(DataError, match="no derivation"):
        k_best(graph, np.full(1, -np.inf), 3)
    with pytest.raises(ValueError, match="number of derivations must be positive: 0"):
        k_best(graph, np.zeros(1), 0)
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(70)]
    with pytest.raises(DataError, match="edges"):
        k_best(graph_of(nodes, tmp_path), np.zeros(71), 3)


def test_recorded_lists(multi30k: Path) -> None:
    forest = multi30k / "forest"
    names, values = zip(
        *(line.split() for line in read_lines(forest / "hypergraph" / "weights")), strict=True
    )
    columns = {name.decode(): column for column, name in enumerate(names)}
    weights = np.array(values, dtype=np.float64)
    recorded: dict[int, dict[bytes, float]] = {}
    for line in read_lines(forest / "first60.best100.gz"):
        sentence, text, _, score = line.split(b" ||| ")[:4]
        recorded.setdefault(int(sentence), {})[text.strip()] = float(score)
    for sentence in range(0, 60, 7):
        file = read_recorded(multi30k, sentence)
        graph = Hypergraph.of_file(file, columns)
        found = k_best(graph, graph.edge_scores(weights), 100, distinct=True)
        own = {
            b" ".join(graph.translation(found.derivation(k))[1:-1]): found.scores[k]
            for k in range(len(found))
        }
        # Weights and features are written with six decimals.
        for text, score in recorded[sentence].items():
            assert own[text] == pytest.approx(score, abs=1e-3)
