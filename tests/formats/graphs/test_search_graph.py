"""Search graphs of Moses' phrase-based decoder, plain and extended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.graphs.search_graph import core_names, read_search_graphs
from formats.moses.ini import parse_moses_ini, read_moses_ini
from tests.formats.derivations import derivations

DATA = Path(__file__).parents[2] / "data" / "valid" / "search_graph"
PLAIN = (DATA / "tiny.osg").read_text()
EXTENDED = (DATA / "tiny.osgx").read_text()


def read(path: Path, text: str | bytes) -> list[tuple[int, HypergraphFile]]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read_search_graphs(path))


def test_arrays_of_the_plain_form() -> None:
    [(number, graph)] = read_search_graphs(DATA / "tiny.osg")
    assert number == 0
    assert graph.path == str(DATA / "tiny.osg")
    assert graph.names == ("transition",)
    assert graph.words == (b"<s>", b"the", b"that", b"these", b"house", b"home", b"</s>")
    assert graph.edge_offsets.tolist() == [0, 1, 3, 5, 6, 8]
    assert graph.tails.tolist() == [0, 0, 1, 0, 1, 2, 3]
    assert graph.target_offsets.tolist() == [0, 1, 3, 5, 7, 10, 12, 14, 16]
    assert graph.targets[-9:].tolist() == [TAIL, 1, 4, TAIL, 5, TAIL, 6, TAIL, 6]
    assert graph.feature_indptr.tolist() == [0, 0, 1, 2, 3, 4, 5, 5, 5]
    assert graph.feature_values.tolist() == [-1.25, -2.25, -1.0, -2.25, -1.125]
    assert graph.covered.tolist() == [0, 1, 2, 2, 2]


def test_sparse_features_follow_the_dense_ones(tmp_path: Path) -> None:
    text = EXTENDED.replace("(-1.000,-0.500) ", "(-1.000,-0.500) WT_das~the=1.000 a=b=-2.500")
    text = text.replace("(-1.000,-0.250) ", "(-1.000,-0.250) a=b=0.125")
    [(_, graph)] = read(tmp_path / "graph", text)
    assert graph.names == ("core1", "core2", "WT_das~the", "a=b")
    assert graph.feature_indptr.tolist() == [0, 0, 4, 6, 8, 10, 13, 13, 13]
    assert graph.feature_indices.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 0, 1, 0, 1, 3]
    assert graph.feature_values[:4].tolist() == [-1.0, -0.5, 1.0, -2.5]


def test_names_of_dense_features(tmp_path: Path) -> None:
    ini = parse_moses_ini(
        b"[feature]\nWordPenalty\nWordTranslationFeature name=WT\n"
        b"PhraseDictionaryMemory name=TM num-features=2\nKENLM name=LM\n"
        b"[weight]\nLM= 0.5\nTM= 0.2 0.3\nWordPenalty0= -1\n",
        "moses.ini",
    )
    names = core_names(ini)
    assert names == ("WordPenalty0", "TM_1", "TM_2", "LM")
    with pytest.raises(FormatError, match="there are 2 dense features, but 4 names") as raised:
        list(read_search_graphs(DATA / "tiny.osgx", names))
    assert raised.value.line == 2
    [(_, graph)] = read_search_graphs(DATA / "tiny.osgx", names[2:])
    assert graph.names == ("TM_2", "LM")


def test_names_of_recorded_features(multi30k: Path) -> None:
    """The weights beside hypergraphs are in the order of the decoder's dense features."""
    weights = (multi30k / "forest" / "hypergraph" / "weights").read_text().splitlines()
    names = core_names(read_moses_ini(multi30k / "model" / "moses.ini"))
    assert names == tuple(line.split()[0] for line in weights)


@pytest.mark.parametrize("text", [PLAIN, EXTENDED])
def test_graphs_of_many_sentences(tmp_path: Path, text: str) -> None:
    second = "\n".join("12" + line[1:] for line in text.splitlines())
    graphs = read(tmp_path / "graph", text + "\n" + second)
    assert [number for number, _ in graphs] == [0, 12]
    assert derivations(graphs[0][1]) == derivations(graphs[1][1])
    with pytest.raises(FormatError, match="sentence 0 occurs in two places") as raised:
        read(tmp_path / "graph", text + second + "\n" + text)
    assert raised.value.line == 15


