"""Links within a working directory: what is cleared away are they, and never what they lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.tuning.repeats import runs as several_runs
from mosesplug.tuning.workdir.workspace import Workspace


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
