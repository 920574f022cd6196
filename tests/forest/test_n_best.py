"""n-best lists of search graphs against all derivations, and against Moses' own lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge, hypergraph_names, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest
from formats.text import read_lines
from mosesplug.features import FeatureSpace
from mosesplug.forest import Hypergraph
from mosesplug.forest.n_best import GraphFeatures, make_nbest_list
from tests.forest.graphs import derivations, graph_of, graphs, read_recorded

# Two dense columns, as the graphs of ``graph_of`` have.
PLAIN = GraphFeatures(FeatureSpace((("A", 1), ("B", 1))))


def rows(found: NBestList) -> list[tuple[bytes, list[float], dict[str, float], float]]:
    """Text, dense and sparse features and score of each hypothesis."""
    ends = found.sparse_indptr.tolist()
    return [
        (
            found.text(row),
            found.dense[row].tolist(),
            {
                found.sparse_names[found.sparse_indices[place]]: float(found.sparse_data[place])
                for place in range(ends[row], ends[row + 1])
            },
            float(found.scores[row]),
        )
        for row in range(len(found))
    ]


@given(several=st.lists(graphs(features=2), min_size=1, max_size=3), k=st.integers(1, 12))
def test_against_all_derivations_of_all_graphs(
    several: list[list[list[Edge]]], k: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("graphs")
    weights = np.array([1.0, -0.5])
    best: dict[bytes, float] = {}
    known: dict[bytes, list[tuple[float, ...]]] = {}
    for nodes in several:
        for values, words in derivations(nodes, len(nodes) - 1):
            text = b" ".join(words)
            best[text] = max(float(weights @ values), best.get(text, -np.inf))
            known.setdefault(text, []).append(values)
    found = make_nbest_list(7, [graph_of(nodes, directory) for nodes in several], PLAIN, weights, k)
    assert found is not None
    listed = rows(found)
    assert [row[3] for row in listed] == sorted(best.values(), reverse=True)[:k]
    assert len({row[0] for row in listed}) == len(listed)
    for text, dense, sparse, score in listed:
        assert score == best[text]
        assert tuple(dense) in known[text]
        assert float(weights @ dense) == score
        assert not sparse
    assert found.sentence_ids.tolist() == [7] * len(listed)
    assert found.groups == PLAIN.space.groups


def read(nodes: list[list[Edge]], names: tuple[str, ...], path: Path, **columns: int) -> Hypergraph:
    write_hypergraph(path, names, nodes)
    return Hypergraph.of_file(read_hypergraph(path), columns)


def test_sparse_features_and_those_that_are_not_tuned(tmp_path: Path) -> None:
    space = FeatureSpace((("LM0", 1),), ("wt_a", "Penalty0", "wt_b"))
    columns = {name: column for column, name in enumerate(("LM0", *space.sparse))}
    nodes = [
        [Edge((b"<s>",), 0)],
        [
            Edge((0, b"a"), 1, (-1.0, 0.0), (("wt_a", 1.0), ("wt_b", 0.5))),
            Edge((0, b"x"), 1, (-1.0, -100.0)),
        ],
        [
            Edge((1, b"b"), 2, (-2.0, 0.0), (("wt_b", 1.5), ("wt_a", 1.0))),
            Edge((1, b"a"), 2, (-2.0, 0.0), (("wt_b", -0.5),)),
        ],
        [Edge((2, b"</s>"), 2)],
    ]
    graph = read(nodes, ("LM0", "Penalty0"), tmp_path / "0", **columns)
    features = GraphFeatures(space, {"Penalty0": 2.0, "Other0": 1.0})
    weights = features.vector((0.5,), {"wt_b": 0.25, "wt_c": 9.0})
    assert weights.tolist() == [0.5, 0.0, 2.0, 0.25]
    found = make_nbest_list(0, [graph], features, weights, 10)
    assert found is not None
    assert rows(found) == [
        (b"a b", [-3.0], {"wt_a": 2.0, "wt_b": 2.0}, -1.0),
        (b"a a", [-3.0], {"wt_a": 1.0}, -1.5),
        (b"x b", [-3.0], {"wt_a": 1.0, "wt_b": 1.5}, -201.125),
        (b"x a", [-3.0], {"wt_b": -0.5}, -201.625),
    ]
    assert make_nbest_list(0, [], features, weights, 10) is None


def test_of_equal_scores_the_first_graph_comes_first(tmp_path: Path) -> None:
    one = graph_of([[Edge((b"a",), 1, (1.0, 0.0)), Edge((b"b",), 1, (0.0, 1.0))]], tmp_path)
    other = graph_of([[Edge((b"b",), 1, (1.0, 0.0)), Edge((b"c",), 1, (1.0, 0.0))]], tmp_path)
    found = make_nbest_list(0, [one, other], PLAIN, np.ones(2), 10)
    assert found is not None
    assert [found.text(0)] == [b"b"]
    assert {found.text(row) for row in range(len(found))} == {b"a", b"b", b"c"}
    assert found.dense[0].tolist() == [0.0, 1.0]


def test_empty_translation(tmp_path: Path) -> None:
    graph = read([[Edge((b"<s>",), 0)], [Edge((0, b"</s>"), 0)]], (), tmp_path / "0")
    found = make_nbest_list(0, [graph], PLAIN, np.ones(2), 10)
    assert found is not None
    assert rows(found) == [(b"", [0.0, 0.0], {}, 0.0)]


def test_recorded_lists(multi30k: Path) -> None:
    forest = multi30k / "forest"
    recorded = read_nbest(forest / "first60.best100.gz")
    weights = {
        name.decode(): float(value)
        for name, value in map(bytes.split, read_lines(forest / "hypergraph" / "weights"))
    }
    dense = hypergraph_names(recorded.groups)
    features = GraphFeatures(
        FeatureSpace(recorded.groups, ("UnknownWordPenalty0",)),
        {"UnknownWordPenalty0": weights["UnknownWordPenalty0"]},
    )
    columns = {name: column for column, name in enumerate((*dense, "UnknownWordPenalty0"))}
    vector = features.vector([weights[name] for name in dense], {})
    for sentence in range(0, 60, 6):
        file = read_recorded(multi30k, sentence)
        found = make_nbest_list(
            sentence, [Hypergraph.of_file(file, columns)], features, vector, 100
        )
        assert found is not None
        own = {text: row for row, (text, *_) in enumerate(rows(found))}
        theirs = np.flatnonzero(recorded.sentence_ids == sentence)
        # Moses gives up where many derivations say the same; what it lists is best all the same.
        ranks = [own[recorded.text(row)] for row in theirs]
        assert len(theirs) <= len(found) == 100
        assert np.abs(recorded.dense[theirs] - found.dense[ranks]).max() < 1e-3
        assert np.abs(recorded.scores[theirs] - found.scores[ranks]).max() < 1e-3
        assert np.diff(found.scores[ranks]).max() < 1e-3
