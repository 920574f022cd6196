"""The evaluator program against recorded scores, and its options by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.text import read_lines
from mosesplug.cli.moses.evaluator import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a reference and translations, made the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref").write_text("a b c d e\nf g h i j\n")
    (tmp_path / "same").write_text("a b c d e\nf g h i j\n")
    (tmp_path / "half").write_text("A B C D E\nf g h i j\n")
    (tmp_path / "list").write_text(
        "0 ||| a b c d e ||| LM0= 1 ||| 1\n0 ||| x ||| LM0= 1 ||| 1\n"
        "1 ||| F g h i j ||| LM0= 1 ||| 1\n"
    )
    return tmp_path


def run(line: str) -> int:
    """Exit code of the program, called with the words of a line."""
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert isinstance(caught.value.code, int)
    return caught.value.code


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output of the program."""
    assert run(line) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-R ref -C same", "1.0000\n"),
        ("--reference ref --candidate same,half -s PER", "same\t1.0000\nhalf\t0.5000\n"),
        ("-R ref -C half -s PER -c case:false -s PER", "PER\t1.0000\nPER\t0.5000\n"),
        ("-R ref -n list -s PER", "0.9000\n"),
        ("-R ref -C half -s PER,WER -c weights:0.25+0.75", "0.5000\n"),
        ("-R ref,half -C half -s WER", "1.0000\n"),
        (
            "-R ref -C same,half -s WER -s PER",
            "same\tWER\t1.0000\nsame\tPER\t1.0000\nhalf\tWER\t0.5000\nhalf\tPER\t0.5000\n",
        ),
        ("-R ref -C same -b 20 -r 3", "1.0000\t[1.0000,1.0000]\n"),
    ],
)
def test_scores(folder: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str) -> None:
    assert printed(line, capsys) == expected


def test_filter_and_factors_belong_to_the_metric_before_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "-R ref -C half -s PER -s PER --filter ./low -f 0 -s PER -f 0"
    (folder / "low").write_text("#!/bin/sh\ntr A-Z a-z\n")
    (folder / "low").chmod(0o755)
    assert printed(line, capsys) == "PER\t0.5000\nPER\t1.0000\nPER\t0.5000\n"


def test_a_seed_gives_one_interval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = printed("-R ref -C half -s PER -b 50 --rseed 7", capsys)
    assert first == printed("-R ref -C half -s PER -b 50 --rseed 7", capsys)
    assert first.endswith("\t[0.0000,1.0000]\n")
    assert run("-R ref -C half -s PER -b 5") == 0
    assert "Seeding random numbers with " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("-C same", 2, "--reference"),
        ("-R ref", 2, "--candidate"),
        ("-R ref -C same -n list", 2, "--candidate"),
        ("-R ref -C same -c case:true", 2, "--scconfig must follow"),
        ("-R ref -C same -f 0 -s PER", 2, "--factors must follow"),
        ("-R ref -C same -s NIST", 2, "NIST"),
        ("-R ref -C same -b -1", 2, "--bootstrap must be at least 0, not -1"),
        ("-R ref -C same -b many", 2, "-b takes a whole number"),
        ("-R ref -C short", 1, "short: 1 lines, but the references have 2"),
        ("-R short -n list", 1, "list:3: there is no reference for sentence 1"),
        ("-R ref -C absent", 1, "absent: cannot be read"),
        ("-R empty -C empty", 1, "empty"),
    ],
)
def test_refusals(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, message: str
) -> None:
    (folder / "short").write_text("a\n")
    (folder / "empty").write_text("")
    assert run(line) == code
    said = capsys.readouterr()
    assert said.err.startswith("evaluator: ")
    assert message in said.err
    assert said.out == ""


def test_recorded_lists(multi30k: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = multi30k / "scores"
    for line in read_lines(scores / "evaluator.txt"):
        name, score = line.decode().split()
        files = f"--reference {scores}/first100.ref --nbest {scores}/first100.best100.gz"
        assert printed(f"--sctype {name} {files}", capsys) == f"{score}\n"


def test_recorded_references(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hindi = recordings / "hindi-4ref"
    references = ",".join(str(hindi / f"dev.en{number}") for number in range(3))
    for line in read_lines(hindi / "evaluator.txt"):
        name, *settings, score = line.decode().split()
        words = f"--sctype {name} " + (f"-c {','.join(settings)}" if settings else "")
        files = f"-R {references} -C {hindi}/dev.en3"
        assert printed(f"{words} {files}", capsys) == f"{score}\n"
