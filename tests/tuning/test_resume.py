"""A run killed anywhere goes on, and leaves the same bytes as one that was not.

Real kills, at drawn points of all regimes, are those of ``tests.long_running.kill_matrix``.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import StoreError, UsageError
from mosesplug.events import (
    CommandStarted,
    Event,
    IterationFinished,
    Note,
    PhaseStarted,
    RunFinished,
)
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from tests.tuning.online.interrupting import interrupt

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Files = Callable[[Path], dict[str, bytes]]


MILESTONES = (CommandStarted, RunFinished, IterationFinished, PhaseStarted)
SETTINGS: dict[str, Any] = {
    "maximum_iterations": 2,
    "minimum_change": 0.0,
    "optimization": {"historic_bests": True},
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

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", at_write)
        tune(toy.configuration("whole", **SETTINGS), at_event)
    assert moments.count("a write") > 3
    assert len(moments) > 15
    expected = left_by_run(whole)
    for number, moment in enumerate(moments):
        name = f"killed{number}"
        tune(toy.configuration(name, existing="continue", **SETTINGS))
        assert left_by_run(toy.directory / name) == expected, moment
        assert_same_stores(whole, toy.directory / name)


ONLINE: dict[str, Any] = {
    "maximum_iterations": 0,
    "minimum_change": 0.0,
    "optimization": {"algorithm": "adagrad", "options": {"epochs": 2, "batch": 3}},
}
SCRATCH = re.compile(r"(batch|heldout|server\d)\..+")


def learning_online(toy: Toy, name: str, **more: Any) -> Any:
    """A run online on sparse features, with held-out text after every second batch."""
    text = toy.directory / "input", toy.directory / "reference"
    held_out = HeldOutSet(*text, every=2)
    return toy.configuration(
        name,
        flags="-sparse",
        online=OnlineSettings("process"),
        held_out=held_out,
        monitors=(Monitor("same", *text),),
        **ONLINE,
        **more,
    )


def without_scratch(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without what decoders of batches and of held-out text were given and wrote."""
    return {
        # A copy names files of the directory that it is a copy of.
        name: re.sub(rb"\S+/whole/", b"WORK/", data)
        for name, data in files.items()
        if SCRATCH.fullmatch(name) is None
    }


def test_a_damaged_list_is_not_learned_from(toy: Toy) -> None:
    """Two bits of one feature, which remains a number."""
    settings = SETTINGS | {"maximum_iterations": 1}
    tune(toy.configuration("damaged", **settings))
    store = toy.directory / "damaged" / "nbests.lmdb"
    with NBestStore.open(store) as opened:
        record = opened.snapshot().record(1, 0)
        assert record is not None
        dense = record.dense.tobytes()
        del record
    data = (store / "data.mdb").read_bytes()
    assert data.count(dense) == 1
    place = data.index(dense) + 2
    (store / "data.mdb").write_bytes(data[:place] + bytes([data[place] ^ 0x28]) + data[place + 1 :])
    with pytest.raises(StoreError, match="list of sentence 0 in iteration 1 is corrupt"):
        tune(toy.configuration("damaged", existing="continue", **SETTINGS))


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
    interrupt(learning_online(toy, "killed"), 2)
    tune(learning_online(toy, "killed", existing="continue"), log)
    commands = [e.command for e in log.of(CommandStarted) if "batch.nbest" in e.command]
    assert len(commands) == 2 + 4
    assert any("6 of 12 sentences are decoded" in note.text for note in log.of(Note))


def test_an_epoch_with_other_settings_is_restarted(toy: Toy, log: Any) -> None:
    interrupt(learning_online(toy, "killed"), 2)
    with pytest.raises(UsageError, match="go on with --online"):
        tune(toy.configuration("killed", existing="continue", flags="-sparse"))
    configuration = learning_online(toy, "killed", existing="continue")
    options = {"epochs": 2, "batch": 5}
    optimization = replace(configuration.optimization, options=options)
    tune(replace(configuration, optimization=optimization), log)
    assert any("starts again" in note.text for note in log.of(Note))
    tune(replace(learning_online(toy, "whole"), optimization=optimization))
    assert_same_learners(toy.directory / "whole", toy.directory / "killed")
