"""Scores of other programs in the commands that score, compare and choose."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main

SCORER = Path(__file__).parents[2] / "decoders" / "stand_in_scorer.py"
LIST = "".join(f"{s} ||| h{s}{k} ||| LM0= {-k}.5 ||| {-k}\n" for s in range(3) for k in range(4))
COMET = [0.1, 0.9, 0.3, 0.2, 0.5, 0.4, 0.7, 0.6, 0.8, 0.0, 0.1, 0.2]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list").write_text(LIST)
    Path("comet").write_text("".join(f"{value}\n" for value in COMET))
    for name in ("a", "b"):
        Path(f"{name}.en").write_text("".join(f"{name} {n}\n" for n in range(20)))
    np.save("a.npy", np.arange(20.0))
    np.save("b.npy", np.arange(20.0) + 1)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("oracle", "list", "--scores", "COMET=comet", "--json", "-o", "best") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["signature"] == "COMET|outside:mean"
    assert found["first"] == pytest.approx((0.1 + 0.5 + 0.8) / 3)
    assert found["oracles"][0]["score"] == pytest.approx((0.9 + 0.7 + 0.8) / 3)
    assert Path("best").read_text() == "h01\nh12\nh20\n"


@pytest.mark.parametrize(("mark", "best"), [("", "h01\nh12\nh20\n"), (":error", "h00\nh11\nh21\n")])
def test_mbr_of_one_number_each(
    capsysbinary: pytest.CaptureFixture[bytes], mark: str, best: str
) -> None:
    assert run("mbr", "--nbest", "list", "--scores", f"COMET=comet{mark}", "--quiet") == 0
    assert capsysbinary.readouterr().out.decode() == best


def test_mbr_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The share of the words that another hypothesis has; each pair is asked once."""
    texts = ["a b", "a b c", "d", "a b", "e f g", "e"]
    ids = [0, 0, 0, 0, 2, 2]
    pairs = zip(ids, texts, strict=True)
    Path("pairs").write_text("".join(f"{i} ||| {text} ||| LM0= 1\n" for i, text in pairs))
    Path("source").write_text("eins\nzwei\ndrei\n")
    command = f"{sys.executable} -IS {SCORER} log"
    given = ("--score-command", f"SHARE={command}", "--source", "source", "--score-cache", "known")
    counts = "scored 13 texts; 0 were known", "scored 0 texts; 13 were known"
    for quiet, expected in (((), counts[0]), ((), counts[1]), (("--quiet",), "")):
        assert run("mbr", "--nbest", "pairs", *given, *quiet) == 0
        shown = capsys.readouterr()
        assert shown.out == "a b\n\ne\n"
        assert expected in shown.err
        assert quiet == () or not shown.err
        asked = [line.split("\t") for line in Path("log").read_text().splitlines()]
        assert len({*map(tuple, asked)}) == 3 + 2
        assert len(asked) == 3 * 3 + 2 * 2
        assert {(i, source) for i, source, _ in asked} == {("0", "eins"), ("2", "drei")}
    share = mosesplug.command_metric("SHARE", command, source="source", cache="known")
    chosen = mosesplug.mbr("pairs", utility=share)
    assert chosen.texts == ["a b", "e"]
    assert chosen.lists.scores[:1].tolist() == [(1 + 1 + 1 + 0) / 4]
    assert len(Path("log").read_text().splitlines()) == len(asked)