def test_order_of_lines_does_not_matter(tmp_path: Path) -> None:
    [(_, graph)] = read(tmp_path / "graph", "\n".join(reversed(PLAIN.splitlines())))
    [(_, expected)] = read_search_graphs(DATA / "tiny.osg")
    assert derivations(graph) == derivations(expected)
    assert graph.covered.tolist() == expected.covered.tolist()


def test_scores_behind_words_in_old_files(tmp_path: Path) -> None:
    text = PLAIN.replace("=home", "=home , pC=-1.5, c=-2e-05").replace(
        "stack=0\n", "stack=0 forward=1 fscore=-2\n"
    )
    [(_, graph)] = read(tmp_path / "graph", text.replace("=the\n", "=the, pC=0, c=-1\n"))
    [(_, expected)] = read_search_graphs(DATA / "tiny.osg")
    assert derivations(graph) == derivations(expected)
    [(_, graph)] = read(tmp_path / "graph", PLAIN.replace("=home", "=, pC = c=1"))
    assert {b",", b"pC", b"=", b"c=1"} < set(graph.words)


@pytest.mark.parametrize("text", [PLAIN, EXTENDED])
def test_lines_may_end_as_on_other_systems(tmp_path: Path, text: str) -> None:
    [(_, graph)] = read(tmp_path / "graph", text.replace("\n", "\r\n"))
    [(_, expected)] = read(tmp_path / "graph", text)
    assert derivations(graph) == derivations(expected)


def test_recombined_hypotheses_can_be_extended(tmp_path: Path) -> None:
    """Recombined hypotheses share a node, so that extending either is the same."""
    [(_, graph)] = read(
        tmp_path / "graph", PLAIN.replace("hyp=4 stack=2 back=1", "hyp=4 stack=2 back=2")
    )
    [(_, expected)] = read_search_graphs(DATA / "tiny.osg")
    assert derivations(graph) == derivations(expected)


def test_words_are_bytes(tmp_path: Path) -> None:
    text = EXTENDED.encode().replace(b'"haus|house"', b'"\xff"\xa0|a\xe9 ""')
    [(_, graph)] = read(tmp_path / "graph", text)
    assert {b"a\xe9", b'"'} < set(graph.words)
    [(_, graph)] = read(tmp_path / "graph", PLAIN.encode().replace(b"=home", b'=\xff "|" out=\xfe'))
    assert {b"\xff", b'"|"', b"out=\xfe"} < set(graph.words)


def test_a_word_that_is_dropped(tmp_path: Path) -> None:
    [(_, graph)] = read(tmp_path / "graph", EXTENDED.replace("haus|house", "haus|"))
    assert ("the", (("core1", -1.5), ("core2", -1.5))) in derivations(graph)


def test_an_empty_sentence(tmp_path: Path) -> None:
    for text in ("3 hyp=0 stack=0 forward=-1 fscore=0.000\n", "3 hyp=0 stack=0\n"):
        [(_, graph)] = read(tmp_path / "graph", text + PLAIN)[:1]
        assert derivations(graph) == [("", ())]
        assert graph.covered.tolist() == [0, 0]
        assert graph.names == ()


