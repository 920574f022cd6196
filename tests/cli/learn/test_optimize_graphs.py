"""``mosesplug optimize --graphs`` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.graphs.hypergraph import (
    Edge,
    hypergraph_names,
    write_hypergraph,
    write_hypergraph_weights,
)
from formats.weights.files import read_dense, read_sparse
from mosesplug.cli.main import main

GROUPS = [("UnknownWordPenalty0", 1), ("TM0", 2), ("LM0", 1)]
NAMES = hypergraph_names(GROUPS)
WORDS = [f"w{k}".encode() for k in range(6)]


def nodes(sentence: int, *, good: bool) -> list[list[Edge]]:
    """Word by word the right one, which TM0_2 knows, or another, which TM0_1 likes."""
    made = [[Edge((b"<s>",), 0)]]
    for place, word in enumerate(WORDS):
        right = b"%b%d" % (word, sentence)
        edges = [Edge((place, b"x%d" % place), place + 1, (0.0, 2.0, 0.0, -1.0))]
        if good:
            more = (("S_good", 1.0),) if place == 0 else ()
            edges.append(Edge((place, right), place + 1, (0.0, 1.0, 1.5, -1.0), more))
        made.append(edges)
    made.append([Edge((len(WORDS), b"</s>"), len(WORDS))])
    return made


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """Two decodings of five sentences: right words are in the second, but for one sentence."""
    lines = [b" ".join(b"%b%d" % (word, sentence) for word in WORDS) for sentence in range(5)]
    (tmp_path / "refs").write_bytes(b"\n".join(lines) + b"\n")
    for name in ("one", "two"):
        directory = tmp_path / name
        directory.mkdir()
        for sentence in range(5):
            good = name == "two" or sentence == 4
            if not (name == "two" and sentence == 4):
                write_hypergraph(directory / f"{sentence}.gz", NAMES, nodes(sentence, good=good))
        write_hypergraph_weights(directory / "weights", NAMES, [1.0, 0.5, 0.1, 0.4])
    (tmp_path / "init.dense").write_text("LM0= 0.4\nTM0= 0.5 0.1\n")
    return tmp_path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words)])
    return int(ended.value.code or 0)


QUICK = ("--restarts", 3, "--polish", 2)


def test_graphs_of_two_decodings_are_searched_together(
    graphs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = graphs / "tuned"
    code = run(
        *("--graphs", graphs / "one", graphs / "two", "--refs", graphs / "refs", *QUICK),
        *("--init", graphs / "init.dense", "-o", output),
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert "5 sentences, 9 search graphs, 102 of 102 edges, 5 features" in said
    assert "score at the start  0.000000" in said
    assert "score at the end    1.000000" in said
    assert "BLEU|nrefs:1|case:mixed|" in said
    found = dict(read_dense(output))
    assert list(found) == ["TM0", "LM0"]
    assert np.abs(np.concatenate(list(found.values()))).sum() == pytest.approx(1.0)
    assert found["TM0"][1] * 1.5 > found["TM0"][0]
    assert not Path(f"{output}.sparse").exists()
    # One decoding alone has right words of one sentence only.
    run("--graphs", graphs / "one", "--refs", graphs / "refs", *QUICK, "-o", output)
    assert "score at the end    1." not in capsys.readouterr().err


def test_default_starting_weights_are_those_of_the_decoding(
    graphs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for more in ((), ("--init", graphs / "init.dense")):
        words = ("--graphs", graphs / "two", "--refs", graphs / "refs", *QUICK, *more)
        assert run(*words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_weights_do_not_depend_on_threads(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for threads in (1, 3):
        run(
            *("--graphs", graphs / "two", graphs / "one", "--refs", graphs / "refs", *QUICK),
            *("--threads", threads, "--seed", 4, "--quiet"),
        )
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert printed[0].err == ""


def test_sparse_features_of_graphs_can_be_tuned(graphs: Path) -> None:
    output = graphs / "tuned"
    code = run(
        *("--graphs", graphs / "two", "--refs", graphs / "refs", "--active", "S_good"),
        *("-o", output, *QUICK, "--quiet"),
    )
    assert code == 0
    assert dict(read_dense(output)) == {"TM0": (0.5, 0.1), "LM0": (0.4,)}
    assert read_sparse(Path(f"{output}.sparse")).keys() == {"S_good"}


def test_graphs_are_pruned(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(*("--graphs", graphs / "two", "--refs", graphs / "refs", "--hg-prune", 1, *QUICK))
    said = capsys.readouterr().err
    assert code == 0, said
    assert "4 of 5 sentences, 4 search graphs, 32 of 56 edges" in said
    assert "warning: 1 of 5 sentences have no search graphs; they do not count. " in said
    assert "score at the end    0.000000" in said


@pytest.mark.parametrize("algorithm", [("mert", *QUICK), ("kbmira", "--epochs", 5)])
def test_sentences_can_be_held_out(
    graphs: Path, capsys: pytest.CaptureFixture[str], algorithm: tuple[object, ...]
) -> None:
    words = ("--graphs", graphs / "one", graphs / "two", "--refs", graphs / "refs")
    output = ("-o", graphs / "tuned", "--algorithm", *algorithm)
    assert run(*words, *output, "--init", graphs / "init.dense", "--folds", 2) == 0
    said = capsys.readouterr().err
    # What TM0_2 knows is learned from any of the sentences.
    assert "each with weights of the other folds   1.0000" in said
    assert "starting weights                       0.0000" in said
    assert run(*words, *output, "--init", graphs / "init.dense", "--held-out", 0.4) == 0
    assert "learned from (3 sentences)  held out (2 sentences)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "algorithm",
    [("kbmira", "--epochs", 5), ("linear-bleu",), ("xbleu",), ("rm-cp", "--epochs", 5)],
)
def test_learning_from_graphs(
    graphs: Path, algorithm: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    # So near that the hopes of relative margin are right.
    (graphs / "init.dense").write_text("LM0= 0.4\nTM0= 0.2 0.12\n")
    code = run(
        *("--graphs", graphs / "two", "--refs", graphs / "refs", "--algorithm", *algorithm),
        *("--init", graphs / "init.dense", "-o", graphs / "tuned"),
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert "score at the start  0.000000" in said
    assert "score at the end    1.000000" in said
    assert read_sparse(graphs / "tuned.sparse")["S_good"] > 0


@pytest.mark.parametrize(("beam", "score"), [(1, "0.000000"), (2, "1.000000")])
def test_beams_of_hope_and_fear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], beam: int, score: str
) -> None:
    """The hope begins worse than another derivation, and they meet in a node."""
    begins = [
        Edge((0, b"w1", b"w0"), 2, (0.0, 1.0, 0.0, 0.0)),
        Edge((0, b"w0", b"w1"), 2, (0.0, 0.0, 1.0, 0.0)),
    ]
    ends = [Edge((1, b"w2", b"w3"), 4, (0.0, 0.0, 0.0, 0.0))]
    made = [[Edge((b"<s>",), 0)], begins, ends, [Edge((2, b"</s>"), 4)]]
    (tmp_path / "graphs").mkdir()
    write_hypergraph(tmp_path / "graphs" / "0.gz", NAMES, made)
    (tmp_path / "refs").write_text("w0 w1 w2 w3\n")
    (tmp_path / "init.dense").write_text("LM0= 1\nTM0= 1.5 0.5\n")
    code = run(
        *("--graphs", tmp_path / "graphs", "--refs", tmp_path / "refs", "--algorithm", "kbmira"),
        *("--init", tmp_path / "init.dense", "--option", f"graph_beam={beam}"),
        *("--option", "step_cap=1"),
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert "score at the start  0.000000" in said
    assert f"score at the end    {score}" in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--algorithm", "pro"], 2, "pro learns from n-best lists only"),
        (["--algorithm", "kbmira", "--metric", "TER"], 2, "by BLEU with case, not by TER"),
        (["--nbest", "{}/refs"], 2, "exclude each other"),
        (["{}/nowhere"], 2, "nowhere"),
        (["{}/other"], 1, "unknown dense feature Other0"),
        (["{}/more"], 1, "sentence 9, but"),
        (["{}/refs"], 1, "unknown search graph format"),
    ],
)
def test_unusable_inputs_are_rejected(
    graphs: Path,
    words: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, number, features in (("other", 0, ["Other0"]), ("more", 9, ["LM0"])):
        (graphs / name).mkdir()
        edge = Edge((b"a",), 1, (1.0,))
        write_hypergraph(graphs / name / f"{number}.gz", features, [[edge]])
    more = [word.format(graphs) for word in words]
    assert run("--graphs", graphs / "two", "--refs", graphs / "refs", *more) == code
    assert message in capsys.readouterr().err


def test_pruning_lists_is_rejected(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--nbest", graphs / "refs", "--refs", graphs / "refs", "--hg-prune", 5) == 2
    assert "--graphs" in capsys.readouterr().err


def test_a_directory_without_graphs_is_rejected(
    graphs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graphs / "empty").mkdir()
    assert run("--graphs", graphs / "empty", "--refs", graphs / "refs") == 1
    assert "no search graph" in capsys.readouterr().err


def test_recorded_graphs(
    multi30k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forest = multi30k / "forest"
    lines = (multi30k / "text" / "dev.en").read_bytes().split(b"\n")[:60]
    (tmp_path / "refs").write_bytes(b"\n".join(lines) + b"\n")
    code = run(
        *("--graphs", forest / "hypergraph", "--refs", tmp_path / "refs", "--hg-prune", 5),
        *("--init", forest / "init.dense", "--restarts", 0, "--polish", 0),
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert "score at the start  0.406516" in said  # as in the log of Moses' kbmira
    end = float(said.split("score at the end")[1].split()[0])
    assert end > 0.43


@pytest.mark.parametrize("algorithm", ["softmax", "mira", "arow", "rm-pa"])
@pytest.mark.parametrize(("oracles", "others"), [("bold", "left out"), ("hybrid", "local updates")])
def test_bold_updates(
    graphs: Path, algorithm: str, oracles: str, others: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One graph yields its reference, which the weights of the start do not choose."""
    code = run(
        *("--graphs", graphs / "one", "--refs", graphs / "refs", "--algorithm", algorithm),
        *("--option", f"oracles={oracles}", "--init", graphs / "init.dense"),
        *([] if algorithm == "softmax" else ["--option", "slack=1"]),
        *("-o", graphs / "tuned"),
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert (
        f"oracles={oracles}: 1 of 5 sentences have a derivation of a reference; the others: "
        f"{others}" in said
    )
    start, end = (
        float(line.split()[-1]) for line in said.splitlines() if line.startswith("score at the ")
    )
    assert end > start


def test_bold_updates_need_a_reference_in_the_graphs(
    graphs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graphs / "refs").write_text("something else\n" * 5)
    code = run(
        *("--graphs", graphs / "one", "--refs", graphs / "refs", "--algorithm", "mira"),
        *("--option", "oracles=hybrid", "--init", graphs / "init.dense"),
    )
    assert code == 1
    said = capsys.readouterr().err
    assert "oracles=hybrid: no search graph yields a reference of its sentence" in said


@pytest.mark.parametrize("algorithm", ["softmax", "arow"])
def test_bold_updates_need_graphs(
    graphs: Path, algorithm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        *("--nbest", graphs / "refs", "--refs", graphs / "refs"),
        *("--algorithm", algorithm, "--option", "oracles=bold"),
    )
    assert code == 2
    assert "oracles=bold needs search graphs" in capsys.readouterr().err
