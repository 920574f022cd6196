"""Hypergraph files, byte for byte against what Moses wrote."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph import (
    Edge,
    GraphColumns,
    hypergraph_names,
    infer_groups,
    list_hypergraph_files,
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


def test_invalid_graphs_are_not_written(tmp_path: Path) -> None:
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


def test_columns() -> None:
    columns = GraphColumns((("LM0", 1), ("TM0", 2)), ["WT_a~b"])
    names = ("TM0_2", "LM0", "TM0_1", "PL_1", "WT_a~b", "TM0_of", "PL_1")
    assert columns.of(names) == {
        "LM0": 0, "TM0_1": 1, "TM0_2": 2, "WT_a~b": 3, "PL_1": 4, "TM0_of": 5,
    }  # fmt: skip
    assert list(columns.sparse) == ["WT_a~b", "PL_1", "TM0_of"]
    assert columns.names == ("LM0", "TM0_1", "TM0_2", "WT_a~b", "PL_1", "TM0_of")


@pytest.mark.parametrize("name", ["TM0_0", "TM0_3", "LM0_1", "LM1", "TM0", ""])
def test_names_that_are_neither_dense_nor_sparse(name: str) -> None:
    with pytest.raises(KeyError, match=f"^'{name}'$"):
        GraphColumns((("LM0", 1), ("TM0", 2))).of(["LM0", name])


def test_features_that_are_not_tuned() -> None:
    fixed = ("UnknownWordPenalty0", "TM0_2", "TM1_1")
    columns = GraphColumns((("TM0", 3), ("LM0", 1), ("TM1", 1)), ["X_y"], fixed)
    names = ("UnknownWordPenalty0", "TM0_1", "TM0_2", "TM0_3", "TM0_4", "LM0", "TM1_1", "TM1_2")
    assert [columns.of(names)[name] for name in names] == [6, 0, 7, 1, 2, 3, 8, 4]
    assert list(columns.sparse) == ["X_y", "UnknownWordPenalty0", "TM0_2", "TM1_1"]
    with pytest.raises(KeyError, match="TM0_5"):
        columns.of(["TM0_5"])
    # Known names keep their columns.
    known = GraphColumns((("LM0", 1),), ["UnknownWordPenalty0"])
    assert known.of(["UnknownWordPenalty0", "LM0"]) == {"UnknownWordPenalty0": 1, "LM0": 0}
    assert infer_groups(["UnknownWordPenalty0", "LM0"], fixed) == (("LM0", 1),)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        ([], ()),
        (["LM0", "TM0_1", "TM0_2", "D0"], (("LM0", 1), ("TM0", 2), ("D0", 1))),
        (["A_1", "A_2", "A_3", "B_1", "B_2"], (("A", 3), ("B", 2))),
        # A number alone, or one out of order, is part of a sparse feature's name.
        (["LM0", "TWI_1", "TWI_3", "PL_2", "X_y", "WT_1~2"], (("LM0", 1),)),
    ],
)
def test_groups_by_names(names: list[str], groups: tuple[tuple[str, int], ...]) -> None:
    assert infer_groups(names) == groups


def test_files_of_sentences(tmp_path: Path) -> None:
    for name in ("10.gz", "2", "0.txt", "11.xz", "weights", ".3.gz.17.a8"):
        (tmp_path / name).touch()
    found = list_hypergraph_files(tmp_path)
    assert [(number, path.name) for number, path in found.items()] == [
        (0, "0.txt"),
        (2, "2"),
        (10, "10.gz"),
        (11, "11.xz"),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "the directory has no search graphs"),
        (("weights",), "the directory has no search graphs"),
        (
            ("0.gz", "notes.txt"),
            "notes.txt: not a search graph: the file name is not a sentence id",
        ),
        (("-1.gz",), "-1.gz: not a search graph: the file name is not a sentence id"),
        (("3.gz", "3"), "3.gz: sentence 3 has another file, 3"),
        (("03.gz", "3.gz"), "3.gz: sentence 3 has another file, 03.gz"),
    ],
)
def test_invalid_directories_are_rejected(
    tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(FormatError) as caught:
        list_hypergraph_files(tmp_path)
    assert message in str(caught.value)


def test_paths_that_are_not_directories_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "absent"):
        with pytest.raises(FormatError, match=name):
            list_hypergraph_files(tmp_path / name)


def test_entries_that_are_not_files_are_rejected(tmp_path: Path) -> None:
    """Reading a pipe would block; broken links are reported as missing."""
    (tmp_path / "0.gz").symlink_to("nowhere")
    assert list_hypergraph_files(tmp_path) == {0: tmp_path / "0.gz"}
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: No such file"):
        list(read_graphs(tmp_path))
    (tmp_path / "0.gz").unlink()
    (tmp_path / "0.gz").symlink_to("0.gz")
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: Too many levels"):
        list(read_graphs(tmp_path))
    os.mkfifo(tmp_path / "1")
    with pytest.raises(FormatError, match=r"1: this is not a regular file\. Put a file there"):
        list_hypergraph_files(tmp_path)
    (tmp_path / "1").unlink()
    (tmp_path / "1.gz").mkdir()
    with pytest.raises(FormatError, match=r"1\.gz: this is not a regular file"):
        list_hypergraph_files(tmp_path)
