"""HTK lattices, those of Moses and those of others."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.extras.slf import read_slf, slf_scales
from formats.graphs.hypergraph import TAIL, HypergraphFile
from tests.formats.derivations import derivations

DATA = Path(__file__).parents[2] / "data" / "valid" / "search_graph"
LINKS = (DATA / "tiny.links.slf").read_text()
NODES = (DATA / "tiny.nodes.slf").read_text()
MOSES = (DATA / "tiny.moses.slf").read_text()


def read(path: Path, text: str | bytes) -> HypergraphFile:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_slf(path)


def lattice(*links: str, head: str = "N=9") -> str:
    return f"VERSION=1.0\n{head} L={len(links)}\n" + "".join(
        f"J={number} {link}\n" for number, link in enumerate(links)
    )


def test_arrays() -> None:
    graph = read_slf(DATA / "tiny.links.slf")
    assert graph.names == ("acoustic", "language")
    assert graph.words == (b"the", b"that", b"these", b"house", b"home")
    assert graph.edge_offsets.tolist() == [0, 1, 3, 4, 5, 7, 9]
    assert graph.target_offsets.tolist() == [0, 0, 2, 4, 6, 8, 10, 12, 13, 14]
    assert graph.targets[4:].tolist() == [TAIL, 0, TAIL, 4, TAIL, 3, TAIL, 3, TAIL, TAIL]
    assert graph.feature_values[:4].tolist() == [-1.0, -0.5, -2.0, -0.5]
    assert graph.covered.tolist() == [0] * 6


def test_scales() -> None:
    assert slf_scales(DATA / "tiny.links.slf") == {"acoustic": 1.0, "language": 0.5}
    assert slf_scales(DATA / "tiny.moses.slf") == {"L0": 0.5, "P0_1": 1.0, "P0_2": 0.0}


def test_all_kinds_of_scores_and_other_fields(tmp_path: Path) -> None:
    head = "x2scale=0.25 ngscale=2 prscale=3 N=2"
    text = lattice("S=0 E=1 W=a a=-1 n=-2 l=-3 r=-4 x2=-5 t=6 v=7 d=:x,0.1: p=0.5", head=head)
    graph = read(tmp_path / "0", text)
    names = ("acoustic", "ngram", "language", "pronunciation", "x2")
    assert graph.names == names
    assert graph.feature_values.tolist() == [-1, -2, -3, -4, -5]
    assert slf_scales(tmp_path / "0") == {"x2": 0.25, "ngram": 2.0, "pronunciation": 3.0}


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        ("10", "-2", -2 * math.log(10)),
        ("0", "0.125", math.log(0.125)),
        ("1.0003", "-2000", -2000 * math.log(1.0003)),
        ("2.718", "-2", -2.0),
        ("2.71828182845905", "-2", -2.0),
    ],
)
def test_logarithms_of_all_bases_become_natural(
    tmp_path: Path, base: str, value: str, expected: float
) -> None:
    text = lattice(f"S=0 E=1 W=a l={value}", "S=1 E=2 W=b", head=f"base={base} wdpenalty=-0.5\nN=3")
    [(words, features)] = derivations(read(tmp_path / "0", text))
    assert words == "a b"
    assert dict(features) == pytest.approx({"language": expected, "words": 2.0}, abs=1e-4)
    assert slf_scales(tmp_path / "0") == {"words": -0.5}


def test_words_of_the_first_node_and_of_links(tmp_path: Path) -> None:
    """A link's own word and score hold, not those of the node to which it leads."""
    nodes = "I=0 W=oh a=-1\nI=1 WORD=my acoustic=-2\nI=2 W=god\n"
    links = "J=0 S=0 E=1\nJ=1 START=0 END=1 W=your a=-4\nJ=2 S=1 E=2\n"
    graph = read(tmp_path / "0", f"VERSION=1.0\nN=3 L=3\n{nodes}{links}")
    assert derivations(graph) == [
        ("oh my god", (("acoustic", -3.0),)),
        ("oh your god", (("acoustic", -5.0),)),
    ]