def test_no_dense_features(tmp_path: Path) -> None:
    line = ' scores="core=() a=1.5" out="x|y"'
    head = "0 hyp=0 stack=0 forward=1 fscore=0\n0 hyp=1 stack=1 back=0 score=0 transition=0"
    [(_, graph)] = read(tmp_path / "graph", f"{head} forward=-1 fscore=0 covered=0-0{line}\n")
    assert derivations(graph) == [("y", (("a", 1.5),))]


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "message"),
    [
        (PLAIN, "hyp=1 stack=1", "hyp=x stack=1", 2, "is not a hypothesis of a search graph"),
        (PLAIN, " out=home\n", "", 7, "is not a hypothesis of a search graph"),
        (PLAIN, "0 hyp=0 stack=0\n", "", 1, "hypothesis 1 extends 0, which does not exist"),
        (PLAIN, "hyp=0 stack=0\n", "hyp=0 stack=0\n0 hyp=0 stack=0\n", 2, "duplicate hypothesis 0"),
        (PLAIN, "hyp=6 stack", "hyp=1 stack", 4, "duplicate hypothesis 1"),
        (PLAIN, "hyp=5 stack", "hyp=4 stack", 6, "duplicate hypothesis 4"),
        (
            PLAIN,
            "hyp=4 stack=2 back=1",
            "hyp=4 stack=2 back=99",
            7,
            "hypothesis 4 extends 99, which does not exist",
        ),
        (
            PLAIN,
            "recombined=1",
            "recombined=9",
            3,
            "hypothesis 2 was recombined with 9, which does not exist in its",
        ),
        (
            PLAIN,
            "recombined=3",
            "recombined=1",
            6,
            "hypothesis 5 was recombined with 1, which does not exist in its",
        ),
        (
            PLAIN,
            "recombined=1",
            "recombined=2",
            3,
            "hypothesis 2 was recombined with 2, which does not exist in its",
        ),
        (
            PLAIN,
            "hyp=3 stack=2 back=1",
            "hyp=3 stack=2 back=4",
            5,
            r"hypothesis 3 \(stack=2\) does not cover more source words than 4,",
        ),
        (PLAIN, "transition=-1.250", "transition=-1.25x", 2, r"value of transition is '-1\.25x'"),
        (PLAIN, "transition=-1.250", "transition=nan", 2, "value of transition is 'nan'"),
        (PLAIN, "transition=-1.250", "transition=1_0", 2, "value of transition is '1_0'"),
        (PLAIN, "transition=-1.250", "transition=-1e40", 2, r"feature value -1e\+40 is too large"),
        (
            PLAIN,
            "stack=1 back=0 score=-1.250",
            "stack=1" + "0" * 12 + " back=0 score=0",
            2,
            "is no",
        ),
        (EXTENDED, "(-1.000,-0.500)", "(-1.000,-0.500,0)", 3, "2 dense features, but 3 in line 2"),
        (EXTENDED, "(-2.000,-0.500)", "(-2.000,inf)", 3, "of dense feature 2 is 'inf'"),
        (EXTENDED, "(-2.000,-0.500)", "(,-0.500)", 3, "of dense feature 1 is ''"),
        (EXTENDED, "(-2.000,-0.500) ", "(-2.000,-0.500) a=x", 3, "a sparse feature is 'x'"),
        (EXTENDED, "(-2.000,-0.500) ", "(-2.000,-0.500) a", 3, "cannot parse sparse features"),
        (
            EXTENDED,
            "(-2.000,-0.500) ",
            "(-2.000,-0.500) a=1 a=1",
            3,
            "cannot parse sparse features",
        ),
        (
            EXTENDED,
            "(-2.000,-0.500) ",
            "(-2.000,-0.500) core1=1",
            3,
            "cannot parse sparse features",
        ),
        (EXTENDED, '"das|that"', '"that"', 3, "is not 'source|target'"),
        (EXTENDED, '"das|that"', '"das|ART|that"', 3, "is not 'source|target'"),
        (EXTENDED, 'scores="core=(-2.000,-0.500) " out="das|that"', "out=that", 3, "no scores"),
    ],
)
def test_invalid_search_graphs_are_rejected(
    tmp_path: Path, text: str, old: str, new: str, line: int, message: str
) -> None:
    assert text.count(old) == 1
    with pytest.raises(FormatError, match=message) as raised:
        read(tmp_path / "graph", text.replace(old, new))
    assert (raised.value.path, raised.value.line) == (str(tmp_path / "graph"), line)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no search graphs"),
        ("\n\n", "the file has no search graphs"),
        (
            "4 hyp=0 stack=0 forward=0 fscore=0.000\n",
            r"sentence 4 has no complete hypothesis \(forward=-1\)",
        ),
        (
            PLAIN.replace("forward=-1", "forward=7"),
            r"sentence 0 has no complete hypothesis \(forward=-1\)",
        ),
    ],
)
def test_no_translation(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "graph", text)


def test_every_prefix_is_a_graph_or_an_error(tmp_path: Path) -> None:
    for text in (PLAIN, EXTENDED):
        for end in range(0, len(text), 11):
            try:
                graphs = read(tmp_path / "graph", text[:end])
            except FormatError:
                continue
            assert all(np.isfinite(graph.feature_values).all() for _, graph in graphs)