def test_counts_of_a_command_are_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The texts of two systems that are equal, and no line with --quiet or --json."""
    Path("c.en").write_text("a 0\n" + "".join(f"c {n}\n" for n in range(1, 20)))
    given = ("--score-command", f"SHARE={sys.executable} -IS {SCORER} log", "--score-cache", "kept")
    assert run("compare", "a.en", "c.en", *given, "--samples", "2", "--trials", "2") == 0
    assert capsys.readouterr().err == "the score command SHARE scored 39 texts; 0 were known\n"
    assert run("score", "c.en", *given, "--samples", "0") == 0
    assert capsys.readouterr().err == "the score command SHARE scored 0 texts; 20 were known\n"
    for word in ("--quiet", "--json"):
        assert run("score", "c.en", *given, "--samples", "0", word) == 0
        assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list",), "--score-command requires --nbest"),
        (("--nbest", "list", "--list-mbr"), "--score-command and --list-mbr exclude each other"),
        (("--nbest", "list", "--scores", "C=comet"), "--score-command and --scores exclude each"),
        (("--nbest", "list", "--metric", "WER"), "SHARE would not be used: name it in --metric"),
        (("--nbest", "list", "--score-format", "lines"), "SHARE reads hypotheses without refer"),
    ],
)
def test_mbr_rejects_commands(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    behavior = "lines" if "lines" in words else "right"
    command = f"SHARE={sys.executable} -IS {SCORER} log {behavior}"
    assert run("mbr", *words, "--score-command", command, "--score-cache", "known") == 2
    assert message in capsys.readouterr().err


def test_mbr_of_pairs(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    pairs = np.random.default_rng(1).random((3, 4, 4))
    np.save("pairs.npy", pairs)
    for scale in (0.0, 1.5):
        words = ("--scores", "COMET=pairs.npy", "--scale", str(scale), "--quiet")
        assert run("mbr", "--nbest", "list", *words) == 0
        probabilities = np.exp(-scale * np.arange(4.0))
        best = (pairs @ (probabilities / probabilities.sum())).argmax(axis=1)
        expected = "".join(f"h{s}{k}\n" for s, k in enumerate(best.tolist()))
        assert capsysbinary.readouterr().out.decode() == expected


def test_compare_and_score(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--scores", "COMET=a.npy,b.npy:error", "--format", "json", "--quiet")
    assert run("compare", "a.en", "b.en", *words) == 0
    base, new = json.loads(capsys.readouterr().out)
    assert (base["score"], new["score"]) == (9.5, 10.5)
    assert new["difference"] == pytest.approx(1.0)
    assert new["p_randomization"] < 0.01
    assert new["wins"] == 0.0
    assert run("score", "a.en", "--scores", "COMET=a.npy", "--json", "--sentences") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["score"], found["sentences"]) == (9.5, list(range(20)))
    assert run("score", "list", "--nbest", "--rank", "2", "--scores", "COMET=comet", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["score"] == pytest.approx((0.9 + 0.4 + 0.0) / 3)


def test_import(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nbest", "import", "list", "store", "--scores", "COMET=comet") == 0
    assert "12 hypotheses, 12 new, COMET 0.4667" in capsys.readouterr().out
    assert run("nbest", "verify", "store") == 0
    assert run("optimize", "--from", "store", "--quiet", "--seed", "1") == 0
    from_store = capsys.readouterr().out.splitlines()[-1]
    assert run("optimize", "list", "--scores", "COMET=comet", "--quiet", "--seed", "1") == 0
    assert capsys.readouterr().out.splitlines()[-1] == from_store


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("compare", "a.en", "b.en"), 2, "there are no references: give --refs FILE, or --scores"),
        (
            ("compare", "a.en", "b.en", "--scores", "C=a.npy"),
            2,
            "--scores C names 1 files: give C=",
        ),
        (
            ("compare", "a.en", "b.en", "--scores", "C=a.npy,comet"),
            1,
            "comet: 12 scores, but the translation has 20 lines",
        ),
        (
            ("compare", "a.en", "b.en", "--scores", "C=a.npy,b.npy", "--metric", "BLEU"),
            2,
            "BLEU compares texts with references",
        ),
        (("score", "a.en"), 2, "there are no references: give REF..., or --scores NAME=FILE"),
        (("score", "a.en", "--scores", "C=comet"), 1, "comet: 12 scores, but the translation has"),
        (("mbr", "list", "--scores", "C=comet"), 2, "--scores requires --nbest"),
        (
            ("mbr", "--nbest", "list", "--scores", "C=a.npy"),
            1,
            "a.npy:13: more utilities than the 12",
        ),
        (("oracle", "list", "--scores", "C=a.npy"), 1, "a.npy:13: a score without a hypothesis"),
        (("oracle", "list", "--scores", "C=none"), 2, "none: No such file"),
        (("optimize", "list", "--scores", "C"), 2, "--scores=C: write NAME=FILE"),
        (("optimize", "list", "--scores", "C=a.npy:ratio"), 2, "1 number for each hypothesis"),
        (
            ("optimize", "list", "--scores", "C=comet", "--algorithm", "xbleu"),
            2,
            "xbleu requires the metric BLEU, not C",
        ),
        (("optimize", "--graphs", ".", "--scores", "C=comet"), 2, "--scores and --graphs exclude"),
        (
            ("nbest", "import", "list", "store"),
            2,
            "BLEU compares texts with references: give --refs",
        ),
    ],
)
def test_errors_are_one_line(
    words: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == code
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not Path("store").exists()
