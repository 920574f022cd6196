"""Completion on the command line, as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer.main

from mosesplug.cli import application
from mosesplug.cli.main import main
from mosesplug.cli.run.mert_moses import main as mert_moses
from tests.cli.test_help import commands

PROGRAM = (
    "import sys; sys.argv[0] = 'mosesplug'; from mosesplug.cli.main import main; main(sys.argv[1:])"
)


def complete(
    words: str, shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """What a shell is offered for the last of some words."""
    program = words.split()[0]
    monkeypatch.setenv(f"_{program.replace('-', '_').upper()}_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as end:
        (mert_moses if program == "mert-moses" else main)([])
    assert not end.value.code
    lines = capsys.readouterr().out.splitlines()
    if shell == "zsh":
        return [line.split('"')[1] for line in lines if '"' in line]
    return [line.split("\t")[0] for line in lines if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mosesplug nb", ["nbest"]),
        ("mosesplug nbest s", ["show", "stats"]),
        ("mosesplug tune --online-s", ["--online-servers"]),
        ("mosesplug tune --held", ["--heldout", "--heldout-every", "--heldout-decoder"]),
        ("mosesplug tune --help-", ["--help-all"]),
        ("mosesplug tune --algorithm kb", ["kbmira"]),
        ("mosesplug tune --metric BLEU,T", ["BLEU,TER", "BLEU,TER-SACREBLEU"]),
        ("mosesplug tune --mixing l", ["line-search"]),
        ("mosesplug tune --algorithm mert --option method=p", ["method=powell"]),
        ("mosesplug tune --algorithm kbmira --option ba", ["background=hope", "background=model"]),
        ("mosesplug tune --algorithm kbmira --option ep", ["epochs=60"]),
        ("mosesplug tune --option background=h", ["background=hope"]),
        ("mosesplug score --metric TE", ["TER", "TER-SACREBLEU"]),
        ("mosesplug optimize --format json", ["jsonl", "json"]),
        ("mosesplug optimize --table-format m", ["markdown"]),
        ("mosesplug nbest ls --format t", ["text", "tsv"]),
        ("mosesplug nbest export --format j", ["jsonl"]),
        ("mosesplug weights convert --to j", ["json", "json-flat"]),
        ("mosesplug algorithms rm", ["rm-pa", "rm-cp"]),
        ("mosesplug settings held", ["heldout"]),
        ("mosesplug mert-moses --pair", ["--pairwise-ranked"]),
        ("mert-moses --pair", ["--pairwise-ranked"]),
        ("mert-moses --algorithm kb", ["kbmira"]),
        ("mert-moses --select b", ["best-dev", "best-heldout"]),
    ],
)
def test_words_are_completed(
    words: str,
    offered: list[str],
    shell: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = complete(words, shell, monkeypatch, capsys)
    assert found[: len(offered)] == offered or {*offered} == {*found}


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_every_such_option_has_values(words: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(application._application)
    for word in words:
        command = command.get_command(None, word)
    context = command.make_context("x", [], resilient_parsing=True)
    for each in command.params:
        names = {name.lstrip("-") for name in each.opts}
        if names & {"algorithm", "algorithms", "metric", "format", "table-format", "option", "to"}:
            assert each.shell_complete(context, "") or (each.opts == ["--to"] and "line" in words)


def test_a_shell_is_answered() -> None:
    environment = os.environ | {
        "_MOSESPLUG_COMPLETE": "complete_bash",
        "COMP_WORDS": "mosesplug nbest s",
        "COMP_CWORD": "2",
    }
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["show", "stats"]


def test_scripts_for_both_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    for program, name in ((main, "mosesplug"), (mert_moses, "mert-moses")):
        with pytest.raises(SystemExit) as end:
            program(["--show-completion"])
        assert not end.value.code
        script = capsys.readouterr().out
        assert script.rstrip().endswith(f" {name}")
        assert f"_{name.replace('-', '_').upper()}_COMPLETE=complete_bash" in script
