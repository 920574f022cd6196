"""Search graphs read back: what was written, what Moses wrote, and what is no graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.graphs.hypergraph import TAIL, Edge, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph

FIRST = "# target ||| features ||| source-covered\n"
GRAPH = (
    FIRST
    + "3 4\n"
    + "# node 0\n1\n<s> |||  ||| 0\n"
    + "# node 1\n1\n[0] a b  ||| LM0=-0.5 T_a=b=2  ||| 2\n"
    + "# node 2\n2\n[1] </s> |||  ||| 2\n[0] [1] ||| LM0=1e-3 ||| 3\n"
)
"""Three nodes; the third edge of the second feature's name has an equals sign in it."""


def test_graph_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(GRAPH)
    graph = read_hypergraph(path)
    assert graph.names == ("LM0", "T_a=b")
    assert graph.words == (b"<s>", b"a", b"b", b"</s>")
    assert graph.edge_offsets.tolist() == [0, 1, 2, 4]
    assert graph.tail_offsets.tolist() == [0, 0, 1, 2, 4]
    assert graph.tails.tolist() == [0, 1, 0, 1]
    assert graph.target_offsets.tolist() == [0, 1, 4, 6, 8]
    assert graph.targets.tolist() == [0, TAIL, 1, 2, TAIL, 3, TAIL, TAIL]
    assert graph.feature_indptr.tolist() == [0, 0, 2, 2, 3]
    assert graph.feature_indices.tolist() == [0, 1, 0]
    assert graph.feature_values.tolist() == [-0.5, 2.0, np.float32(1e-3)]
    assert graph.covered.tolist() == [0, 2, 2]


WORDS = st.lists(st.text("abc[]é", min_size=1).map(str.encode), max_size=3).map(
    lambda words: [word for word in words if not (word[:1] == b"[" and word[-1:] == b"]")]
)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[Edge]]:
    """Nodes of one to three edges, each built on any earlier nodes."""
    nodes: list[list[Edge]] = []
    for head in range(draw(st.integers(1, 5))):
        edges = []
        for _ in range(draw(st.integers(1, 3))):
            tails = draw(st.lists(st.integers(0, head - 1), max_size=2)) if head else []
            target = draw(st.permutations([*tails, *draw(WORDS)]))
            value = draw(st.integers(-9, 9)) / 4
            edges.append(Edge(tuple(target), head, (value, 2.0), (("S_x", 1.0),)))
        nodes.append(edges)
    return nodes


