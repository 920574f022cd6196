"""A run killed anywhere goes on, and leaves the same bytes as one that was not."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import StoreError, UsageError
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.configuration import HeldOut, Online
from mosesplug.tuning.events import (
    Event,
    Executing,
    Finished,
    Judged,
    Learning,
    Learnt,
    Note,
    Optimised,
    PhaseStarted,
)

Toy = Any
Files = Callable[[Path], dict[str, bytes]]


PROGRAM = "from mosesplug.cli.mert_moses import main; main()"
MILESTONES = (Executing, Finished, Optimised, PhaseStarted)
SETTINGS: dict[str, Any] = {
    "maximum_iterations": 2,
    "minimum_change": 0.0,
    "optimising": {"historic_bests": True},
}


def assert_same_stores(one: Path, other: Path) -> None:
    with (
        NBestStore.open(one / "nbests.lmdb") as first,
        NBestStore.open(other / "nbests.lmdb") as second,
    ):
        assert len(first.iterations()) == len(second.iterations())
        for a, b in zip(first.iterations(), second.iterations(), strict=True):
            assert a.result is not None
            assert b.result is not None
            assert a.result["dense"] == b.result["dense"]
            assert a.record["dense"] == b.record["dense"]
        here, there = first.tuning_set(), second.tuning_set()
        assert np.array_equal(here.dense, there.dense)
        assert np.array_equal(here.stats, there.stats)


def test_killed_at_any_moment(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lay on the disk at each event, and at many a file's writing, is a run to continue.

    Every file is forced to the disk before it gets its name, so that its draft lies there too.
    """
    whole = toy.directory / "whole"
    moments: list[str] = []
    writes = itertools.count()

    def remember(moment: str) -> None:
        shutil.copytree(whole, toy.directory / f"killed{len(moments)}")
        moments.append(moment)

    def at_event(event: Event) -> None:
        if isinstance(event, MILESTONES) and whole.exists():
            remember(str(event))

    def at_write(descriptor: int) -> None:
        if next(writes) % 5 == 0:
            remember("a write")

    monkeypatch.setattr(os, "fsync", at_write)
    tune(toy.configuration("whole", **SETTINGS), at_event)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    assert moments.count("a write") > 3
    assert len(moments) > 15
    expected = left_by_run(whole)
    for number, moment in enumerate(moments):
        name = f"killed{number}"
        tune(toy.configuration(name, existing="continue", **SETTINGS))
        assert left_by_run(toy.directory / name) == expected, moment
        assert_same_stores(whole, toy.directory / name)


def test_killed_again_and_again(toy: Toy, left_by_run: Files) -> None:
    """The whole program, by ``kill -9`` in each iteration, until it is let through."""
    names = ("input", "reference", "decoder", "moses.ini")
    arguments = [str(toy.directory / name) for name in names]
    arguments += ["--nbest=15", "--random-restarts=1", "--seed=5", "--maximum-iterations=3"]
    arguments += ["--decoder-flags=-delay 0.02", "--quiet"]
    program = [sys.executable, "-c", PROGRAM, *arguments]
    tune(toy.configuration("whole", flags="-delay 0.02"))
    work = toy.directory / "killed"
    chance = random.Random(3)
    for iteration in (1, 2, 3):
        child = subprocess.Popen([*program, "--continue", "--working-dir", str(work)])
        while not (work / f"run{iteration}.dense").exists() and child.poll() is None:
            time.sleep(0.005)
        time.sleep(0.5 * chance.random())
        child.kill()
        child.wait()
    subprocess.run([*program, "--continue", "--working-dir", str(work)], check=True)
    assert left_by_run(work) == left_by_run(toy.directory / "whole")
    assert_same_stores(toy.directory / "whole", work)


ONLINE: dict[str, Any] = {
    "maximum_iterations": 0,
    "minimum_change": 0.0,
    "optimising": {"algorithm": "adagrad", "options": {"epochs": 2, "batch": 3}},
}
SCRATCH = re.compile(r"(batch|heldout|server\d)\..+")


def learning_online(toy: Toy, name: str, **more: Any) -> Any:
    """A run online on sparse features, with held-out text after every second batch."""
    held_out = HeldOut(toy.directory / "input", toy.directory / "reference", every=2)
    flags = "-sparse"
    return toy.configuration(
        name, flags=flags, online=Online("process"), held_out=held_out, **ONLINE, **more
    )


