"""Test that every command that reads lists reads all formats, with the same settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mosesplug
from mosesplug.cli.main import main

ROWS = [
    ("u2", "a b c d e", {"lm": -3.0, "len": 5, "noise": 1.0}),
    ("u2", "a b c d", {"lm": -4.0, "len": 4, "noise": -1.0}),
    ("u1", "x y z w", {"lm": -1.0, "len": 4, "noise": 0.5}),
    ("u1", "x y v w v", {"lm": -2.0, "len": 5, "noise": -3.0}),
    ("u1", "x y", {"lm": -0.5, "len": 2, "noise": 3.0}),
]
REFS = {"u1": "x y z w v", "u2": "a b c d e"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same lists in the formats of Moses and Travatar, with ids that are numbers and texts."""
    monkeypatch.chdir(tmp_path)
    numbers = {"u2": 0, "u1": 1}
    moses, travatar = [], []
    for name, text, values in ROWS:
        labeled = " ".join(f"{key}= {value}" for key, value in values.items())
        glued = " ".join(f"{key}={value}" for key, value in values.items())
        moses.append(f"{name} ||| {text} ||| {labeled} ||| {values['lm']}\n")
        travatar.append(f"{numbers[name]} ||| {text} ||| {values['lm']} ||| {glued}\n")
    Path("moses").write_text("".join(moses))
    Path("travatar").write_text("".join(travatar))
    Path("keyed").write_text("".join(f"{name} {text}\n" for name, text in REFS.items()))
    Path("plain").write_text(f"{REFS['u2']}\n{REFS['u1']}\n")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


NAMES = ("--drop-feature", "noise", "--rename", "lm=LM")