@given(nodes=graphs())
def test_write_and_read_round_trip(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("graph") / "0.gz"
    write_hypergraph(path, ["A", "B"], nodes)
    graph = read_hypergraph(path)
    edges = [edge for node in nodes for edge in node]
    assert graph.names == ("A", "B", "S_x")
    assert np.diff(graph.edge_offsets).tolist() == [len(node) for node in nodes]
    assert graph.covered.tolist() == list(range(len(nodes)))
    assert graph.feature_values.reshape(-1, 3)[:, 0].tolist() == [e.dense[0] for e in edges]
    for number, edge in enumerate(edges):
        tails = iter(graph.tails[graph.tail_offsets[number] : graph.tail_offsets[number + 1]])
        part = graph.targets[graph.target_offsets[number] : graph.target_offsets[number + 1]]
        read = [int(next(tails)) if word == TAIL else graph.words[word] for word in part]
        assert tuple(read) == edge.target


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (FIRST, "", 1, "the first line is not"),
        ("3 4\n", "three 4\n", 2, "three 4' is not two integers"),
        ("3 4\n", "0 0\n", 2, "no node"),
        ("3 4\n", "3 5\n", None, "4 edges, but the second line announces 5"),
        ("3 4\n", "4 4\n", None, "ends before node 3 of 4"),
        ("3 4\n", "999999999999999999 4\n", None, "ends before node 3"),
        ("3 4\n", "2 2\n", 10, "text after the last of 2 nodes"),
        ("# node 1\n1\n", "# node 1\nx\n", 7, "not the number of edges of node 1"),
        ("# node 2\n2\n", "# node 2\n3\n", None, "ends before an edge of node 2"),
        ("[1] </s>", "[7] </s>", 11, "node 7 does not exist"),
        ("[0] a b", "[2] a b", 8, "tail node 2 does not precede head node 1"),
        ("[0] a b", "[1] a b", 8, "tail node 1 does not precede head node 1"),
        ("[0] a b", "[x] a b", 8, r"'\[x\]' is not a node"),
        ("[0] a b", "[-1] a b", 8, r"'\[-1\]' is not a node"),
        ("LM0=-0.5", "LM0=x", 8, "value of feature LM0 is 'x'"),
        ("LM0=-0.5", "LM0=nan", 8, "value of feature LM0 is 'nan'"),
        ("LM0=-0.5", "LM0=1e99", 8, "value of feature LM0 is '1e99'"),
        ("LM0=-0.5", "LM0=1_0", 8, "value of feature LM0 is '1_0'"),
        ("LM0=1e-3", "LM0=inf", 12, "value of feature LM0 is 'inf'"),
        ("LM0=-0.5", "-0.5", 8, r"cannot parse features '-0\.5 T_a=b=2"),
        ("LM0=-0.5", "T_a=b=1", 8, "duplicate feature"),
        (" ||| 3", "", 12, "2 fields"),
        ("||| 3", "||| -3", 12, "'-3' is not a number of source words"),
        ("# node 2\n2\n[1] </s> |||  ||| 2\n[0] [1] ||| LM0=1e-3 ||| 3\n", "0\n", 9, "goal"),
    ],
)
def test_invalid_graphs_are_rejected(
    tmp_path: Path, old: str, new: str, line: int | None, message: str
) -> None:
    assert GRAPH.count(old) == 1
    path = tmp_path / "0"
    path.write_text(GRAPH.replace(old, new))
    with pytest.raises(FormatError, match=message) as raised:
        read_hypergraph(path)
    assert (raised.value.path, raised.value.line) == (str(path), line)


def test_dead_ends_are_allowed_if_the_goal_does_not_need_them(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(FIRST + "3 2\n0\n1\na |||  ||| 1\n1\n[1] b |||  ||| 1\n")
    assert read_hypergraph(path).edge_offsets.tolist() == [0, 0, 1, 2]
    path.write_text(FIRST + "3 2\n0\n1\n[0] a |||  ||| 1\n1\n[1] b |||  ||| 1\n")
    with pytest.raises(FormatError, match="the goal, node 2, has no derivation"):
        read_hypergraph(path)


def test_damage_is_always_a_format_error(tmp_path: Path) -> None:
    """Every prefix of a file, and every byte of it replaced, is a graph or an error."""
    path = tmp_path / "0"
    data = GRAPH.encode()
    damaged = [data[:end] for end in range(len(data))]
    damaged += [data[:at] + b"\xff" + data[at + 1 :] for at in range(len(data))]
    damaged += [data[:at] + b" " + data[at + 1 :] for at in range(len(data))]
    refused = 0
    for bytes_ in damaged:
        path.write_bytes(bytes_)
        try:
            graph = read_hypergraph(path)
        except FormatError:
            refused += 1
            continue
        assert np.isfinite(graph.feature_values).all()
        assert (graph.tails < len(graph.edge_offsets) - 1).all()
    assert refused > len(data)


def test_recorded_graphs(multi30k: Path) -> None:
    graph = read_hypergraph(multi30k / "forest" / "hypergraph" / "0.gz")
    assert (len(graph.edge_offsets) - 1, len(graph.tail_offsets) - 1) == (1166, 8498)
    assert len(graph.names) == 15
    assert graph.names[0] == "UnknownWordPenalty0"
