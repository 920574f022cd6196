"""Ask and tell give the same bytes as the loop with a decoder, even if interrupted."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
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
from mosesplug.settings.toml import read_settings
from mosesplug.tuning import loop, tune
from tests.api.toy_requests import SETTINGS, decode, figures, left_by, open_tuner, run_to_end
from tests.tuning.conftest import ToySystem


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
        "from tests.api.toy_requests import open_tuner, decode\n"
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
