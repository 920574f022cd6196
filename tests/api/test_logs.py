"""The logger ``mosesplug``: what the command line prints, in the words of Python."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mosesplug
from formats.errors import FormatError
from mosesplug.cli.main import main
from tests.api.examples import write_example_files

LISTS = "run1.best100.out.gz"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("list.tsv").write_text("id\thyp\tlm\nu\ta b\t1\nu\ta\t2\nv\tc\t1\nv\td\t2\n")
    Path("refs").write_text("u a b\nv c\n")
    return tmp_path


def lines_of(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "mosesplug" and r.levelno >= level]


def without_times(lines: list[str]) -> list[str]:
    return [re.sub(r"[0-9.]+ s|[0-9.]+/s", "T", line) for line in lines if line]


def test_optimize_logs_what_the_command_prints(
    directory: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["optimize", "--nbest", "list.tsv", "--refs", "refs", "--metric", "WER", "-o", "w"]
    with pytest.raises(SystemExit):
        main(words)
    printed = capsys.readouterr().err.splitlines()
    caplog.set_level(logging.INFO, "mosesplug")
    caplog.clear()
    fit = mosesplug.optimize("list.tsv", references="refs", metric="WER")
    logged = lines_of(caplog)
    assert logged[0] == printed[0]
    assert "format tsv" in logged[0]
    keywords = {"--folds 5": "folds=5", "--held-out 0.2": "held_out=0.2"}
    for option, keyword in keywords.items():
        printed = [line.replace(option, keyword) for line in printed]
    assert sorted(without_times(logged)) == sorted(without_times(printed))
    assert not any("--" in line for line in logged)
    assert lines_of(caplog, logging.WARNING) == [f"warning: {each}" for each in fit.warnings]


def test_tune_logs_the_lines_of_the_run(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mosesplug")
    mosesplug.tune(
        "dev.fr",
        "dev.en",
        config="start.weights",
        decode_command="python3 decoder.py {weights} {input} {nbest}",
        max_iterations=1,
        seed=1,
    )
    logged = lines_of(caplog)
    assert any(line.startswith("[1] BLEU") and "decoded" in line for line in logged)
    assert logged[-1].startswith("finished after iteration 1: ")


def test_formats_are_logged(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mosesplug")
    for call in (
        lambda: mosesplug.read_nbest("list.tsv"),
        lambda: mosesplug.rerank("list.tsv", {"lm": 1.0}),
        lambda: mosesplug.mbr("list.tsv", scale=0),
    ):
        caplog.clear()
        call()
        assert lines_of(caplog) == [
            "list.tsv: format tsv (id in column id, hypothesis in column hyp, features lm)"
        ]


ERRORS: dict[str, Callable[[], Any]] = {
    "columns": lambda: mosesplug.read_nbest("list.tsv", columns=["id", "nothing"]),
    "format": lambda: mosesplug.read_nbest("dev.en"),
    "flat": lambda: mosesplug.read_nbest("dev.en", format="nemo:2"),
    "dense": lambda: mosesplug.rerank("list.tsv", {"qe": 1.0}),
    "refs": lambda: mosesplug.optimize("list.tsv", references="dev.en", metric="WER"),
    "score": lambda: mosesplug.score("list.tsv", "refs", select=1, columns=["id", "x"]),
    "score ids": lambda: mosesplug.score(["u a", "w c"], ["u a", "v c"], "WER", ids=True),
    "compare": lambda: mosesplug.compare({"a": "dev.en", "b": "dev.en"}, "refs"),
    "held out": lambda: mosesplug.optimize("list.tsv", references="refs", held_out=0.9, folds=3),
    "algorithm": lambda: mosesplug.optimize("list.tsv", references="refs", algorithm="mart"),
    "options": lambda: mosesplug.optimize("list.tsv", references="refs", options={"x": 1}),
    "tune": lambda: mosesplug.tune("dev.fr", "dev.en", decoder="sh", config="start.weights"),
    "flags": lambda: mosesplug.tune(
        "dev.fr", "dev.en", decoder="sh", config="mert-work", decoder_flags="-n-best-list x 1"
    ),
    "mbr": lambda: mosesplug.mbr("list.tsv", utility="QE"),
    "graphs": lambda: mosesplug.optimize(graphs="list.tsv", references="refs"),
    "store": lambda: mosesplug.open_run("nothing"),
    "run": lambda: mosesplug.open_run("mert-work", run=3),
    "figure": lambda: mosesplug.open_run("mert-work").plot("lattice"),
    "hypotheses": lambda: mosesplug.open_run("mert-work").hypotheses(9),
    "report": lambda: mosesplug.report("mert-work", references="dev.en"),
    "weights": lambda: mosesplug.rerank("list.tsv", "dev.en"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_no_options(directory: Path, name: str) -> None:
    with pytest.raises((mosesplug.MosesplugError, FormatError)) as caught:
        ERRORS[name]()
    message = re.sub("mosesplug [a-z]+ [^.;]*", "", str(caught.value))  # what a shell runs
    assert not re.search(r"(?<!\w)--[a-z]", message)
