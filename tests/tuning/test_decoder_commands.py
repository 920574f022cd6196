"""A decoder that is a command: the same run as with a program that is called as Moses is."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats.weights.any_format import read_weights
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, DecodingProgress
from mosesplug.settings.build import collect_values, make_plan
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.toml import read_settings
from mosesplug.tuning import Result, tune
from mosesplug.tuning.repeats.runs import tune_several

Toy = Any
Log = Any
COMMAND = Path(__file__).parents[1] / "data" / "toy" / "command.py"
PLACES = "{weights} {input} {nbest} {nbest-size}"
PROGRAM = f"{shlex.quote(sys.executable)} -IS {shlex.quote(str(COMMAND))} "
WEIGHTS = "Distortion0= 0.3\nLM0= 0.5\nWordPenalty0= -1\nTranslationModel0= 0.2 0.2 0.2\n"


def configuration(toy: Toy, name: str = "command", words: str = "", **more: Any) -> Configuration:
    """The run of ``toy.configuration()`` with a command."""
    start = toy.directory / "start"
    if not start.exists():
        start.write_text(WEIGHTS)
    values = {
        "input": toy.directory / "input",
        "refs": toy.directory / "reference",
        "config": start,
        "working-dir": toy.directory / name,
        "decode-command": PROGRAM + PLACES + words,
        "metric-settings": "case:true",
        "nbest": 15,
        "option": {"restarts": 1},
        "seed": 5,
        "max-iterations": 3,
        **more,
    }
    return make_plan(values).configuration


def figures(result: Result) -> list[Any]:
    return [(each.first_best_score, each.optimum, each.weights) for each in result.iterations]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("", {"weights-format": "json"}),
        ("", {"weights-format": "one-line"}),
        (" '' bare", {}),
        ("", {"weights-format": "moses", "config": "moses.ini"}),
    ],
    ids=["json", "one-line", "bare", "moses"],
)
def test_same_run_as_with_a_program(
    toy: Toy, log: Log, words: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy.directory)
    program = tune(toy.configuration(maximum_iterations=2))
    command = tune(configuration(toy, words=words, **(more | {"max-iterations": 2})), log)
    assert figures(command) == figures(program)
    assert command.weights == program.weights
    assert log.of(DecodingProgress)[-1].sentences == 12
    work = toy.directory / "command"
    ended = {"json": "weights.json", "one-line": "weights.line", "moses": "moses.ini"}
    result = work / ended.get(more.get("weights-format", ""), "weights.dense")
    values = [v for each in read_weights(result).groups.values() for v in each]
    assert command.weights.dense == tuple(values[-6:])
    assert (work / "run1.best15.out.gz").is_file()
    assert (work / "run2.weights.txt").is_file()
    assert json.loads((work / "summary.json").read_text())["iterations"]
    again = read_settings(work / "settings.toml")
    assert collect_values(make_plan(again).configuration) == again


def test_resumes_with_the_same_bytes(
    toy: Toy, left_by_run: Callable[[Path], dict[str, bytes]]
) -> None:
    whole = toy.directory / "whole"
    tune(configuration(toy, "whole"))
    tune(configuration(toy, "parts", **{"max-iterations": 1}))
    tune(configuration(toy, "parts", **{"continue": True}))
    assert left_by_run(whole) == left_by_run(toy.directory / "parts")


def test_features_in_another_order(toy: Toy) -> None:
    right = tune(configuration(toy, "right"))
    assert figures(tune(configuration(toy, "order", " order"))) == figures(right)


def test_sparse_features(toy: Toy) -> None:
    (toy.directory / "start").write_text(WEIGHTS + "wt_ein 0.25\n")
    result = tune(configuration(toy, words=" '' sparse", algorithm="kbmira", option={}))
    assert result.weights.sparse
    found = read_weights(toy.directory / "command" / "weights.dense")
    assert found.sparse == result.weights.sparse
    assert "wt_ein 0." in (toy.directory / "command" / "run1.weights.dense").read_text()


def test_held_out_set_and_online(toy: Toy) -> None:
    held_out = {"heldout": toy.directory / "input", "heldout-refs": toy.directory / "reference"}
    result = tune(configuration(toy, **held_out, **{"max-iterations": 1}))
    assert len(result.iterations[0].heldout) == 2
    online = tune(
        configuration(
            toy, "online", algorithm="mira", online=True, option={"epochs": 1, "batch": 6}
        )
    )
    assert online.is_online
    assert online.iterations[0].first_best_score > 0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("die", r"iteration 1: the decoder ended with exit code 1\ncommand: .*command.py"),
        ("short", "wrote n-best lists of 3 of 12 sentences"),
        ("empty", "wrote no n-best list"),
        ("nan", "cannot be used"),
    ],
)
def test_decoder_errors(toy: Toy, fault: str, message: str) -> None:
    with pytest.raises(DecoderError, match=message):
        tune(configuration(toy, words=f" {fault}"))


def test_placeholders_keep_words_whole(toy: Toy, log: Log) -> None:
    spaced = toy.directory / "a b"
    command = PROGRAM + "{weights} {input} {nbest} {nbest-size} '' --x={iteration}:{nbest}"
    tune(configuration(toy, "a b", **{"decode-command": command, "max-iterations": 1}), log)
    words = log.of(CommandStarted)[0].command
    assert words[-1] == f"--x=1:{spaced / 'run1.best15.out'}"
    assert words[3:7] == (
        str(spaced / "run1.weights.dense"),
        str(toy.directory / "input"),
        str(spaced / "run1.best15.out"),
        "15",
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"decode-command": "true {weight} {nbest}"}, r"\{weight\}. Did you mean \{weights\}\?"),
        ({"decode-command": "true {input}"}, r"has no \{weights\} and no \{nbest\}"),
        ({"decode-command": "true '{weights} {nbest}"}, "No closing quotation"),
        ({"decode-command": "no-such {weights} {nbest}"}, "not an executable file"),
        ({"decoder": "moses"}, "exclude"),
        ({"jobs": 3}, "exclude"),
        ({"lattice-samples": 3}, "exclude"),
        ({"weights-format": "xml"}, "dense"),
        ({"heldout": "input", "decode-command": "true {weights} {nbest}"}, r"as \{input\}"),
    ],
)
def test_rejects_settings(
    toy: Toy, values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy.directory)
    if "heldout" in values:
        values = values | {"heldout-refs": "reference"}
    with pytest.raises(UsageError, match=message):
        configuration(toy, **values)


def test_rejects_weights_without_names_and_moses_format_without_moses_ini(toy: Toy) -> None:
    with pytest.raises(UsageError, match=r"--weights-format moses requires a moses\.ini"):
        tune(configuration(toy, **{"weights-format": "moses"}))
    (toy.directory / "start").write_text("0.5 0.25\n")
    with pytest.raises(UsageError, match="names no dense features"):
        tune(configuration(toy))
    assert not (toy.directory / "command").exists()


def test_several_runs(toy: Toy) -> None:
    base = configuration(toy, "runs", **{"max-iterations": 1, "weights-format": "json"})
    result = tune_several(base, 2)
    assert result.chosen_run is not None
    chosen = toy.directory / "runs" / f"run.{result.chosen_run.number}" / "weights.json"
    assert (toy.directory / "runs" / "weights.json").read_bytes() == chosen.read_bytes()
