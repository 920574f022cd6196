"""A run killed anywhere goes on, and leaves the same bytes as one that was not."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.events import Event, Executing, Finished, Optimised, PhaseStarted

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
