"""Search graphs with weights, from files of several kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph
from mosesplug.errors import DataError
from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs

SEARCH_GRAPH = """\
{0} hyp=0 stack=0 forward=1 fscore=0
{0} hyp=1 stack=1 back=0 score=0 transition=0 forward=-1 fscore=0 covered=0-0 \
scores="core=(-2.000,-100.000,-0.500) wt_x~y=3" out="das|the"
"""


def test_names_of_features_that_graphs_do_not_name(tmp_path: Path) -> None:
    graphs, ini = tmp_path / "osgx", tmp_path / "moses.ini"
    graphs.write_text(SEARCH_GRAPH.format(4) + SEARCH_GRAPH.format(7))
    ini.write_text(
        "[feature]\nA name=LM0 tuneable=false\nUnknownWordPenalty\nB name=TM0\n"
        "[weight]\nLM0= 2\nUnknownWordPenalty0= 1\nTM0= 4\n"
    )
    sparse = tmp_path / "sparse"
    sparse.write_text("wt_x~y 0.25\n")
    weights = read_graph_weights(ini, sparse, [graphs])
    assert weights is not None
    found = [*read_weighted_graphs([graphs], weights)]
    assert [one.sentence for one in found] == [4, 7]
    assert found[0].features.space.groups == (("TM0", 1),)
    assert dict(weights.fixed_weights) == {"LM0": 2.0, "UnknownWordPenalty0": 1.0}
    assert min(found[0].scores) == pytest.approx(-2 * 2 - 100 - 0.5 * 4 + 3 * 0.25)


def test_weights_by_name_and_of_a_directory(tmp_path: Path) -> None:
    names = ("A", "B_1", "B_2", "UnknownWordPenalty0")
    edge = Edge((b"a",), 1, (1.0, 2.0, 4.0, 8.0), (("s_t", 16.0),))
    write_hypergraph(tmp_path / "3", names, [[edge]], compress=None)
    (tmp_path / "weights").write_text("B_1 1\nB_2 1\nA 1\ns_t 0.5\nUnknownWordPenalty0 0.25\n")
    weights = read_graph_weights(None, None, [tmp_path / "3", tmp_path])
    assert weights is not None
    assert weights.groups == (("B", 2), ("A", 1))
    (found,) = read_weighted_graphs([tmp_path, tmp_path / "3"], weights)
    assert found.scores.tolist() == [17.0, 17.0, 0.0, 0.0]  # and an edge from each to the goal
    assert read_graph_weights(None, None, [tmp_path / "3"]) == weights
    (tmp_path / "weights").unlink()
    assert read_graph_weights(None, None, [tmp_path / "3"]) is None
    (found,) = read_weighted_graphs([tmp_path / "3"], None)
    assert (found.scores.tolist(), found.names) == ([0.0], (*names, "s_t"))


def test_inconsistent_inputs_are_rejected(tmp_path: Path) -> None:
    graphs, weights = tmp_path / "osgx", tmp_path / "weights"
    graphs.write_text(SEARCH_GRAPH.format(7) + SEARCH_GRAPH.format(4))
    with pytest.raises(DataError, match=r"sentence ids do not ascend \(4 after 7\)"):
        list(read_weighted_graphs([graphs], None))
    graphs.write_text(SEARCH_GRAPH.format(4))
    weights.write_text("core1 1\ncore2 1\n")
    with pytest.raises(DataError, match="core3"):
        list(read_weighted_graphs([graphs], read_graph_weights(weights, None, [])))
