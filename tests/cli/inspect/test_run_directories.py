"""Commands take the working directories of all kinds of runs."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.results.runs import GROUPS, LISTS, REFERENCE, make_run, read_graph

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command beside a single run, several runs and a run of mert-moses.pl."""
    monkeypatch.chdir(tmp_path)
    Path("refs").write_bytes(b"".join(line + b"\n" for line in REFERENCE))
    _write_run(Path("single"))
    several = Path("several")
    several.mkdir()
    for number in (1, 2):
        _write_run(several / f"run.{number}")
    (several / "runs.json").write_text("{}")
    _choose(2)
    _write_script_run(Path("script"))

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, words)])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


def _write_run(directory: Path) -> None:
    make_run(directory, graph=read_graph(Path()))
    weights = {"LM0_0": 0.25, "TM0_0": 0.75}
    result = {"decoded_in_iteration": None, "weights": weights}
    (directory / "summary.json").write_text(json.dumps({"result": result, "iterations": []}))


def _choose(number: int | None) -> None:
    summary = {"result": {"run": number}}
    Path("several/summary.json").write_text(json.dumps(summary))


def _write_script_run(directory: Path) -> None:
    """Write the files that mert-moses.pl leaves."""
    directory.mkdir()
    for number, (lists, weights) in enumerate(
        zip(LISTS, ("0.5 0.5", "0.2 0.6"), strict=True), start=1
    ):
        names = [name for name, _ in GROUPS]
        lines = [
            f"{each.sentence} ||| {each.text.decode()} ||| "
            + " ".join(f"{name}= {v}" for name, v in zip(names, each.dense, strict=True))
            + " ||| 0\n"
            for each in lists
        ]
        text = "".join(lines).encode()
        (directory / f"run{number}.best5.out.gz").write_bytes(gzip.compress(text))
        pairs = zip(names, weights.split(), strict=True)
        (directory / f"run{number}.dense").write_text("".join(f"{n}= {w}\n" for n, w in pairs))
        (directory / f"run{number}.out").write_text("a\nb\nc\n")
    (directory / "run2.weights.txt").write_text("0.25 0.75 \n")
    (directory / "moses.ini").write_text(
        "[feature]\nA name=LM0\nB name=TM0\n[weight]\nLM0= 0.25\nTM0= 0.75\n"
    )


def test_several_runs_stand_for_the_run_whose_weights_are_the_result(run: Run) -> None:
    for words in (
        ("nbest", "ls"),
        ("oracle",),
        ("weights", "show"),
        ("forest", "info"),
        ("mbr", "--quiet", "--store"),
        ("nbest", "show"),
    ):
        more = ("0",) if words[-1] == "show" and words[0] == "nbest" else ()
        code, out, _ = run(*words, "several", *more)
        assert (code, out) == run(*words, Path("several/run.2"), *more)[:2], words
        assert code == 0, words
    shutil.rmtree("several/run.1")
    assert run("nbest", "ls", "several")[0] == 0
    # What changes a store is told which.
    code, _, error = run("nbest", "drop", "several", "2")
    assert code == 1
    assert "holds 1 run" in error


def test_runs_whose_result_is_their_mean(run: Run) -> None:
    _choose(None)
    Path("several/moses.ini").write_text("[weight]\nLM0= 0.4\nTM0= 0.6\n")
    code, _, error = run("nbest", "ls", "several")
    assert code == 2
    assert "none of them is the result. Name one of them, as several/run.1" in error
    shown = run("weights", "show", "several")[1]
    assert ["LM0_0", "0.4", "40.0%"] in [line.split() for line in shown.splitlines()]


def test_commands_take_the_weights_of_runs(run: Run) -> None:
    lists = Path("list")
    lists.write_bytes(gzip.decompress(Path("script/run1.best5.out.gz").read_bytes()))
    for command in (
        ("rerank", "--nbest", lists),
        ("mbr", "--quiet", "--nbest", lists, "--scale", "20"),
        ("oracle", lists, "--refs", "refs"),
        ("forest", "info", "single"),
        ("mbr", "--quiet", "--store", "single"),
        ("nbest", "show", "single", "0"),
    ):
        code, expected, _ = run(*command, "--weights", "LM0= 0.25 TM0= 0.75")
        assert code == 0, command
        for directory in ("single", "several", "script"):
            found = run(*command, "--weights", directory)
            assert found[:2] == (0, expected), (command, directory)
    first = run("rerank", "--nbest", lists, "--weights", "single:1")[1]
    assert first == run("rerank", "--nbest", lists, "--weights", "LM0= 1 TM0= 1")[1]
    learn = ("optimize", "--nbest", lists, "--refs", "refs", "--option", "restarts=1")
    expected = run(*learn, "--init", "script/moses.ini")[1]
    assert run(*learn, "--init", "script")[:2] == (0, expected)
    code, _, error = run(*learn, "--init", "single")
    assert code == 2
    assert "--init single: the directory has no weights of a finished run" in error
    code, _, error = run("rerank", "--nbest", lists, "--weights", "none")
    assert code == 2
    assert "--weights none: No such file or directory" in error


@pytest.mark.usefixtures("figures_without_svg")
def test_lists_of_the_script_are_imported_or_the_command_is_shown(
    run: Run,
) -> None:
    for words in (("nbest", "ls"), ("report",), ("oracle",)):
        code, _, error = run(*words, "script")
        assert code == 1, words
        assert "mosesplug nbest import --refs REFERENCES script script.lmdb" in error
    assert run("oracle", "script", "--refs", "refs")[:2] == run("oracle", "single")[:2]
    assert run("report", "script", "--refs", "refs", "-o", "page.html")[:2] == (0, "page.html\n")
    assert "Tuning in script" in Path("page.html").read_text()


def test_compare_takes_all_of_them(run: Run) -> None:
    words = ("compare", "a=single", "b=several/run.1", "c=script", "--refs", "refs")
    code, out, error = run(*words, "--metric", "BLEU", "--trials", "10", "--samples", "10")
    assert (code, error) == (0, "")
    scores = {line.split()[1]: line.split()[3] for line in out.splitlines() if "BLEU  " in line}
    assert scores["a"] == scores["b"] != scores["c"]