def test_boundary_words_and_null_words(tmp_path: Path) -> None:
    text = lattice("S=0 E=1 W=!SENT_START", "S=1 E=2 W=!NULL", "S=2 E=3 W=</s>", 'S=3 E=4 W=""')
    assert read(tmp_path / "0", text).words == (b"<s>", b"</s>")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (rb'"two words"', b"two words"),
        (rb"'s", b"'s"),
        (rb'"', b'"'),
        (rb"'it''s'", b"it''s"),
        (rb"\'s", b"'s"),
        (rb'"a\"b\\"', b'a"b\\'),
        (rb"caf\303\251", "café".encode()),
        (b"\xff\xa0", b"\xff\xa0"),
        (rb"W=x", b"W=x"),
    ],
)
def test_quotes(tmp_path: Path, value: bytes, word: bytes) -> None:
    text = lattice("S=0 E=1 W=@ a=-1").encode().replace(b"@", value)
    graph = read(tmp_path / "0", text)
    assert graph.words == (word,)
    assert graph.feature_values.tolist() == [-1.0]


def test_moses_does_not_quote(tmp_path: Path) -> None:
    text = MOSES.replace("W=home", 'W="home"').replace("W=that", r"W=\s")
    assert {rb"\s", b'"home"'} < set(read(tmp_path / "0", text).words)


def test_sums_of_moses_become_steps() -> None:
    graph = read_slf(DATA / "tiny.moses.slf")
    assert graph.names == ("L0", "P0_1", "P0_2")
    assert derivations(graph) == [
        ("the home", (("L0", -0.75), ("P0_1", -2.0))),
        ("the house", (("L0", -2.0), ("P0_1", -1.25))),
        ("the house", (("L0", -1.5), ("P0_1", -1.5))),
    ]


def test_one_node_is_a_lattice(tmp_path: Path) -> None:
    assert derivations(read(tmp_path / "0", "VERSION=1.0\nN=1 L=0\n")) == [("", ())]
    assert derivations(read(tmp_path / "0", "VERSION=1.0\nN=1 L=0\nI=0 W=a\n")) == [("a", ())]


def test_numbers_of_nodes_need_not_be_small(tmp_path: Path) -> None:
    far = 10**12 - 1
    text = lattice(f"S=7 E={far} W=a", head=f"N={10**12}")
    assert derivations(read(tmp_path / "0", text)) == [("a", ())]


