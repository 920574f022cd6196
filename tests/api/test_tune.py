"""``mosesplug.tune``: the command line as a call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mosesplug
from mosesplug.cli.application import _application
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, Event, IterationFinished
from tests.tuning.conftest import ToySystem

FILES = ("input", "reference", "./decoder", "moses.ini")
SETTINGS: dict[str, Any] = {"nbest": 15, "max_iterations": 2, "seed": 5, "algorithm": "kbmira"}


def tuned(directory: str) -> dict[str, bytes]:
    """Return what a run leaves that tells its results."""
    names = ("run1.dense", "run2.dense", "run2.weights.txt", "finished_step.txt")
    files = {name: (Path(directory) / name).read_bytes() for name in names}
    ini = (Path(directory) / "moses.ini").read_text().splitlines()
    return files | {"moses.ini": "\n".join(x for x in ini if "finished" not in x).encode()}


def test_same_bytes_as_the_command(toy: ToySystem, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", *FILES, "--working-dir", "command", "--nbest", "15", "--max-iterations", "2"]
    words += ["--seed", "5", "--algorithm", "kbmira", "--quiet"]
    assert CliRunner().invoke(_application, words).exit_code == 0
    events: list[Event] = []
    run = mosesplug.tune(*FILES, working_dir="call", watch=events.append, **SETTINGS)
    assert capsys.readouterr() == ("", "")
    assert tuned("call") == tuned("command")
    assert len(run.iterations) == 2
    assert run.is_finished
    assert sum(isinstance(event, IterationFinished) for event in events) == 2
    settings = Path("call/settings.toml").read_text().replace("/call", "/command")
    assert settings == Path("command/settings.toml").read_text()


def test_repeats_a_run_from_its_settings(toy: ToySystem) -> None:
    mosesplug.tune(*FILES, working_dir="first", **SETTINGS)
    done: list[tuple[int, int, str]] = []
    mosesplug.tune(
        settings="first/settings.toml",
        working_dir="again",
        progress=lambda *each: done.append(each),
    )
    assert tuned("again") == tuned("first")
    assert (12, 12, "sentences of iteration 2") in done


def test_weights_of_sentences_are_a_file_or_a_sequence(toy: ToySystem) -> None:
    weights = [0.0, 2.0, 0.5] * 4
    Path("weights").write_text("".join(f"{weight}\n" for weight in weights))
    by_file = mosesplug.tune(*FILES, working_dir="file", sentence_weights="weights", **SETTINGS)
    run = mosesplug.tune(
        *FILES, working_dir="array", sentence_weights=np.array(weights), **SETTINGS
    )
    mosesplug.tune(settings="array/settings.toml", working_dir="again")
    assert tuned("array") == tuned("file") == tuned("again")
    for one in (run, by_file):
        assert one.sentence_weights is not None
        assert one.sentence_weights.tolist() == weights
    with pytest.raises(UsageError, match=r"sentence_weights\[1\]: -1 is not a weight"):
        mosesplug.tune(*FILES, working_dir="no", sentence_weights=[1, -1], **SETTINGS)


def test_interrupted_run_is_resumed(toy: ToySystem) -> None:
    mosesplug.tune(*FILES, working_dir="whole", **SETTINGS)

    def interrupt(event: Event) -> None:
        if isinstance(event, CommandStarted) and "run2.best15.out" in event.command:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mosesplug.tune(*FILES, working_dir="parts", watch=interrupt, **SETTINGS)
    assert len(mosesplug.open_run("parts").iterations) == 1
    with pytest.raises(UsageError, match="holds an earlier run"):
        mosesplug.tune(*FILES, working_dir="parts", **SETTINGS)
    mosesplug.tune(*FILES, working_dir="parts", resume=True, **SETTINGS)
    assert tuned("parts") == tuned("whole")


def test_several_runs(toy: ToySystem) -> None:
    run = mosesplug.tune(*FILES, runs=2, **{**SETTINGS, "max_iterations": 1})
    assert run.path.parent.name in ("run.1", "run.2")
    assert run.path.parent.parent.name == "tuning"


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"iterations": 3}, r"unknown keyword iterations"),
        ({"max_iteration": 3}, r"unknown keyword max_iteration. Did you mean max_iterations\?"),
        ({"nbest": 2.5}, "nbest: expected an integer, not 2.5"),
        ({"nbest": 0}, "nbest"),
        ({"decoder": "no-such"}, "not an executable file"),
        ({"config": None}, "missing: config"),
        ({"references": None}, "missing: references"),
        ({"metric": "BLUE"}, "BLUE"),
        ({"strict_online": True}, "strict_online=True requires online=True"),
    ],
)
def test_rejects_arguments(toy: ToySystem, keywords: dict[str, Any], message: str) -> None:
    given = dict(zip(("input", "references", "decoder", "config"), FILES, strict=True))
    with pytest.raises(UsageError, match=message):
        mosesplug.tune(**{**given, **keywords})


def test_decoder_errors(toy: ToySystem) -> None:
    command = f"{sys.executable} -c 'raise SystemExit(3)' {{weights}} {{nbest}}"
    Path("start").write_text("LM0= 1\n")
    with pytest.raises(DecoderError, match="iteration 1: the decoder ended with exit code 3"):
        mosesplug.tune("input", "reference", config="start", decode_command=command)
