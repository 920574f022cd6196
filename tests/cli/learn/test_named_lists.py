"""Lists as Joshua and cdec write them, through every command that reads lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.nbest.files import read_nbest
from formats.weights.files import read_dense, read_sparse
from mosesplug.cli.main import main

NAMES = ("Glue", "lm_0", "WordPenalty", "OOV_1")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists of which ``lm_0`` knows the best; what is 0 is left out, as cdec does."""
    rng = np.random.default_rng(2)
    references, lines = [], []
    for sentence in range(6):
        words = [f"w{sentence}{k}" for k in range(6)]
        references.append(" ".join(words))
        for wrong in (1, 0, 3, 2):
            text = " ".join(words[: 6 - wrong] + ["x"] * wrong)
            features = [f"lm_0={-wrong + rng.normal() / 4:.4g}", "WordPenalty=-2.6"]
            features = [f"Glue={wrong % 2}"] * (wrong % 2) + features
            features += ["OOV_1=1"] * (wrong > 2)
            lines.append(f"{sentence} ||| {text} ||| {' '.join(features)} ||| {-wrong}")
    (tmp_path / "refs").write_text("\n".join(references) + "\n")
    (tmp_path / "list").write_text("\n".join(lines) + "\n")
    (tmp_path / "weights").write_text("lm_0 1\nWordPenalty -1\nOOV_1 0\nGlue -0.5\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_weights_are_found_and_used(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learn = ("--nbest", "list", "--refs", "refs", "--threads", "1", "--restarts", "1")
    assert run("optimize", *learn, "--init", "weights", "-o", "tuned") == 0
    said = capsys.readouterr().err
    assert "24 distinct hypotheses of 24, 4 features" in said
    assert "score at the end    1.000000" in said
    assert {name for name, _ in read_dense("tuned")} == set(NAMES)
    for weights in ("tuned", "weights"):
        assert run("rerank", "--nbest", "list", "--weights", weights, "-o", "best") == 0
        assert (files / "best").read_text() == (files / "refs").read_text()
    (files / "other").write_text("TM_0 1\nLM 2\n")
    assert run("rerank", "--nbest", "list", "--weights", "other") == 1
    assert "Give the weights of the system that made the list, not other" in capsys.readouterr().err
    assert run("optimize", *learn, "--init", "other") == 1
    assert "no weight of Glue, a feature of the lists" in capsys.readouterr().err
    assert run("mbr", "--nbest", "list", "--weights", "weights", "--scale", "9") == 0
    assert capsys.readouterr().out == (files / "refs").read_text()


def test_dense_features_can_be_chosen(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--nbest", "list", "--refs", "refs", "--threads", "1", "--quiet", "-o", "tuned")
    learn = (*words, "--algorithm", "kbmira", "--epochs", "2")
    assert run("optimize", *learn, "--dense", "lm_0, WordPenalty") == 0
    assert [name for name, _ in read_dense("tuned")] == ["lm_0", "WordPenalty"]
    assert set(read_sparse("tuned.sparse")) <= {"Glue", "OOV_1"}
    held_out = ("--heldout-nbest", "list", "--heldout-refs", "refs")
    assert run("optimize", *learn, "--dense", "lm_0", *held_out) == 0
    for text, said in (("lm_0,,Glue", "a name is empty"), ("Glue,Glue", "a name occurs twice")):
        assert run("optimize", *learn, "--dense", text) == 2
        assert said in capsys.readouterr().err
    assert run("optimize", "--graphs", "list", "--refs", "refs", "--dense", "lm_0") == 2
    assert "--dense and --graphs exclude each other" in capsys.readouterr().err


def test_a_list_that_is_neither_names_its_line(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (files / "list").open("a") as more:
        more.write("6 ||| x ||| lm_0=1 -3 ||| 1\n")
    (files / "refs").write_text((files / "refs").read_text() + "x\n")
    assert run("optimize", "--nbest", "list", "--refs", "refs") == 1
    assert "list:25: the feature lm_0 has 2 values" in capsys.readouterr().err


def test_scored_stored_and_written_again(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = ("score", "--nbest", "list", "refs", "--metric", "BLEU", "--samples", "0")
    assert run(*score, "--rank", "2") == 0
    assert "BLEU    1.0000" in capsys.readouterr().out
    assert run("nbest", "import", "list", "store", "--refs", "refs", "--quiet") == 0
    assert run("nbest", "export", "store", "-o", "again", "--iteration", "1", "--quiet") == 0
    one, other = (read_nbest(path, dense=NAMES) for path in ("list", "again"))
    assert one.dense.tolist() == other.dense.tolist()
    assert other.sparse_names == ()
    listed = ("--weights", "weights", "--output-nbest", "sorted", "-o", "best")
    assert run("rerank", "--nbest", "again", *listed) == 0
    best = read_nbest("sorted", dense=NAMES)
    assert best.text(0) == b"w00 w01 w02 w03 w04 w05"
    assert best.scores[0] == pytest.approx(float(best.dense[0] @ [-0.5, 1, -1, 0]))


def test_a_misspelled_weight_is_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "misspelled").write_text("lm_0 1\nWordPenaltty -1\nGlue -0.5\n")
    for command in ("rerank", "mbr"):
        assert run(command, "--nbest", "list", "--weights", "misspelled") == 1
        error = capsys.readouterr().err
        assert "misspelled: a weight of WordPenaltty, which is no feature of list" in error
        assert "and none of WordPenalty, which is one. Rename it to WordPenalty, or set" in error
    # 0 is no mistake, and neither are names that differ by digits or little resemble any.
    for more in ("WordPenaltty 0", "WordPenalty_2 1", "LanguageModel 1"):
        (files / "more").write_text(f"lm_0 1\nGlue -0.5\n{more}\n")
        assert run("rerank", "--nbest", "list", "--weights", "more", "-o", "best") == 0
