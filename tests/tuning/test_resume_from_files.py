"""A run without its store is taken over from its files."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError
from mosesplug.decoders.description import MosesDecoder
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Note, PhaseStarted
from mosesplug.metrics import metric
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning import Configuration, DecodingSettings, resume, tune
from mosesplug.tuning.resume import find_unstored_iterations
from mosesplug.tuning.workdir.records import IterationStart, read_start
from mosesplug.tuning.workdir.workspace import Workspace

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]


@pytest.mark.parametrize("flags", ["", "-sparse"])
def test_lost_store(toy: Toy, log: Log, left_by_run: Files, flags: str) -> None:
    if flags:
        (toy.directory / "start").write_text("wt_hund 0.5\nwt_mann -0.2\n")
        config = toy.directory / "moses.ini"
        config.write_text(f"[weight-file]\n{toy.directory}/start\n" + config.read_text())
    more = {"flags": flags, "minimum_change": 0.0}
    tune(toy.configuration("whole", maximum_iterations=3, **more))
    tune(toy.configuration(maximum_iterations=2, **more))
    work = toy.directory / "work"
    shutil.rmtree(work / "nbests.lmdb")
    tune(toy.configuration(maximum_iterations=3, existing="continue", **more), log)
    assert any("taking over" in note.text for note in log.of(Note))
    ours, theirs = left_by_run(work), left_by_run(toy.directory / "whole")
    # The score in the header of the third configuration is recomputed.
    assert ours.keys() == theirs.keys()
    for name in ("moses.ini", "run3.dense", "run3.best15.out.gz", "run3.weights.txt"):
        assert ours[name] == theirs[name]


def test_an_interrupted_adoption_is_resumed(toy: Toy, left_by_run: Files) -> None:
    settings = {"maximum_iterations": 2, "minimum_change": 0.0}
    tune(toy.configuration(**settings))
    work = toy.directory / "work"
    expected = left_by_run(work)
    for killed_at in range(4):
        shutil.rmtree(work / "nbests.lmdb")
        seen = 0

        def die(event: object, killed_at: int = killed_at) -> None:
            nonlocal seen
            if isinstance(event, PhaseStarted):
                if seen == killed_at:
                    raise KeyboardInterrupt
                seen += 1

        with contextlib.suppress(KeyboardInterrupt):
            tune(toy.configuration(existing="continue", **settings), die)
        result = tune(toy.configuration(existing="continue", **settings))
        assert len(result.iterations) == 2
        assert left_by_run(work)["moses.ini"] == expected["moses.ini"]


@pytest.mark.parametrize("name", ["run1.dense", "run2.best15.out.gz", "run2.weights.txt"])
def test_incomplete_directories(toy: Toy, name: str) -> None:
    tune(toy.configuration(maximum_iterations=2, minimum_change=0.0))
    work = toy.directory / "work"
    shutil.rmtree(work / "nbests.lmdb")
    (work / name).unlink()
    with pytest.raises(DataError, match=f"cannot be continued: {name} is missing"):
        tune(toy.configuration(existing="continue"))


def test_the_script_may_count_an_iteration_that_it_did_not_begin(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, 15)
    workspace.finished_step.write_text("2\n")
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        assert find_unstored_iterations(workspace, store) == range(1, 2)
        workspace.run(2, "dense").touch()
        assert find_unstored_iterations(workspace, store) == range(1, 3)


def test_a_setting_that_an_older_version_did_not_know_is_no_change(
    toy: Toy, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_older(record: IterationRecord) -> IterationStart:
        start = read_start(record)
        known = {name: value for name, value in start.settings.items() if name != "algorithm"}
        assert known.keys() < start.settings.keys()
        return replace(start, settings=known)

    tune(toy.configuration(maximum_iterations=1))
    monkeypatch.setattr(resume, "read_start", read_older)
    tune(toy.configuration(existing="continue", maximum_iterations=2), log)
    assert not any("other settings" in note.text for note in log.of(Note))


def test_weights_of_another_optimizer_than_mert(toy: Toy) -> None:
    """The script writes them into ``mert.out`` only, and normalizes them when it reads them."""
    tune(toy.configuration(maximum_iterations=1, minimum_change=0.0))
    work = toy.directory / "work"
    shutil.rmtree(work / "nbests.lmdb")
    (work / "run1.weights.txt").write_text("not used\n")
    weights = (4.0, -2.0, 0.0, 1.0, 0.5, 0.5)
    lines = "".join(f"F{number} {weight:g}\n" for number, weight in enumerate(weights))
    (work / "run1.mert.out").write_text(lines)
    result = tune(toy.configuration(maximum_iterations=1, existing="continue"))
    assert result.weights.dense == tuple(weight / 8 for weight in weights)
    shutil.rmtree(work / "nbests.lmdb")
    (work / "run1.weights.txt").write_text("not used\n")
    (work / "run1.mert.out").write_text("F0 0\n")
    with pytest.raises(FormatError, match=r"run1\.mert\.out: all dense weights are missing or 0"):
        tune(toy.configuration(maximum_iterations=1, existing="continue"))
    (work / "run1.mert.out").unlink()
    with pytest.raises(DataError, match=r"run1\.weights\.txt is missing"):
        tune(toy.configuration(maximum_iterations=1, existing="continue"))


def test_other_systems_directory(toy: Toy) -> None:
    work = toy.directory / "work"
    work.mkdir()
    (work / "finished_step.txt").write_text("1\n")
    with pytest.raises(UsageError, match="earlier run"):
        tune(toy.configuration())
    (work / "run1.dense").write_text("LM7= 1\n")
    with pytest.raises(DataError, match="other features"):
        tune(toy.configuration(existing="continue"))
    (work / "finished_step.txt").write_text("one\n")
    with pytest.raises(DataError, match="not a number"):
        tune(toy.configuration(existing="continue"))


@pytest.mark.slow
def test_directory_of_mert_moses(multi30k: Path, tmp_path: Path) -> None:
    """Moses' own run had converged after seven iterations; two of them are taken over here."""
    work = tmp_path / "work"
    work.mkdir()
    for number in (1, 2):
        for name in ("dense", "weights.txt", "best100.out.gz", "out"):
            shutil.copy(multi30k / "mert-work" / f"run{number}.{name}", work)
    (work / "finished_step.txt").write_text("3\n")
    decoder = tmp_path / "moses"
    shown = multi30k / "mert-work" / "features.list"
    decoder.write_text(f"#!{sys.executable} -IS\nprint(open({str(shown)!r}).read())\n")
    decoder.chmod(0o755)
    result = tune(
        Configuration(
            input=multi30k / "text" / "dev.de",
            references=multi30k / "text" / "dev.en",
            config=multi30k / "model" / "moses.ini",
            working_directory=work,
            metric=metric("BLEU", "case:true"),
            decoding=DecodingSettings(MosesDecoder(decoder)),
            maximum_iterations=2,
            existing="continue",
        )
    )
    recorded = (multi30k / "mert-work" / "run2.weights.txt").read_text().split()
    assert result.weights.dense == tuple(map(float, recorded))
    # What Moses' mert reported in its logs.
    assert [i.optimum for i in result.iterations] == pytest.approx([0.4098, 0.408702], abs=1e-6)