def test_the_header_names_start_and_end(tmp_path: Path) -> None:
    """Otherwise the lowest and the highest number, where several nodes may be one."""
    links = ("S=0 E=2 W=a", "S=2 E=4 W=b", "S=3 E=2 W=c", "S=2 E=1 W=d")
    assert derivations(read(tmp_path / "0", lattice(*links))) == [("a b", ())]
    text = lattice(*links, head="start=3\nend=1\nN=5")
    assert derivations(read(tmp_path / "0", text)) == [("c d", ())]


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "message"),
    [
        (
            LINKS,
            " LINKS=9",
            "",
            None,
            r"the header does not announce L= \(numbers of nodes and links\)",
        ),
        (
            LINKS,
            "NODES=7 ",
            "",
            None,
            r"the header does not announce N= \(numbers of nodes and links\)",
        ),
        (
            LINKS,
            "NODES=7",
            "NODES=7.0",
            5,
            r"the header does not announce N= \(numbers of nodes and links\)",
        ),
        (
            LINKS,
            "NODES=7",
            "NODES=1e12",
            5,
            r"the header does not announce N= \(numbers of nodes and links\)",
        ),
        (LINKS, "LINKS=9", "LINKS=10", 5, "9 links, but the header announces 10"),
        (LINKS, "LINKS=9", "LINKS=1000000000000", 5, "but the header announces 1000000000000"),
        (LINKS, "J=8 S=3 E=5 W=!NULL\n", "", 5, "8 links, but the header announces 9"),
        (LINKS, "UTTERANCE=tiny", "SUBLAT=tiny", 3, "sub-lattices are not supported"),
        (LINKS, "UTTERANCE=tiny", "dir=b", 3, "unsupported direction 'b"),
        (LINKS, "UTTERANCE=tiny", "VERSION=1.0", 3, "duplicate header field V="),
        (LINKS, "UTTERANCE=tiny", "tiny", 3, "cannot parse fields 'tiny"),
        (LINKS, "UTTERANCE=tiny", "=tiny", 3, "cannot parse fields '=tiny"),
        (LINKS, "start=0", "start=9", 4, "start=9 is not a node"),
        (LINKS, "end=5", "end=x", 4, "end=x is not a node"),
        (LINKS, "base=2.718", "base=1", 4, "value of base is '1'"),
        (LINKS, "base=2.718", "base=-2", 4, "value of base is '-2'"),
        (LINKS, "base=2.718", "base=0", 6, r"value of acoustic is '-1\.0'"),
        (LINKS, "a=-3.0", "a=nan", 8, "value of acoustic is 'nan'"),
        (LINKS, "a=-3.0", "a=1_0", 8, "value of acoustic is '1_0'"),
        (LINKS, "a=-3.0", "a=-3.0 acoustic=1", 8, "duplicate field"),
        (LINKS, "a=-3.0", "a=-3.0 a=1", 8, "cannot parse fields"),
        (LINKS, 'W="that" a=-2.0', 'W="that a=-2.0" a=-2.0 x', 7, "cannot parse fields"),
        (LINKS, "a=-1.25", "a=-1e40", 11, r"feature value -1e\+40 is too large"),
        (LINKS, "S=4 E=2", "S=4", 12, "E= is not an integer"),
        (LINKS, "S=4 E=2", "S=4 E=-2", 12, "E=-2 is not an integer"),
        (LINKS, "S=4 E=2", "S=4 E=7", 12, "node 7 does not exist"),
        (LINKS, "J=6 S=4", "J=5 S=4", 12, "duplicate link 5"),
        (LINKS, "J=6 S=4 E=2", "J=6 S=4 E=0", 11, "the graph has a cycle"),
        (LINKS, "J=6 S=4 E=2", "J=6 S=4 E=4", 12, "the graph has a cycle"),
        (LINKS, "J=6", ".\nJ=6", 12, "cannot parse fields"),
        (LINKS, "J=6", "N=4\nJ=6", 12, "is neither a node nor a link"),
        (NODES, "I=7 W=house", "I=6 W=house", 12, "duplicate node 6"),
        (NODES, "I=7 W=house\n", "", 4, "8 nodes, but the header announces 9"),
        (NODES, "I=7 W", "I=77 W", 21, "node 7 does not exist"),
        (NODES, "I=7 W=house", "I=7 L=house", 12, "sub-lattices are not supported"),
        (
            MOSES,
            "x1scale",
            "x0scale",
            7,
            "unsupported features: Moses miscounts features in lattices if",
        ),
        (MOSES, "x3scale", "x1scale", 11, "duplicate header field x1scale="),
        (MOSES, "S=1 E=7", "S=1 E=4", 24, "two hypotheses lead to the same node"),
        (MOSES, "J=3 S=1", "J=3 S=7", 19, "a link precedes the links to its start node"),
    ],
)
def test_invalid_lattices_are_rejected(
    tmp_path: Path, text: str, old: str, new: str, line: int | None, message: str
) -> None:
    assert text.count(old) == 1
    with pytest.raises(FormatError, match=message) as raised:
        read(tmp_path / "0", text.replace(old, new))
    assert (raised.value.path, raised.value.line) == (str(tmp_path / "0"), line)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the header does not announce N= \(numbers of nodes and links\)"),
        ("VERSION=1.0\nN=0 L=0\n", "the lattice has no nodes"),
        (lattice("S=0 E=1", "S=1 E=0"), "the start node of the lattice is ambiguous: 0 candidates"),
        (
            lattice("S=1 E=2", "S=3 E=2", "S=2 E=0", "S=0 E=2"),
            "the start node of the lattice is ambiguous: 2 candidates",
        ),
        (
            lattice("S=0 E=1", "S=1 E=2", "S=2 E=1"),
            "the end node of the lattice is ambiguous: 0 candidates",
        ),
        (lattice("S=0 E=1", "S=2 E=3"), "the goal has no derivation"),
        (lattice("S=0 E=1", head="start=1 end=0 N=2"), "the goal has no derivation"),
    ],
)
def test_lattices_without_a_path_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "0", text)


def test_every_prefix_is_a_lattice_or_an_error(tmp_path: Path) -> None:
    for text in (LINKS, NODES, MOSES):
        for end in range(0, len(text), 11):
            try:
                graph = read(tmp_path / "0", text[:end])
            except FormatError:
                continue
            assert np.isfinite(graph.feature_values).all()
