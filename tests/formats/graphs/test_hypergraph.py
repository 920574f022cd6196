"""Hypergraph files, byte for byte against what Moses wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats.graphs.hypergraph import (
    Edge,
    hypergraph_names,
    write_hypergraph,
    write_hypergraph_weights,
)
from formats.text import read_bytes, read_lines

GROUPS = (("UnknownWordPenalty0", 1), ("TranslationModel0", 2))


def test_names_count_from_one() -> None:
    assert hypergraph_names(GROUPS) == (
        "UnknownWordPenalty0",
        "TranslationModel0_1",
        "TranslationModel0_2",
    )


def test_graph_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "0"
    nodes = [
        [Edge((b"<s>",), 0)],
        [Edge((0, b"a", b"truck"), 2, (0, -0.5, -1 / 3), (("WT_a~b", 1),))],
        [Edge((1, b"</s>"), 2), Edge((0, b"</s>"), 2)],
    ]
    write_hypergraph(path, hypergraph_names(GROUPS), nodes, compress=None)
    assert path.read_text() == (
        "# target ||| features ||| source-covered\n"
        "3 4\n"
        "# node 0\n1\n<s> |||  ||| 0\n"
        "# node 1\n1\n"
        "[0] a truck  ||| UnknownWordPenalty0=0.000000 TranslationModel0_1=-0.500000 "
        "TranslationModel0_2=-0.333333 WT_a~b=1.000000  ||| 2\n"
        "# node 2\n2\n[1] </s> |||  ||| 2\n[0] </s> |||  ||| 2\n"
    )


def test_graphs_that_are_none(tmp_path: Path) -> None:
    def write(*nodes: list[Edge]) -> None:
        write_hypergraph(tmp_path / "0", ["LM0"], nodes)

    with pytest.raises(ValueError, match="node 1 has no edge"):
        write([Edge((b"<s>",), 0)], [])
    with pytest.raises(
        ValueError, match="an edge to node 1 has tail node 1, which is not an earlier node"
    ):
        write([Edge((b"<s>",), 0)], [Edge((1, b"a"), 1, (0.5,))])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        write([Edge((b"<s>",), 0)], [Edge((0, b"a"), 1, (0.5, 1))])
    assert not list(tmp_path.iterdir())


def recorded_nodes(path: Path) -> tuple[list[str], list[list[Edge]]]:
    """Names and nodes of a recorded graph."""
    names: list[str] = []
    nodes: list[list[Edge]] = []
    for line in read_lines(path)[2:]:
        if line.startswith(b"# node"):
            nodes.append([])
        elif b"|||" in line:
            target, features, covered = line.split(b" ||| ")
            pairs = [feature.rsplit("=", 1) for feature in features.decode().split()]
            names = names or [name for name, _ in pairs]
            parts = tuple(
                int(word[1:-1]) if re.fullmatch(rb"\[\d+\]", word) else word
                for word in target.split()
            )
            nodes[-1].append(Edge(parts, int(covered), tuple(float(value) for _, value in pairs)))
    return names, nodes


@pytest.mark.parametrize("sentence", [0, 9, 24])
def test_recorded_graph(multi30k: Path, tmp_path: Path, sentence: int) -> None:
    recorded = multi30k / "forest" / "hypergraph" / f"{sentence}.gz"
    names, nodes = recorded_nodes(recorded)
    write_hypergraph(tmp_path / "mine", names, nodes)
    assert read_bytes(tmp_path / "mine") == read_bytes(recorded)


def test_recorded_weights(multi30k: Path, tmp_path: Path) -> None:
    recorded = multi30k / "forest" / "hypergraph" / "weights"
    rows = [line.split() for line in recorded.read_text().splitlines()]
    write_hypergraph_weights(tmp_path / "mine", [r[0] for r in rows], [float(r[1]) for r in rows])
    assert (tmp_path / "mine").read_bytes() == recorded.read_bytes()