def test_optimize_learns_the_same_from_all_formats(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for lists, refs in (("moses", "keyed"), ("travatar", "plain"), ("moses", "plain")):
        code, out, err = run(capsys, "optimize", "--nbest", lists, "--refs", refs, *NAMES)
        assert code == 0, err
        assert ("format travatar" in err) == (lists == "travatar")
        weights = dict(line.split("= ") for line in out.splitlines() if "= " in line)
        found.append(weights)
        assert list(weights) == ["LM", "len"]
    assert found[0] == found[1] == found[2]
    fit = mosesplug.optimize(
        "travatar", references="plain", drop_feature=["noise"], rename={"lm": "LM"}
    )
    assert {name: float(each) for name, each in found[0].items()} == pytest.approx(
        dict(fit.weights)
    )
    again = mosesplug.optimize(
        mosesplug.read_nbest("moses", drop_feature="noise", rename={"lm": "LM"}),
        references="keyed",
    )
    assert dict(again.weights) == dict(fit.weights)


def test_rerank_prints_ids(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("weights").write_text("LM= 0\nlen= 1\n")
    words = ("rerank", "--weights", "weights", *NAMES)
    code, out, _ = run(capsys, *words, "--nbest", "moses", "--ids", "--output-nbest", "sorted")
    assert (code, out) == (0, "u2 a b c d e\nu1 x y v w v\n")
    assert Path("sorted").read_text().splitlines()[2].startswith("u1 ||| x y v w v ")
    assert run(capsys, "rerank", "--weights", "weights", "--nbest", "sorted", "--ids")[1] == out
    assert run(capsys, *words, "--nbest", "travatar")[1] == "a b c d e\nx y v w v\n"
    assert run(capsys, *words, "--nbest", "travatar", "--ids")[1].startswith("0 a b c d e\n1 x")
    ranked = mosesplug.rerank(
        "moses", {"LM": 0, "len": 1}, drop_feature=["noise"], rename={"lm": "LM"}
    )
    assert ranked.ids == ["u2", "u1"]
    assert ranked.lists.ids == ("u2", "u1")


@pytest.mark.parametrize(
    "words",
    [
        ("oracle", "FILE", "--refs", "REFS", "--json"),
        ("bench-optimizers", "FILE", "--refs", "REFS", "--algorithms", "mert", "--seeds", "1"),
        ("score", "--nbest", "FILE", "REFS", "--metric", "BLEU", "--json"),
        ("mbr", "--nbest", "FILE"),
        ("nbest", "import", "FILE", "store-FILE", "--refs", "REFS"),
    ],
    ids=lambda words: words[0],
)
def test_commands_read_all_formats(
    files: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    results = []
    for lists, refs in (("moses", "keyed"), ("travatar", "plain")):
        changed = [word.replace("FILE", lists).replace("REFS", refs) for word in words]
        code, out, err = run(capsys, *changed)
        assert code == 0, err
        results.append([line for line in out.splitlines() if "mert" not in line])
    assert results[0] == results[1]


def test_oracle_names_sentences(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "oracle", "moses", "--refs", "keyed", "--rows", "rows")[0] == 0
    assert [line.split("\t")[0] for line in Path("rows").read_text().splitlines()[1:]] == [
        "u2",
        "u1",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "marian"), "moses:1: no field has F0="),
        (("--format", "travatar"), "moses:1: the third field of the first hypothesis is 'lm="),
        (("--format", "cdc"), "--format: unknown list format 'cdc'; known: auto"),
        (("--rename", "lm=len"), "--rename lm=len: moses has another feature len"),
        (("--drop-feature", "lx"), "--drop-feature lx: there is no feature lx;"),
        (("--word-scores", "add"), "--word-scores must be one of drop, sum, not add"),
    ],
)
def test_errors_are_one_line(
    files: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    code, _, err = run(capsys, "optimize", "--nbest", "moses", "--refs", "keyed", *words)
    assert code in (1, 2)
    assert message in err
    assert err.count("\n") == 1


def test_settings_of_lists_are_not_of_a_store(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "nbest", "import", "travatar", "store", "--refs", "plain")
    assert code == 0, err
    code, _, err = run(capsys, "oracle", "store", "--format", "moses")
    assert (code, "--format requires n-best lists" in err) == (2, True)
    code, _, err = run(capsys, "mbr", "store", "--columns", "id,hyp")
    assert (code, "--columns requires --nbest" in err) == (2, True)
    code, _, err = run(capsys, "score", "plain", "plain", "--format", "moses")
    assert (code, "--format requires --nbest\n" in err) == (2, True)
    code, _, err = run(capsys, "oracle", "store", "--format", "tsv")
    assert (code, err.endswith("; for tables in tsv, give --table-format tsv\n")) == (2, True)


@pytest.mark.parametrize("layout", ["json", "tsv", "markdown"])
def test_a_format_without_lists_is_that_of_tables(
    files: Path, capsys: pytest.CaptureFixture[str], layout: str
) -> None:
    words = ("score", "plain", "plain", "--samples", "0")
    code, out, err = run(capsys, *words, "--format", layout)
    assert code == 0, err
    assert out == run(capsys, *words, "--table-format", layout)[1]


def test_read_nbest_takes_the_settings(files: Path) -> None:
    lists = mosesplug.read_nbest("travatar", drop_feature=["noise"], rename={"lm": "LM"})
    assert lists.names == ("LM", "len")
    assert lists.ids == ()
    named = mosesplug.read_nbest("moses", format="moses")
    assert named.ids == ("u2", "u1")
    assert [named.name_sentence(number) for number in (0, 1)] == ["u2", "u1"]
    assert named.sentence(1).ids == ("u2", "u1")
    mosesplug.write_nbest("again", named)
    again = mosesplug.read_nbest("again")
    assert (again.ids, again.texts, again.dense.tolist()) == (
        named.ids,
        named.texts,
        named.dense.tolist(),
    )
    with pytest.raises(mosesplug.UsageError, match="rename"):
        mosesplug.read_nbest("moses", rename={"lm": "len"})
    with pytest.raises(mosesplug.UsageError, match="format: unknown list format"):
        mosesplug.read_nbest("moses", format="mosses")
    with pytest.raises(mosesplug.UsageError, match="format and features exclude each other"):
        mosesplug.optimize(features=[[1.0]], sentence_ids=[0], scores=[1.0], format="moses")
    shown = json.dumps(named.sentence(0).texts)
    assert "a b c d e" in shown
