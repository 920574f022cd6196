"""Ask and tell give the same bytes as the loop with a decoder, even if interrupted."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mosesplug
from formats.nbest.files import iter_nbest
from mosesplug import Request, Tuner
from mosesplug.api import tuner as tuner_module
from mosesplug.errors import (
    DataError,
    MosesplugError,
    OptimizerError,
    StoreError,
    StoreMismatch,
    UsageError,
)
from mosesplug.events import Event, IterationFinished, PhaseStarted
from mosesplug.settings.build import make_plan
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.settings.toml import read_settings
from mosesplug.store import NBestStore
from mosesplug.tuning import loop, tune
from tests.tuning.conftest import ToySystem, make_toy

COMMAND = Path(__file__).parents[1] / "data" / "toy" / "command.py"
FEATURES = {
    "Distortion0": 0.3,
    "LM0": 0.5,
    "WordPenalty0": -1.0,
    "TranslationModel0": (0.2, 0.2, 0.2),
}
SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "metric_settings": "case:true",
    "algorithm": "mert",
    "options": {"restarts": 1},
    "nbest": 15,
    "seed": 5,
    "max_iterations": 3,
}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToySystem:
    monkeypatch.chdir(tmp_path)
    return make_toy(tmp_path)


@cache
def load_command() -> ModuleType:
    """Return the decoder of the toy system, to run it in this process."""
    spec = importlib.util.spec_from_file_location("toy_command", COMMAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(COMMAND.parent)  # and take back what the module adds
        patch.delitem(sys.modules, "decoder", raising=False)
        spec.loader.exec_module(module)
        sys.modules.pop("decoder")
    return module


def decode(request: Request) -> Path:
    """Decode the toy system's input with the weights of a request."""
    nbest = Path(f"lists.{request.iteration}")
    words = [str(COMMAND), str(request.weights_path), "input", str(nbest), str(request.nbest_size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        load_command().main()
    return nbest


def open_tuner(name: str = "work", **more: Any) -> Tuner:
    return Tuner.open(name, references="reference", **(SETTINGS | more))


def run_to_end(name: str, **more: Any) -> mosesplug.Run:
    with open_tuner(name, **more) as tuner:
        while (request := tuner.ask()) is not None:
            tuner.tell(request, decode(request))
        return tuner.result


def left_by(name: str) -> dict[str, Any]:
    """Return the files of a run; times and the name of the directory are taken out."""
    directory = Path(name).absolute()
    files: dict[str, Any] = {
        path.name: path.read_bytes().replace(str(directory).encode(), b"WORK")
        for path in directory.iterdir()
        if path.is_file()
    }
    summary = json.loads(files["summary.json"])
    del summary["finished"]
    for iteration in summary["iterations"]:
        del iteration["seconds"]
    return {**files, "summary.json": summary}


def as_iterator(path: Path) -> Iterator[tuple[int, str, Any]]:
    for entry in iter_nbest(path):
        yield entry.sentence_id, entry.text.decode(), dict(entry.dense)


def as_arrays(path: Path) -> dict[str, Any]:
    lists = mosesplug.read_nbest(path)
    return {
        "sentence_ids": lists.sentence_ids,
        "hypotheses": lists.texts,
        "features": lists.dense,
        "scores": lists.scores,
    }


def test_look_at_a_run_while_its_tuner_is_open(toy: ToySystem) -> None:
    counts: list[int] = []

    def look(event: Event) -> None:
        if isinstance(event, IterationFinished):
            counts.append(len(tuner.run.iterations))
            assert tuner.run.hypotheses()["iteration"].max() == event.iteration

    with open_tuner(watch=look) as tuner:
        with pytest.raises(DataError, match="no finished iteration yet"):
            _ = tuner.run
        request = tuner.ask()
        assert request is not None
        tuner.tell(request, decode(request))
        run = tuner.run
        assert list(run.weights(1)) == list(request.weights)
        assert not run.is_finished
        with pytest.raises(StoreError, match="open in this process: read it through the `run` of"):
            mosesplug.open_run("work")
        while (request := tuner.ask()) is not None:
            tuner.tell(request, decode(request))
            assert len(run.iterations) == request.iteration
        assert run == tuner.result
        assert run.is_finished  # opens the store, which the tuner has closed
    assert counts == [1, 2, 3]
    assert repr(run) == repr(mosesplug.open_run("work"))


def figures(name: str) -> Any:
    summary = json.loads((Path(name) / "summary.json").read_text())
    for iteration in summary["iterations"]:
        del iteration["seconds"]
    return summary["iterations"], summary["result"]["weights"], summary["signature"]


def test_same_weights_as_with_a_decoder(toy: ToySystem) -> None:
    tune(toy.configuration("decoded"))
    run_to_end("told", select="last")
    assert figures("told") == figures("decoded")
    names = {path.name for path in Path("told").iterdir()}
    assert {"finished_step.txt", "settings.toml", "summary.json", "weights.dense"} <= names
    assert {"run1.dense", "run3.weights.txt", "run3.init.opt", "nbests.lmdb"} <= names
    assert mosesplug.open_run("told").is_finished
    values = read_settings("told/settings.toml")
    assert values["decoder"] == "ask:"
    make_plan(values)


ONLINE: dict[str, Any] = {
    "algorithm": "adagrad",
    "options": {"epochs": 2, "batch": 5},
    "online": True,
    "max_iterations": None,
}


def decode_batch(request: Request) -> Path:
    """Decode a mini-batch, and number its lists as the tuning set."""
    assert request.sentences_path is not None
    ids = request.sentences_path.read_text().split()
    lines = Path("input").read_text().splitlines(keepends=True)
    Path("part").write_text("".join(lines[int(number)] for number in ids))
    words = [str(COMMAND), str(request.weights_path), "part", "lists", str(request.nbest_size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        load_command().main()
    told = Path("told.nbest")
    parts = (line.partition(" ") for line in Path("lists").read_text().splitlines(keepends=True))
    told.write_text("".join(f"{ids[int(place)]} {rest}" for place, _, rest in parts))
    return told


def test_mini_batches_give_the_bytes_of_an_online_run(toy: ToySystem) -> None:
    """Also if the run is reopened before every step; lists are told once, and whole."""
    optimization = {"algorithm": "adagrad", "options": ONLINE["options"]}
    online: dict[str, Any] = {"online": OnlineSettings("process"), "maximum_iterations": 0}
    tune(toy.configuration("decoded", optimization=optimization, minimum_change=1e-5, **online))
    asked = []
    with open_tuner("told", **ONLINE) as tuner:
        while (request := tuner.ask()) is not None:
            assert request.sentences is not None
            asked.append((request.iteration, request.batch, len(request.sentences)))
            tuner.tell(request, decode_batch(request))
        assert "all 2 epochs" in tuner.reason
    assert asked == [(e, b, n) for e in (1, 2) for b, n in ((1, 5), (2, 5), (3, 2))]
    assert figures("told") == figures("decoded")
    stores = [Path(name) / "nbests.lmdb" for name in ("decoded", "told")]
    with NBestStore.open(stores[0]) as first, NBestStore.open(stores[1]) as second:
        for epoch in (1, 2):
            lists = [store.iteration_set(epoch).tuning_set for store in (first, second)]
            assert lists[0].dense.tobytes() == lists[1].dense.tobytes()
            assert lists[0].stats.tobytes() == lists[1].stats.tobytes()
    left = left_by("told")
    assert not any("batch" in name for name in left)
    with open_tuner("parts", **ONLINE) as tuner:
        assert tuner.ask_again() is None
        first_request = tuner.ask()
        assert "mini-batch 1, 5 sentences" in repr(first_request)
    while True:
        with Tuner.open("parts") as tuner:
            if tuner.ask() is None:
                break
        with Tuner.open("parts") as tuner:
            request = tuner.ask_again()
            assert request is not None
            assert request.sentences is not None
            told = decode_batch(request)
            short = Path("short.nbest")
            last = f"{request.sentences[-1]} "
            kept = [n for n in told.read_text().splitlines(True) if not n.startswith(last)]
            short.write_text("".join(kept))
            with pytest.raises(DataError, match=r"1 of . sentences have no hypotheses"):
                tuner.tell(request, short)
            with pytest.raises(DataError, match="is not in the mini-batch, which has"):
                tuner.tell(request, decode(request))
            tuner.tell(request, told)
        with Tuner.open("parts") as tuner:
            assert tuner.ask_again() is None
            if (following := tuner.ask()) is not None:
                with pytest.raises(UsageError, match=r"is open: a request takes lists only once"):
                    tuner.tell(request, told)
                assert tuner.ask() is following
    assert left_by("parts") == left


def decode_any(request: Request) -> Path:
    """Decode what a request asks for: the tuning set, a mini-batch, or a held-out text."""
    if request.source_path is None:
        return decode(request) if request.sentences is None else decode_batch(request)
    words = [str(COMMAND), *map(str, (request.weights_path, request.source_path, "text.lists", 1))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        load_command().main()
    return Path("text.lists")


def held_out_texts(toy: ToySystem) -> dict[str, Any]:
    """Two texts of the toy system, as settings of a held-out set and of monitors."""
    for name, lines in (("one", slice(0, 4)), ("two", slice(5, 8))):
        for file in ("input", "reference0", "reference1"):
            kept = Path(file).read_text().splitlines(keepends=True)[lines]
            Path(file.replace("input", name).replace("reference", f"{name}.ref")).write_text(
                "".join(kept)
            )
    texts = {name: (toy.directory / name, toy.directory / f"{name}.ref") for name in ("one", "two")}
    return {
        "heldout": str(texts["one"][0]),
        "heldout_refs": str(texts["one"][1]),
        "monitor": {"two": texts["two"], "same": texts["one"]},
        "held_out": HeldOutSet(*texts["one"]),
        "monitors": (Monitor("two", *texts["two"]), Monitor("same", *texts["one"])),
    }


@pytest.mark.parametrize("regime", ["batch", "online", "online held out"])
def test_held_out_texts_are_asked_for(toy: ToySystem, regime: str) -> None:
    """The scores are those of a run with a decoder, also if it is reopened before every step."""
    values, more = held_out_texts(toy), {"maximum_iterations": 2, "minimum_change": 1e-5}
    held_out, monitors = values.pop("held_out"), values.pop("monitors")
    settings = {"monitor": {"two": values["monitor"]["two"]}, "select": "average"}
    settings["max_iterations"] = 2
    more |= {"monitors": monitors[:1], "select": "average"}
    if regime != "batch":
        options = {"epochs": 2 if regime == "online" else 1, "batch": 5}
        settings |= ONLINE | {"options": options}
        more |= {"online": OnlineSettings("process"), "maximum_iterations": 0}
        more["optimization"] = {"algorithm": "adagrad", "options": options}
    if regime == "online held out":
        settings |= values | {"heldout_every": 2, "select": None}
        more |= {"held_out": replace(held_out, every=2), "monitors": monitors, "select": None}
    tune(toy.configuration("decoded", **more))
    asked = []
    with open_tuner("told", **settings) as tuner:
        while (request := tuner.ask()) is not None:
            asked.append(request.source_path is not None)
            tuner.tell(request, decode_any(request))
        monitors = tuner.result.held_out
    assert figures("told") == figures("decoded")
    summaries = [json.loads(Path(name, "summary.json").read_text()) for name in ("decoded", "told")]
    assert summaries[0]["result"] == summaries[1]["result"]
    assert summaries[0]["result"]["monitors"].keys() == settings["monitor"].keys()
    assert settings["monitor"].keys() <= {row["text"] for row in monitors}
    again = []
    with open_tuner("parts", **settings):
        pass
    while len(again) <= len(asked):
        with Tuner.open("parts") as tuner:
            assert tuner.ask_again() is None
            request = tuner.ask()
        if request is None:
            break
        with Tuner.open("parts") as tuner:
            waiting = tuner.ask_again()
            assert waiting is not None
            assert (waiting.source_path, waiting.batch) == (request.source_path, request.batch)
            assert "Request of" in repr(waiting)
            tuner.tell(request, decode_any(waiting))
        again.append(request.source_path is not None)
    assert again == asked
    assert left_by("parts") == left_by("told")
    assert not any(name.startswith("text.") for name in left_by("parts"))


@pytest.mark.parametrize("form", [mosesplug.read_nbest, as_iterator, as_arrays])
def test_forms_of_lists(toy: ToySystem, form: Any) -> None:
    run_to_end("file", max_iterations=2)
    with open_tuner("other", max_iterations=2) as tuner:
        while (request := tuner.ask()) is not None:
            tuner.tell(request, form(decode(request)))
        assert tuner.is_finished
        assert "maximum of 2" in tuner.reason
    assert figures("other") == figures("file")


@pytest.mark.parametrize("options", [{}, {"algorithm": "mert", "shards": 2}], ids=str)
def test_reopening_before_every_step_changes_nothing(
    toy: ToySystem, options: dict[str, Any]
) -> None:
    run_to_end("whole", **options)
    told = 0
    while True:
        with open_tuner("parts", **options) as tuner:
            first = tuner.ask()
        with Tuner.open("parts") as tuner:  # its settings are those it began with
            again = tuner.ask()
            if again is None:
                break
            assert first is not None
            assert (again.iteration, again.vector.tolist()) == (
                first.iteration,
                first.vector.tolist(),
            )
            assert again.weights_path.read_bytes() == first.weights_path.read_bytes()
            tuner.tell(pickle.loads(pickle.dumps(first)), decode(again))
            told += 1
    assert told == 3
    assert left_by("parts") == left_by("whole")


@pytest.mark.parametrize("when", ["score", "optimize", "finished"])
def test_interrupted_within_tell(toy: ToySystem, when: str) -> None:
    run_to_end("whole", max_iterations=2)

    def stop(event: Event) -> None:
        phase = event.phase if isinstance(event, PhaseStarted) else ""
        if phase == when or (when == "finished" and isinstance(event, IterationFinished)):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_to_end("parts", max_iterations=2, watch=stop)
    run_to_end("parts", max_iterations=2)
    assert left_by("parts") == left_by("whole")


def test_the_same_tuner_continues_when_learning_failed(
    toy: ToySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_to_end("whole", max_iterations=2)

    def fail(*_: object) -> None:
        raise OptimizerError("no usable weights")

    with open_tuner("parts", max_iterations=2) as tuner:
        first = tuner.ask()
        assert first is not None
        with monkeypatch.context() as patch:
            patch.setattr(loop, "finish_iteration", fail)
            with pytest.raises(OptimizerError):
                tuner.tell(first, decode(first))
        second = tuner.ask()
        assert second is not None
        assert second.iteration == 2
        tuner.tell(second, decode(second))
        with monkeypatch.context() as patch:
            patch.setattr(tuner_module, "conclude", fail)
            with pytest.raises(OptimizerError):
                tuner.ask()
        assert not tuner.is_finished
        assert tuner.ask() is None
        assert tuner.is_finished
    assert left_by("parts") == left_by("whole")


def test_killed_within_tell(toy: ToySystem) -> None:
    run_to_end("whole", max_iterations=2)
    code = (
        "import os, mosesplug\n"
        "from mosesplug.events import PhaseStarted\n"
        "from tests.api.test_tuner import open_tuner, decode\n"
        "def kill(event):\n"
        "    if event == PhaseStarted(1, 'optimize'): os.kill(os.getpid(), 9)\n"
        "tuner = open_tuner('parts', max_iterations=2, watch=kill)\n"
        "request = tuner.ask()\n"
        "tuner.tell(request, decode(request))\n"
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    killed = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    with open_tuner("parts", max_iterations=2) as tuner:
        request = tuner.ask()
        assert request is not None
        assert request.iteration == 2  # the lists were stored
        tuner.tell(request, decode(request))
        assert tuner.ask() is None
    assert left_by("parts") == left_by("whole")


def test_told_twice_or_too_late(toy: ToySystem) -> None:
    with open_tuner() as tuner:
        first = tuner.ask()
        assert first is not None
        tuner.tell(first, decode(first))
        with pytest.raises(UsageError, match=r"iteration 1, but iteration 2 is open"):
            tuner.tell(first, decode(first))
        second = tuner.ask()
        assert second is not None
        other = Request(2, first.weights, 15, first.weights_path)
        with pytest.raises(UsageError, match="other weights than the open one"):
            tuner.tell(other, decode(second))
        with pytest.raises(UsageError, match="is the request that ask returned"):
            tuner.tell(2, decode(second))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not finished"):
            _ = tuner.result
        with pytest.raises(DataError, match="in use"):
            open_tuner()
    with pytest.raises(UsageError, match="is closed"):
        tuner.ask()
    assert len(mosesplug.open_run("work").iterations) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [x for x in lines if not x.startswith("7 ")], "1 of 12 .* hypotheses: 7 "),
        (lambda lines: [x.replace("LM0=", "LM1=") for x in lines], "dense features are .* LM1"),
        (lambda lines: [x.replace("LM0= -", "LM0= nan -", 1) for x in lines], "lists.1:1"),
        (lambda lines: [x.replace("Distortion0= 0", "Distortion0= nan") for x in lines], "finite"),
        (lambda lines: [*lines, "12 ||| a" + lines[-1].partition("|||")[2]], "lists.1"),
        (lambda lines: lines[::-1], "go backwards"),
        (lambda lines: [], "empty"),
    ],
)
def test_lists_that_cannot_be_used(toy: ToySystem, change: Any, message: str) -> None:
    with open_tuner(max_iterations=1) as tuner:
        request = tuner.ask()
        assert request is not None
        lists = decode(request)
        right = lists.read_text()
        lists.write_text("".join(f"{line}\n" for line in change(right.splitlines())))
        with pytest.raises((MosesplugError, mosesplug.FormatError), match=message):
            tuner.tell(request, lists)
        lists.write_text(right)
        assert tuner.ask() == request
        tuner.tell(request, lists)
        assert tuner.ask() is None
    run_to_end("whole", max_iterations=1)
    assert figures("work") == figures("whole")


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (3, "the lists are a int"),
        ([], "no hypotheses"),
        ([(0, "a")], "hypothesis 0 is not a tuple"),
        ([(0, "a", [1, 2])], "2 values of dense features, but the run tunes 6"),
        ([(0, "a", {"LM0": 1})], "no value of the feature Distortion0"),
        ([(0, "a", [np.nan] * 6)], "give finite numbers"),
        ({"sentence_ids": [0]}, "the entries sentence_ids: give sentence_ids, hypotheses"),
    ],
)
def test_values_that_cannot_be_used(toy: ToySystem, lists: Any, message: str) -> None:
    with open_tuner() as tuner:
        request = tuner.ask()
        assert request is not None
        with pytest.raises((UsageError, DataError), match=message):
            tuner.tell(request, lists)
        assert tuner.ask() == request


def test_references_and_weights_as_values(toy: ToySystem) -> None:
    texts = [Path(f"reference{number}").read_text().splitlines() for number in (0, 1)]
    given = {"references": texts, "max_iterations": 1}
    with Tuner.open("values", **(SETTINGS | given)) as tuner:
        request = tuner.ask()
        assert request is not None
        tuner.tell(request, decode(request))
    run_to_end("files", max_iterations=1)
    with Tuner.open("values") as tuner:
        assert tuner.ask() is None
    assert figures("values") == figures("files")
    with pytest.raises(DataError, match="begun with other references"):
        Tuner.open("values", references=texts[::-1])
    with pytest.raises(DataError, match="begun with other features"):
        Tuner.open("values", features=["LM0"])
    with pytest.raises(StoreMismatch):
        Tuner.open("values", references="reference1")
    names = ["Distortion0", "LM0", "WordPenalty0", ("TranslationModel0", 3)]
    vector = [0.3, 0.5, -1.0, 0.2, 0.2, 0.2]
    with Tuner.open("named", references=texts, features=names, initial=vector) as tuner:
        again = tuner.ask()
        assert again is not None
        assert again.vector.tolist() == request.vector.tolist()
    with Tuner.open("plain", references=texts, features=names) as tuner:
        plain = tuner.ask()
        assert plain is not None
        assert plain.vector.tolist() == [1 / 6] * 6


def test_sparse_features(toy: ToySystem) -> None:
    def add_sparse(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
        for sentence, text, values in as_iterator(path):
            yield sentence, text, {**values, **{f"wt_{word}": 1 for word in text.split()}}

    with open_tuner(algorithm="kbmira", options={}, max_iterations=2) as tuner:
        while (request := tuner.ask()) is not None:
            tuner.tell(request, add_sparse(decode(request)))
        assert any(name.startswith("wt_") for name in tuner.result.weights())
    assert "wt_" in Path("work/run2.weights.dense").read_text()


SGD = {"algorithm": "sgd", "options": None, "online": True}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"references": None}, "give references"),
        ({"features": None}, "give features and starting weights"),
        ({"features": "LM0"}, "features must be names"),
        ({"features": ["LM 0"]}, "give a name without blanks"),
        ({"features": [("LM0", 0)]}, "number of values from 1"),
        ({"features": ["A", "B", "A"]}, "features names A twice: name each feature once"),
        ({"features": []}, "features is empty: name at least one feature"),
        ({"features": {}}, "features is empty"),
        ({"features": {"A": "x"}}, r"features\['A'\] is 'x': give one or several numbers"),
        ({"initial": {"LM0": 1}}, "leave out initial"),
        ({"nbset": 3}, "unknown keyword nbset. Did you mean nbest"),
        ({"nbest": "3"}, "nbest: expected an integer"),
        ({"algorithm": "mrt"}, "unknown algorithm 'mrt'"),
        ({"weights_format": "moses"}, "requires a moses"),
        (SGD | {"shards": 2}, "one after the other: leave out shards"),
        (SGD | {"online_servers": 2}, "whoever asks for them decodes the mini-batches"),
        ({"online": True}, "mert learns from all lists at once"),
        ({"transform": "bpe"}, "ask and tell"),
        ({"features": {"A": 0.0}}, "are 0"),
    ],
)
def test_rejects_arguments(toy: ToySystem, arguments: dict[str, Any], message: str) -> None:
    given = {"references": "reference", **SETTINGS, **arguments}
    with pytest.raises(UsageError, match=message):
        Tuner.open("work", **given)
    assert not Path("work").exists()


def test_a_run_with_a_decoder_of_its_own(toy: ToySystem) -> None:
    tune(toy.configuration("decoded", maximum_iterations=1))
    with pytest.raises(UsageError, match=r"with resume=True of tune, .* with overwrite=True"):
        open_tuner("decoded")
    run_to_end("told", max_iterations=1)
    values = read_settings("told/settings.toml") | {"continue": True, "max-iterations": 2}
    with pytest.raises(UsageError, match="continue it by `mosesplug ask`"):
        tune(make_plan(values).configuration)
    run_to_end("told", max_iterations=1, overwrite=True)
