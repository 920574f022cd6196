"""``nbest export`` by the name of its file, and ``-`` as the name of any output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mosesplug import NBest, read_nbest
from mosesplug.cli.main import main
from tests.results.runs import REFERENCE, make_run

TEXTS = ["the house is red old", "the red house is old", "she sees one dog"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, in the current directory, and references beside it."""
    monkeypatch.chdir(tmp_path)
    Path("reference").write_bytes(b"\n".join(REFERENCE) + b"\n")
    return make_run(Path("work"))


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*words])
    return int(end.value.code or 0)


def export(*words: str) -> int:
    return run("nbest", "export", "work", "--quiet", *words)


@pytest.mark.parametrize("name", ["lists.gz", "lists.jsonl", "lists.tsv.gz", "lists.csv"])
def test_rows_are_read_again(work: Path, name: str) -> None:
    assert export("-o", name) == 0
    assert export("-o", "list") == 0
    found, expected = read_nbest(name), read_nbest("list")
    assert isinstance(found, NBest)
    assert [*found.texts] == [*expected.texts]
    assert [name.removesuffix("_0") for name in found.space.names] == ["LM0", "TM0"]
    assert np.array_equal(found.dense, expected.dense)


def test_json_lines_have_scores_of_nine_digits(work: Path) -> None:
    assert export("-o", "lists.jsonl", "--iteration", "1", "--sentence", "0") == 0
    first, second = map(json.loads, Path("lists.jsonl").read_text().splitlines())
    assert first == {
        "id": 0,
        "hyp": TEXTS[0],
        "score": 0.0,
        "scores": {"LM0": -1.0, "TM0": -2.0},
    }
    assert second["hyp"] == TEXTS[1]


def test_parquet_by_name(work: Path) -> None:
    assert export("-o", "lists.parquet") == 0
    assert Path("lists.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "x.parquet", "--format", "nbest"), "the name says parquet, but --format is nbest"),
        (("-o", "x.json"), "no format for .json: name the file .jsonl, .tsv, .csv, .npz, .parquet"),
        (("-o", "x.json.gz"), "no format for .json: "),
        (("-o", "x.bz2"), "only .gz is compressed: "),
        (("-o", "x.tsv.xz", "--format", "tsv"), "only .gz is compressed: "),
        (("-o", "x.csv", "--format", "tsv"), "the name says csv, but --format is tsv"),
        (
            (
                "-o",
                "x.parquet.gz",
            ),
            "parquet is compressed itself: leave .gz out",
        ),
        (("-o", "x", "--format", "text"), "--format takes nbest, jsonl, tsv, csv, "),
    ],
)
def test_names_and_formats_that_differ(
    work: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(*words) == 2
    assert message in capsys.readouterr().err
    assert not [*Path().glob("x*")]


def test_tables_refuse_what_they_cannot_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("refs").write_text("a\tb\n")
    Path("list").write_bytes(b"0 ||| a\tb ||| LM0= 1 sw_a= 1 ||| -1\n")
    assert run("nbest", "import", "list", "work", "--refs", "refs", "--quiet") == 0
    assert export("-o", "lists.csv") == 2
    assert "csv has no sparse features, of which the run has 1" in capsys.readouterr().err
    Path("list").write_bytes(b"0 ||| a\tb ||| LM0= 1 ||| -1\n")
    assert run("nbest", "import", "list", "other", "--refs", "refs", "--quiet") == 0
    assert run("nbest", "export", "other", "-o", "lists.tsv") == 2
    assert "which tsv cannot hold: use csv or jsonl" in capsys.readouterr().err


@pytest.mark.usefixtures("figures_without_svg")
@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("nbest export work -o - --quiet", b"0 ||| the house is red old"),
        ("nbest export work -o - --format csv --quiet", b"id,hyp,LM0,TM0\n"),
        ("nbest export work -o /dev/stdout --format parquet --quiet", b"PAR1"),
        ("oracle work --refs reference -o -", b"the red house is old\nshe sees a small dog today"),
        ("oracle work --refs reference --rows -", b"sentence\trank\tequals\n0\t"),
        ("report work -o -", b"<!DOCTYPE html>"),
        ("weights convert work --to json -o -", b"{"),
        ("optimize --from work -o - --quiet", b"LM0= "),
        ("compare A=reference B=reference --refs reference --trials 2 --samples 2 --html -", b"<!"),
    ],
)
def test_a_dash_is_stdout(
    work: Path, command: str, first: bytes, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    before = {*Path().iterdir()}
    assert run(*command.split()) == 0
    output = capfdbinary.readouterr().out
    assert output.startswith(first)
    assert b"mosesplug-stdout" not in output
    assert {*Path().iterdir()} == before


def test_one_stdout_is_not_two_outputs(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("oracle", "work", "--refs", "reference", "-o", "-", "--rows", "-") == 2
    assert "--output and --rows cannot both be stdout" in capsys.readouterr().err


def test_weights_in_the_format_of_the_name(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("weights", "convert", "work", "-o", "x.json") == 0
    assert json.loads(Path("x.json").read_text())["dense"] == {"LM0": 0.25, "TM0": 0.75}
    assert run("weights", "average", "work:1", "work:2", "-o", "x.yaml") == 0
    assert "LM0: 0.375" in Path("x.yaml").read_text()
    assert run("weights", "convert", "work", "-o", "x") == 2
    assert "name a format with --to, or an output such as weights.json" in capsys.readouterr().err


def test_the_ini_of_a_run_is_edited(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("weights", "convert", "work:1", "--to", "moses.ini", "-o", "x.ini") == 2
    assert "give --config FILE" in capsys.readouterr().err
    ini = "[feature]\nLM name=LM0\nTM name=TM0\n[weight]\nLM0= 0.1\nTM0= 0.1\n"
    (work / "run1.moses.ini").write_text(ini + "# first\n")
    (work / "run2.moses.ini").write_text(ini + "# second\n")
    assert run("weights", "convert", "work:1", "-o", "x.ini") == 0
    assert "LM0= 0.5\nTM0= 0.5\n# second\n" in Path("x.ini").read_text()
    (work / "moses.ini").write_text(ini + "# tuned\n")
    assert run("weights", "convert", "work:1", "-o", "x.ini") == 0
    assert "# tuned" in Path("x.ini").read_text()
