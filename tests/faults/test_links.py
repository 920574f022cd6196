"""Links and pipes within a working directory: no link's target is changed, no command waits."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mosesplug.errors import MosesplugError
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.repeats import runs as several_runs
from mosesplug.tuning.workdir.workspace import Workspace
from tests.tuning.conftest import decoder_in_process, make_toy

__all__ = ["decoder_in_process"]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of someone else, with everything that a run may remove of its own."""
    directory = tmp_path / "outside"
    for name in ("nbests.lmdb/data.mdb", "hypergraph/0.gz", "0.gz", "data.mdb", "run1.out"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"precious")
    for name in ("run2.moses.ini", "moses.ini", "summary.json", "finished_step.txt"):
        (directory / name).write_bytes(b"precious")
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["nbests.lmdb", "hypergraph", "shard.0", "shard.1"])
def test_replacing_a_run_does_not_follow_links(name: str, outside: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    link = work / name
    link.symlink_to(outside)
    (work / "run1.out").symlink_to(outside / "run1.out")
    (work / "summary.json").symlink_to(outside / "summary.json")
    before = contents(outside)
    workspace = Workspace(work, 10)
    with workspace.lock():
        workspace.clear(keep_list=False)
    with workspace.lock():  # and again, as the next run does
        workspace.clear(keep_list=False)
    assert contents(outside) == before
    assert [path.name for path in work.iterdir()] == ["tuning.lock"]


def test_a_store_that_was_being_removed(outside: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".nbests.lmdb.removed").symlink_to(outside)
    before = contents(outside)
    with Workspace(work, 10).lock():
        pass
    assert contents(outside) == before
    assert [path.name for path in work.iterdir()] == ["tuning.lock"]


def test_several_runs(outside: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    place = several_runs.run_directory(work, 2)
    place.symlink_to(outside)
    before = contents(outside)
    several_runs._clear(work, 1)
    assert contents(outside) == before
    assert not place.is_symlink()


@pytest.fixture
def impatient() -> Iterator[None]:
    """Fail instead of waiting for the other end of a pipe."""

    def fail(*_: object) -> None:
        raise AssertionError("it waits")

    earlier = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, earlier)


@pytest.mark.usefixtures("decoder_in_process", "impatient")
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_every_file_of_a_run_that_continues(kind: str, tmp_path: Path) -> None:
    toy = make_toy(tmp_path, 5)
    made = toy.configuration(maximum_iterations=1)
    tune(made)
    work, precious = made.working_directory, tmp_path / "precious"
    shutil.copytree(work, tmp_path / "kept")
    files = [path.relative_to(work) for path in work.rglob("*") if path.is_file()]
    assert len(files) > 12
    for name in files:
        if kind == "link" and name.name in ("run1.best15.out.gz", "run1.out"):
            continue  # a run may begin with a list that is there
        shutil.rmtree(work)
        shutil.copytree(tmp_path / "kept", work)
        shutil.copy(work / name, precious)
        before = precious.read_bytes()
        (work / name).unlink()
        if kind == "pipe":
            os.mkfifo(work / name)
        else:
            (work / name).symlink_to(precious)
        with pytest.raises(MosesplugError, match=name.name):
            tune(replace(made, maximum_iterations=2, existing="continue"))
        assert precious.read_bytes() == before


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_the_table_of_readers_of_a_store(kind: str, tmp_path: Path) -> None:
    """Even a reader writes it."""
    with NBestStore.open(tmp_path / "store", writable=True):
        pass
    table, precious = tmp_path / "store" / "lock.mdb", tmp_path / "precious"
    table.rename(precious)
    if kind == "pipe":
        os.mkfifo(table)
    else:
        table.symlink_to(precious)
    before = precious.read_bytes()
    with pytest.raises(MosesplugError, match=r"lock\.mdb is a link or a pipe"):
        NBestStore.open(tmp_path / "store")
    assert precious.read_bytes() == before
