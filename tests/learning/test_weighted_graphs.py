"""Search graphs with weights, from files of several kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph
from formats.weights.named import read_named_weights
from mosesplug.errors import DataError, UsageError
from mosesplug.learning.data import read_data
from mosesplug.learning.inputs import GivenData, LearningData
from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lists import ListSettings

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
    weights = read_graph_weights(read_named_weights(ini, sparse), [graphs])
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
    weights = read_graph_weights(None, [tmp_path / "3", tmp_path])
    assert weights is not None
    assert weights.groups == (("B", 2), ("A", 1))
    (found,) = read_weighted_graphs([tmp_path, tmp_path / "3"], weights)
    assert found.scores.tolist() == [17.0, 17.0, 0.0, 0.0]  # and an edge from each to the goal
    assert read_graph_weights(None, [tmp_path / "3"]) == weights
    (tmp_path / "weights").unlink()
    assert read_graph_weights(None, [tmp_path / "3"]) is None
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
        list(read_weighted_graphs([graphs], read_graph_weights(read_named_weights(weights), [])))


def learn_from(graphs: Path, **settings: Any) -> LearningData:
    lists = ListSettings(names=("core",))
    return read_data(
        LearningSettings(graphs=(graphs,), lists=lists, **settings),
        given=GivenData(references=[[b"das"]]),
    )


@pytest.mark.parametrize("text", ['{"dense": {"core": 1}, "sparse": {"wt_x~y": 5}}', "core= 1\n"])
def test_learning_starts_from_sparse_weights_of_the_file(text: str, tmp_path: Path) -> None:
    graphs, path = tmp_path / "osgx", tmp_path / "w"
    graphs.write_text(SEARCH_GRAPH.format(0).replace("-2.000,-100.000,-0.500", "-2.000"))
    path.write_text(text)
    if "sparse" not in text:
        Path(f"{path}.sparse").write_text("wt_x~y 5\n")
    found = learn_from(graphs, init=str(path))
    assert dict(zip(found.space.names, found.start.weights.tolist(), strict=True)) == {
        "core_0": 1.0,
        "wt_x~y": 5.0,
    }


def test_sparse_weights_alone_replace_those_of_the_graphs(tmp_path: Path) -> None:
    graphs, sparse = tmp_path / "osgx", tmp_path / "s"
    graphs.write_text(SEARCH_GRAPH.format(0).replace("-2.000,-100.000,-0.500", "-2.000"))
    (tmp_path / "weights").write_text("core 3\nwt_x~y 4\n")
    sparse.write_text("wt_x~y 5\n")
    for given, expected in ((None, [3.0, 4.0]), (sparse, [3.0, 5.0])):
        found = learn_from(graphs, sparse_init=given)
        assert found.start.weights.tolist() == expected


def test_weights_of_divided_scores_and_derived_features_are_of_lists_only(tmp_path: Path) -> None:
    for record, message in (("length-exponent: 0.5", "divides nothing"), ("derived: a=b/c", "a=b")):
        path = tmp_path / "w"
        path.write_text(f"# {record}\nLM0= 1\n")
        with pytest.raises(UsageError, match=message):
            read_graph_weights(read_named_weights(path), [])
