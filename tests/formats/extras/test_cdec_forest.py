"""Forests of cdec: as JSON, and as target graphs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.extras.cdec_forest import read_cdec_forest
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.graphs.hypergraph_reader import read_target_graph
from tests.formats.derivations import derivations

DATA = Path(__file__).parents[2] / "data" / "valid" / "search_graph"
FOREST = (DATA / "tiny.json").read_text()
TARGET = (DATA / "tiny.target").read_text()


def read(path: Path, text: str | bytes) -> HypergraphFile:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_cdec_forest(path)


def forest(*parts: str) -> str:
    return "{" + ",".join(parts) + "}"


def test_arrays_of_a_forest() -> None:
    graph = read_cdec_forest(DATA / "tiny.json")
    assert graph.names == ("P", "L")
    assert graph.words == (b"the", b"that", b"these", b"house", b"home")
    assert graph.edge_offsets.tolist() == [0, 2, 4, 5, 7]
    assert graph.tail_offsets.tolist() == [0, 0, 0, 1, 1, 2, 3, 4]
    assert graph.tails.tolist() == [0, 0, 1, 2]
    assert graph.targets.tolist() == [0, 1, TAIL, 3, 0, 3, TAIL, 4, TAIL, TAIL]
    assert graph.feature_indptr.tolist() == [0, 2, 4, 6, 8, 10, 10, 10]
    assert graph.covered.tolist() == [1, 2, 2, 2]


def test_tails_are_in_the_order_of_the_target(tmp_path: Path) -> None:
    """The rule swaps them; the second nonterminal of the source is the first of the target."""
    swapped = '"[X] ||| [X,1] de [X,2] ||| [2] of [X,1] ||| P=1;L=-2"'
    text = forest(
        '"rules":[7,"[X] ||| a ||| A",8,"[X] ||| b ||| B b"]',
        '"edges":[{"tail":[],"rule":7,"feats":["P",1]}],"node":{"in_edges":[0]}',
        '"edges":[{"tail":[],"rule":8,"feats":["P",2]}],"node":{"in_edges":[1]}',
        f'"edges":[{{"tail":[0,1],"rule":{swapped},"feats":["L",4]}}],"node":{{"in_edges":[2]}}',
    )
    graph = read(tmp_path / "0", text)
    assert derivations(graph) == [("B b of A", (("L", 4.0), ("P", 3.0)))]
    assert graph.tails.tolist() == [1, 0]
    target = b"3 3\n1\nA ||| P=1\n1\nB b ||| P=2\n1\n[1] of [0] ||| L=4\n"
    (tmp_path / "1").write_bytes(target)
    assert derivations(read_target_graph(tmp_path / "1")) == derivations(graph)


def test_a_node_may_be_used_twice(tmp_path: Path) -> None:
    rule = '"[X] ||| [X,1] [X,2] ||| [1] [2]"'
    text = forest(
        '"edges":[{"rule":"[X] ||| a ||| A"},{"rule":"[X] ||| a ||| B"}],"node":{"in_edges":[0,1]}',
        f'"edges":[{{"tail":[0,0],"rule":{rule}}}],"node":{{"in_edges":[2]}}',
    )
    assert [words for words, _ in derivations(read(tmp_path / "0", text))] == [
        "A A",
        "A B",
        "B A",
        "B B",
    ]


def test_strings_are_bytes(tmp_path: Path) -> None:
    text = (
        FOREST.encode()
        .replace(b"[1] house", b'[1] \xff\xe9 \\u00e9\\/\\"')
        .replace(b'["P","L"]', b'["P\xfe","L"]')
    )
    graph = read(tmp_path / "0", text)
    assert {b"\xff\xe9", 'é/"'.encode()} < set(graph.words)
    assert graph.names[0].encode("utf-8", "surrogateescape") == b"P\xfe"


def test_spelling_of_json_does_not_matter(tmp_path: Path) -> None:
    parts = json.loads(FOREST, object_pairs_hook=list)
    spelled = ",\n".join(
        f"{json.dumps(key)} : {json.dumps(dict(v) if key == 'node' else v, indent=1)}"
        if key != "edges"
        else f'"edges": {json.dumps([dict(edge) for edge in v], indent=2)}'
        for key, v in parts
    )
    graph = read(tmp_path / "0", '{"is_sorted": true,' + spelled + "}\n")
    assert derivations(graph) == derivations(read_cdec_forest(DATA / "tiny.json"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{"rules"', '["rules"', "not valid JSON:"),
        ('"features":["P","L"]', '"features":["P","L"],"more":1', "unknown key 'more'"),
        ('"rules":[1,', '"rules":[', "'rules' does not alternate between numbers and strings"),
        ('"rules":[1,', '"rules":["1",', "is not an integer from 0 to 2147483647"),
        ("||| these", "these", r"\[X\] \|\|\| das these' is not a rule"),
        ('["P","L"]', "[0,1]", "'0' is not a feature name"),
        ('["P","L"]', '"PL"', "'features' is not a list"),
        ('"rule":3', '"rule":30', "edge 2 has no rule"),
        ('"feats":[0,-3,1,-3],"rule":3', '"feats":[0,-3,1,-3]', "edge 2 has no rule"),
        ("[0,-3,1,-3]", "[0,-3,2,-3]", "feature number 2 of edge 2 does not exist"),
        ("[0,-3,1,-3]", "[0,-3,0,-3]", "duplicate feature in edge 2"),
        (
            "[0,-3,1,-3]",
            "[0,-3,1]",
            "'feats' of edge 2 does not alternate between names and values",
        ),
        ("[0,-3,1,-3]", "[0,-3,1,NaN]", "not valid JSON:"),
        ("[0,-3,1,-3]", "[0,-3,1,nan]", "not valid JSON:"),
        ("[0,-3,1,-3]", "[0,-3,1,1e999]", "value of feature 'L' of edge 2 is 'inf'"),
        ("[0,-3,1,-3]", f"[0,-3,1,{10**400}]", "value of feature 'L' of edge 2 is"),
        ("[0,-3,1,-3]", f"[0,-3,1,{'1' * 5000}]", "not valid JSON:"),
        ("[0,-3,1,-3]", '[0,-3,1,"-3"]', "value of feature 'L' of edge 2 is '-3'"),
        ("[0,-3,1,-3]", "[0,-3,1,true]", "value of feature 'L' of edge 2 is 'True'"),
        ("[0,-1,1,-0.5]", "[0,-1,1,-1e40]", r"feature value -1e\+40 is too large"),
        ('"tail":[3]', '"tail":[4]', "edge 7 has a tail node that is not defined before it"),
        ('"tail":[3]', '"tail":[99]', "edge 7 has a tail node that is not defined before it"),
        ('"tail":[3]', '"tail":[-1]', "is not an integer from 0 to 2147483647"),
        ('"tail":[3]', '"tail":[1.0]', "is not an integer from 0 to 2147483647"),
        ('"tail":[3]', '"tail":[]', "edge 7 has 0 tails"),
        ('"tail":[3]', '"tail":[3,3]', "edge 7 has 2 tails"),
        ('"tail":[3]', '"tail":[3],"head":4', "edge 7 has .*Known keys: rule, feats, tail, spans"),
        ('"tail":[3]', '"tail":[3],"tail":[3]', "edge 7 has"),
        ('[X,1] ||| [1]"]', '[X,1] ||| [2]"]', "edge 6 has 1 tails"),
        ('"in_edges":[5]', '"in_edges":[4]', "edge 4 of node 3 is missing or leads to two nodes"),
        ('"in_edges":[5]', '"in_edges":[9]', "edge 9 of node 3 is missing or leads to two nodes"),
        ('"in_edges":[5]', '"in_edges":[]', "edge 5 leads to no node"),
        (
            '"in_edges":[5]',
            '"in_edges":[100000000000000]',
            "is not an integer from 0 to 2147483647",
        ),
        ('"node":{"in_edges":[5],"cat":"X"}', '"node":[5]', "node 3 is not a JSON object"),
        ('"node":{"in_edges":[5],"cat":"X"}', '"node":{"in_edges":[5],"x":1}', "node 3 has"),
        ("|||  P", "\\ud800 |||", r"\\ud800' is not valid Unicode"),
        ('Goal"}}\n', 'Goal"}', "not valid JSON:"),
    ],
)
def test_invalid_forests_are_rejected(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = FOREST.replace("the ||| P=-1", "the |||  P=-1")
    assert text.count(old) == 1
    with pytest.raises(FormatError, match=message) as raised:
        read(tmp_path / "0", text.replace(old, new))
    assert raised.value.path == str(tmp_path / "0")
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON:"),
        ("[]", "not a cdec forest"),
        ("null", "not a cdec forest"),
        ("{}", "the forest has no node"),
        ("[" * 100000, "nested too deeply"),
        ('{"edges":' + '{"a":' * 100000, "nested too deeply"),
        ('{"node":{"in_edges":null}}', "the goal has no derivation"),
    ],
)
def test_other_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "0", text)


def test_line_of_broken_json(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not valid JSON:") as raised:
        read(tmp_path / "0", '{"rules":[],\n"edges":[}\n')
    assert raised.value.line == 2


def test_arrays_of_a_target_graph() -> None:
    graph = read_target_graph(DATA / "tiny.target")
    assert graph.names == ("P", "L")
    assert graph.edge_offsets.tolist() == [0, 1, 3, 4, 6, 7, 9]
    assert graph.covered.tolist() == [0] * 6
    assert graph.feature_indices[6:10].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "change",
    [
        ("6 9\n", "# written by hand\n6 9\n\n"),
        ("[0] the ||| P=-1 L=-0.5", "[0]  the ||| P=-1  L=-5e-1 "),
        ("<s> ||| \n", "<s> |||\n"),
        ("[0] these ||| P=-3 L=-3\n", "||| P=-3 L=-3\n"),
    ],
)
def test_spelling_of_a_target_graph_does_not_matter(
    change: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "0").write_text(TARGET.replace(*change))
    graph = read_target_graph(tmp_path / "0")
    assert derivations(graph) == derivations(read_target_graph(DATA / "tiny.target"))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("6 9\n", "6 8\n", None, "9 edges, but the first line announces 8"),
        ("6 9\n", "7 9\n", None, "ends before node 6 of 7"),
        ("6 9\n", "999999999999 9\n", None, "ends before node 6 of 999999999999"),
        ("[1] home", "[9] home", 13, "node 9 does not exist"),
        ("[1] home", "[4] home", 13, "tail node 4 does not precede head node 4"),
        ("[1] home ||| P=-1", "[1] home P=-1", 13, "1 fields"),
        ("[1] home ||| P=-1", "[1] home ||| 1 ||| P=-1", 13, "3 fields"),
        ("[1] home ||| P=-1", "[1] home ||| P=nan", 13, "value of feature P is 'nan'"),
        (
            "6 9\n",
            "# target ||| features\n6 9\n",
            1,
            "search graphs of Joshua are not supported: they lack the goal",
        ),
    ],
)
def test_invalid_target_graphs_are_rejected(
    old: str, new: str, line: int | None, message: str, tmp_path: Path
) -> None:
    assert TARGET.count(old) == 1
    (tmp_path / "0").write_text(TARGET.replace(old, new))
    with pytest.raises(FormatError, match=message) as raised:
        read_target_graph(tmp_path / "0")
    assert (raised.value.path, raised.value.line) == (str(tmp_path / "0"), line)


def test_every_prefix_is_a_forest_or_an_error(tmp_path: Path) -> None:
    for end in range(0, len(FOREST) - 2, 7):
        with pytest.raises(FormatError):
            read(tmp_path / "0", FOREST[:end])
    for end in range(0, len(TARGET), 2):
        (tmp_path / "0").write_text(TARGET[:end])
        try:
            graph = read_target_graph(tmp_path / "0")
        except FormatError:
            continue
        assert np.isfinite(graph.feature_values).all()
