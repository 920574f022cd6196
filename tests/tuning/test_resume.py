"""A run killed anywhere goes on, and leaves the same bytes as one that was not."""

from __future__ import annotations

import itertools
import os
import random
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


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


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


def test_killed_before_every_write(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is forced to the disk before it gets its name: die at many such moments."""
    tune(toy.configuration("whole", **SETTINGS))
    expected = left_by_run(toy.directory / "whole")
    fsync = os.fsync
    moments = 0
    for moment in itertools.count(1, 5):
        name = f"killed{moment}"
        calls = itertools.count(1)

        def die(descriptor: int, calls: Any = calls, moment: int = moment) -> None:
            if next(calls) == moment:
                raise Killed
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", die)
        try:
            tune(toy.configuration(name, **SETTINGS))
            break
        except Killed:
            moments += 1
        monkeypatch.setattr(os, "fsync", fsync)
        tune(toy.configuration(name, existing="continue", **SETTINGS))
        assert left_by_run(toy.directory / name) == expected
    assert moments > 6
    assert_same_stores(toy.directory / "whole", toy.directory / "killed1")


def test_killed_at_every_event(toy: Toy, left_by_run: Files) -> None:
    events: list[Event] = []
    tune(toy.configuration("whole", **SETTINGS), events.append)
    expected = left_by_run(toy.directory / "whole")
    milestones = [event for event in events if isinstance(event, MILESTONES)]
    for moment in range(len(milestones)):
        name = f"killed{moment}"
        left = moment

        def die(event: Event) -> None:
            nonlocal left
            if isinstance(event, MILESTONES):
                if left == 0:
                    raise Killed
                left -= 1

        with pytest.raises(Killed):
            tune(toy.configuration(name, **SETTINGS), die)
        tune(toy.configuration(name, existing="continue", **SETTINGS))
        assert left_by_run(toy.directory / name) == expected, milestones[moment]
        assert_same_stores(toy.directory / "whole", toy.directory / name)


def test_killed_again_and_again(toy: Toy, left_by_run: Files) -> None:
    """The whole program, by ``kill -9`` in each iteration, until it is let through."""
    names = ("input", "reference", "decoder", "moses.ini")
    arguments = [str(toy.directory / name) for name in names]
    arguments += ["--nbest=15", "--random-restarts=1", "--seed=5", "--maximum-iterations=3"]
    arguments += ["--decoder-flags=-delay 0.02", "--quiet"]
    program = [sys.executable, "-c", PROGRAM, *arguments]
    subprocess.run([*program, "--working-dir", str(toy.directory / "whole")], check=True)
    work = toy.directory / "killed"
    chance = random.Random(3)
    for iteration in (1, 2, 2, 3):
        child = subprocess.Popen([*program, "--continue", "--working-dir", str(work)])
        while not (work / f"run{iteration}.dense").exists() and child.poll() is None:
            time.sleep(0.005)
        time.sleep(0.5 * chance.random())
        child.kill()
        child.wait()
    subprocess.run([*program, "--continue", "--working-dir", str(work)], check=True)
    assert left_by_run(work) == left_by_run(toy.directory / "whole")
    assert_same_stores(toy.directory / "whole", work)
