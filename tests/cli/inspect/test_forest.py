"""``mosesplug forest`` as a user calls it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph, write_hypergraph_weights
from formats.nbest.entry import NBestEntry
from formats.nbest.files import iter_nbest
from formats.text import read_lines
from mosesplug.cli.main import main

NAMES = ("UnknownWordPenalty0", "LM0", "TM0_1", "TM0_2")


def run(*words: object) -> int:
    """The exit code of ``mosesplug forest``."""
    with pytest.raises(SystemExit) as end:
        main(["forest", *map(str, words)])
    return int(end.value.code or 0)


def edge(*target: int | bytes, lm: float, unknown: float = 0.0, sparse: float = 0.0) -> Edge:
    pairs = (("wt_a~b", sparse),) if sparse else ()
    return Edge(target, 1, (unknown, lm, 0.5, 0.25), pairs)


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """Two sentences of four translations each, in Moses' format, with the decoder's weights."""
    directory = tmp_path / "graphs"
    directory.mkdir()
    for sentence, word in enumerate((b"x", b"y")):
        nodes = [
            [Edge((b"<s>",), 0)],
            [edge(0, b"a", lm=-1.0, sparse=2.0), edge(0, b"a", b"a", lm=-1.25)],
            [edge(1, word, lm=-2.0), edge(1, b"zz", lm=-2.5, unknown=-100.0)],
            [Edge((2, b"</s>"), 2)],
        ]
        write_hypergraph(directory / f"{sentence}.gz", NAMES, nodes)
    write_hypergraph_weights(directory / "weights", NAMES, [1.0, 2.0, 0.5, 0.25])
    return directory


@pytest.fixture
def refs(tmp_path: Path) -> Path:
    path = tmp_path / "refs"
    path.write_text("a a y\na a y\n")
    return path


def entries(path: Path) -> list[NBestEntry]:
    return [*iter_nbest(path)]


def test_best_list(graphs: Path, tmp_path: Path) -> None:
    path = tmp_path / "best"
    assert run("nbest", graphs, "-k", 3, "-o", path, "--quiet") == 0
    assert path.read_bytes().splitlines()[:2] == [
        b"0 ||| a x  ||| LM0= -3 TM0= 1 0.5 wt_a~b= 2 ||| -5.375",
        b"0 ||| a a x  ||| LM0= -3.25 TM0= 1 0.5 ||| -5.875",
    ]
    assert [entry.text for entry in entries(path)[3:]] == [b"a y", b"a a y", b"a zz"]
    # Features that are not tuned count, but are not shown.
    assert entries(path)[2].score == pytest.approx(-106.375)


@pytest.mark.parametrize(
    "weights",
    [
        "LM0= 4\nTM0= 1 1\n",
        "LM0 4\nTM0_1 1\nTM0_2 1\nUnknownWordPenalty0 1\n",
        "[feature]\nUnknownWordPenalty\nX name=LM0\nY name=TM0 num-features=2\n"
        "[weight]\nLM0= 4\nTM0= 1 1\n",
    ],
)
def test_weights_of_any_file(graphs: Path, tmp_path: Path, weights: str) -> None:
    path, sparse, best = tmp_path / "w", tmp_path / "s", tmp_path / "best.gz"
    path.write_text(weights)
    sparse.write_text("wt_a~b -8\n")
    words = ("nbest", graphs / "1.gz", "--weights", path, "--sparse-weights", sparse)
    assert run(*words, "-o", best) == 0
    found = entries(best)
    assert [entry.sentence_id for entry in found] == [1] * 4
    assert [entry.text for entry in found[:2]] == [b"a a y", b"a y"]
    assert [entry.score for entry in found[:2]] == [-11.5, -26.5]
    assert best.read_bytes().startswith(b"\x1f\x8b")


def test_graphs_of_two_places_are_searched_together(
    graphs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "0"
    write_hypergraph(other, NAMES, [[edge(b"<s>", b"new", b"</s>", lm=-1.0)]], compress=None)
    assert run("nbest", graphs, other, "-k", 2) == 0
    texts = [line.split(" ||| ")[1].strip() for line in capsys.readouterr().out.splitlines()]
    assert texts == ["new", "a x", "a y", "a a y"]


def test_diverse_list(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--pool", 4)):
        words = ("nbest", graphs / "0.gz", "--weights", graphs / "weights", "-k", 2)
        assert run(*words, "--diverse", 200, "--ngram", 1, *more) == 0
        texts = [line.split(" ||| ")[1].strip() for line in capsys.readouterr().out.splitlines()]
        assert texts == ["a x", "a zz"]


def test_sampled_list(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("nbest", graphs, "--samples", 200, "--seed", 3, "--scale", 0.01)
    assert run(*words) == 0
    distinct = capsys.readouterr().out
    assert run(*words) == 0
    assert capsys.readouterr().out == distinct
    assert len(distinct.splitlines()) == 8
    assert run(*words, "--no-distinct") == 0
    every = capsys.readouterr().out.splitlines()
    assert len(every) == 400
    assert set(every) == set(distinct.splitlines())
    scores = [float(line.split(" ||| ")[3]) for line in every[:200]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("option", [(), ("--sentence",), ("--linear",)])
def test_oracle(
    graphs: Path, refs: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    assert run("oracle", graphs, "--refs", refs, *option) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1] == "a a y"
    # On a slow machine, a line that says "compiling" comes first.
    lines = [line.split() for line in told.err.splitlines()]
    assert ["best", "by", "the", "model", "BLEU", "0.0000"] in lines
    assert run("oracle", graphs / "1.gz", "--refs", refs, "--quiet", *option) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("a a y\n", "")


def test_info(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", graphs) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["0", "4", "6", "4", "-5.375"]
    assert lines[3:] == ["2 sentences, 8 nodes, 12 edges, 5 features:", " ".join(NAMES) + " wt_a~b"]
    assert run("info", graphs / "0.gz") == 0  # the weights are beside it
    assert capsys.readouterr().out.splitlines()[1] == lines[1]
    (graphs / "weights").unlink()
    assert run("info", graphs / "0.gz") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["0", "4", "6", "4", "-"]
    nodes = [[edge(b"a", lm=0.0), edge(b"b", lm=0.0)]]
    nodes += [[Edge((head, head), 1)] for head in range(10)]
    write_hypergraph(graphs / "2", NAMES, nodes, compress=None)
    assert run("info", graphs / "2") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[3] == "1.8e+308"  # 2 ** 1024
    nodes = [[edge(b"a", lm=0.0)] * 999, *([Edge((head, head), 1)] for head in range(2))]
    write_hypergraph(graphs / "2", NAMES, nodes, compress=None)
    assert run("info", graphs / "2") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[3] == "1.0e+12"  # 999 ** 4


def test_errors(graphs: Path, refs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("errors", graphs, "--refs", refs) == 0
    lines = capsys.readouterr().out.splitlines()
    # One search alone shows no search errors, so their number is no 0.
    kinds = ["kind", "no error", "ranked low", "not in the graph"]
    assert [line.split("  ")[0] for line in lines[:4]] == kinds
    assert lines[2].split()[:4] == ["ranked", "low", "1", "50.0%"]
    assert lines[4].startswith("The system is known to yield a reference of 1 sentence: in 0, it")
    assert run("errors", graphs, "--refs", refs, "--sentences", "--format", "tsv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["0\tnot in the graph\t\t\t-5.375\t", "1\tranked low\t2\t-5.875\t-5.375\t"]
    assert run("errors", graphs, "--refs", refs, "--wider", graphs, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["reachable"], document["search_gains"]) == (1, 0)
    assert [row["kind"] for row in document["rows"]] == ["unreachable", "ranked low"]


def test_invalid_arguments_are_rejected(
    graphs: Path, refs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(code: int, message: str, *words: object) -> None:
        assert run(*words) == code
        told = capsys.readouterr()
        assert message in told.err
        assert told.out == ""

    (tmp_path / "lone").mkdir()
    one = shutil.copy(graphs / "0.gz", tmp_path / "lone")
    refused(2, "--weights", "nbest", one)
    refused(2, "exclude", "nbest", graphs, "--diverse", 1, "--samples", 3)
    refused(2, "--no-distinct", "nbest", graphs, "--diverse", 1, "--no-distinct")
    refused(2, "more than 0", "nbest", graphs, "--diverse", 0)
    refused(2, "--diverse", "nbest", graphs, "--ngram", 3)
    refused(2, "--samples", "nbest", graphs, "--seed", 3)
    refused(2, "more than 0", "nbest", graphs, "--samples", 3, "--scale", math.nan)
    refused(2, "--refs", "oracle", graphs)
    refused(2, "--refs", "errors", graphs)
    refused(2, "exclude", "oracle", graphs, "--refs", refs, "--linear", "--sentence")
    refused(2, "none", "nbest", tmp_path / "none")
    refused(2, "none", "oracle", graphs, "--refs", tmp_path / "none")
    short = tmp_path / "short"
    short.write_text("a\n")
    refused(1, "sentence 1", "oracle", graphs, "--refs", short)
    weights = tmp_path / "w"
    weights.write_text("TM0= 1 1\n")
    refused(1, "LM0", "nbest", graphs, "--weights", weights)
    write_hypergraph(graphs / "1.gz", NAMES, [[edge(b"a", lm=0.0)], [Edge((b"b",), 1)]])
    (graphs / "2").symlink_to(one)
    (graphs / "3").write_text("nothing\n")
    output = tmp_path / "best"
    refused(1, "unknown search graph format", "nbest", graphs, "-o", output)
    assert not output.exists()


def test_recorded_lists(multi30k: Path, tmp_path: Path) -> None:
    """All that Moses' distinct 100-best lists have, with the same features and scores."""
    forest = multi30k / "forest"
    chosen = range(0, 60, 10)
    (tmp_path / "graphs").mkdir()
    for sentence in chosen:
        name = f"{sentence}.gz"
        (tmp_path / "graphs" / name).symlink_to(forest / "hypergraph" / name)
    path = tmp_path / "best"
    words = ("nbest", tmp_path / "graphs", "--weights", forest / "init.dense", "-o", path)
    assert run(*words) == 0
    own = {(entry.sentence_id, entry.text): entry for entry in entries(path)}
    assert {len([key for key in own if key[0] == sentence]) for sentence in chosen} == {100}
    for recorded in iter_nbest(forest / "first60.best100.gz"):
        if recorded.sentence_id not in chosen:
            continue
        entry = own[recorded.sentence_id, recorded.text]
        assert entry.score == pytest.approx(recorded.score, abs=1e-3)
        assert [name for name, _ in entry.dense] == [name for name, _ in recorded.dense]
    # Of equal scores any derivation may be listed; mostly it is the same.
    first = read_lines(forest / "first60.best100.gz")[0].split(b" ||| ")
    assert read_lines(path)[0].split(b" ||| ")[1:] == first[1:]


@pytest.mark.parametrize("command", ["nbest", "oracle", "info"])
def test_sparse_weights_require_others(
    graphs: Path, refs: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (graphs / "weights").unlink()
    words = ("--refs", refs) if command == "oracle" else ()
    assert run(command, graphs, "--sparse-weights", refs, *words) == 2
    assert "--sparse-weights requires --weights" in capsys.readouterr().err