def without_scratch(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without what decoders of batches and of held-out text were given and wrote."""
    return {
        # A copy names files of the directory that it is a copy of.
        name: re.sub(rb"\S+/whole/", b"WORK/", data)
        for name, data in files.items()
        if SCRATCH.fullmatch(name) is None
    }


def assert_same_learners(one: Path, other: Path) -> None:
    """The lists of each epoch and all that the learner remembers are the same."""
    with (
        NBestStore.open(one / "nbests.lmdb") as first,
        NBestStore.open(other / "nbests.lmdb") as second,
    ):
        results = [store.iterations()[-1].result for store in (first, second)]
        assert results[0] is not None
        assert results[1] is not None
        here, there = (result["learner"] for result in results)
        assert here["sparse"] == there["sparse"]
        assert here["updates"] == there["updates"]
        for name, vector in here["vectors"].items():
            assert vector.tobytes() == there["vectors"][name].tobytes(), name
        for number in range(1, len(first.iterations()) + 1):
            lists = [store.iteration_set(number).tuning_set for store in (first, second)]
            assert np.array_equal(lists[0].dense, lists[1].dense)
            assert np.array_equal(lists[0].stats, lists[1].stats)


def test_killed_online_at_any_moment(toy: Toy, left_by_run: Files) -> None:
    """Inside an epoch, too: before and after each batch, each translation, each file's end."""
    whole = toy.directory / "whole"
    moments: list[str] = []

    def at_event(event: Event) -> None:
        if isinstance(event, (*MILESTONES, Judged, Learning, Learnt)) and whole.exists():
            shutil.copytree(whole, toy.directory / f"killed{len(moments)}")
            moments.append(str(event))

    result = tune(learning_online(toy, "whole"), at_event)
    assert len(result.weights.sparse) > 5
    assert sum("Learning" in moment for moment in moments) == 8
    expected = without_scratch(left_by_run(whole))
    for number, moment in enumerate(moments[3::6]):
        name = f"killed{6 * number + 3}"
        tune(learning_online(toy, name, existing="continue"))
        assert without_scratch(left_by_run(toy.directory / name)) == expected, moment
        assert_same_learners(whole, toy.directory / name)


def test_killed_between_the_end_of_an_epoch_and_its_result(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(learning_online(toy, "whole"))

    def killed(store: NBestStore, iteration: int, result: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NBestStore, "record_result", killed)
        with pytest.raises(KeyboardInterrupt):
            tune(learning_online(toy, "killed"))
    tune(learning_online(toy, "killed", existing="continue"))
    expected, found = (left_by_run(toy.directory / name) for name in ("whole", "killed"))
    assert without_scratch(found) == without_scratch(expected)
    assert_same_learners(toy.directory / "whole", toy.directory / "killed")


def test_stored_batches_are_not_decoded_again(toy: Toy, log: Any) -> None:
    def kill(event: Event) -> None:
        if isinstance(event, Learning) and event.batches == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(learning_online(toy, "killed"), kill)
    tune(learning_online(toy, "killed", existing="continue"), log)
    commands = [e.command for e in log.of(Executing) if "batch.nbest" in e.command]
    assert len(commands) == 2 + 4
    assert any("6 of 12 sentences are decoded" in note.text for note in log.of(Note))


def test_an_epoch_begun_with_other_settings_is_begun_anew(toy: Toy, log: Any) -> None:
    def kill(event: Event) -> None:
        if isinstance(event, Learning) and event.batches == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(learning_online(toy, "killed"), kill)
    with pytest.raises(UsageError, match="go on with --online"):
        tune(toy.configuration("killed", existing="continue", flags="-sparse"))
    configuration = learning_online(toy, "killed", existing="continue")
    options = {"epochs": 2, "batch": 5}
    optimising = replace(configuration.optimising, options=options)
    tune(replace(configuration, optimising=optimising), log)
    assert any("begun anew" in note.text for note in log.of(Note))
    tune(replace(learning_online(toy, "whole"), optimising=optimising))
    assert_same_learners(toy.directory / "whole", toy.directory / "killed")


DEMO = Path(__file__).parents[2] / "moses-config" / "demo"
DECODER = "from mosesplug.cli.decoder import main; main()"


def test_killed_online_with_a_server(tmp_path: Path, left_by_run: Files) -> None:
    """The whole program with the bundled decoder's server, by ``kill -9`` inside an epoch."""
    decoder = tmp_path / "decoder"
    decoder.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{DECODER}" "$@"\n')
    decoder.chmod(0o755)
    for name in ("tarvian", "english"):
        lines = (DEMO / f"tune.{name}").read_bytes().splitlines(keepends=True)
        (tmp_path / name).write_bytes(b"".join(lines[:10]))
    arguments = [str(path) for path in (tmp_path / "tarvian", tmp_path / "english", decoder)]
    arguments += [str(DEMO / "moses.ini"), "--online", "--algorithm=o-oro", "--epochs=1"]
    arguments += ["--algorithm-option=batch=2", "--nbest=10", "--seed=5", "--quiet"]
    arguments += ["--online-decoder=server", "--decoder-flags=-stack 10"]
    program = [sys.executable, "-c", PROGRAM, *arguments]
    whole, work = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*program, "--working-dir", str(whole)], check=True)
    child = subprocess.Popen([*program, "--working-dir", str(work)])
    while child.poll() is None and stored_sentences(work) < 6:
        time.sleep(0.02)
    child.kill()
    child.wait()
    assert not (work / "moses.ini").exists()
    subprocess.run([*program, "--continue", "--working-dir", str(work)], check=True)
    assert without_scratch(left_by_run(work)) == without_scratch(left_by_run(whole))
    assert_same_learners(whole, work)


def stored_sentences(directory: Path) -> int:
    """Sentences of the iteration that grows in a store that another process writes."""
    if not (directory / "nbests.lmdb").exists():
        return 0
    try:
        with NBestStore.open(directory / "nbests.lmdb") as store:
            opened = store.open_iteration()
    except StoreError:
        return 0
    return 0 if opened is None else len(opened.sentences)
