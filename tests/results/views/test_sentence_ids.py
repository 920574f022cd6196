"""Stores of lists whose sentence ids are texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mosesplug.cli.main import main
from mosesplug.store import NBestStore

Run = Callable[..., tuple[int, str, str]]

LIST = """id	hyp	lm
utt-b	the house	-1
utt-b	a house	-2
utt-a	yes	-1.5
utt-a	no	-1
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command in a directory with an imported list; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("list.tsv").write_text(LIST)
    Path("text").write_text("utt-a yes\nutt-b a house\n")

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    code, _, error = call(
        "nbest", "import", "list.tsv", "store", "--refs", "text", "--metric", "WER"
    )
    assert code == 0, error
    return call


def test_ids_are_shown(run: Run) -> None:
    assert "sentence ids: utt-b, utt-a\n" in run("nbest", "ls", "store")[1]
    assert json.loads(run("nbest", "ls", "store", "--json")[1])["sentence_ids"] == [
        "utt-b",
        "utt-a",
    ]
    code, out, _ = run("nbest", "show", "store", "utt-b")
    assert (code, out.splitlines()[0]) == (0, "sentence   utt-b (number 0)")
    found = json.loads(run("nbest", "show", "store", "0", "--json")[1])
    assert (found["number"], found["id"]) == (0, "utt-b")
    assert "utt-b\thypothesis\t" in run("nbest", "grep", "store", "house", "--in", "hypothesis")[1]
    code, _, error = run("nbest", "show", "store", "utt-c")
    assert code == 2
    assert "there is no sentence 'utt-c' in " in error
    assert "store: the ids are utt-b, utt-a, ..." in error


def test_ids_are_exported(run: Run) -> None:
    assert run("nbest", "export", "store", "-o", "all")[0] == 0
    assert [line.split()[0] for line in Path("all").read_text().splitlines()] == [
        *("utt-b", "utt-b", "utt-a", "utt-a")
    ]  # fmt: skip
    assert run("nbest", "export", "store", "--sentence", "utt-b", "-o", "one")[0] == 0
    assert {line.split()[0] for line in Path("one").read_text().splitlines()} == {"utt-b"}
    assert run("nbest", "export", "store", "--format", "npz", "-o", "arrays.npz")[0] == 0
    assert np.load("arrays.npz")["ids"].tolist() == ["utt-b", "utt-a"]
    # What was exported can be read again.
    code, _, error = run(
        "optimize", "--nbest", "all", "--refs", "text", "--metric", "WER", "--quiet"
    )
    assert code == 0, error


def test_references_and_scores_are_matched_by_ids(run: Run) -> None:
    same = ("optimize", "--from", "store", "-o", "weights")
    Path("reversed").write_text("utt-b a house\nutt-a yes\n")
    scores = []
    for refs in ("text", "reversed"):
        code, _, error = run(*same, "--refs", refs, "--metric", "CER")
        assert code == 0, error
        scores.append(error.split("score at the end")[1].split()[0])
    assert scores[0] == scores[1]
    Path("scores").write_text(
        "utt-b ||| the house ||| 0.5\nutt-b ||| a house ||| 1\n"
        "utt-a ||| no ||| 0\nutt-a ||| yes ||| 1\n"
    )
    Path("start").write_text("lm= 1\n")
    code, _, error = run(*same, "--scores", "Q=scores", "--init", "start")
    assert code == 0, error
    assert "score at the start  0.250000" in error
    Path("scores").write_text("utt-c ||| the house ||| 0.5\n")
    code, _, error = run(*same, "--scores", "Q=scores")
    assert code == 1
    assert (
        "scores:1: 'utt-c' is not a sentence id of a store. Its ids are 'utt-b', 'utt-a', ..."
        in error
    )
    Path("scores").write_text("utt-b ||| the house ||| 0.5\n")
    assert "a hypothesis of sentence 'utt-b': score" in run(*same, "--scores", "Q=scores")[2]


def test_references_are_shown_by_ids(run: Run) -> None:
    for place, lines in (("refs", ["utt-a yes", "utt-b a house"]), ("plain", ["a house", "yes"])):
        Path(place).write_text("".join(f"{line}\n" for line in lines))
        _, out, _ = run("nbest", "show", "store", "utt-b", "--refs", place)
        assert "reference  a house\n" in out
        _, out, _ = run("nbest", "diff", "store", "utt-a", "--refs", place)
        assert "reference  yes\n" in out
        _, out, _ = run("nbest", "grep", "store", "yes", "--in", "reference", "--refs", place)
        assert out == "utt-a\treference\t0\tyes\n"
    Path("source").write_text("utt-a ja\nutt-b ein Haus\n")
    assert "source     ein Haus\n" in run("nbest", "show", "store", "0", "--source", "source")[1]
    Path("other").write_text("v-1 a house\nv-2 yes\nv-3 no more\n")
    code, _, error = run("nbest", "show", "store", "utt-b", "--refs", "other")
    assert code == 1
    assert (
        "other:1: the line begins with 'v-1', which looks like a sentence id, but the lists have"
        in error
    )
    code, _, error = run("nbest", "show", "store", "utt-b", "--refs", "other", "--no-ids")
    assert "the reference has 3 lines, but the run has 2 sentences" in error


def test_stores_without_ids_and_damaged_ids(tmp_path: Path, run: Run) -> None:
    with NBestStore.open("store", writable=True) as store:
        assert store.sentence_ids == ("utt-b", "utt-a")
        store.keep_sentence_ids([])
    assert run("nbest", "show", "store", "1")[1].split()[0] == "rank"
    assert "sentence ids" not in run("nbest", "ls", "store")[1]
    with NBestStore.open("store", writable=True) as store:
        store.keep_sentence_ids([1, 2])  # type: ignore[list-item]
    code, _, error = run("nbest", "ls", "store")
    assert code == 1
    assert "is damaged: its sentence ids cannot be read" in error
