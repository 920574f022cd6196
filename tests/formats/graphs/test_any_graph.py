"""One lattice in all formats, what Moses recorded in each of them, and damage."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.graphs.any_graph import PLUGINS, GraphKind, detect_graph_kind, read_graphs
from formats.graphs.hypergraph import Edge, HypergraphFile, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.plugins import list_plugins
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph
from tests.formats.derivations import (
    as_extended,
    as_lattice,
    as_moses_lattice,
    derivations,
    scored,
)

DATA = Path(__file__).parents[2] / "data" / "valid" / "search_graph"
TINY = sorted(DATA.glob("tiny.*"))
KINDS: dict[str, GraphKind] = {
    "tiny.hypergraph": "hypergraph",
    "tiny.json": "cdec-json",
    "tiny.links.slf": "slf",
    "tiny.moses.slf": "slf",
    "tiny.nodes.slf": "slf",
    "tiny.osg": "search-graph",
    "tiny.osgx": "search-graph",
    "tiny.target": "target-graph",
}
NAMES = {"P": "P", "core1": "P", "acoustic": "P", "P0_1": "P"}
NAMES |= {"L": "L", "core2": "L", "language": "L", "L0": "L"}
WEIGHTS = {"P": 1.0, "L": 0.5}
EXPECTED = [
    ("that home", (("L", -0.75), ("P", -3.0))),
    ("that house", (("L", -1.5), ("P", -2.5))),
    ("the home", (("L", -0.75), ("P", -2.0))),
    ("the house", (("L", -2.0), ("P", -1.25))),
    ("the house", (("L", -1.5), ("P", -1.5))),
]


def only(path: Path) -> HypergraphFile:
    [(number, graph)] = read_graphs(path)
    assert number == 0
    return graph


def test_every_kind_has_a_fixture() -> None:
    assert [path.name for path in TINY] == [*KINDS]
    own = {"hypergraph", "search-graph", "target-graph"}
    bundled = {entry.name for entry in list_plugins(PLUGINS) if entry.is_bundled}
    assert set(KINDS.values()) == own | bundled


@pytest.mark.parametrize("path", TINY, ids=lambda path: path.name)
def test_all_formats_give_the_same_graph(path: Path) -> None:
    assert detect_graph_kind(path) == KINDS[path.name]
    graph = only(path)
    expected = EXPECTED[2:] if path.name == "tiny.moses.slf" else EXPECTED
    if path.name == "tiny.osg":
        texts = [(text, sum(WEIGHTS[n] * v for n, v in values)) for text, values in expected]
        assert scored(graph, {"transition": 1.0}) == texts
        return
    found = [
        (text, tuple(sorted((NAMES[name], value) for name, value in features)))
        for text, features in derivations(graph)
    ]
    assert sorted(found) == expected


@pytest.mark.parametrize("path", TINY, ids=lambda path: path.name)
@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(path: Path, packed: object, tmp_path: Path) -> None:
    file = tmp_path / "0"
    file.write_bytes(packed(path.read_bytes()))  # type: ignore[operator]
    assert derivations(only(file)) == derivations(only(path))


@pytest.mark.parametrize("path", TINY, ids=lambda path: path.name)
def test_arrays_are_those_of_a_graph(path: Path) -> None:
    graph = only(path)
    n_nodes, n_edges = len(graph.edge_offsets) - 1, len(graph.tail_offsets) - 1
    heads = np.repeat(np.arange(n_nodes), np.diff(graph.edge_offsets))
    tail_heads = np.repeat(heads, np.diff(graph.tail_offsets))
    assert (graph.tails < tail_heads).all()
    assert graph.edge_offsets[-1] == n_edges
    assert graph.target_offsets[-1] == len(graph.targets)
    assert graph.feature_indptr[-1] == len(graph.feature_indices) == len(graph.feature_values)
    assert len(graph.covered) == n_nodes
    like = read_hypergraph(DATA / "tiny.hypergraph")
    for name, value in vars(like).items():
        if isinstance(value, np.ndarray):
            assert getattr(graph, name).dtype == value.dtype, name


def best(graph: HypergraphFile, weights: dict[str, float]) -> tuple[bytes, float]:
    """The best translation and its score."""
    columns = {name: column for column, name in enumerate(graph.names)}
    arrays = Hypergraph.of_file(graph, columns)
    found = viterbi(arrays, arrays.edge_scores(np.array([weights[name] for name in columns])))
    words = arrays.translation(found.edges)
    return b" ".join(word for word in words if word not in (b"<s>", b"</s>")), found.score


@pytest.mark.parametrize("number", [18])
def test_a_recorded_graph_is_the_same_in_other_formats(
    number: int, multi30k: Path, tmp_path: Path
) -> None:
    forest = multi30k / "forest" / "hypergraph"
    weights = {
        name: float(value)
        for name, value in map(str.split, (forest / "weights").read_text().splitlines())
    }
    graph = read_hypergraph(forest / f"{number}.gz")
    text, score = best(graph, weights)
    (tmp_path / "extended").write_text(as_extended(graph, 5))
    (tmp_path / "lattice").write_text(as_lattice(graph))
    (tmp_path / "moses").write_text(as_moses_lattice(graph))
    [(sentence, extended)] = read_graphs(tmp_path / "extended", core_names=graph.names)
    assert sentence == 5
    assert extended.names == graph.names
    assert np.array_equal(np.sort(extended.covered), np.sort(graph.covered))
    assert np.array_equal(np.sort(extended.feature_values), np.sort(graph.feature_values))
    lattice = only(tmp_path / "lattice")
    numbered = {f"x{k}": weights[name] for k, name in enumerate(graph.names, start=1)}
    for other, named in (
        (extended, weights),
        (lattice, numbered),
        (only(tmp_path / "moses"), weights),
    ):
        assert best(other, named) == (text, pytest.approx(score, abs=1e-4))


@st.composite
def phrase_graphs(draw: st.DrawFn) -> list[list[Edge]]:
    """Graphs as a phrase-based decoder makes them; some nodes lead nowhere."""
    n_nodes = draw(st.integers(2, 6))
    nodes = [[Edge((b"<s>",), 0)]]
    for head in range(1, n_nodes):
        edges = []
        for _ in range(draw(st.integers(1, 3))):
            words = draw(st.lists(st.sampled_from([b"a", b"b", b"cc"]), min_size=1, max_size=3))
            values = (draw(st.integers(-9, 9)) / 4, -float(len(words)))
            edges.append(Edge((draw(st.integers(0, head - 1)), *words), head, values))
        nodes.append(edges)
    last = draw(st.sets(st.integers(1, n_nodes - 1), min_size=1))
    nodes.append([Edge((node, b"</s>"), n_nodes - 1) for node in sorted(last)])
    return nodes


def without_recombination(nodes: list[list[Edge]]) -> list[tuple[str, float, float]]:
    """What Moses' lattices hold: the best way to each node but the last, and all ways there."""
    found = []
    for end in nodes[-1]:
        for edge in nodes[int(end.target[0])]:
            words, values = [*edge.target[1:]], np.array(edge.dense)
            tail = int(edge.target[0])
            while tail:
                winner = nodes[tail][0]
                words, values = [*winner.target[1:], *words], values + winner.dense
                tail = int(winner.target[0])
            found.append((" ".join(word.decode() for word in words), *values.tolist()))
    return sorted(found)


@given(nodes=phrase_graphs())
def test_phrase_based_graphs_are_the_same_in_all_formats(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("graphs")
    write_hypergraph(directory / "0", ("x1", "x2"), nodes)
    graph = read_hypergraph(directory / "0")
    expected = derivations(graph)
    (directory / "extended").write_text(as_extended(graph, 0))
    (directory / "lattice").write_text(as_lattice(graph))
    (directory / "moses").write_text(as_moses_lattice(graph))
    [(_, extended)] = read_graphs(directory / "extended", core_names=graph.names)
    assert derivations(extended) == expected
    assert derivations(only(directory / "lattice")) == expected
    of_moses = [
        (text, dict(features).get("x1", 0.0), dict(features)["x2"])
        for text, features in derivations(only(directory / "moses"))
    ]
    assert sorted(of_moses) == without_recombination(nodes)


def test_a_directory_comes_in_the_order_of_sentences(tmp_path: Path) -> None:
    shutil.copy(DATA / "tiny.json", tmp_path / "10.json")
    shutil.copy(DATA / "tiny.links.slf", tmp_path / "9.slf")
    shutil.copy(DATA / "tiny.hypergraph", tmp_path / "2")
    (tmp_path / "weights").write_text("P 1\n")
    assert [number for number, _ in read_graphs(tmp_path)] == [2, 9, 10]
    assert [number for number, _ in read_graphs(tmp_path / "9.slf")] == [9]
    assert [number for number, _ in read_graphs(tmp_path / "10.json", "cdec-json")] == [10]
    shutil.copy(DATA / "tiny.osg", tmp_path / "11")
    with pytest.raises(FormatError, match="search graphs of several sentences") as raised:
        list(read_graphs(tmp_path))
    assert raised.value.path == str(tmp_path / "11")


def test_the_format_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the first line is not"):
        list(read_graphs(DATA / "tiny.target", "hypergraph"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "unknown search graph format"),
        (b"a b c\n", "unknown search graph format"),
        (b"\x00\xff\n", "unknown search graph format"),
        (b"0 12->7 S => a X : 0-0 [0..1] 3 4 [total=-1.5] core=(1)\n", "chart decoder"),
        (
            b"\x16\0\0\0\0\0\0\0serialization::archive\x0a",
            "cdec's binary forest format is not supported",
        ),
        (
            b"# target ||| features\n1 1\n1\na ||| lm_0=-1.000\n",
            "search graphs of Joshua are not supported: they lack the goal",
        ),
    ],
)
def test_other_files_are_rejected(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(text)
    with pytest.raises(FormatError, match=message) as raised:
        list(read_graphs(tmp_path / "0"))
    assert (raised.value.path, raised.value.line) == (str(tmp_path / "0"), 1)
    assert raised.value.remedy


TEXTS = [path.read_bytes() for path in TINY]
PIECES = [b"", b"\n", b" ", b"=", b"-", b"0", b"7", b"1e999", b"nan", b'"', b"[", b"]", b"{", b"}"]
PIECES += [
    b"\\",
    b"|",
    b"||| ",
    b"\xff",
    b"\x00",
    b",",
    b"999999999999",
    b"1_0",
    b"inf",
    b"#",
    b":",
]


@given(
    text=st.sampled_from(TEXTS),
    cuts=st.lists(
        st.tuples(
            st.floats(0, 1, exclude_max=True),
            st.integers(0, 12),
            st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)),
        ),
        max_size=3,
    ),
    end=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_damage_is_rejected_by_a_format_error(
    text: bytes,
    cuts: list[tuple[float, int, bytes]],
    end: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for place, removed, inserted in cuts:
        at = int(place * len(text))
        text = text[:at] + inserted + text[at + removed :]
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(text[: int(end * len(text))])
    try:
        graphs = list(read_graphs(path))
    except FormatError:
        return
    for _, graph in graphs:
        assert np.isfinite(graph.feature_values).all()
        heads = np.repeat(np.arange(len(graph.edge_offsets) - 1), np.diff(graph.edge_offsets))
        assert (graph.tails < np.repeat(heads, np.diff(graph.tail_offsets))).all()
